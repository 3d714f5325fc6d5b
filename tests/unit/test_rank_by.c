/* The figures by which rankings are cached: their values are those that queries show, and each has a name of
 * its own that can be a member of a document. */
#include "aggregate/rank_by.h"
#include "base/order.h"
#include "query/figure.h"
#include "tests/support/dice.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define NUMBERS 500

/* As queries name them, of the measure m. */
static const char *const names[RANK_BY_END] = {
    [RANK_BY_VALUE] = "m",    [RANK_BY_COUNT] = "count(m)", [RANK_BY_MEAN] = "mean(m)",
    [RANK_BY_MAX] = "max(m)", [RANK_BY_P50] = "p50(m)",     [RANK_BY_P90] = "p90(m)",
    [RANK_BY_P95] = "p95(m)", [RANK_BY_P99] = "p99(m)",     [RANK_BY_P99_9] = "p99.9(m)",
};

static struct report report_of(const char *expression)
{
    struct report r = {.measure_count = 1};
    struct err e;
    if (!measure_parse(&r.measures[0], slice_text(expression), &e))
        fail_msg("%s: %s", expression, e.text);
    strcpy(r.measures[0].name, "m");
    return r;
}

/* Of numbers that were sorted. */
static int128 quantile_of(const struct measure *m, const int64_t *numbers, size_t count, int64_t millionths)
{
    size_t rank = ((size_t)millionths * count + 999999) / 1000000;
    return histogram_value(m->layout, histogram_slot(m->layout, numbers[rank > 1 ? rank - 1 : 0]));
}

static void test_values_are_those_of_queries(void **state)
{
    static const char *const expressions[] = {"histogram(value)", "histogram(value, schema=1, zero=0.5)",
                                              "distinct(host)", "count", "sum(bytes)"};
    struct dice d = dice_new("rank_by");
    (void)state;
    for (size_t x = 0; x < COUNT_OF(expressions); x++) {
        const struct report r = report_of(expressions[x]);
        const struct measure *m = &r.measures[0];
        for (size_t count = 0; count < NUMBERS; count += 1 + count / 3) {
            int64_t numbers[NUMBERS], columns[MEASURE_COLUMNS_MAX] = {0};
            union sketch s = {0};
            struct arena arena;
            arena_init(&arena, 1024);
            for (size_t i = 0; i < count; i++) {
                numbers[i] = dice_roll(&d, (int64_t)1 << dice_roll(&d, 40)) - dice_roll(&d, 1000);
                columns[0] += numbers[i] / EVENT_SCALE;
                if (m->kind == MEASURE_HISTOGRAM)
                    histogram_add(&s.histogram, &arena, histogram_slot(m->layout, numbers[i]), 1);
                else if (m->kind == MEASURE_DISTINCT)
                    distinct_add_entry(&s.distinct, &arena, distinct_entry((uint64_t)numbers[i] << 20));
            }
            columns[measure_column_count(m) - 1] = (int64_t)count;
            if (count > 0)
                qsort(numbers, count, sizeof *numbers, order_int64s);
            for (enum rank_by by = 0; by < RANK_BY_END; by++) {
                int128 value = -1, shown = -1;
                struct figure f;
                struct err e;
                if (!rank_by_is_of(by, m))
                    continue;
                assert_true(figure_parse(&f, &r, slice_text(names[by]), &e));
                assert_int_equal(rank_by_is_amount(by), figure_is_amount(&f, m));
                const bool is_there = rank_by_value(by, m, SPAN_MINUTE, columns, &s, &value);
                assert_int_equal(is_there, figure_value(&f, m, SPAN_MINUTE, columns, &s, &shown));
                assert_true(!is_there || value == shown);
                if (rank_by_quantile(by) >= 0 && count > 0)
                    assert_true(value == quantile_of(m, numbers, count, rank_by_quantile(by)));
            }
            arena_fini(&arena);
        }
    }
}

static void test_names(void **state)
{
    (void)state;
    for (enum rank_by by = 0; by < RANK_BY_END; by++) {
        assert_null(strpbrk(rank_by_name(by), ".$"));
        for (enum rank_by other = 0; other < by; other++)
            assert_string_not_equal(rank_by_name(by), rank_by_name(other));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values_are_those_of_queries),
        cmocka_unit_test(test_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
