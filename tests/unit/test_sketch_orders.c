/* The same events in any order, cut into batches in any way, counted by any number of threads, by writers
 * that die within a write: every time bucket of every resolution has the same bits, columns and packed
 * sketches. TALLYD_ROUNDS plays more orders. */
#include "aggregate/shard.h"
#include "base/mem.h"
#include "store/backend/backend.h"
#include "store/reader.h"
#include "store/writer.h"
#include "tests/support/dice.h"
#include "tests/support/fault_vfs.h"
#include "tests/support/scratch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#define ROUNDS      20 /* of each kind of store */
#define EVENTS      1200
#define BUSY_EVENTS 800 /* of one minute: more texts than a sketch has entries for */
#define SHARDS      3
#define REPORTS     2
#define SKETCHES    5
#define BUCKETS_MAX 8192
#define HOST_BYTES  12
#define BEGIN_MS    INT64_C(1767571200000) /* 2026-01-05 */

struct game {
    struct dice dice;
    struct report reports[REPORTS];
    enum field latency;
    struct event events[EVENTS];
    char hosts[EVENTS][HOST_BYTES];
    size_t order[EVENTS];
    char paths[2][128]; /* of the store, and of what a crash leaves of it */
    const char *scheme;
    size_t here; /* which of the paths it is */
    struct store *store;
    struct shard *shards[SHARDS];
    bool crashed; /* within the batch that is being applied */
};

/* A time bucket: whatever is said of it is merged. */
struct bucket {
    size_t report;
    enum span span;
    uint32_t series;
    int64_t at_ms;
    int64_t columns[REPORT_COLUMNS_MAX];
    union sketch sketches[SKETCHES];
};

struct state {
    const struct game *game;
    size_t report;
    enum span span;
    struct bucket *buckets; /* open addressing */
    struct arena memory;
};

static size_t roll(struct game *g, size_t below)
{
    return (size_t)dice_roll(&g->dice, (int64_t)below);
}

static void must(bool good, const struct err *e)
{
    if (!good)
        fail_msg("%s", e->text);
}

static void make_report(struct report *r, const char *name, const char *dimension)
{
    static const char *const measures[][2] = {
        {"hits", "count"},
        {"size", "histogram(bytes)"},
        {"latency", "histogram(latency)"},
        {"coarse", "histogram(latency, hour=3, day=1, month=-2, zero=1)"},
        {"visitors", "distinct(host)"},
        {"pairs", "distinct(host, path)"}};
    struct err e;
    must(report_init(r, slice_text(name), 1, &e), &e);
    if (dimension != NULL)
        must(report_add_dimension(r, slice_text(dimension), &e), &e);
    for (size_t i = 0; i < COUNT_OF(measures); i++)
        must(report_add_measure(r, slice_text(measures[i][0]), slice_text(measures[i][1]), &e), &e);
    must(report_finish(r, &e), &e);
    assert_int_equal(r->sketch_count, SKETCHES);
}

static void make_events(struct game *g)
{
    static const char *const paths[] = {"/", "/a", "/b/c", "/rare"};
    for (size_t i = 0; i < EVENTS; i++) {
        struct event *ev = &g->events[i];
        const bool is_busy = i < BUSY_EVENTS;
        int len = snprintf(g->hosts[i], HOST_BYTES, "h%zu", roll(g, 2 * EVENTS));
        ev->at_ms = BEGIN_MS + (is_busy ? dice_roll(&g->dice, MINUTE_MS) : dice_roll(&g->dice, 40 * HOUR_MS));
        ev->field[FIELD_PATH] = slice_text(paths[is_busy ? 0 : roll(g, COUNT_OF(paths))]);
        ev->field[FIELD_HOST] = slice_of(g->hosts[i], (size_t)len);
        ev->number[FIELD_BYTES] = dice_roll(&g->dice, INT64_C(1) << roll(g, 40));
        ev->number[g->latency] = dice_roll(&g->dice, INT64_C(1) << roll(g, 40)) - 1000;
        ev->present = (uint64_t)1 << FIELD_PATH | (uint64_t)1 << FIELD_HOST;
        ev->present |= (uint64_t)(roll(g, 10) > 0) << FIELD_BYTES | (uint64_t)1 << g->latency;
        ev->numeric = (uint64_t)(roll(g, 10) > 0) << g->latency;
        g->order[i] = i;
    }
}

/* ---- the state */

static struct bucket *find_bucket(struct state *s, uint32_t series, int64_t at_ms)
{
    const uint64_t words[] = {s->report, s->span, series, (uint64_t)at_ms};
    size_t at = XXH3_64bits(words, sizeof words) % BUCKETS_MAX;
    for (struct bucket *b;; at = (at + 1) % BUCKETS_MAX) {
        b = &s->buckets[at];
        if (b->at_ms == 0)
            *b = (struct bucket){.report = s->report, .span = s->span, .series = series, .at_ms = at_ms};
        if (b->report == s->report && b->span == s->span && b->series == series && b->at_ms == at_ms)
            return b;
    }
}

static void take_columns(void *context, uint32_t series, int64_t at_ms, const int64_t *values)
{
    struct state *s = context;
    report_merge(&s->game->reports[s->report], find_bucket(s, series, at_ms)->columns, values);
}

static bool take_sketch(void *context, uint32_t series, int64_t at_ms, size_t sketch, struct slice packed,
                        struct err *e)
{
    struct state *s = context;
    const struct measure *m = report_sketched(&s->game->reports[s->report], sketch);
    (void)e;
    assert_true(measure_merge_sketch(m, s->span, &find_bucket(s, series, at_ms)->sketches[sketch], &s->memory,
                                     packed));
    return true;
}

/* The sum of the hashes of all buckets, by the keys of series: their numbers depend on the order. */
struct series_hash {
    struct state *state;
    uint64_t sum;
};

static bool add_series(void *context, uint32_t series, struct slice key)
{
    struct series_hash *h = context;
    struct text bytes = {0};
    for (const struct bucket *b = h->state->buckets; b < h->state->buckets + BUCKETS_MAX; b++) {
        const struct report *r = &h->state->game->reports[b->report];
        if (b->at_ms == 0 || b->report != h->state->report || b->series != series)
            continue;
        text_clear(&bytes);
        text_add(&bytes, key.ptr, key.len);
        text_printf(&bytes, " %d %lld ", (int)b->span, (long long)b->at_ms);
        text_add(&bytes, (const char *)b->columns, r->column_count * sizeof *b->columns);
        for (size_t i = 0; i < r->sketch_count; i++)
            sketch_pack(measure_sketch_kind(report_sketched(r, i)), &b->sketches[i], &bytes);
        h->sum += XXH3_64bits_withSeed(bytes.ptr, bytes.len, b->report);
    }
    text_fini(&bytes);
    return true;
}

static uint64_t hash_of_state(struct game *g)
{
    struct state s = {.game = g, .buckets = xcalloc(BUCKETS_MAX, sizeof *s.buckets)};
    struct series_hash h = {.state = &s};
    struct scan_stats stats = {0};
    struct err e;
    arena_init(&s.memory, 1 << 16);
    for (s.report = 0; s.report < REPORTS; s.report++) {
        for (s.span = SPAN_MINUTE; s.span < SPAN_COUNT; s.span++) {
            struct scan scan = {.report = s.report,
                                .resolution = s.span,
                                .to_ms = CIVIL_END_MS,
                                .series = {.kind = SERIES_ALL},
                                .rows_max = UINT64_MAX,
                                .sketch = take_sketch};
            must(store_scan(g->store, &scan, take_columns, &s, &stats, &e), &e);
        }
        must(store_series_each(g->store, s.report, add_series, &h, &e), &e);
    }
    arena_fini(&s.memory);
    free(s.buckets);
    return h.sum;
}

/* ---- a writer that dies */

static void copy_file(const char *from, const char *to, const char *suffix)
{
    char paths[2][160], block[1 << 16];
    snprintf(paths[0], sizeof paths[0], "%s%s", from, suffix);
    snprintf(paths[1], sizeof paths[1], "%s%s", to, suffix);
    unlink(paths[1]);
    FILE *in = fopen(paths[0], "r");
    if (in == NULL)
        return;
    FILE *out = fopen(paths[1], "w");
    assert_non_null(out);
    for (size_t n; (n = fread(block, 1, sizeof block, in)) > 0;)
        assert_int_equal(fwrite(block, 1, n, out), n);
    fclose(in);
    fclose(out);
}

/* Keeps what is on the disk now, without the state of a process (PATH-shm). */
static void crash(void *context)
{
    struct game *g = context;
    copy_file(g->paths[g->here], g->paths[!g->here], "");
    copy_file(g->paths[g->here], g->paths[!g->here], "-wal");
    g->crashed = true;
}

static void open_writer(struct game *g)
{
    static const struct shard_limits limits = {1 << 20, 1 << 20, (size_t)16 << 20, 512,
                                               NULL,    0,       (size_t)64 << 20};
    char url[160];
    struct err e;
    snprintf(url, sizeof url, "%s:%s", g->scheme, strcmp(g->scheme, "mem") == 0 ? "" : g->paths[g->here]);
    g->store = store_open(url, STORE_WRITE, g->reports, REPORTS, &e);
    must(g->store != NULL, &e);
    for (uint32_t i = 0; i < SHARDS; i++)
        g->shards[i] = shard_new(i, g->reports, REPORTS, &limits);
}

static void close_writer(struct game *g)
{
    store_close(g->store);
    for (size_t i = 0; i < SHARDS; i++)
        shard_free(g->shards[i]);
}

static void unlink_store(const char *path)
{
    static const char *const suffixes[] = {"", "-wal", "-shm", "-lock"};
    for (size_t i = 0; i < COUNT_OF(suffixes); i++) {
        char name[160];
        snprintf(name, sizeof name, "%s%s", path, suffixes[i]);
        unlink(name);
    }
}

static bool take_next(void *context, const struct position *p)
{
    *(int64_t *)context = p->range.to;
    return true;
}

static int64_t stored(struct game *g)
{
    int64_t next = 0;
    struct err e;
    must(store_positions(g->store, take_next, &next, &e), &e);
    return next;
}

/* Counts events from a position on, in calls of a few, each by some thread. */
static void count(struct game *g, size_t from, size_t to)
{
    static struct event events[SHARD_EVENTS_MAX];
    while (from < to) {
        size_t n = 1 + roll(g, SHARD_EVENTS_MAX);
        n = n < to - from ? n : to - from;
        for (size_t i = 0; i < n; i++)
            events[i] = g->events[g->order[from + i]];
        shard_add(g->shards[roll(g, SHARDS)], events, n);
        from += n;
    }
}

static void apply(struct game *g, size_t from, size_t to)
{
    struct range range = {.source = "access", .from = (int64_t)from, .to = (int64_t)to};
    struct part *parts[SHARDS];
    struct books books;
    struct err e;
    books_init(&books, REPORTS);
    for (size_t i = 0; i < SHARDS; i++) {
        shard_take_books(g->shards[i], &books);
        parts[i] = shard_seal(g->shards[i]);
    }
    const struct batch batch = {
        .ranges = &range, .books = &books, .range_count = 1, .parts = parts, .part_count = SHARDS};
    must(store_apply(g->store, &batch, &e), &e);
    if (roll(g, 3) == 0)
        must(store_housekeep(g->store, roll(g, 2) == 0, &e), &e);
    for (size_t i = 0; i < SHARDS; i++)
        shard_give_back(g->shards[i], parts[i]);
    books_fini(&books);
}

static void say_problem(void *context, const char *problem)
{
    (void)context;
    fail_msg("%s", problem);
}

static uint64_t play(struct game *g)
{
    for (size_t i = EVENTS - 1; i > 0; i--) {
        const size_t other = roll(g, i + 1), event = g->order[i];
        g->order[i] = g->order[other];
        g->order[other] = event;
    }
    g->here = 0;
    open_writer(g);
    for (size_t at = 0; at < EVENTS; at = (size_t)stored(g)) {
        const size_t most = EVENTS - at, n = 1 + roll(g, roll(g, 2) == 0 ? most : most / 8 + 1);
        fault_vfs.crash_at = roll(g, 2) == 0 ? fault_vfs.calls + 1 + roll(g, 40) : 0;
        count(g, at, at + n);
        apply(g, at, at + n);
        fault_vfs.crash_at = 0;
        if (g->crashed) {
            close_writer(g);
            unlink_store(g->paths[g->here]);
            g->here = !g->here;
            g->crashed = false;
            open_writer(g);
        }
    }
    struct err e;
    must(store_check(g->store, say_problem, NULL, &e), &e); /* what is stored is as wide as it is to be */
    const uint64_t hash = hash_of_state(g);
    close_writer(g);
    unlink_store(g->paths[g->here]);
    return hash;
}

static void test_any_order_has_the_same_bits(void **state)
{
    static struct game game;
    static const char *const schemes[] = {"mem", "sqlite"};
    const char *rounds_text = getenv("TALLYD_ROUNDS");
    const int rounds = rounds_text != NULL ? atoi(rounds_text) : ROUNDS;
    uint64_t expected = 0;
    struct game *g = &game;
    (void)state;
    g->dice = dice_new("orders");
    assert_true(field_intern(slice_text("latency"), &g->latency));
    make_report(&g->reports[0], "site", NULL);
    make_report(&g->reports[1], "pages", "path");
    make_events(g);
    snprintf(g->paths[0], sizeof g->paths[0], "%s", scratch_path(&scratch_own, "orders.db"));
    snprintf(g->paths[1], sizeof g->paths[1], "%s", scratch_path(&scratch_own, "crashed.db"));
    fault_vfs_register();
    fault_vfs_reset();
    fault_vfs.crash = crash;
    fault_vfs.context = g;
    for (size_t s = 0; s < COUNT_OF(schemes); s++) {
        g->scheme = schemes[s];
        for (int round = 0; round < rounds; round++) {
            const uint64_t hash = play(g);
            expected = expected == 0 ? hash : expected;
            assert_true(hash == expected);
        }
    }
    for (size_t i = 0; i < REPORTS; i++)
        report_fini(&g->reports[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_any_order_has_the_same_bits, scratch_set_up, scratch_tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
