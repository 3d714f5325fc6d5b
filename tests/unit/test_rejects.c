#include "stats/rejects.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_nothing_was_rejected, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_sample_names_the_format_that_fits, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_the_newest_samples_stay, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_long_line_is_cut, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_message_is_named_by_its_partition, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
