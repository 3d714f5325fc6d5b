/* Bodies hold what was merged into them, whatever the order; damaged ones are refused or read, within their
 * bytes. Every body lies in memory of exactly its length, so that the sanitizer sees a byte too many. */
#include "aggregate/report.h"
#include "base/check.h"
#include "store/sqlite/body.h"
#include "tests/support/dice.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

/* Reports of 1 to 8 measures: only counts and sums, then a mixture, then one with sketches, then as wide as
 * can be. */
#define SHAPES   (REPORT_MEASURES_MAX + 3)
#define SKETCHED (REPORT_MEASURES_MAX + 1)
#define SKETCHES 2
#define POOL     6 /* sketches of each kind, the first one empty */
static struct report shapes[SHAPES];

static struct text pool[SKETCHES][POOL];
static union sketch pool_sketches[SKETCHES][POOL];
static struct arena pool_memory;
static struct text loose; /* working memory of body_each() */

static void make_pool(void)
{
    arena_init(&pool_memory, 4096);
    for (uint64_t n = 1; n < POOL; n++) {
        union sketch *histogram = &pool_sketches[0][n], *distinct = &pool_sketches[1][n];
        for (uint64_t i = 0; i < n * n * n * 4 - 3; i++) {
            histogram_add(&histogram->histogram, &pool_memory, (int32_t)(i * n % 200) - 20, (int64_t)(i + 1));
            distinct_add(&distinct->distinct, &pool_memory, (n * 1000 + i) * 0x9E3779B97F4A7C15u);
        }
        sketch_pack(SKETCH_HISTOGRAM, histogram, &pool[0][n]);
        sketch_pack(SKETCH_DISTINCT, distinct, &pool[1][n]);
    }
}

static int make_shapes(void **state)
{
    static const char *const mixture[] = {"count",       "sum(value)",  "min(value)", "max(value)",
                                          "last(value)", "mean(value)", "min(bytes)", "last(bytes)"};
    static const char *const sketched[][2] = {
        {"a", "count"}, {"b", "histogram(value)"}, {"c", "max(value)"}, {"d", "distinct(host)"}};
    struct err e;
    (void)state;
    make_pool();
    for (size_t i = 0; i < SHAPES; i++) {
        bool is_widest = i == SHAPES - 1, is_mixed = i >= REPORT_MEASURES_MAX && i != SKETCHED;
        assert_true(report_init(&shapes[i], slice_text("shape"), 1, &e));
        for (size_t m = 0; i == SKETCHED && m < COUNT_OF(sketched); m++)
            assert_true(
                report_add_measure(&shapes[i], slice_text(sketched[m][0]), slice_text(sketched[m][1]), &e));
        for (size_t m = 0; i != SKETCHED && m < (is_mixed ? REPORT_MEASURES_MAX : i + 1); m++) {
            char name[2] = {(char)('a' + m), '\0'};
            const char *expression = is_widest ? "last(value)" : is_mixed ? mixture[m] : "sum(bytes)";
            assert_true(report_add_measure(&shapes[i], slice_text(name), slice_text(expression), &e));
        }
        assert_true(report_finish(&shapes[i], &e));
    }
    return 0;
}

static int free_shapes(void **state)
{
    struct text *all = &pool[0][0];
    (void)state;
    for (size_t i = 0; i < SHAPES; i++)
        report_fini(&shapes[i]);
    for (size_t i = 0; i < (size_t)SKETCHES * POOL; i++)
        text_fini(all + i);
    text_fini(&loose);
    arena_fini(&pool_memory);
    return 0;
}

/* The expected content of a body: a place for everything that it can hold. */
struct map {
    const struct report *report;
    bool is_there[BODY_SERIES][BODY_SLOTS];
    struct text sketches[BODY_SERIES][BODY_SLOTS][SKETCHES]; /* packed */
    int64_t values[BODY_SERIES][BODY_SLOTS][REPORT_COLUMNS_MAX];
};

static int64_t roll_value(struct dice *d)
{
    switch (dice_roll(d, 20)) {
    case 0:
        return INT64_MAX - dice_roll(d, 3);
    case 1:
        return INT64_MIN + dice_roll(d, 3);
    case 2:
        return -dice_roll(d, 1000000);
    default:
        return dice_roll(d, dice_roll(d, 2) == 0 ? 10 : INT64_MAX);
    }
}

/* Any sums; of other measures what an event says, since not every row of columns means something. */
static void roll_row(struct dice *d, const struct report *r, int64_t *values)
{
    struct event ev = {.at_ms = dice_roll(d, 3), .order = roll_value(d)};
    ev.present = (uint64_t)1 << FIELD_BYTES | (uint64_t)1 << FIELD_VALUE;
    ev.number[FIELD_BYTES] = dice_roll(d, 1000);
    ev.number[FIELD_VALUE] = roll_value(d) % (EVENT_DECIMAL_MAX + 1);
    memset(values, 0, r->column_count * sizeof *values);
    for (size_t i = 0; i < r->measure_count; i++) {
        if (r->is_additive)
            values[i] = roll_value(d);
        else
            measure_add(&r->measures[i], values + r->measures[i].column, &ev);
    }
}

static struct map map;
static struct body_item body_items[BODY_SERIES * BODY_SLOTS];
static int64_t item_values[BODY_SERIES * BODY_SLOTS * REPORT_COLUMNS_MAX];
static union sketch item_sketches[BODY_SERIES * BODY_SLOTS][SKETCHES];

/* The sketches of an item: random ones of the pool. They are merged into the map, too. */
static void roll_sketches(struct dice *d, struct map *m, uint32_t series, uint32_t slot,
                          union sketch *sketches)
{
    static struct sketch_work work;
    for (size_t i = 0; i < m->report->sketch_count; i++) {
        struct text *expected = &m->sketches[series][slot][i], joined = {0};
        const size_t rolled = (size_t)dice_roll(d, POOL);
        sketches[i] = pool_sketches[i][rolled];
        assert_true(sketch_join(measure_sketch_kind(report_sketched(m->report, i)), text_slice(expected),
                                text_slice(&pool[i][rolled]), &work, &joined));
        text_fini(expected);
        *expected = joined;
    }
    sketch_work_fini(&work);
}

/* Sorted items without duplicates, each in the map too. */
static size_t roll_items(struct dice *d, struct map *m, struct body_item *items, int64_t *values)
{
    size_t count = 0;
    int64_t series_one_in = 1 + dice_roll(d, 40), slot_one_in = 1 + dice_roll(d, 30);
    for (uint32_t s = 0; s < BODY_SERIES; s++) {
        bool wanted = dice_roll(d, series_one_in) == 0;
        for (uint32_t slot = 0; wanted && slot < BODY_SLOTS; slot++) {
            if (dice_roll(d, slot_one_in) != 0)
                continue;
            int64_t *to = m->values[s][slot];
            m->is_there[s][slot] = true;
            items[count] = (struct body_item){s, slot, values, item_sketches[count]};
            roll_sketches(d, m, s, slot, item_sketches[count]);
            roll_row(d, m->report, values);
            report_merge(m->report, to, values);
            values += m->report->column_count;
            count++;
        }
    }
    return count;
}

struct check {
    const struct map *map;
    const struct body_want *want;
    uint32_t series, slot;
    size_t count;
};

static bool check_slot(void *context, uint32_t series, uint32_t slot, const int64_t *values,
                       const struct slice *sketches)
{
    struct check *c = context;
    assert_true(series < BODY_SERIES && slot < BODY_SLOTS && c->map->is_there[series][slot]);
    assert_true((c->want->series[series / 64] >> series % 64) & 1);
    assert_true(slot >= c->want->first && slot < c->want->end);
    assert_true(c->count == 0 || series > c->series || (series == c->series && slot < c->slot));
    assert_memory_equal(values, c->map->values[series][slot], c->map->report->column_count * sizeof *values);
    for (size_t i = 0; i < c->map->report->sketch_count; i++)
        assert_true((c->want->sketches >> i & 1) == 0 ||
                    slice_equal(sketches[i], text_slice(&c->map->sketches[series][slot][i])));
    c->series = series;
    c->slot = slot;
    c->count++;
    return true;
}

static void check_body(struct dice *d, struct slice body, const struct map *m)
{
    struct body_want wants[3] = {{{UINT64_MAX, UINT64_MAX}, 0, BODY_SLOTS, UINT64_MAX},
                                 {{0, 0}, 0, BODY_SLOTS, UINT64_MAX}};
    for (size_t i = 0; i < BODY_SERIES / 64; i++)
        wants[2].series[i] = (uint64_t)dice_roll(d, INT64_MAX);
    wants[2].sketches = (uint64_t)dice_roll(d, 4);
    wants[2].first = (uint32_t)dice_roll(d, BODY_SLOTS);
    wants[2].end = wants[2].first + (uint32_t)dice_roll(d, BODY_SLOTS - wants[2].first);
    for (size_t k = 0; k < COUNT_OF(wants); k++) {
        const struct body_want *w = &wants[k];
        struct check c = {.map = m, .want = w};
        size_t expected = 0;
        assert_true(body_each(body, m->report, w, check_slot, &c, &loose));
        for (uint32_t s = 0; s < BODY_SERIES; s++) {
            for (uint32_t slot = w->first; slot < w->end; slot++)
                expected += m->is_there[s][slot] && ((w->series[s / 64] >> s % 64) & 1);
        }
        assert_int_equal(c.count, expected);
    }
}

/* A copy in memory of just its length. */
static char *exact(struct slice body)
{
    char *copy = malloc(body.len > 0 ? body.len : 1);
    if (body.len > 0)
        memcpy(copy, body.ptr, body.len);
    return copy;
}

static void clear_sketches(struct map *m)
{
    struct text *all = &m->sketches[0][0][0];
    for (size_t i = 0; i < (size_t)BODY_SERIES * BODY_SLOTS * SKETCHES; i++)
        text_fini(all + i);
}

static void clear_map(void)
{
    clear_sketches(&map);
    memset(&map, 0, sizeof map);
}

/* A body after some random merges, in `out`; the map holds the same. */
static void roll_body(struct dice *d, const struct report *r, int merges, struct body_buffer *out)
{
    struct body_buffer next = {0};
    clear_map();
    map.report = r;
    out->len = 0;
    for (int i = 0; i < merges; i++) {
        size_t count = roll_items(d, &map, body_items, item_values);
        struct slice old = slice_of((const char *)out->data, out->len);
        char *copy = exact(old);
        next.packs_tight = dice_roll(d, 2) == 0; /* an older version wrote some slots */
        assert_true(body_merge(slice_of(copy, old.len), body_items, count, r, &next));
        free(copy);
        struct body_buffer swap = *out;
        *out = next;
        next = swap;
        check_body(d, slice_of((const char *)out->data, out->len), &map);
    }
    body_buffer_fini(&next);
}

static void test_merged_bodies_equal_a_map(void **state)
{
    (void)state;
    struct dice d = dice_new("body");
    struct body_buffer body = {0};
    for (int round = 0; round < 64; round++)
        roll_body(&d, &shapes[round % SHAPES], 1 + (int)dice_roll(&d, 8), &body);
    body_buffer_fini(&body);
}

static void test_merge_of_nothing_changes_nothing(void **state)
{
    (void)state;
    struct dice d = dice_new("nothing");
    const struct report *two = &shapes[1];
    struct body_buffer body = {0}, same = {0};
    assert_true(body_merge(slice_of(NULL, 0), body_items, 0, two, &same));
    assert_int_equal(same.len, 0);
    roll_body(&d, two, 3, &body);
    assert_true(body_merge(slice_of((const char *)body.data, body.len), body_items, 0, two, &same));
    assert_int_equal(same.len, body.len);
    assert_memory_equal(same.data, body.data, body.len);
    body_buffer_fini(&body);
    body_buffer_fini(&same);
}

/* The biggest body there is: every slot of every series, every value as long as can be. */
static void test_fullest_body_merges(void **state)
{
    (void)state;
    static int64_t least[REPORT_COLUMNS_MAX];
    const struct report *widest = &shapes[SHAPES - 1];
    struct body_buffer once = {0}, twice = {0};
    assert_int_equal(widest->column_count, REPORT_COLUMNS_MAX);
    struct dice d = {1};
    clear_map();
    map.report = widest;
    for (size_t m = 0; m < REPORT_COLUMNS_MAX; m++)
        least[m] = INT64_MIN;
    for (uint32_t i = 0; i < BODY_SERIES * BODY_SLOTS; i++) {
        body_items[i] = (struct body_item){i / BODY_SLOTS, i % BODY_SLOTS, least, NULL};
        map.is_there[i / BODY_SLOTS][i % BODY_SLOTS] = true;
        memcpy(map.values[i / BODY_SLOTS][i % BODY_SLOTS], least, sizeof least);
    }
    assert_true(body_merge(slice_of(NULL, 0), body_items, COUNT_OF(body_items), widest, &once));
    assert_true(body_merge(slice_of((const char *)once.data, once.len), body_items, COUNT_OF(body_items),
                           widest, &twice));
    check_body(&d, slice_of((const char *)once.data, once.len), &map);
    check_body(&d, slice_of((const char *)twice.data, twice.len), &map);
    body_buffer_fini(&once);
    body_buffer_fini(&twice);
}

static bool count_slot(void *context, uint32_t series, uint32_t slot, const int64_t *values,
                       const struct slice *sketches)
{
    (void)sketches;
    assert_true(series < BODY_SERIES && slot < BODY_SLOTS);
    *(int64_t *)context += values[0] != 0;
    return true;
}

/* Both ways to read it stay within its bytes. A merge makes another body of a damaged one. */
static bool survive(struct dice *d, struct slice body, const struct report *r)
{
    static const struct body_want all = {{UINT64_MAX, UINT64_MAX}, 0, BODY_SLOTS, UINT64_MAX};
    static struct map ignored;

    struct body_buffer out = {0};
    int64_t count = 0;
    char *copy = exact(body);
    clear_sketches(&ignored);
    ignored.report = r;
    size_t n = roll_items(d, &ignored, body_items, item_values);
    bool good = body_each(slice_of(copy, body.len), r, &all, count_slot, &count, &loose);
    bool merges = body_merge(slice_of(copy, body.len), body_items, n, r, &out);
    assert_true(merges || !good || r->sketch_count > 0); /* reading does not decode sketches, merging does */
    if (merges) {
        char *again = exact(slice_of((const char *)out.data, out.len));
        (void)body_each(slice_of(again, out.len), r, &all, count_slot, &count, &loose);
        free(again);
    }
    body_buffer_fini(&out);
    free(copy);
    return good;
}

static void test_truncated_body_never_reads_outside(void **state)
{
    (void)state;
    struct dice d = dice_new("truncated");
    struct body_buffer body = {0};
    do
        roll_body(&d, &shapes[2], 2, &body);
    while (body.len < 200 || body.len > 3000);
    int refused = 0;
    for (size_t len = 0; len < body.len; len++)
        refused += !survive(&d, slice_of((const char *)body.data, len), &shapes[2]);
    assert_true(refused > 0);
    body_buffer_fini(&body);
}

static void test_damaged_body_never_reads_outside(void **state)
{
    (void)state;
    struct dice d = dice_new("damaged");
    struct body_buffer body = {0};
    int refused = 0;
    for (int round = 0; round < 3000; round++) {
        const struct report *r = &shapes[dice_roll(&d, SHAPES)];
        if (round % 50 == 0 || body.len == 0)
            roll_body(&d, r, 1 + (int)dice_roll(&d, 3), &body);
        char *bad = exact(slice_of((const char *)body.data, body.len));
        for (int64_t n = dice_roll(&d, 4); n >= 0 && body.len > 0; n--)
            bad[dice_roll(&d, (int64_t)body.len)] = (char)dice_roll(&d, 256);
        refused += !survive(&d, slice_of(bad, body.len), r);
        free(bad);
    }
    assert_true(refused > 100);
    body_buffer_fini(&body);
}

static void test_random_bytes_never_read_outside(void **state)
{
    (void)state;
    struct dice d = dice_new("random");
    for (int round = 0; round < 5000; round++) {
        char bytes[64];
        for (size_t i = 0; i < sizeof bytes; i++)
            bytes[i] = (char)dice_roll(&d, dice_roll(&d, 2) == 0 ? 256 : 8);
        survive(&d, slice_of(bytes, (size_t)dice_roll(&d, sizeof bytes + 1)), &shapes[dice_roll(&d, SHAPES)]);
    }
}

static void test_body_that_breaks_the_rules_is_refused(void **state)
{
    static const struct body_want all = {{UINT64_MAX, UINT64_MAX}, 0, BODY_SLOTS, UINT64_MAX};
    static const struct {
        const char *bytes;
        size_t len;
    } cases[] = {
        {"\x00\x00", 2},                         /* an entry without slots */
        {"\x00\x02\x3c\x02", 4},                 /* slot 60: tight sketches, of a report without */
        {"\x00\x02\x78\x02", 4},                 /* slot 120 */
        {"\x00\x04\x05\x02\x05\x02", 6},         /* a gap below slot 0 */
        {"\x00\x02\x01", 3},                     /* shorter than it says */
        {"\x00\x01\x01", 3},                     /* a slot without value */
        {"\x80\x01\x02\x01\x02", 5},             /* series 128 */
        {"\x7f\x02\x01\x02\x00\x02\x01\x02", 8}, /* a series after the last */
        {"\x00", 1},
    };
    (void)state;
    int64_t count = 0;
    assert_true(body_each(slice_of("\x7f\x02\x3b\x02", 4), &shapes[0], &all, count_slot, &count, &loose));
    assert_int_equal(count, 1);
    for (size_t i = 0; i < COUNT_OF(cases); i++)
        assert_false(
            body_each(slice_of(cases[i].bytes, cases[i].len), &shapes[0], &all, count_slot, &count, &loose));
}

/* Copy to memory of exactly its length. */
static struct slice copy_body(const struct body_buffer *b)
{
    char *bytes = malloc(b->len > 0 ? b->len : 1);
    memcpy(bytes, b->data, b->len);
    return slice_of(bytes, b->len);
}

/* The rest is, to the byte, the body of the entries that stay; and nothing can be taken out twice. */
static void test_taking_out_is_the_inverse_of_merging(void **state)
{
    (void)state;
    static struct body_item stays[BODY_SERIES * BODY_SLOTS], goes[BODY_SERIES * BODY_SLOTS];
    static int64_t values[2][BODY_SERIES * BODY_SLOTS * REPORT_COLUMNS_MAX];
    struct map *m = malloc(sizeof *m);
    struct dice d = dice_new("body take");
    struct body_buffer out = {0};
    for (int round = 0; round < 300; round++) {
        const struct report *r = &shapes[dice_roll(&d, REPORT_MEASURES_MAX)];
        *m = (struct map){.report = r};
        size_t stay_count = roll_items(&d, m, stays, values[0]),
               go_count = roll_items(&d, m, goes, values[1]);
        for (size_t i = 0; i < BODY_SERIES * BODY_SLOTS * r->column_count; i++) {
            values[0][i] = 1 + dice_roll(&d, dice_roll(&d, 2) == 0 ? 100 : INT64_MAX / 4);
            values[1][i] = 1 + dice_roll(&d, dice_roll(&d, 2) == 0 ? 100 : INT64_MAX / 4);
        }
        assert_true(body_merge(slice_of(NULL, 0), stays, stay_count, r, &out));
        struct slice expected = copy_body(&out);
        assert_true(body_merge(expected, goes, go_count, r, &out));
        struct slice both = copy_body(&out);
        assert_int_equal(body_take(both, goes, go_count, r, &out), BODY_TAKEN);
        assert_int_equal(out.len, expected.len);
        assert_memory_equal(out.data, expected.ptr, expected.len);
        if (go_count > 0 && stay_count == 0)
            assert_int_equal(body_take(expected, goes, go_count, r, &out), BODY_LACKS_ITEM);
        struct slice cut = slice_of(both.ptr, both.len > 0 ? (size_t)dice_roll(&d, (int64_t)both.len) : 0);
        if (go_count > 0 && stay_count == 0)
            assert_int_not_equal(body_take(cut, goes, go_count, r, &out), BODY_TAKEN);
        free((void *)(uintptr_t)both.ptr);
        free((void *)(uintptr_t)expected.ptr);
    }
    body_buffer_fini(&out);
    free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_merged_bodies_equal_a_map),
        cmocka_unit_test(test_merge_of_nothing_changes_nothing),
        cmocka_unit_test(test_taking_out_is_the_inverse_of_merging),
        cmocka_unit_test(test_fullest_body_merges),
        cmocka_unit_test(test_truncated_body_never_reads_outside),
        cmocka_unit_test(test_damaged_body_never_reads_outside),
        cmocka_unit_test(test_random_bytes_never_read_outside),
        cmocka_unit_test(test_body_that_breaks_the_rules_is_refused),
    };
    return cmocka_run_group_tests(tests, make_shapes, free_shapes);
}
