/* The account of every line. */
#include "aggregate/books.h"
#include "base/check.h"
#include "tests/support/dice.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define REPORTS 3

/* Lines of all kinds, as a shard keeps their books. */
static void roll_lines(struct dice *d, struct books *b)
{
    for (int64_t n = dice_roll(d, 100); n > 0; n--) {
        ++*books_source(b, BOOK_CONSUMED);
        if (dice_roll(d, 4) == 0) {
            ++*books_source(b, BOOK_REJECTED + (int)dice_roll(d, REJECT_COUNT));
            continue;
        }
        ++*books_source(b, BOOK_PARSED);
        for (size_t r = 0; r < REPORTS; r++) {
            ++*books_report(b, r, BOOK_REPORT_PARSED);
            ++*books_report(b, r, BOOK_COUNTED + (int)dice_roll(d, 3));
        }
    }
}

static void test_books_of_all_lines_balance(void **state)
{
    (void)state;
    struct dice d = dice_new("books");
    struct books sum, one;
    int64_t consumed = 0, rejected = 0;
    books_init(&sum, REPORTS);
    books_init(&one, REPORTS);
    for (int round = 0; round < 200; round++) {
        books_clear(&one);
        roll_lines(&d, &one);
        assert_true(books_balance(&one));
        consumed += *books_source(&one, BOOK_CONSUMED);
        rejected += books_rejected(&one);
        books_add(&sum, &one);
        assert_true(books_balance(&sum));
    }
    assert_int_equal(*books_source(&sum, BOOK_CONSUMED), consumed);
    assert_int_equal(books_rejected(&sum), rejected);
    assert_int_equal(*books_source(&sum, BOOK_PARSED), consumed - rejected);
    books_fini(&sum);
    books_fini(&one);
}

static void test_any_entry_that_is_off_is_seen(void **state)
{
    (void)state;
    struct dice d = dice_new("off");
    struct books b;
    books_init(&b, REPORTS);
    for (size_t i = 0; i < books_count(REPORTS); i++) {
        books_clear(&b);
        assert_true(books_balance(&b));
        roll_lines(&d, &b);
        b.entries[i]++;
        assert_false(books_balance(&b));
        b.entries[i] -= 2;
        assert_false(books_balance(&b));
    }
    books_fini(&b);
}

/* A report that was added later has parsed less than the source. */
static void test_report_may_begin_later(void **state)
{
    (void)state;
    struct books b;
    books_init(&b, REPORTS);
    *books_source(&b, BOOK_CONSUMED) = *books_source(&b, BOOK_PARSED) = 10;
    *books_report(&b, 1, BOOK_REPORT_PARSED) = *books_report(&b, 1, BOOK_FILTERED) = 4;
    assert_true(books_balance(&b));
    books_fini(&b);
}

static void test_entries_have_names_of_their_own(void **state)
{
    (void)state;
    char names[BOOK_SOURCE_COUNT][BOOK_NAME_BYTES], buf[BOOK_NAME_BYTES];
    for (int i = 0; i < BOOK_SOURCE_COUNT; i++) {
        const char *name = books_source_name(i, buf);
        assert_true(strlen(name) < BOOK_NAME_BYTES - 1);
        snprintf(names[i], sizeof names[i], "%s", name);
        for (int k = 0; k < i; k++)
            assert_string_not_equal(names[i], names[k]);
    }
    assert_string_equal(names[BOOK_CONSUMED], "consumed");
    assert_string_equal(names[BOOK_REJECTED + REJECT_TOO_LONG], "rejected.too_long");
    static const char *const of_report[] = {"parsed", "counted", "filtered", "late"};
    for (int i = 0; i < BOOK_REPORT_COUNT; i++)
        assert_string_equal(books_report_name(i), of_report[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_books_of_all_lines_balance),
        cmocka_unit_test(test_any_entry_that_is_off_is_seen),
        cmocka_unit_test(test_report_may_begin_later),
        cmocka_unit_test(test_entries_have_names_of_their_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
