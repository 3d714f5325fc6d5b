#include "base/suggest.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

static void test_suggest_names(void **state)
{
    (void)state;
    static const char *const names[] = {"path", "port", "referrer_host", NULL};
    assert_string_equal(suggest_nearest(slice_text("paht"), names), "path");
    assert_string_equal(suggest_nearest(slice_text("pat"), names), "path");
    assert_string_equal(suggest_nearest(slice_text("prt"), names), "port");
    assert_string_equal(suggest_nearest(slice_text("refererhost"), names), "referrer_host");
    assert_null(suggest_nearest(slice_text("agent"), names));
    assert_null(suggest_nearest(slice_text("pa"), names));
    assert_null(suggest_nearest(slice_text(""), names));
}

static void test_suggest_quote_is_one_clean_line(void **state)
{
    (void)state;
    char buf[SUGGEST_QUOTE_BYTES], many[300];
    assert_string_equal(suggest_quote(slice_of("a\0\n\xff\xc3\xa9", 6), buf), "\"a\\x00\\x0a\\xff\xc3\xa9\"");
    memset(many, 1, sizeof many);
    assert_int_equal(strlen(suggest_quote(slice_of(many, sizeof many), buf)),
                     4 * SUGGEST_TEXT_MAX + strlen("\"…\""));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_suggest_names),
        cmocka_unit_test(test_suggest_quote_is_one_clean_line),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
