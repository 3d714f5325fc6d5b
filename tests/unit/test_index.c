#include "base/index.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#define ELEMENTS 5000

/* The number of `value` in the list; 0: it is not there. */
static uint32_t find(const struct index *ix, const uint64_t *list, uint64_t hash, uint64_t value)
{
    uint32_t number;
    size_t at = hash;
    while ((number = index_next(ix, hash, &at)) != 0 && list[number - 1] != value)
        ;
    return number;
}

static void test_index_of_zeros_is_empty(void **state)
{
    (void)state;
    struct index ix = {0};
    size_t at = 7;
    assert_int_equal(index_next(&ix, 7, &at), 0);
    index_clear(&ix);
    index_fini(&ix);
}

/* Takes hashes that are all different, all in a few places, and all the same. */
static void test_index_finds_each_element(void **state)
{
    (void)state;
    const uint64_t factors[] = {0x9E3779B97F4A7C15u, (uint64_t)1 << 40, (uint64_t)1 << 16, 0};
    uint64_t *list = malloc(ELEMENTS * sizeof *list);
    for (size_t f = 0; f < sizeof factors / sizeof factors[0]; f++) {
        uint32_t count = factors[f] % 2 == 1 ? ELEMENTS : 300;
        struct index ix = {0};
        for (uint32_t i = 0; i < count; i++) {
            list[i] = i;
            assert_int_equal(find(&ix, list, i * factors[f], i), 0);
            assert_int_equal(index_add(&ix, i * factors[f]), i + 1);
        }
        for (uint32_t i = 0; i < count; i++)
            assert_int_equal(find(&ix, list, i * factors[f], i), i + 1);
        assert_true(ix.count * 2 <= ix.slot_count);
        index_fini(&ix);
    }
    free(list);
}

static void test_index_clear_forgets_all(void **state)
{
    (void)state;
    struct index ix = {0};
    for (uint64_t i = 0; i < 1000; i++)
        index_add(&ix, i);
    index_clear(&ix);
    for (uint64_t i = 0; i < 1000; i++) {
        size_t at = i;
        assert_int_equal(index_next(&ix, i, &at), 0);
    }
    assert_int_equal(index_add(&ix, 5), 1);
    index_fini(&ix);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_index_of_zeros_is_empty),
        cmocka_unit_test(test_index_finds_each_element),
        cmocka_unit_test(test_index_clear_forgets_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
