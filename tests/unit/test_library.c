/* Libraries that are loaded when they are needed: there, not there, and there without what is asked of it. */
#include "base/library.h"
#include "base/slice.h"

#include <setjmp.h>
#include <stdarg.h>
#include <zlib.h>

#include <cmocka.h>

#define FUNCTIONS(X) X(zlibVersion)

LIBRARY(libz, FUNCTIONS, "libz.so.1", "zlib1g");

static void test_library_is_loaded_once(void **state)
{
    (void)state;
    struct err e;
    assert_null(lib.zlibVersion);
    assert_true(library_load(&libz, &e) && libz.loaded);
    assert_string_equal(lib.zlibVersion(), zlibVersion());
    assert_true(library_load(&libz, &e));
}

static void test_library_that_is_missing_names_its_package(void **state)
{
    (void)state;
    struct library l = {"libnosuch.so.1", "libnosuch1", symbols, COUNT_OF(symbols), false};
    struct err e;
    assert_false(library_load(&l, &e) || l.loaded);
    assert_int_equal(e.code, EX_OSFILE);
    assert_non_null(strstr(e.text, "install the package libnosuch1"));
}

static void test_library_without_a_function_is_refused(void **state)
{
    (void)state;
    static int nothing;
    static const struct library_symbol others[] = {{"no_such_function", &nothing}};
    struct library l = {"libz.so.1", "zlib1g", others, COUNT_OF(others), false};
    struct err e;
    assert_false(library_load(&l, &e) || l.loaded);
    assert_int_equal(e.code, EX_OSFILE);
    assert_non_null(strstr(e.text, "no_such_function"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_library_is_loaded_once),
        cmocka_unit_test(test_library_that_is_missing_names_its_package),
        cmocka_unit_test(test_library_without_a_function_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
