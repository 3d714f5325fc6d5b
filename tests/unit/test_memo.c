#include "ingest/derive/memo.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#define LENGTHS    100
#define COLLISIONS 2000

/* Finds a key twice, so that it is recent, or adds it. */
static struct memo_entry *get(struct memo *m, struct slice key, uint64_t number)
{
    struct memo_entry *entry = memo_find(m, key, number);
    if (entry == NULL)
        entry = memo_add(m, key, number);
    assert_ptr_equal(memo_find(m, key, number), entry);
    assert_true(slice_equal(entry->key, key) && entry->number == number);
    return entry;
}

/* For each length, all texts of a's with one b, and the one without. */
static void test_memo_tells_texts_apart(void **state)
{
    (void)state;
    struct memo m;
    char text[LENGTHS];
    uint32_t count = 0;
    memo_init(&m);
    for (int round = 0; round < 2; round++) {
        for (size_t len = 0; len < LENGTHS; len++) {
            memset(text, 'a', sizeof text);
            for (size_t at = 0; at <= len; at++) {
                text[at] = 'b'; /* at last behind the key */
                get(&m, slice_of(text, len), 0);
                count += round == 0;
                text[at] = 'a';
            }
        }
        assert_int_equal(m.index.count, count);
    }
    memo_fini(&m);
}

static void test_memo_tells_numbers_apart(void **state)
{
    (void)state;
    struct memo m;
    memo_init(&m);
    struct memo_entry *even = get(&m, slice_text("192.0.2.17"), 0),
                      *odd = get(&m, slice_text("192.0.2.17"), 1);
    assert_ptr_not_equal(even, odd);
    assert_ptr_equal(get(&m, slice_text("192.0.2.17"), 0), even);
    assert_ptr_equal(get(&m, slice_text("::1"), 1), get(&m, slice_text("::1"), 1));
    assert_ptr_not_equal(get(&m, slice_text("::1"), 0), get(&m, slice_text("::1"), 1));
    memo_fini(&m);
}

/* Keys that differ only where memo_sample() does not look share a place. */
static void test_memo_finds_keys_of_one_place(void **state)
{
    (void)state;
    struct memo m;
    char text[LENGTHS];
    struct memo_entry *entries[COLLISIONS];
    memo_init(&m);
    memset(text, 'a', sizeof text);
    size_t place = memo_sample(slice_of(text, sizeof text), 0);
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < COLLISIONS; i++) {
            struct slice key = slice_of(text, sizeof text);
            snprintf(text + 50, 5, "%04d", i);
            text[54] = 'a';
            assert_int_equal(memo_sample(key, 0), place);
            struct memo_entry *entry = get(&m, key, 0);
            if (round == 1)
                assert_ptr_equal(entry, entries[i]);
            entries[i] = entry;
        }
    }
    assert_int_equal(m.index.count, COLLISIONS);
    memo_fini(&m);
}

static void test_memo_forgets_all_over_its_limit(void **state)
{
    (void)state;
    struct memo m;
    char text[32];
    memo_init(&m);
    for (int i = 0; i <= MEMO_ENTRIES_MAX; i++)
        get(&m, slice_of(text, (size_t)snprintf(text, sizeof text, "/page/%08d", i)), 0);
    struct memo_entry *last = get(&m, slice_text(text), 0);
    assert_int_equal(m.index.count, MEMO_ENTRIES_MAX + 1);
    assert_non_null(last);
    memo_flush(&m);
    assert_int_equal(m.index.count, 0);
    assert_null(memo_find(&m, slice_text(text), 0));
    get(&m, slice_text(text), 0);
    memo_flush(&m);
    assert_non_null(memo_find(&m, slice_text(text), 0));
    memo_fini(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_memo_tells_texts_apart),
        cmocka_unit_test(test_memo_tells_numbers_apart),
        cmocka_unit_test(test_memo_finds_keys_of_one_place),
        cmocka_unit_test(test_memo_forgets_all_over_its_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
