/* Forms: names and values as they were meant, whatever bytes arrive. */
#include "web/form.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define MAX 3

static void check(const char *body, const char *const *expected, size_t count)
{
    struct text text = {0};
    struct parameter list[MAX];
    text_puts(&text, body);
    assert_int_equal(form_decode(&text, list, MAX), count);
    for (size_t i = 0; i < count && i < MAX; i++) {
        assert_true(slice_is(list[i].name, expected[2 * i]));
        if (!slice_is(list[i].value, expected[2 * i + 1]))
            fail_msg("%s: found \"%.*s\"", body, SLICE_ARGS(list[i].value));
    }
    text_fini(&text);
}

#define CHECK(body, ...) \
    check(body, (const char *const[]){__VA_ARGS__}, COUNT_OF(((const char *const[]){__VA_ARGS__})) / 2)

static void test_form_is_decoded(void **state)
{
    (void)state;
    CHECK("query=1%2B1&time=4", "query", "1+1", "time", "4");
    CHECK("match%5B%5D=a+b&c", "match[]", "a b", "c", "");
    CHECK("a=%c3%A4=%3d", "a", "ä==");
    CHECK("=&&a==", "", "", "", "", "a", "=");
    CHECK("a=1&", "a", "1");
    CHECK("a=%&b=%4&c=%zz%g1%1g", "a", "%", "b", "%4", "c", "%zz%g1%1g");
    check("", NULL, 0);
}

static void test_form_too_many_are_counted(void **state)
{
    const char *const first[] = {"a", "1", "b", "2", "c", "3"};
    (void)state;
    check("a=1&b=2&c=3&d=%34&e", first, 5);
}

static void test_form_is_told_by_its_type(void **state)
{
    (void)state;
    assert_true(form_type_is("application/x-www-form-urlencoded", FORM_TYPE));
    assert_true(form_type_is("Application/X-WWW-form-urlencoded; charset=utf-8", FORM_TYPE));
    assert_false(form_type_is("application/x-www-form-urlencodedx", FORM_TYPE));
    assert_false(form_type_is("application/json", FORM_TYPE));
    assert_false(form_type_is(NULL, FORM_TYPE));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_form_is_decoded),
        cmocka_unit_test(test_form_too_many_are_counted),
        cmocka_unit_test(test_form_is_told_by_its_type),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
