/* Running totals: what increase() and rate() of Prometheus say of the same samples, worked out by hand.
 * Prometheus itself judges more: tests/system/test_totals.py. */
#include "base/check.h"
#include "prom/counter.h"
#include "prom/vector.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

struct total_case {
    int64_t from_s, to_s;
    size_t count;
    int64_t at_s[4];
    double values[4];
    double increase;
};

static const struct total_case cases[] = {
    /* 10 in 120 s, both ends near: 30 s before and 30 s behind */
    {0, 180, 3, {30, 90, 150}, {100, 105, 110}, 15},
    /* reset to 0 between 105 and 3: 5 + 3 */
    {0, 180, 3, {30, 90, 150}, {100, 105, 3}, 12},
    /* reset twice: 2 + 1 */
    {0, 180, 3, {30, 90, 150}, {100, 2, 1}, 4.5},
    /* far ends are half of the distance of 60 s: (120 + 30 + 30) / 120 */
    {0, 600, 3, {240, 300, 360}, {100, 105, 110}, 15},
    /* an end at 66 s is far, at 65 s near */
    {0, 252, 3, {66, 126, 186}, {100, 105, 110}, 15},
    {1, 251, 3, {66, 126, 186}, {100, 105, 110}, 10 * 250 / 120.},
    /* it was 0 only 12 s before: (120 + 12 + 30) / 120 */
    {0, 180, 3, {30, 90, 150}, {1, 6, 11}, 13.5},
    /* nothing happened, or began at 0 */
    {0, 180, 3, {30, 90, 150}, {7, 7, 7}, 0},
    {0, 120, 2, {30, 90}, {0, 4}, 6},
    /* a level that may fall is taken for a total */
    {0, 180, 3, {30, 90, 150}, {-4, -2, -6}, -4 * 1.5},
};

static void test_counter_increases_as_in_prometheus(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const struct total_case *c = &cases[i];
        int64_t at_ms[4];
        for (size_t k = 0; k < c->count; k++)
            at_ms[k] = c->at_s[k] * 1000;
        const struct points p = {at_ms, c->values, c->count};
        const double found = counter_increase(&p, c->from_s * 1000, c->to_s * 1000);
        if (found < c->increase - 1e-12 || found > c->increase + 1e-12)
            fail_msg("case %zu: %.17g, expected %.17g", i, found, c->increase);
        const double rate = counter_rate(&p, c->from_s * 1000, c->to_s * 1000);
        assert_true(rate >= (found - 1e-12) / (double)(c->to_s - c->from_s) &&
                    rate <= (found + 1e-12) / (double)(c->to_s - c->from_s));
    }
}

static void test_counter_needs_two_samples(void **state)
{
    const int64_t at_ms[] = {30000};
    const double values[] = {5};
    (void)state;
    for (size_t count = 0; count < 2; count++) {
        const struct points p = {at_ms, values, count};
        assert_true(vector_is_absent(counter_increase(&p, 0, 60000)));
        assert_true(vector_is_absent(counter_rate(&p, 0, 60000)));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_counter_increases_as_in_prometheus),
        cmocka_unit_test(test_counter_needs_two_samples),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
