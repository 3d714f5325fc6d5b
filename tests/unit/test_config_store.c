/* How the configuration says what is made ahead. */
#include "config/config_read.h"
#include "tests/support/configs.h"
#include "tests/support/fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

static void check_good(const char *yaml, int64_t preallocate, bool zeros)
{
    struct config *given = fixture_config(yaml), *printed = config_again(given);
    assert_int_equal(given->store.preallocate, preallocate);
    assert_int_equal(given->store.preallocate_zeros, zeros);
    assert_int_equal(printed->store.preallocate, preallocate);
    assert_int_equal(printed->store.preallocate_zeros, zeros);
    config_free(given);
    config_free(printed);
}

static void test_what_is_made_ahead(void **state)
{
    (void)state;
    check_good("log: {level: info}", CONFIG_PREALLOCATE_OFF, false);
    check_good("store: {preallocate: off}", CONFIG_PREALLOCATE_OFF, false);
    check_good("store: {preallocate: auto, preallocate_as: zeros}", CONFIG_PREALLOCATE_AUTO, true);
    check_good("store: {preallocate: 1/500000, preallocate_as: shell}", 500000, false);
    check_good("store: {preallocate: 1/1}", 1, false);
}

#define FORMS "expected auto, off, or a chance such as 1/500000"

static void test_what_is_refused(void **state)
{
    static const char *const bad[][2] = {
        {"preallocate: 1/0", "found \"1/0\", " FORMS "\n"},
        {"preallocate: 1/", "found \"1/\", " FORMS "\n"},
        {"preallocate: 1/-1", "found \"1/-1\", " FORMS "\n"},
        {"preallocate: 0.5", "found \"0.5\", " FORMS "\n"},
        {"preallocate: 1/99999999999999999999", "found \"1/99999999999999999999\", " FORMS "\n"},
        {"preallocate: atuo", "found \"atuo\", " FORMS " (did you mean \"auto\"?)\n"},
        {"preallocate_as: nulls", "found \"nulls\", expected shell or zeros\n"}};
    (void)state;
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        struct text problems = {0}, yaml = {0};
        text_printf(&yaml, "store: {%s}", bad[i][0]);
        assert_null(config_parse(text_slice(&yaml), "f.yaml", &problems));
        const char *found = strstr(problems.ptr, "found ");
        assert_non_null(found);
        assert_string_equal(found, bad[i][1]);
        text_fini(&problems);
        text_fini(&yaml);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_made_ahead),
        cmocka_unit_test(test_what_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
