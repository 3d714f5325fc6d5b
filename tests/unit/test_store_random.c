/* Any batches, tidied or not, reopened or not: every scan of every store equals a naive recount. */
#include "base/mem.h"
#include "tests/support/dice.h"
#include "tests/support/model.h"
#include "tests/support/world.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define KEYS_MAX         320
#define ROUNDS           40
#define ROUNDS_OF_SERVER 6 /* of which each takes a hundred times as long */
#define SERIES_MAX       290

struct game {
    struct world *world;
    struct dice dice;
    struct model model;
    char keys[KEYS_MAX][24];
    int64_t base_ms;
};

static int64_t roll(struct game *g, int64_t below)
{
    return dice_roll(&g->dice, below);
}

/* Mostly now and just before, sometimes the last days, rarely any time at all. */
static int64_t roll_time(struct game *g, int64_t now_ms, bool wide)
{
    int64_t kind = roll(g, 100);
    if (kind == 0)
        return roll(g, world_end_ms());
    if (wide || kind < 5)
        return now_ms - roll(g, 40LL * DAY_MS);
    return now_ms - roll(g, 3 * MINUTE_MS);
}

static void play_batch(struct game *g, int round)
{
    struct world *w = g->world;
    int64_t now_ms = g->base_ms + round * 7LL * HOUR_MS + roll(g, HOUR_MS);
    int64_t counts = roll(g, 120);
    bool wide = roll(g, 4) == 0;
    for (uint32_t s = 0; s < WORLD_SHARDS; s++) {
        if (roll(g, 10) == 0)
            batcher_new_epoch(w->batcher, s);
    }
    for (int64_t i = 0; i < counts; i++) {
        /* the smaller of two: some keys are seen often */
        int64_t a = roll(g, KEYS_MAX), b = roll(g, KEYS_MAX);
        const char *key = g->keys[a < b ? a : b];
        int64_t at_ms = roll_time(g, now_ms, wide), values[] = {1 + roll(g, 3), roll(g, 1000000)};
        batcher_add(w->batcher, (uint32_t)roll(g, WORLD_SHARDS), FIXTURE_PAGES, key, at_ms, values);
        model_add(&g->model, FIXTURE_PAGES, key, at_ms, values);
    }
    world_apply(w, counts);
}

/* The keys that a store sums up under one series: its own, or for `other` all that are not known. */
struct wanted {
    struct store *store; /* whose numbers they are */
    uint32_t series;
    uint64_t *bits; /* NULL: only `series` */
    uint32_t bits_max;
};

static bool is_wanted(void *context, struct slice key)
{
    struct wanted *wanted = context;
    uint32_t series;
    bool found;
    struct err e;
    assert_true(store_series_find(wanted->store, FIXTURE_PAGES, key, &series, &found, &e));
    if (!found)
        series = STORE_SERIES_OTHER;
    if (wanted->bits == NULL)
        return series == wanted->series;
    return series < wanted->bits_max && (wanted->bits[series / 64] >> series % 64 & 1);
}

struct sums {
    struct game *game;
    enum span resolution;
    uint32_t series[8192]; /* one entry per (series, bucket) that a scan named */
    int64_t buckets[8192], values[8192][MODEL_MEASURES];
    size_t count;
};

static void take(void *context, uint32_t series, int64_t bucket_ms, const int64_t *values)
{
    struct sums *sums = context;
    size_t i = 0;
    assert_int_equal(span_floor(sums->resolution, bucket_ms), bucket_ms);
    while (i < sums->count && (sums->series[i] != series || sums->buckets[i] != bucket_ms))
        i++;
    if (i == sums->count) {
        assert_true(++sums->count <= COUNT_OF(sums->series));
        sums->series[i] = series;
        sums->buckets[i] = bucket_ms;
        memset(sums->values[i], 0, sizeof sums->values[i]);
    }
    for (size_t m = 0; m < MODEL_MEASURES; m++)
        sums->values[i][m] = value_add(sums->values[i][m], values[m]);
}

static void roll_set(struct game *g, struct series_set *set, uint64_t bits[8])
{
    set->kind = (int)roll(g, 3) == 0 ? SERIES_ALL : roll(g, 2) == 0 ? SERIES_ONE : SERIES_SET;
    set->one = (uint32_t)roll(g, SERIES_MAX + 1);
    set->bits = bits;
    set->bits_max = (uint32_t)roll(g, 8 * 64 + 1);
    for (int i = 0; i < 8; i++) {
        uint64_t half = (uint64_t)roll(g, INT64_MAX);
        bits[i] = half & (uint64_t)roll(g, INT64_MAX);
    }
}

static bool look_at(void *context, uint32_t series, struct slice key)
{
    (void)context, (void)series, (void)key;
    return true;
}

static void check_scan(struct game *g, struct store *st, int round)
{
    static struct sums sums;
    uint64_t bits[8];
    struct err e;
    struct scan_stats stats = {0};
    struct scan scan = {.report = FIXTURE_PAGES, .rows_max = UINT64_MAX};
    enum span finest = report_cell(&st->reports[FIXTURE_PAGES]);
    scan.resolution = finest + (enum span)roll(g, SPAN_COUNT - (int)finest);
    int64_t length = roll(g, 2) == 0 ? 2LL * HOUR_MS : 50LL * DAY_MS;
    int64_t from = roll(g, 8) == 0 ? 0 : g->base_ms + roll(g, round * 7LL * HOUR_MS + HOUR_MS);
    scan.from_ms = span_floor(scan.resolution, from);
    scan.to_ms = span_floor(scan.resolution, from == 0 ? CIVIL_END_MS : from + roll(g, length));
    roll_set(g, &scan.series, bits);
    sums.game = g;
    sums.resolution = scan.resolution;
    sums.count = 0;
    assert_true(
        store_series_each(st, FIXTURE_PAGES, look_at, NULL, &e)); /* then all numbers mean something */
    assert_true(store_scan(st, &scan, take, &sums, &stats, &e));

    int64_t total = 0;
    for (size_t i = 0; i < sums.count; i++) {
        struct wanted one = {.store = st, .series = sums.series[i]};
        int64_t slot_from = sums.buckets[i], slot_to = span_next(scan.resolution, slot_from);
        assert_true(slot_from >= scan.from_ms && slot_to <= scan.to_ms);
        for (size_t m = 0; m < MODEL_MEASURES && i < 50; m++)
            assert_int_equal(sums.values[i][m],
                             model_sum(&g->model, FIXTURE_PAGES, is_wanted, &one, slot_from, slot_to, m));
        total += sums.values[i][1];
    }
    struct wanted all = {.store = st, .series = scan.series.one, .bits_max = scan.series.bits_max};
    all.bits = scan.series.kind == SERIES_SET ? bits : NULL;
    assert_int_equal(total,
                     model_sum(&g->model, FIXTURE_PAGES, scan.series.kind == SERIES_ALL ? NULL : is_wanted,
                               &all, scan.from_ms, scan.to_ms, 1));
}

static void check_reader(struct game *g, int round)
{
    struct err e;
    struct store *reader = store_open(g->world->url, STORE_READ, NULL, 0, &e);
    assert_non_null(reader);
    check_scan(g, reader, round);
    store_close(reader);
}

static void test_random_batches_equal_a_naive_recount(void **state)
{
    static struct game game;
    struct game *g = &game;
    struct err e;
    memset(g, 0, sizeof *g);
    g->world = *state;
    g->dice = dice_new(world_kind->name);
    g->base_ms = fixture_ms("2015-01-30T21:00");
    g->world->reports[FIXTURE_PAGES].series_max = SERIES_MAX;
    world_reopen(g->world);
    for (int i = 0; i < KEYS_MAX; i++)
        snprintf(g->keys[i], sizeof g->keys[i], "/page/%d", i);
    int rounds = world_is_in_server() ? ROUNDS_OF_SERVER : ROUNDS;
    for (int round = 0; round < rounds; round++) {
        play_batch(g, round);
        if (roll(g, 3) == 0)
            assert_true(store_housekeep(g->world->store, roll(g, 2) == 0, &e));
        if (world_kind->on_disk && roll(g, 10) == 0)
            world_reopen(g->world);
        for (int i = 0; i < 6; i++)
            check_scan(g, g->world->store, round);
        if (world_kind->on_disk)
            check_reader(g, round);
    }
    model_free(&g->model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_random_batches_equal_a_naive_recount, world_setup,
                                        world_teardown),
    };
    int failed = 0;
    for (size_t i = 0; i < world_kind_count(); i++) {
        world_kind = &world_kinds[i];
        failed += cmocka_run_group_tests_name(world_kind->name, tests, NULL, NULL);
    }
    return failed;
}
