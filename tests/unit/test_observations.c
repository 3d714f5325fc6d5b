/* The recount packs the same sketches as the counting path, whatever the numbers and texts. */
#include "aggregate/exponential.h"
#include "base/check.h"
#include "tests/support/distributions.h"
#include "verify/observations.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#define MINUTES 90
#define SERIES  3

static struct measure measure_of(const char *expression)
{
    struct measure m = {.kind = MEASURE_COUNT};
    struct err e;
    if (!measure_parse(&m, slice_text(expression), &e))
        fail_msg("%s", e.text);
    return m;
}

/* A number of any size, or the end of a bucket, or one beside it. */
static int64_t any_number(struct dice *d, const struct histogram_layout *l)
{
    const int64_t sign = dice_roll(d, 4) > 0 ? 1 : -1;
    if (dice_roll(d, 3) > 0)
        return sign * (dice_roll(d, EVENT_NUMBER_MAX) >> dice_roll(d, 47));
    const int64_t end = l->last[dice_roll(d, HISTOGRAM_NTHS(l->unit))];
    return sign * (end < EVENT_NUMBER_MAX ? end + dice_roll(d, 3) - 1 : EVENT_NUMBER_MAX);
}

/* Mostly a hash of few first bits, so that texts share entries and registers. */
static uint64_t any_hash(struct dice *d)
{
    const uint64_t low = (uint64_t)dice_roll(d, INT64_C(1) << 38) >> dice_roll(d, 39);
    return (uint64_t)dice_roll(d, 1 << (dice_roll(d, 2) > 0 ? 13 : DISTINCT_ENTRY_BITS)) << 38 | low;
}

static void compare(struct dice *d, const char *expression, int count, enum span resolution)
{
    const struct measure m = measure_of(expression);
    const enum sketch_kind kind = measure_sketch_kind(&m);
    const int64_t from_ms = span_floor(resolution, HOUR_MS);
    union sketch all[SERIES][MINUTES];
    struct observations o = {0};
    struct pieces pieces = {0};
    struct text packed = {0};
    struct arena arena;
    size_t found = 0;
    arena_init(&arena, 1 << 16);
    memset(all, 0, sizeof all);
    for (int i = 0; i < count; i++) {
        uint32_t series = (uint32_t)dice_roll(d, SERIES), minute = (uint32_t)dice_roll(d, MINUTES);
        uint64_t value = kind == SKETCH_HISTOGRAM ? (uint64_t)any_number(d, m.layout) : any_hash(d);
        union sketch *s = &all[series][span_floor(resolution, minute * MINUTE_MS) / MINUTE_MS];
        if (kind == SKETCH_HISTOGRAM && m.field == FIELD_VALUE && dice_roll(d, 200) == 0) {
            const struct distribution *many = distribution_any(d, &arena);
            exponential_add(&s->histogram, &arena, m.layout, many);
            observations_add_many(&o, (struct observation){.series = series, .time = minute}, &m, many);
            continue;
        }
        if (kind == SKETCH_HISTOGRAM)
            histogram_add(&s->histogram, &arena, histogram_slot(m.layout, (int64_t)value), 1);
        else
            distinct_add(&s->distinct, &arena, value);
        observations_add(&o, (struct observation){series, minute, value, 1});
    }
    observations_sort(&o);
    observations_pack(&o, &m, MINUTE_MS, resolution, from_ms, &pieces);
    pieces_join(&pieces, kind, HISTOGRAM_SCHEMA_MAX);
    struct text narrow = {0};
    struct sketch_work work = {0};
    for (uint32_t series = 0; series < SERIES; series++) {
        for (int64_t minute = from_ms / MINUTE_MS; minute < MINUTES; minute++) {
            text_clear(&packed);
            text_clear(&narrow);
            sketch_pack(kind, &all[series][minute], &narrow);
            if (kind == SKETCH_HISTOGRAM)
                assert_true(
                    sketch_widen(text_slice(&narrow), measure_schema(&m, resolution), &work, &packed));
            else
                text_add(&packed, narrow.ptr, narrow.len);
            found += packed.len > 0;
            assert_true(slice_equal(pieces_find(&pieces, series, minute * MINUTE_MS), text_slice(&packed)));
        }
    }
    assert_int_equal(found, pieces.count);
    observations_fini(&o);
    pieces_fini(&pieces);
    text_fini(&packed);
    text_fini(&narrow);
    sketch_work_fini(&work);
    arena_fini(&arena);
}

static void test_packed_by_definition_as_by_the_counting_path(void **state)
{
    (void)state;
    static const char *const expressions[] = {"histogram(bytes)",
                                              "histogram(value)",
                                              "distinct(host)",
                                              "histogram(bytes, schema=-3, zero=7)",
                                              "histogram(value, schema=2)",
                                              "histogram(value, schema=0, zero=0.25)",
                                              "histogram(value, hour=3, day=-2, zero=0.1)",
                                              "histogram(bytes, schema=3, day=1)",
                                              "histogram(bytes, schema=8)",
                                              "histogram(value, schema=5, zero=0.001)",
                                              "histogram(value, schema=8, hour=6, day=3)"};
    static const int counts[] = {0, 1, 20, 2000, 3 * DISTINCT_ENTRIES_MAX, 20000};
    struct dice d = dice_new("observations");
    for (size_t i = 0; i < COUNT_OF(expressions); i++) {
        for (size_t c = 0; c < COUNT_OF(counts); c++) {
            for (enum span resolution = SPAN_MINUTE; resolution <= SPAN_DAY; resolution++)
                compare(&d, expressions[i], counts[c], resolution);
        }
    }
}

static void test_joined_pieces_are_one_and_damage_stays(void **state)
{
    (void)state;
    const struct measure m = measure_of("histogram(bytes)");
    char text[PIECE_TEXT_BYTES];
    struct pieces p = {0};
    pieces_add(&p, 1, 0, slice_of("\x08\x02", 2));
    pieces_add(&p, 0, 0, slice_of("\x08\x01", 2));
    pieces_add(&p, 1, 0, slice_of("\x08\x03", 2));
    pieces_add(&p, 2, 0, slice_of("\x08\x03", 2));
    pieces_add(&p, 2, 0, slice_of("\x08", 1));
    pieces_add(&p, 2, 0, slice_of("\x08\x01", 2));
    pieces_join(&p, SKETCH_HISTOGRAM, HISTOGRAM_SCHEMA_MAX);
    assert_int_equal(p.count, 3);
    assert_true(slice_equal(pieces_find(&p, 1, 0), slice_of("\x08\x05", 2)));
    assert_true(slice_equal(pieces_find(&p, 0, 0), slice_of("\x08\x01", 2)));
    assert_int_equal(pieces_find(&p, 1, 1).len, 0);
    assert_string_equal(packed_text(&m, SPAN_MINUTE, pieces_find(&p, 2, 0), text), "a damaged sketch");
    assert_true(packed_holds(SKETCH_HISTOGRAM, pieces_find(&p, 1, 0), pieces_find(&p, 0, 0)));
    assert_false(packed_holds(SKETCH_HISTOGRAM, pieces_find(&p, 0, 0), pieces_find(&p, 1, 0)));
    pieces_fini(&p);
}

static void test_joined_pieces_are_as_wide_as_asked(void **state)
{
    (void)state;
    struct pieces p = {0};
    pieces_add(&p, 1, 0, slice_of("\x08\x02", 2)); /* 2 in slot 4 */
    pieces_add(&p, 1, 0, slice_of("\x0a\x03", 2)); /* 3 in slot 5 */
    pieces_add(&p, 2, 0, slice_of("\x06\x01", 2)); /* 1 in slot 3 */
    pieces_add(&p, 3, 0, slice_of("\x08", 1));
    pieces_join(&p, SKETCH_HISTOGRAM, 3); /* slots are odd, as that of one is */
    assert_true(slice_equal(pieces_find(&p, 1, 0), slice_of("\x0a\x05", 2)));
    assert_true(slice_equal(pieces_find(&p, 2, 0), slice_of("\x06\x01", 2)));
    assert_false(packed_holds(SKETCH_HISTOGRAM, pieces_find(&p, 3, 0), pieces_find(&p, 3, 0)));
    pieces_fini(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_packed_by_definition_as_by_the_counting_path),
        cmocka_unit_test(test_joined_pieces_are_one_and_damage_stays),
        cmocka_unit_test(test_joined_pieces_are_as_wide_as_asked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
