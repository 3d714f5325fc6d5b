/* Any events, limits and seals: what the parts hold together is what a naive count of the events is. */
#include "aggregate/dimension.h"
#include "aggregate/sample.h"
#include "aggregate/shard.h"
#include "base/civil.h"
#include "tests/support/dice.h"
#include "verify/recount.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define REPORTS         9
#define END_MS          (UINT32_MAX * (int64_t)SECOND_MS) /* of seconds in a cell */
#define DIMENSION_BYTES 40

static struct report reports[REPORTS];

static void make_report(struct report *r, const char *name, const char *const *dimensions,
                        const char *condition, const char *const (*measures)[2])
{
    struct err e;
    assert_true(report_init(r, slice_text(name), 1, &e));
    r->layout = strcmp(name, "seconds") == 0 ? LAYOUT_MINUTE : LAYOUT_DAY;
    r->one_in = strcmp(name, "few") == 0 ? 5 : strcmp(name, "rare") == 0 ? SAMPLE_MAX : 1;
    for (; *dimensions != NULL; dimensions++)
        assert_true(report_add_dimension(r, slice_text(*dimensions), &e));
    if (condition != NULL)
        assert_true(report_add_condition(r, slice_text(condition), &e));
    for (; measures != NULL && (*measures)[0] != NULL; measures++)
        assert_true(report_add_measure(r, slice_text((*measures)[0]), slice_text((*measures)[1]), &e));
    assert_true(report_finish(r, &e));
}

static int setup_all(void **state)
{
    static const char *const sums[][2] = {{"volume", "sum(bytes)"}, {NULL, NULL}};
    static const char *const three[][2] = {
        {"hits", "count"}, {"volume", "sum(bytes)"}, {"events", "count"}, {NULL, NULL}};
    static const char *const gauges[][2] = {
        {"n", "count"},         {"total", "sum(value)"}, {"low", "min(value)"},    {"high", "max(value)"},
        {"now", "last(value)"}, {"avg", "mean(value)"},  {"codes", "min(status)"}, {NULL, NULL}};
    static const char *const scaled[][2] = {{"hits", "count"},       {"volume", "sum(bytes)"},
                                            {"total", "sum(value)"}, {"size", "mean(bytes)"},
                                            {"avg", "mean(value)"},  {NULL, NULL}};
    (void)state;
    make_report(&reports[0], "site", (const char *const[]){NULL}, "status!=304", NULL);
    make_report(&reports[1], "pages", (const char *const[]){"path", NULL}, NULL, NULL);
    make_report(&reports[2], "segments", (const char *const[]){"path:1", NULL}, "status<400", three);
    make_report(&reports[3], "clients", (const char *const[]){"host", "user", "status_class", NULL}, NULL,
                sums);
    make_report(&reports[4], "nothing", (const char *const[]){"agent", NULL}, "method=NONE", NULL);
    make_report(&reports[5], "gauges", (const char *const[]){"host", NULL}, "value>-4.5", gauges);
    make_report(&reports[6], "seconds", (const char *const[]){"path:1", NULL}, NULL, gauges);
    make_report(&reports[7], "few", (const char *const[]){"path:1", NULL}, "status!=304", scaled);
    make_report(&reports[8], "rare", (const char *const[]){NULL}, NULL, scaled);
    return 0;
}

static int teardown_all(void **state)
{
    (void)state;
    for (size_t i = 0; i < REPORTS; i++)
        report_fini(&reports[i]);
    return 0;
}

struct game {
    struct dice dice;
    struct shard *shard;
    struct part *sealed; /* not given back yet */
    uint64_t sealed_hash;
    struct recount naive[REPORTS], taken[REPORTS];
    struct series **known[REPORTS]; /* of the part's epoch, by number */
    size_t known_count[REPORTS], known_capacity[REPORTS];
    uint32_t epoch;
    int epochs;
    struct books naive_books, taken_books;
    char texts[SHARD_EVENTS_MAX][256];
    int64_t offset; /* of the last event, in each partition */
};

static void set_field(struct event *ev, enum field f, const char *text, size_t len, bool odd)
{
    ev->present |= 1u << f;
    ev->odd |= (uint32_t)odd << f;
    ev->field[f] = slice_of(text, len);
}

static void roll_event(struct game *g, struct event *ev, char text[256], int64_t now_ms, int64_t pages)
{
    static const char *const hosts[] = {"10.0.0.1", "::1", "a", ""};
    static const char *const statuses[] = {"200", "304", "404", "500"};
    struct dice *d = &g->dice;
    memset(ev, 0, sizeof *ev);
    ev->at_ms = dice_roll(d, 200) == 0 ? dice_roll(d, END_MS)
                                       : now_ms - dice_roll(d, dice_roll(d, 8) == 0 ? HOUR_MS : 3000);
    const char *host = hosts[dice_roll(d, 4)], *status = statuses[dice_roll(d, 4)];
    set_field(ev, FIELD_HOST, host, strlen(host), false);
    if (dice_roll(d, 3) == 0)
        set_field(ev, FIELD_USER, "a\\x09\xff user", 12, true);
    if (dice_roll(d, 10) > 0) {
        int n = snprintf(text, 256, "/d%d/%0*d", (int)dice_roll(d, 7), dice_roll(d, 30) == 0 ? 100 : 1,
                         (int)dice_roll(d, pages));
        set_field(ev, FIELD_PATH, text, (size_t)n, false);
    }
    if (dice_roll(d, 20) > 0) {
        set_field(ev, FIELD_STATUS, status, 3, false);
        ev->number[FIELD_STATUS] = strtoll(status, NULL, 10);
    }
    ev->order = record_order(++g->offset, (uint32_t)dice_roll(d, 3));
    if (dice_roll(d, 3) > 0) {
        set_field(ev, FIELD_VALUE, "1", 1, false);
        ev->number[FIELD_VALUE] = dice_roll(d, 10LL * EVENT_SCALE) - 5LL * EVENT_SCALE;
    }
    if (dice_roll(d, 5) > 0) {
        set_field(ev, FIELD_BYTES, "1", 1, false); /* only its number counts */
        ev->number[FIELD_BYTES] = dice_roll(d, 50) == 0 ? EVENT_NUMBER_MAX : dice_roll(d, 10000);
    }
}

static void add_events(struct game *g, int64_t now_ms, int64_t pages)
{
    struct event events[SHARD_EVENTS_MAX];
    size_t count = (size_t)dice_roll(&g->dice, SHARD_EVENTS_MAX + 1);
    struct range range = {.source = "kafka:access"};
    snprintf(range.partition, sizeof range.partition, "%d", (int)dice_roll(&g->dice, 3));
    shard_set_source(g->shard, &range, NULL);
    const struct recount_origin of = {sample_salt(range.source, range.partition), range.source,
                                      range.partition};
    for (size_t i = 0; i < count; i++) {
        roll_event(g, &events[i], g->texts[i], now_ms, pages);
        ++*books_source(&g->naive_books, BOOK_CONSUMED);
        ++*books_source(&g->naive_books, BOOK_PARSED);
        for (size_t r = 0; r < REPORTS; r++) {
            bool counted = recount_add(&g->naive[r], &events[i], &of);
            ++*books_report(&g->naive_books, r, BOOK_REPORT_PARSED);
            ++*books_report(&g->naive_books, r, counted ? BOOK_COUNTED : BOOK_FILTERED);
        }
    }
    shard_add(g->shard, events, count);
    memset(g->texts, '!', sizeof g->texts); /* keys must have been copied */
    memset(events, 0, sizeof events);
}

static void reject_some(struct game *g)
{
    enum reject_reason reason = (enum reject_reason)dice_roll(&g->dice, REJECT_COUNT);
    shard_reject(g->shard, reason);
    ++*books_source(&g->naive_books, BOOK_CONSUMED);
    ++*books_source(&g->naive_books, BOOK_REJECTED + (int)reason);
}

/* Every byte that a writer may read of a part. */
static uint64_t hash_part(const struct part *p)
{
    uint64_t h = 14695981039346656037u;
    for (size_t r = 0; r < p->report_count; r++) {
        const struct part_report *pr = &p->reports[r];
        for (size_t i = 0; i < pr->cells.count * pr->cells.stride; i++)
            h = (h ^ (unsigned char)pr->cells.data[i]) * 1099511628211u;
        for (size_t i = 0; i < pr->added_count; i++) {
            for (size_t k = 0; k < pr->added[i]->key_len; k++)
                h = (h ^ (unsigned char)pr->added[i]->key[k]) * 1099511628211u;
            h = (h ^ pr->added[i]->number) * 1099511628211u;
        }
    }
    for (size_t i = 0; i < books_count(p->report_count); i++)
        h = (h ^ (uint64_t)p->books.entries[i]) * 1099511628211u;
    return h ^ (uint64_t)p->epoch << 32;
}

/* As a store does: numbers to keys, keys to counts. */
static void take_report(struct game *g, size_t r, const struct part_report *pr)
{
    if (pr->added_count > 0)
        assert_int_equal(pr->first_added, g->known_count[r]);
    for (size_t i = 0; i < pr->added_count; i++) {
        struct series *s = pr->added[i];
        assert_int_equal(s->number, g->known_count[r]);
        for (size_t k = 0; k < g->known_count[r] && g->known_count[r] < 200; k++)
            assert_false(slice_equal(slice_of(g->known[r][k]->key, g->known[r][k]->key_len),
                                     slice_of(s->key, s->key_len)));
        g->known[r] = realloc(g->known[r], (g->known_count[r] + 1) * sizeof(struct series *));
        g->known[r][g->known_count[r]++] = s;
    }
    for (size_t i = 0; i < pr->cells.count; i++) {
        const struct cell *c = cells_at(&pr->cells, i);
        assert_true(c->series < g->known_count[r]);
        struct series *s = g->known[r][c->series];
        uint32_t series = recount_series(&g->naive[r], slice_of(s->key, s->key_len));
        assert_int_not_equal(series, UINT32_MAX);
        struct recount_cell *to =
            recount_cells_get(&g->taken[r].cells, series, c->time * report_cell_ms(&reports[r]));
        report_merge(&reports[r], to->columns, c->value);
    }
}

static void take_part(struct game *g)
{
    const struct part *p = g->sealed;
    assert_int_equal(hash_part(p), g->sealed_hash);
    assert_int_equal(p->shard, 7);
    if (p->epoch != g->epoch) {
        assert_int_equal(p->epoch, g->epoch + 1);
        memset(g->known_count, 0, sizeof g->known_count);
        g->epoch = p->epoch;
        g->epochs++;
    }
    for (size_t r = 0; r < REPORTS; r++)
        take_report(g, r, &p->reports[r]);
    assert_true(books_balance(&p->books));
    books_add(&g->taken_books, &p->books);
}

static void give_back(struct game *g)
{
    if (g->sealed == NULL)
        return;
    take_part(g);
    shard_give_back(g->shard, g->sealed);
    g->sealed = NULL;
}

static void seal(struct game *g)
{
    give_back(g);
    g->sealed = shard_seal(g->shard);
    g->sealed_hash = hash_part(g->sealed);
    assert_true(shard_is_empty(g->shard));
    if (shard_must_wait(g->shard)) {
        give_back(g);
        assert_false(shard_must_wait(g->shard));
    }
}

static void check_equal(struct game *g)
{
    for (size_t r = 0; r < REPORTS; r++) {
        const struct recount_cells *naive = &g->naive[r].cells, *taken = &g->taken[r].cells;
        for (size_t i = 0; i <= naive->mask; i++) {
            const struct recount_cell *want = recount_cells_at(naive, i);
            if (want->bucket_ms < 0)
                continue;
            const struct recount_cell *have = recount_cells_find(taken, want->series, want->bucket_ms);
            assert_non_null(have);
            assert_memory_equal(have->columns, want->columns, reports[r].column_count * sizeof(int64_t));
        }
        assert_int_equal(taken->count, naive->count);
    }
    assert_memory_equal(g->taken_books.entries, g->naive_books.entries,
                        books_count(REPORTS) * sizeof(int64_t));
}

static void game_init(struct game *g, struct dice *d, const struct shard_limits *limits)
{
    *g = (struct game){.dice = *d, .shard = shard_new(7, reports, REPORTS, limits)};
    for (size_t r = 0; r < REPORTS; r++) {
        recount_init(&g->naive[r], &reports[r], DIMENSION_BYTES);
        recount_init(&g->taken[r], &reports[r], DIMENSION_BYTES);
    }
    books_init(&g->naive_books, REPORTS);
    books_init(&g->taken_books, REPORTS);
}

static void game_fini(struct game *g)
{
    shard_free(g->shard);
    for (size_t r = 0; r < REPORTS; r++) {
        recount_fini(&g->naive[r]);
        recount_fini(&g->taken[r]);
        free(g->known[r]);
    }
    books_fini(&g->naive_books);
    books_fini(&g->taken_books);
}

static void play(struct game *g, int steps, int64_t pages, int64_t seal_one_in)
{
    int64_t now_ms = 1431857103000;
    for (int i = 0; i < steps; i++) {
        now_ms += dice_roll(&g->dice, 2000);
        if (dice_roll(&g->dice, 10) == 0)
            reject_some(g);
        else
            add_events(g, now_ms, pages);
        if (g->sealed != NULL)
            assert_int_equal(hash_part(g->sealed), g->sealed_hash);
        if (dice_roll(&g->dice, 30) == 0)
            give_back(g);
        if (shard_is_full(g->shard) || dice_roll(&g->dice, seal_one_in) == 0)
            seal(g);
    }
    seal(g);
    give_back(g);
}

static void test_parts_equal_a_naive_count(void **state)
{
    (void)state;
    struct dice d = dice_new("shard");
    int epochs = 0;
    for (int round = 0; round < 40; round++) {
        struct game g;
        struct shard_limits limits = {
            .cells_max = (size_t)dice_roll(&d, 2000) + 1,
            .series_max = (size_t)dice_roll(&d, round % 2 == 0 ? 50 : 5000) + 1,
            .key_bytes_max = round % 5 == 0 ? 1 : 1 << 20,
            .dimension_bytes_max = DIMENSION_BYTES,
        };
        game_init(&g, &d, &limits);
        play(&g, 200, 1 + dice_roll(&d, 4000), 1 + dice_roll(&d, 100));
        check_equal(&g);
        epochs += g.epochs;
        d = g.dice;
        game_fini(&g);
    }
    assert_true(epochs > 10);
}

/* The tables of series and cells grow many times over in one batch. */
static void test_one_large_batch_equals_a_naive_count(void **state)
{
    (void)state;
    struct dice d = dice_new("large");
    struct game g;
    struct shard_limits limits = {1 << 20, 1 << 20, 64 << 20, DIMENSION_BYTES, NULL, 0, 1 << 20};
    game_init(&g, &d, &limits);
    play(&g, 6000, 20000, 1 << 20);
    check_equal(&g);
    assert_true(shard_bytes(g.shard) > 1 << 20);
    game_fini(&g);
}

/* A run of one partition's events: its naive books grow by what the run added to those of all. */
static void play_run(struct game *g, struct books *naive, int events)
{
    size_t count = books_count(REPORTS);
    int64_t *before = malloc(count * sizeof *before);
    memcpy(before, g->naive_books.entries, count * sizeof *before);
    for (int i = 0; i < events; i++)
        add_events(g, 1431857103000 + i * 1000, 50);
    if (dice_roll(&g->dice, 3) == 0)
        reject_some(g);
    for (size_t i = 0; i < count; i++)
        naive->entries[i] += g->naive_books.entries[i] - before[i];
    free(before);
}

/* Two partitions in turn: each gets the books of its own events, and the cells are those of all. */
static void test_books_are_split_between_partitions(void **state)
{
    (void)state;
    struct dice d = dice_new("partitions");
    struct shard_limits limits = {1 << 20, 1 << 20, 64 << 20, DIMENSION_BYTES, NULL, 0, 1 << 20};
    struct game g;
    struct books naive[2], taken[2];
    game_init(&g, &d, &limits);
    for (int i = 0; i < 2; i++) {
        books_init(&naive[i], REPORTS);
        books_init(&taken[i], REPORTS);
    }
    for (int run = 0; run < 60; run++) {
        int p = (int)dice_roll(&g.dice, 2);
        play_run(&g, &naive[p], (int)dice_roll(&g.dice, 4)); /* it may be empty */
        shard_take_books(g.shard, &taken[p]);
        assert_false(shard_is_empty(g.shard));
        assert_memory_equal(taken[p].entries, naive[p].entries, books_count(REPORTS) * sizeof(int64_t));
        if (run % 20 == 19)
            seal(&g);
    }
    give_back(&g);
    assert_int_equal(g.taken_books.entries[BOOK_CONSUMED], 0); /* nothing was left to the parts */
    for (int i = 0; i < 2; i++) {
        assert_true(books_balance(&taken[i]));
        books_add(&g.taken_books, &taken[i]);
        books_fini(&taken[i]);
        books_fini(&naive[i]);
    }
    check_equal(&g);
    game_fini(&g);
}

static void test_empty_shard_seals_to_an_empty_part(void **state)
{
    (void)state;
    struct shard_limits limits = {1, 1, 1, DIMENSION_BYTES, NULL, 0, 1 << 20};
    struct shard *sh = shard_new(3, reports, REPORTS, &limits);
    shard_set_source(sh, &(struct range){.source = "s"}, NULL);
    assert_true(shard_is_empty(sh));
    assert_false(shard_is_full(sh));
    for (int i = 0; i < 3; i++) {
        shard_add(sh, NULL, 0);
        assert_true(shard_is_empty(sh));
        struct part *p = shard_seal(sh);
        for (size_t r = 0; r < REPORTS; r++)
            assert_int_equal(p->reports[r].cells.count + p->reports[r].added_count, 0);
        assert_int_equal(p->books.entries[BOOK_CONSUMED], 0);
        shard_give_back(sh, p);
    }
    shard_reject(sh, REJECT_EMPTY);
    assert_false(shard_is_empty(sh));
    struct part *p = shard_seal(sh);
    assert_int_equal(p->books.entries[BOOK_CONSUMED], 1);
    shard_free(sh);
}

static void test_each_limit_makes_it_full(void **state)
{
    (void)state;
    static const struct shard_limits limits[] = {{3, 100, 1 << 20, DIMENSION_BYTES, NULL, 0, 1 << 20},
                                                 {100, 3, 1 << 20, DIMENSION_BYTES, NULL, 0, 1 << 20},
                                                 {100, 100, 1, DIMENSION_BYTES, NULL, 0, 1 << 20},
                                                 {100, 100, 1 << 20, DIMENSION_BYTES, NULL, 100, 1 << 20}};
    static const int full_after[] = {3, 3, 1, 2};
    static const struct raw raw = {.kind = RAW_ALL};
    static const struct range range = {.source = "s"};
    for (size_t k = 0; k < COUNT_OF(limits); k++) {
        struct shard *sh = shard_new(0, reports, REPORTS, &limits[k]);
        shard_set_source(sh, &range, limits[k].raw_bytes_max > 0 ? &raw : NULL);
        for (int i = 1; i <= 3; i++) {
            char path[8];
            struct event ev = {.at_ms = 1000};
            snprintf(path, sizeof path, "/%d", i);
            set_field(&ev, FIELD_PATH, path, 2, false);
            shard_add(sh, &ev, 1);
            assert_int_equal(shard_is_full(sh), i >= full_after[k]);
        }
        shard_free(sh);
    }
}

/* Memory that raw events took beyond their limit is given back; memory that they need is kept. */
static void test_raw_memory(void **state)
{
    static const struct raw raw = {.kind = RAW_ALL};
    static const struct range range = {.source = "s"};
    static const struct event ev = {.at_ms = 1000};
    static const size_t grown[] = {1000, 1 << 20};
    (void)state;
    for (size_t k = 0; k < COUNT_OF(grown); k++) {
        struct shard_limits limits = {100, 100, 1 << 20, DIMENSION_BYTES, NULL, 1 << 12, 1 << 20};
        struct shard *sh = shard_new(0, reports, REPORTS, &limits);
        shard_set_source(sh, &range, &raw);
        size_t at_first = shard_bytes(sh);
        while (shard_bytes(sh) < at_first + grown[k])
            shard_add(sh, &ev, 1);
        assert_int_equal(shard_is_full_of_raw(sh), k == 1);
        size_t before = shard_bytes(sh);
        shard_give_back(sh, shard_seal(sh));
        assert_int_equal(shard_bytes(sh) < before, k == 1);
        shard_free(sh);
    }
}

/* Sums stay at the end of int64. */
static void test_sums_saturate(void **state)
{
    (void)state;
    struct shard_limits limits = {100, 100, 1 << 20, DIMENSION_BYTES, NULL, 0, 1 << 20};
    struct shard *sh = shard_new(0, reports, REPORTS, &limits);
    shard_set_source(sh, &(struct range){.source = "s"}, NULL);
    struct event events[SHARD_EVENTS_MAX] = {{.at_ms = 0}};
    for (int i = 0; i < SHARD_EVENTS_MAX; i++) {
        set_field(&events[i], FIELD_BYTES, "1", 1, false);
        events[i].number[FIELD_BYTES] = EVENT_NUMBER_MAX;
    }
    for (int i = 0; i < (1 << 17) / SHARD_EVENTS_MAX + 10; i++)
        shard_add(sh, events, SHARD_EVENTS_MAX);
    struct part *p = shard_seal(sh);
    assert_int_equal(cells_at(&p->reports[1].cells, 0)->value[0], (1 << 17) + 10 * SHARD_EVENTS_MAX);
    assert_true(cells_at(&p->reports[1].cells, 0)->value[1] == INT64_MAX);
    assert_true(cells_at(&p->reports[3].cells, 0)->value[0] == INT64_MAX);
    shard_free(sh);
}

/* Each report has its own mark, which others move; what the filter leaves out was never late. */
static void test_events_before_the_watermark_are_late(void **state)
{
    _Atomic int64_t late_ms[REPORTS] = {0, 2000, 1001};
    struct shard_limits limits = {100, 100, 1 << 20, DIMENSION_BYTES, late_ms, 0, 1 << 20};
    struct shard *sh = shard_new(0, reports, REPORTS, &limits);
    shard_set_source(sh, &(struct range){.source = "s"}, NULL);
    struct event events[3] = {{.at_ms = 1000}, {.at_ms = 1001}, {.at_ms = 2000}};
    (void)state;
    shard_add(sh, events, 3);
    late_ms[1] = 3000;
    shard_add(sh, events, 3);
    struct part *p = shard_seal(sh);
    assert_true(books_balance(&p->books));
    for (size_t r = 0; r < REPORTS; r++) {
        int64_t late = *books_report(&p->books, r, BOOK_LATE);
        int64_t filtered = *books_report(&p->books, r, BOOK_FILTERED);
        assert_int_equal(late + filtered, filtered == 6 ? 6 : r == 1 ? 5 : r == 2 ? 2 : 0);
    }
    shard_free(sh);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parts_equal_a_naive_count),
        cmocka_unit_test(test_one_large_batch_equals_a_naive_count),
        cmocka_unit_test(test_books_are_split_between_partitions),
        cmocka_unit_test(test_empty_shard_seals_to_an_empty_part),
        cmocka_unit_test(test_each_limit_makes_it_full),
        cmocka_unit_test(test_raw_memory),
        cmocka_unit_test(test_sums_saturate),
        cmocka_unit_test(test_events_before_the_watermark_are_late),
    };
    return cmocka_run_group_tests(tests, setup_all, teardown_all);
}
