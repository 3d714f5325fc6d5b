/* Measures say what a naive look at the events says, however the events are grouped and merged. */
#include "aggregate/report.h"
#include "ingest/distribution.h"
#include "tests/support/dice.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

static const char *const expressions[] = {"count",       "sum(value)",  "min(value)", "max(value)",
                                          "last(value)", "mean(value)", "min(bytes)", "mean(bytes)"};

static void make_report(struct report *r)
{
    struct err e;
    assert_true(report_init(r, slice_text("gauges"), 1, &e));
    for (size_t i = 0; i < COUNT_OF(expressions); i++) {
        char name[2] = {(char)('a' + i), '\0'};
        if (!report_add_measure(r, slice_text(name), slice_text(expressions[i]), &e))
            fail_msg("%s", e.text);
        assert_string_equal(r->measures[i].expression, expressions[i]);
    }
    assert_true(report_finish(r, &e));
}

static void test_numbers_are_exact_texts(void **state)
{
    (void)state;
    static const struct {
        int64_t number;
        const char *text;
    } rows[] = {{0, "0"},
                {1, "0.000001"},
                {-1, "-0.000001"},
                {95000000, "95"},
                {95500000, "95.5"},
                {-95050000, "-95.05"},
                {100, "0.0001"},
                {EVENT_DECIMAL_MAX, "1000000000000"},
                {-EVENT_DECIMAL_MAX, "-1000000000000"},
                {EVENT_DECIMAL_MAX - 1, "999999999999.999999"},
                {INT64_MAX, "9223372036854.775807"},
                {INT64_MIN, "-9223372036854.775808"}};
    char buf[NUMBER_BYTES];
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        assert_string_equal(number_text(rows[i].number, buf), rows[i].text);
    assert_string_equal(number_text((int128)INT64_MAX * EVENT_SCALE, buf), "9223372036854775807");
    assert_string_equal(number_text((int128)INT64_MIN * EVENT_SCALE, buf), "-9223372036854775808");
}

static void test_means_round_half_away_from_zero(void **state)
{
    (void)state;
    static const struct {
        int64_t sum, count, mean;
    } rows[] = {{0, 3, 0},
                {1, 2, 1},
                {-1, 2, -1},
                {1, 3, 0},
                {2, 3, 1},
                {-2, 3, -1},
                {-1, 3, 0},
                {5, 2, 3},
                {-5, 2, -3},
                {7, 7, 1},
                {10, 4, 3},
                {9, 4, 2},
                {INT64_MAX, 1, INT64_MAX},
                {INT64_MIN, 1, INT64_MIN},
                {1, INT64_MAX, 0}};
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        assert_true(number_mean(rows[i].sum, rows[i].count) == rows[i].mean);
}

struct sample {
    int64_t at_ms, order, value, bytes;
    bool has_value, has_bytes;
};

static void add(const struct report *r, int64_t *columns, const struct sample *s)
{
    struct event ev = {.at_ms = s->at_ms, .order = s->order};
    ev.present = (uint64_t)s->has_value << FIELD_VALUE | (uint64_t)s->has_bytes << FIELD_BYTES;
    ev.number[FIELD_VALUE] = s->value;
    ev.number[FIELD_BYTES] = s->bytes;
    for (size_t i = 0; i < r->measure_count; i++)
        measure_add(&r->measures[i], columns + r->measures[i].column, &ev);
}

static void check(const struct report *r, const int64_t *columns, size_t measure, bool is_there, int128 want)
{
    int128 have = 0;
    const struct measure *m = &r->measures[measure];
    assert_int_equal(measure_value(m, columns + m->column, &have), is_there);
    if (is_there && have != want) {
        char a[NUMBER_BYTES], b[NUMBER_BYTES];
        fail_msg("%s is %s, expected %s", m->expression, number_text(have, a), number_text(want, b));
    }
}

static int64_t lesser(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static bool is_later(const struct sample *a, const struct sample *b)
{
    if (a->at_ms != b->at_ms)
        return a->at_ms > b->at_ms;
    return a->order != b->order ? a->order > b->order : a->value > b->value;
}

static void check_all(const struct report *r, const int64_t *columns, const struct sample *samples,
                      size_t count)
{
    int128 sum = 0;
    int64_t values = 0, sizes = 0, bytes = 0, least = INT64_MAX, most = INT64_MIN, smallest = INT64_MAX;
    const struct sample *last = NULL;
    for (size_t i = 0; i < count; i++) {
        const struct sample *s = &samples[i];
        if (s->has_bytes) {
            sizes++;
            bytes += s->bytes;
            smallest = lesser(smallest, s->bytes);
        }
        if (!s->has_value)
            continue;
        values++;
        sum += s->value;
        least = lesser(least, s->value);
        most = s->value > most ? s->value : most;
        last = last == NULL || is_later(s, last) ? s : last;
    }
    check(r, columns, 0, true, (int128)count * EVENT_SCALE);
    check(r, columns, 1, true, sum);
    check(r, columns, 2, values > 0, least);
    check(r, columns, 3, values > 0, most);
    check(r, columns, 4, values > 0, last != NULL ? last->value : 0);
    check(r, columns, 5, values > 0, values > 0 ? number_mean(sum, values) : 0);
    check(r, columns, 6, sizes > 0, (int128)smallest * EVENT_SCALE);
    check(r, columns, 7, sizes > 0, sizes > 0 ? number_mean((int128)bytes * EVENT_SCALE, sizes) : 0);
}

#define SAMPLES 60
#define PARTS   7

static struct sample roll_sample(struct dice *d)
{
    static const int64_t extremes[] = {0, 1, -1, EVENT_DECIMAL_MAX, -EVENT_DECIMAL_MAX};
    struct sample s = {.at_ms = dice_roll(d, 4), .order = dice_roll(d, 3), .bytes = dice_roll(d, 3)};
    s.value = dice_roll(d, 3) == 0 ? extremes[dice_roll(d, 5)] : dice_roll(d, 2000001) - 1000000;
    s.has_value = dice_roll(d, 4) > 0;
    s.has_bytes = dice_roll(d, 4) > 0;
    return s;
}

/* Merging is associative and commutative, and zeros are neutral: any grouping and order says the same. */
static void test_any_grouping_says_what_the_events_say(void **state)
{
    (void)state;
    struct dice d = dice_new("measure");
    struct report r;
    make_report(&r);
    assert_int_equal(r.column_count, 14);
    assert_false(r.is_additive);
    for (int round = 0; round < 2000; round++) {
        struct sample samples[SAMPLES];
        int64_t parts[PARTS][REPORT_COLUMNS_MAX] = {{0}};
        size_t count = (size_t)dice_roll(&d, SAMPLES + 1);
        for (size_t i = 0; i < count; i++) {
            samples[i] = roll_sample(&d);
            add(&r, parts[dice_roll(&d, PARTS)], &samples[i]);
        }
        for (size_t left = PARTS; left > 1; left--) {
            size_t to = (size_t)dice_roll(&d, (int64_t)left - 1);
            report_merge(&r, parts[to], parts[left - 1]);
        }
        check_all(&r, parts[0], samples, count);
    }
    report_fini(&r);
}

static void test_extremes_are_kept_apart_from_nothing(void **state)
{
    (void)state;
    static const int64_t values[] = {0, -1, 1, EVENT_DECIMAL_MAX, -EVENT_DECIMAL_MAX};
    struct report r;
    make_report(&r);
    for (size_t i = 0; i < COUNT_OF(values); i++) {
        int64_t columns[REPORT_COLUMNS_MAX] = {0}, twice[REPORT_COLUMNS_MAX] = {0};
        struct sample s = {.value = values[i], .has_value = true};
        add(&r, columns, &s);
        check_all(&r, columns, &s, 1);
        report_merge(&r, twice, columns);
        assert_memory_equal(twice, columns, sizeof twice);
    }
    report_fini(&r);
}

static void test_sums_stay_at_the_ends(void **state)
{
    (void)state;
    struct report r;
    int64_t columns[REPORT_COLUMNS_MAX] = {0};
    make_report(&r);
    for (int i = 0; i < 20; i++)
        add(&r, columns, &(struct sample){.value = -EVENT_DECIMAL_MAX, .has_value = true});
    check(&r, columns, 1, true, -20 * (int128)EVENT_DECIMAL_MAX); /* more than 64 bits of millionths */
    check(&r, columns, 0, true, 20 * (int128)EVENT_SCALE);
    check(&r, columns, 2, true, -EVENT_DECIMAL_MAX);
    for (int i = 0; i < 64; i++)
        report_merge(&r, columns, columns);
    check(&r, columns, 1, true, (int128)INT64_MIN * EVENT_SCALE);
    check(&r, columns, 0, true, (int128)INT64_MAX * EVENT_SCALE);
    report_fini(&r);
}

/* Columns of any events; each event has a count, so no sum is without one. */
static void test_taking_out_is_the_inverse_of_merging(void **state)
{
    (void)state;
    static const char *const sums[] = {"count", "sum(value)", "mean(value)", "sum(bytes)", "mean(bytes)"};
    struct dice d = dice_new("take");
    struct report r;
    struct err e;
    assert_true(report_init(&r, slice_text("sums"), 1, &e));
    for (size_t i = 0; i < COUNT_OF(sums); i++) {
        char name[2] = {(char)('a' + i), '\0'};
        assert_true(report_add_measure(&r, slice_text(name), slice_text(sums[i]), &e));
    }
    assert_true(report_finish(&r, &e));
    for (int round = 0; round < 2000; round++) {
        int64_t stays[REPORT_COLUMNS_MAX] = {0}, goes[REPORT_COLUMNS_MAX] = {0}, both[REPORT_COLUMNS_MAX];
        for (int64_t n = dice_roll(&d, 10); n > 0; n--) {
            struct sample s = roll_sample(&d);
            add(&r, dice_roll(&d, 2) == 0 ? stays : goes, &s);
        }
        memcpy(both, stays, sizeof both);
        report_merge(&r, both, goes);
        assert_true(report_take(&r, both, goes));
        assert_memory_equal(both, stays, sizeof both);
        if (goes[0] > stays[0])
            assert_false(report_take(&r, both, goes));
    }
    report_fini(&r);
}

static void test_what_cannot_be_taken_out_is_refused(void **state)
{
    (void)state;
    struct report r;
    struct sample s = {.value = 1, .has_value = true, .bytes = 1, .has_bytes = true};
    int64_t none[REPORT_COLUMNS_MAX] = {0}, one[REPORT_COLUMNS_MAX] = {0}, two[REPORT_COLUMNS_MAX];
    make_report(&r);
    add(&r, one, &s);
    memcpy(two, one, sizeof two);
    assert_true(report_take(&r, two, none));
    for (size_t i = 0; i < r.measure_count; i++) {
        const struct measure *m = &r.measures[i];
        int64_t columns[MEASURE_COLUMNS_MAX];
        memcpy(columns, one + m->column, measure_column_count(m) * sizeof *columns);
        assert_int_equal(measure_take(m, columns, one + m->column), measure_is_sum(m));
        columns[0] = INT64_MAX;
        if (measure_is_sum(m))
            assert_false(measure_take(m, columns, one + m->column));
    }
    one[0] = 0; /* no event, but numbers */
    assert_false(report_take(&r, one, none));
    report_fini(&r);
}

static void test_dimensions_of_a_distinct_count_are_canonical(void **state)
{
    (void)state;
    static const char *const rows[][2] = {
        {"distinct(host)", "distinct(host)"},
        {"distinct(path:2)", "distinct(path:2)"},
        {"distinct(host, agent)", "distinct(agent, host)"},
        {"distinct(agent,host)", "distinct(agent, host)"},
        {"distinct( user ,path:2, path,  agent)", "distinct(agent, path, path:2, user)"}};
    static const char *const refused[][2] = {
        {"distinct()", "expected count"},
        {"distinct(host", "quotes"},
        {"distinct(host,)", "but \"\" is no dimension"},
        {"distinct(,host)", "but \"\" is no dimension"},
        {"distinct(host, bytes)", "but \"bytes\" is no dimension"},
        {"distinct(host, agent host)", "but \"agent host\" is no dimension"},
        {"distinct(host, agent, host)", "\"host\" twice"},
        {"distinct(host, agent, path, user, method)", "at most 4 dimensions"},
        {"sum(bytes, value)", "expected count"}};
    struct measure m = {0};
    struct err e;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        assert_true(measure_parse(&m, slice_text(rows[i][0]), &e));
        assert_string_equal(m.expression, rows[i][1]);
        assert_true(measure_parse(&m, slice_text(rows[i][1]), &e));
        assert_string_equal(m.expression, rows[i][1]);
    }
    for (size_t i = 0; i < COUNT_OF(refused); i++) {
        assert_false(measure_parse(&m, slice_text(refused[i][0]), &e));
        assert_int_equal(e.code, EX_CONFIG);
        if (strstr(e.text, refused[i][1]) == NULL)
            fail_msg("%s: %s", refused[i][0], e.text);
    }
}

static void test_buckets_of_a_histogram_are_canonical(void **state)
{
    (void)state;
    static const struct {
        const char *text, *canonical;
        int schema, zero; /* in units of the field */
    } rows[] = {{"histogram(bytes)", "histogram(bytes)", 4, 0},
                {"histogram(bytes, schema=4, zero=0)", "histogram(bytes)", 4, 0},
                {"histogram(bytes,zero=7,schema=-4)", "histogram(bytes, schema=-4, zero=7)", -4, 7},
                {"histogram( value , schema=3)", "histogram(value, schema=3)", 3, 0},
                {"histogram(value, zero=1e-3)", "histogram(value, zero=0.001)", 4, 1000},
                {"histogram(bytes, schema=8)", "histogram(bytes, schema=8)", 8, 0}};
    static const char *const refused[][2] = {{"histogram(value, schema=9)", "schema=9"},
                                             {"histogram(value, schema=-5)", "from -4 to 8"},
                                             {"histogram(value, schema=1.5)", "schema=1.5"},
                                             {"histogram(value, schema=)", "schema="},
                                             {"histogram(value, schema=3, schema=3)", "once"},
                                             {"histogram(value, zero=-1)", "zero=-1"},
                                             {"histogram(bytes, zero=0.5)", "zero=0.5"},
                                             {"histogram(value, zero=0, zero=0)", "once"},
                                             {"histogram(value, 3)", "with \"3\""},
                                             {"histogram(value", "quotes"},
                                             {"histogram(path, schema=3)", "path"},
                                             {"sum(value, schema=3)", "expected count"},
                                             {"histogram(value, schema=99999999999)", "schema"},
                                             {"histogram(value, day=3, day=2)", "once"},
                                             {"histogram(value, year=2)", "with \"year=2\""},
                                             {"histogram(value, minute=2)", "with \"minute=2\""},
                                             {"histogram(value, hour=5)", "at most hour=4: "},
                                             {"histogram(value, schema=2, hour=3)", "at most hour=2: "},
                                             {"histogram(value, month=3, day=2)", "at most month=2: "},
                                             {"histogram(value, schema=-4, month=4)", "at most month=-4: "}};
    struct measure m = {0};
    struct err e;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        for (int turn = 0; turn < 2; turn++) {
            assert_true(measure_parse(&m, slice_text(turn == 0 ? rows[i].text : rows[i].canonical), &e));
            assert_string_equal(m.expression, rows[i].canonical);
            assert_int_equal(m.layout->schema, rows[i].schema);
            assert_int_equal(m.layout->zero, rows[i].zero);
        }
    }
    for (size_t i = 0; i < COUNT_OF(refused); i++) {
        assert_false(measure_parse(&m, slice_text(refused[i][0]), &e));
        assert_int_equal(e.code, EX_CONFIG);
        if (strstr(e.text, refused[i][1]) == NULL)
            fail_msg("%s: %s", refused[i][0], e.text);
    }
}

static void test_longer_time_buckets_may_have_wider_buckets(void **state)
{
    (void)state;
    static const struct {
        const char *text, *canonical;
        int schemas[SPAN_COUNT];
    } rows[] = {{"histogram(value)", "histogram(value)", {4, 4, 4, 4, 4}},
                {"histogram(value, month=2)", "histogram(value, month=2)", {4, 4, 4, 4, 2}},
                {"histogram(value,zero=1,day=-4,hour=3)",
                 "histogram(value, hour=3, day=-4, zero=1)",
                 {4, 4, 3, -4, -4}},
                {"histogram(value, hour=4, day=4, month=4)", "histogram(value)", {4, 4, 4, 4, 4}},
                {"histogram(value, schema=2, hour=2, month=1)",
                 "histogram(value, schema=2, month=1)",
                 {2, 2, 2, 2, 1}},
                {"histogram(value, schema=8, day=5, month=4)",
                 "histogram(value, schema=8, day=5, month=4)",
                 {8, 8, 8, 5, 4}},
                {"histogram(bytes, month=0, day=1, hour=2, schema=3)",
                 "histogram(bytes, schema=3, hour=2, day=1, month=0)",
                 {3, 3, 2, 1, 0}}};
    struct err e;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        for (int turn = 0; turn < 2; turn++) {
            struct measure m = {0};
            assert_true(measure_parse(&m, slice_text(turn == 0 ? rows[i].text : rows[i].canonical), &e));
            assert_string_equal(m.expression, rows[i].canonical);
            for (enum span span = SPAN_SECOND; span < SPAN_COUNT; span++) {
                assert_int_equal(m.layouts[span]->schema, rows[i].schemas[span]);
                assert_int_equal(measure_schema(&m, span), rows[i].schemas[span]);
                assert_int_equal(measure_widens(&m, span), rows[i].schemas[span] != rows[i].schemas[0]);
                assert_true(m.layouts[span]->zero == m.layout->zero);
            }
        }
    }
}

static void test_texts_of_several_dimensions_are_told_apart(void **state)
{
    (void)state;
    static const char *const parts[] = {"", "a", "ab", "abc", "b", "bc", "c", "a\tb", "b\tc", "\t"};
    char told[COUNT_OF(parts) * COUNT_OF(parts)][64], scratch[DIMENSION_KEY_BYTES(DIMENSION_BYTES_MIN)];
    size_t count = 0;
    struct measure m = {0};
    struct err e;
    assert_true(measure_parse(&m, slice_text("distinct(host, agent)"), &e));
    for (size_t i = 0; i < COUNT_OF(parts) * COUNT_OF(parts); i++) {
        struct event ev = {.present = (uint64_t)1 << FIELD_HOST | (uint64_t)1 << FIELD_AGENT};
        struct slice text;
        ev.field[FIELD_HOST] = slice_text(parts[i / COUNT_OF(parts)]);
        ev.field[FIELD_AGENT] = slice_text(parts[i % COUNT_OF(parts)]);
        ev.odd = ev.present; /* tabs are to be settled */
        assert_true(measure_told(&m, &ev, DIMENSION_BYTES_MIN, scratch, &text));
        snprintf(told[count], sizeof told[count], "%.*s", SLICE_ARGS(text));
        for (size_t k = 0; k < count; k++)
            assert_string_not_equal(told[k], told[count]);
        count++;
        ev.present = (uint64_t)1 << FIELD_HOST;
        assert_false(measure_told(&m, &ev, DIMENSION_BYTES_MIN, scratch, &text));
    }
}

/* A value that stands for many numbers is one event; it has a sum, a number and perhaps limits. */
static void test_many_numbers_at_once(void **state)
{
    (void)state;
    const struct distribution many = {.count = 4, .min = -5, .has_min = true, .max = 7000000};
    struct report r;
    int64_t columns[REPORT_COLUMNS_MAX] = {0};
    struct event ev = {.at_ms = 1, .present = (uint64_t)1 << FIELD_VALUE, .distribution = &many};
    make_report(&r);
    ev.numeric = ev.present;
    ev.number[FIELD_VALUE] = -10 * EVENT_SCALE;
    for (size_t i = 0; i < r.measure_count; i++)
        measure_add(&r.measures[i], columns + r.measures[i].column, &ev);
    check(&r, columns, 0, true, EVENT_SCALE);
    check(&r, columns, 1, true, -10 * EVENT_SCALE);
    check(&r, columns, 2, true, -5);
    check(&r, columns, 3, false, 0);
    check(&r, columns, 4, false, 0);
    check(&r, columns, 5, true, -5 * EVENT_SCALE / 2);
    ev.numeric = 0; /* it is one number */
    for (size_t i = 0; i < r.measure_count; i++)
        measure_add(&r.measures[i], columns + r.measures[i].column, &ev);
    check(&r, columns, 0, true, 2 * EVENT_SCALE);
    check(&r, columns, 2, true, -10 * EVENT_SCALE);
    check(&r, columns, 4, true, -10 * EVENT_SCALE);
    check(&r, columns, 5, true, -4 * EVENT_SCALE);
    report_fini(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_numbers_are_exact_texts),
        cmocka_unit_test(test_means_round_half_away_from_zero),
        cmocka_unit_test(test_any_grouping_says_what_the_events_say),
        cmocka_unit_test(test_extremes_are_kept_apart_from_nothing),
        cmocka_unit_test(test_many_numbers_at_once),
        cmocka_unit_test(test_sums_stay_at_the_ends),
        cmocka_unit_test(test_taking_out_is_the_inverse_of_merging),
        cmocka_unit_test(test_what_cannot_be_taken_out_is_refused),
        cmocka_unit_test(test_dimensions_of_a_distinct_count_are_canonical),
        cmocka_unit_test(test_buckets_of_a_histogram_are_canonical),
        cmocka_unit_test(test_longer_time_buckets_may_have_wider_buckets),
        cmocka_unit_test(test_texts_of_several_dimensions_are_told_apart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
