#include "stats/rejects.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

struct fixture {
    struct clock clock;
    struct decode decode;
    struct rejects rejects;
    int64_t counts[REJECT_COUNT];
};

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    struct err e = {0};
    f->clock = clock_fake(INT64_C(1431856800000));
    decode_init(&f->decode);
    assert_true(decode_add_step(&f->decode, slice_text("combined"), &e));
    assert_true(decode_finish(&f->decode, &e));
    rejects_init(&f->rejects, &f->clock, 65536);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    rejects_fini(&f->rejects);
    free(f);
    return 0;
}

static void note(struct fixture *f, const char *line, int64_t offset, enum reject_reason reason)
{
    const struct record r = {.value = slice_text(line),
                             .topic = slice_text("access.log"),
                             .partition = RECORD_NO_PARTITION,
                             .offset = offset};
    f->counts[reason]++;
    rejects_note(&f->rejects, &f->decode, &r, r.value, (struct reject){reason, 7});
}

static void check(struct fixture *f, const char *expected)
{
    struct text out = {0};
    rejects_write(&f->rejects, f->counts, &out);
    assert_string_equal(expected, out.ptr);
    text_fini(&out);
}

static void test_nothing_was_rejected(void **state)
{
    check(*state, "{\"rejected\":0,\"reasons\":[]}\n");
}

static void test_a_sample_names_the_format_that_fits(void **state)
{
    struct fixture *f = *state;
    note(f, "{\"time\":\"2015-05-17T10:00:00Z\",\"path\":\"/a\"}", 42, REJECT_IDENTITY);
    check(f, "{\"rejected\":1,\"reasons\":[{\"reason\":\"identity\","
             "\"help\":\"expected the logname and the user after the host\",\"records\":1,\"samples\":["
             "{\"at\":\"2015-05-17T10:00:00Z\",\"source\":\"access.log\",\"offset\":42,\"column\":7,"
             "\"line\":\"{\\\"time\\\":\\\"2015-05-17T10:00:00Z\\\",\\\"path\\\":\\\"/a\\\"}\","
             "\"cut\":false,\"fits\":\"json\"}]}]}\n");
}

static void test_the_newest_samples_stay(void **state)
{
    struct fixture *f = *state;
    struct text out = {0};
    for (int64_t i = 1; i <= 5; i++)
        note(f, "nor this", i, REJECT_HOST);
    rejects_write(&f->rejects, f->counts, &out);
    const char *newest = strstr(out.ptr, "\"offset\":5"), *oldest = strstr(out.ptr, "\"offset\":3");
    assert_non_null(newest);
    assert_non_null(oldest);
    assert_true(newest < oldest);
    assert_null(strstr(out.ptr, "\"offset\":2"));
    assert_non_null(strstr(out.ptr, "\"records\":5"));
    text_fini(&out);
}

static void test_a_long_line_is_cut(void **state)
{
    struct fixture *f = *state;
    struct text out = {0};
    char line[REJECTS_FIT_BYTES + 2];
    memset(line, 'x', sizeof line - 1);
    line[sizeof line - 1] = '\0';
    note(f, line, 0, REJECT_TOO_LONG);
    rejects_write(&f->rejects, f->counts, &out);
    assert_non_null(strstr(out.ptr, "\"cut\":true,\"fits\":null"));
    assert_true(out.len < REJECTS_LINE_BYTES + 500);
    text_fini(&out);
}

static void test_a_message_is_named_by_its_partition(void **state)
{
    struct fixture *f = *state;
    struct text out = {0};
    const struct record r = {.value = slice_text("{"), .topic = slice_text("web"), .partition = 12};
    f->counts[REJECT_HOST] = 1;
    rejects_note(&f->rejects, &f->decode, &r, slice_text("\xff"), (struct reject){REJECT_HOST, 1});
    rejects_write(&f->rejects, f->counts, &out);
    assert_non_null(strstr(out.ptr, "\"source\":\"web/12\",\"offset\":0,\"column\":1,\"line\":\"\\ufffd\""));
    text_fini(&out);
}

/* ---- streaks */

#define JSON "{\"time\":\"2015-05-17T10:00:00Z\",\"path\":\"/a\"}"

/* Records of a log were counted: first those that were parsed. */
static void count(struct fixture *f, size_t source, const char *label, int64_t parsed, int64_t rejected)
{
    struct books books;
    books_init(&books, 0);
    books.entries[BOOK_CONSUMED] = parsed + rejected;
    books.entries[BOOK_PARSED] = parsed;
    books.entries[BOOK_REJECTED + REJECT_IDENTITY] = rejected;
    rejects_note_range(&f->rejects, &(struct rejects_range){.source = source,
                                                            .label = label,
                                                            .decode = &f->decode,
                                                            .books = &books,
                                                            .records = rejected,
                                                            .sample = slice_text(JSON)});
    books_fini(&books);
}

/* What is told now; "": nothing. */
static void check_told(struct fixture *f, const char *expected)
{
    struct text told = {0};
    text_puts(&told, "");
    while (rejects_tell(&f->rejects, &told))
        text_putc(&told, '\n');
    assert_string_equal(told.ptr != NULL ? told.ptr : "", expected);
    text_fini(&told);
}

static void check_warned(struct fixture *f, const char *expected)
{
    struct text warned = {0};
    text_puts(&warned, "");
    rejects_warn(&f->rejects, &warned);
    assert_string_equal(warned.ptr != NULL ? warned.ptr : "", expected);
    text_fini(&warned);
}

#define TOLD(label, lines)              \
    "source=\"" label "\" lines=" lines \
    " reason=\"expected the logname and the user after the host\" fits=\"json\"\n"

static void test_a_source_of_which_all_is_rejected_is_told(void **state)
{
    struct fixture *f = *state;
    rejects_add_source(&f->rejects, "good");
    rejects_add_source(&f->rejects, "bad");
    count(f, 0, "good.log", 5000, 1);
    count(f, 1, "bad.log", 0, 9);
    check_told(f, "");
    count(f, 0, "good.log", 5000, 0);
    count(f, 1, "bad.log", 0, 3991);
    check_told(f, TOLD("bad.log", "4000"));
    count(f, 1, "bad.log", 0, 4000);
    check_told(f, ""); /* once */
    check_warned(f, "warning: source bad: all 8000 records of a file or topic since 2015-05-17T10:00:00Z are "
                    "rejected: expected the logname and the user after the host; the log names it "
                    "(all_rejected)\n");
    count(f, 1, "bad.log", 1, 0);
    check_warned(f, "");
}

/* Lines of a stack trace among good ones are nothing to warn of. */
static void test_a_log_whose_format_changes_is_told_each_time(void **state)
{
    struct fixture *f = *state;
    rejects_add_source(&f->rejects, "logs");
    count(f, 0, "a.log", 100, 0);
    count(f, 0, "b.log", 100, 0);
    for (int round = 0; round < 2; round++) {
        count(f, 0, "a.log", 0, 30);
        clock_pass(&f->clock, REJECTS_STREAK_MS - 1);
        check_told(f, "");
        count(f, 0, "a.log", 100, 20); /* the format changes within a delivery */
        count(f, 0, "b.log", 100, 0);
        clock_pass(&f->clock, REJECTS_STREAK_MS - 1);
        check_told(f, "");
        clock_pass(&f->clock, 1);
        check_told(f, TOLD("a.log", "20"));
        count(f, 0, "a.log", 100, 0);
    }
}

static void test_a_streak_without_news_makes_room(void **state)
{
    struct fixture *f = *state;
    char label[32];
    rejects_add_source(&f->rejects, "logs");
    count(f, 0, "good.log", 1, 0);
    for (int i = 0; i <= REJECTS_STREAKS_MAX; i++) {
        snprintf(label, sizeof label, "%d.log", i);
        count(f, 0, label, 0, 10);
        clock_pass(&f->clock, 1);
    }
    count(f, 0, "0.log", 0, 10); /* it was forgotten, so 1.log is now */
    clock_pass(&f->clock, REJECTS_STREAK_MS);
    struct text told = {0};
    int lines = 0;
    for (; rejects_tell(&f->rejects, &told); lines++)
        assert_null(strstr(told.ptr, "\"1.log\""));
    assert_int_equal(lines, REJECTS_STREAKS_MAX);
    text_fini(&told);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_nothing_was_rejected, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_sample_names_the_format_that_fits, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_the_newest_samples_stay, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_long_line_is_cut, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_message_is_named_by_its_partition, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_source_of_which_all_is_rejected_is_told, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_log_whose_format_changes_is_told_each_time, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_streak_without_news_makes_room, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
