/* The sort by digits against qsort(3). */
#include "base/radix.h"
#include "tests/support/dice.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define ITEMS_MAX 5000

static int by_key_then_index(const void *a, const void *b)
{
    const struct radix_item *x = a, *y = b;
    if (x->key != y->key)
        return x->key < y->key ? -1 : 1;
    return x->index < y->index ? -1 : x->index > y->index;
}

static struct radix_item items[ITEMS_MAX], scratch[ITEMS_MAX], want[ITEMS_MAX];

/* Indexes ascend, so that a stable sort leaves them ascending among equal keys. */
static void check(size_t count)
{
    for (size_t i = 0; i < count; i++)
        items[i].index = (uint32_t)i;
    memcpy(want, items, sizeof want);
    qsort(want, count, sizeof *want, by_key_then_index);
    const struct radix_item *sorted = radix_sort(items, scratch, count);
    assert_true(sorted == items || sorted == scratch);
    for (size_t i = 0; i < count; i++)
        assert_true(sorted[i].key == want[i].key && sorted[i].index == want[i].index);
}

static void test_any_keys_equal_qsort(void **state)
{
    (void)state;
    struct dice d = dice_new("radix");
    for (int round = 0; round < 400; round++) {
        size_t count = (size_t)dice_roll(&d, dice_roll(&d, 2) == 0 ? 20 : ITEMS_MAX);
        /* keys that differ in few bits, anywhere; or in all */
        uint64_t mask =
            round % 4 == 0 ? UINT64_MAX : (uint64_t)(dice_roll(&d, 1 << 20) + 1) << dice_roll(&d, 64);
        uint64_t base = (uint64_t)dice_roll(&d, INT64_MAX) << 1;
        for (size_t i = 0; i < count; i++)
            items[i].key = (base & ~mask) | (((uint64_t)dice_roll(&d, INT64_MAX) << 1 | (i & 1)) & mask);
        check(count);
    }
}

static void test_few_and_equal_and_extreme_keys(void **state)
{
    (void)state;
    static const uint64_t extremes[] = {UINT64_MAX, 0, (uint64_t)1 << 63, 1, UINT64_MAX - 1, 0, UINT64_MAX};
    assert_ptr_equal(radix_sort(items, scratch, 0), items);
    items[0].key = 9;
    check(1);
    for (size_t i = 0; i < ITEMS_MAX; i++)
        items[i].key = 77;
    check(ITEMS_MAX);
    for (size_t i = 0; i < sizeof extremes / sizeof *extremes; i++)
        items[i].key = extremes[i];
    check(sizeof extremes / sizeof *extremes);
}

static void test_sorted_and_reversed(void **state)
{
    (void)state;
    for (size_t i = 0; i < ITEMS_MAX; i++)
        items[i].key = i * 1000003;
    check(ITEMS_MAX);
    for (size_t i = 0; i < ITEMS_MAX; i++)
        items[i].key = (ITEMS_MAX - i) / 3;
    check(ITEMS_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_any_keys_equal_qsort),
        cmocka_unit_test(test_few_and_equal_and_extreme_keys),
        cmocka_unit_test(test_sorted_and_reversed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
