#include "base/suggest.h"
#include "tests/support/dice.h"

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

/* By the whole matrix, without any bound. */
static unsigned distance_of(const char *a, const char *b)
{
    unsigned d[8][8];
    size_t a_len = strlen(a), b_len = strlen(b);
    for (size_t i = 0; i <= a_len; i++) {
        for (size_t j = 0; j <= b_len; j++) {
            unsigned best = i == 0   ? (unsigned)j
                            : j == 0 ? (unsigned)i
                                     : d[i - 1][j - 1] + (a[i - 1] != b[j - 1]);
            if (i > 0 && d[i - 1][j] + 1 < best)
                best = d[i - 1][j] + 1;
            if (j > 0 && d[i][j - 1] + 1 < best)
                best = d[i][j - 1] + 1;
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] && d[i - 2][j - 2] + 1 < best)
                best = d[i - 2][j - 2] + 1;
            d[i][j] = best;
        }
    }
    return d[a_len][b_len];
}

static void test_suggest_finds_the_nearest_of_all(void **state)
{
    struct dice dice = dice_new("suggest");
    (void)state;
    for (int round = 0; round < 2000; round++) {
        char texts[9][8];
        const char *names[9] = {NULL}, *nearest = NULL;
        for (size_t i = 0; i < 9; i++) {
            size_t len = 1 + (size_t)dice_roll(&dice, 7);
            for (size_t at = 0; at < len; at++)
                texts[i][at] = (char)('a' + dice_roll(&dice, 3));
            texts[i][len] = '\0';
        }
        unsigned best = strlen(texts[8]) < 6 ? 1 : (unsigned)strlen(texts[8]) / 3;
        for (size_t i = 0; i < 8; i++) {
            unsigned d = distance_of(texts[8], names[i] = texts[i]);
            if (d < best || (d == best && nearest == NULL)) {
                best = d;
                nearest = names[i];
            }
        }
        assert_ptr_equal(suggest_nearest(slice_text(texts[8]), names), nearest);
    }
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
        cmocka_unit_test(test_suggest_finds_the_nearest_of_all),
        cmocka_unit_test(test_suggest_quote_is_one_clean_line),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
