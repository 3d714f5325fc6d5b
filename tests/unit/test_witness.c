/* Which records are kept to prove later that a log is the one that was counted, and how they are stored. */
#include "aggregate/witness.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

static void test_the_newest_are_kept_and_older_ones_at_doubling_distances(void **state)
{
    struct witnesses w = {0};
    const int64_t last = 100000;
    (void)state;
    for (int64_t at = 0; at <= last; at++)
        witnesses_add(&w, at, (uint64_t)at * 3);
    assert_int_equal(w.count, WITNESSES_MAX);
    for (uint32_t i = 0; i < WITNESSES_RECENT; i++)
        assert_int_equal(w.at[w.count - 1 - i].offset, last - i);
    for (uint32_t i = 0; i < w.count; i++) {
        assert_int_equal(w.at[i].hash, w.at[i].offset * 3);
        if (i > 0)
            assert_true(w.at[i].offset > w.at[i - 1].offset);
        if (i + WITNESSES_RECENT < w.count && i > 0) /* no hole is much wider than what is behind it */
            assert_true(last - w.at[i - 1].offset <= 8 * (last - w.at[i].offset) + 8);
    }
    assert_true(w.at[0].offset < last / 2); /* and the oldest are old */
}

static void test_an_offset_that_is_not_behind_the_others_is_not_added(void **state)
{
    struct witnesses w = {0};
    (void)state;
    assert_null(witnesses_newest(&w));
    witnesses_add(&w, 5, 1);
    witnesses_add(&w, 5, 2);
    witnesses_add(&w, 4, 3);
    assert_int_equal(w.count, 1);
    assert_int_equal(witnesses_newest(&w)->hash, 1);
}

static void test_packed_and_unpacked(void **state)
{
    struct witnesses w = {0}, back;
    unsigned char bytes[WITNESSES_MAX * WITNESS_BYTES];
    (void)state;
    witnesses_add(&w, 0, UINT64_MAX);
    witnesses_add(&w, INT64_MAX, 0x0123456789abcdef);
    size_t len = witnesses_pack(&w, bytes);
    assert_int_equal(len, 2 * WITNESS_BYTES);
    assert_int_equal(bytes[WITNESS_BYTES + 8], 0xef); /* the same on every machine */
    assert_true(witnesses_unpack(&back, slice_of((char *)bytes, len)));
    assert_int_equal(back.count, 2);
    assert_true(back.at[0].hash == UINT64_MAX && back.at[1].offset == INT64_MAX);
}

static void test_damage_leaves_none(void **state)
{
    struct witnesses w = {0}, back = {.count = 3};
    unsigned char bytes[WITNESSES_MAX * WITNESS_BYTES];
    (void)state;
    witnesses_add(&w, 7, 1);
    witnesses_add(&w, 8, 1);
    size_t len = witnesses_pack(&w, bytes);
    assert_false(witnesses_unpack(&back, slice_of((char *)bytes, len - 1)));
    assert_int_equal(back.count, 0);
    bytes[0] = 9; /* behind the next one */
    assert_false(witnesses_unpack(&back, slice_of((char *)bytes, len)));
    bytes[0] = 7;
    bytes[7] = 0x80; /* below 0 */
    assert_false(witnesses_unpack(&back, slice_of((char *)bytes, len)));
    assert_int_equal(back.count, 0);
    assert_true(witnesses_unpack(&back, slice_of("", 0)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_newest_are_kept_and_older_ones_at_doubling_distances),
        cmocka_unit_test(test_an_offset_that_is_not_behind_the_others_is_not_added),
        cmocka_unit_test(test_packed_and_unpacked),
        cmocka_unit_test(test_damage_leaves_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
