/* The growing string, and what it quotes. */
#include "base/check.h"
#include "base/text.h"
#include "base/utf8.h"
#include "tests/support/dice.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

static void test_text_grows(void **state)
{
    (void)state;
    struct text t = {0};
    assert_int_equal(text_slice(&t).len, 0);
    text_add(&t, NULL, 0);
    assert_string_equal(t.ptr, "");
    text_puts(&t, "ab");
    text_putc(&t, 'c');
    text_printf(&t, "%d%s", 42, "");
    text_add(&t, "x\0y", 3);
    assert_int_equal(t.len, 8);
    assert_memory_equal(t.ptr, "abc42x\0y", 9);
    text_clear(&t);
    assert_string_equal(t.ptr, "");
    assert_int_equal(t.len, 0);
    text_fini(&t);
    text_clear(&t);
    text_fini(&t);
}

static void test_long_texts_are_whole(void **state)
{
    (void)state;
    struct text t = {0};
    for (int i = 0; i < 20000; i++) {
        text_printf(&t, "%05d", i);
        assert_int_equal(t.len, 5 * (i + 1));
    }
    text_printf(&t, "%0100000d", 7);
    assert_int_equal(t.len, 200000);
    assert_memory_equal(t.ptr + 99995, "199990000", 9);
    assert_int_equal(t.ptr[199999], '7');
    assert_int_equal(t.ptr[200000], '\0');
    text_fini(&t);
}

struct quoted {
    struct slice raw;
    const char *want;
};

static void check_quotes(void (*quote)(struct text *, struct slice), const struct quoted *cases, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct text t = {0};
        text_puts(&t, "=");
        quote(&t, cases[i].raw);
        if (strcmp(t.ptr + 1, cases[i].want) != 0)
            fail_msg("case %zu: found %s, expected %s", i, t.ptr + 1, cases[i].want);
        text_fini(&t);
    }
}

static void test_json_strings(void **state)
{
    static const struct quoted cases[] = {
        {{"", 0}, "\"\""},
        {{NULL, 0}, "\"\""},
        {{"plain", 5}, "\"plain\""},
        {{"a\"b\\c/", 6}, "\"a\\\"b\\\\c/\""},
        {{"\n\r\t\b\x01\x1F\x7F", 7}, "\"\\u000a\\u000d\\u0009\\u0008\\u0001\\u001f\\u007f\""},
        {{"\0x", 2}, "\"\\u0000x\""},
        {{"</script><!--&'", 15}, "\"\\u003c/script\\u003e\\u003c!--\\u0026'\""},
        {{"\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80", 9}, "\"\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80\""},
        {{"\xFF", 1}, "\"\\ufffd\""},
        {{"a\xC3", 2}, "\"a\\ufffd\""},
        {{"\xC3\"", 2}, "\"\\ufffd\\\"\""},
        {{"\xE2\x82", 2}, "\"\\ufffd\\ufffd\""},
        {{"\xED\xA0\x80", 3}, "\"\\ufffd\\ufffd\\ufffd\""},
        {{"\xC0\x80", 2}, "\"\\ufffd\\ufffd\""},
    };
    (void)state;
    check_quotes(text_json, cases, COUNT_OF(cases));
}

static void test_csv_fields(void **state)
{
    static const struct quoted cases[] = {
        {{"", 0}, ""},
        {{"plain text", 10}, "plain text"},
        {{"a,b", 3}, "\"a,b\""},
        {{"say \"x\"", 7}, "\"say \"\"x\"\"\""},
        {{"\"", 1}, "\"\"\"\""},
        {{"a\nb", 3}, "\"a\nb\""},
        {{"a\rb", 3}, "\"a\rb\""},
        {{"a;b'c\t", 6}, "a;b'c\t"},
        {{"\xC3\xA9\xFF", 3}, "\xC3\xA9\xFF"},
    };
    (void)state;
    check_quotes(text_csv, cases, COUNT_OF(cases));
}

static void test_csv_cells_are_no_formulas(void **state)
{
    static const struct quoted cases[] = {
        {{"", 0}, ""},
        {{"/a", 2}, "/a"},
        {{"-", 1}, "-"},
        {{"-1", 2}, "'-1"},
        {{"=cmd|' /C calc'!A0", 18}, "'=cmd|' /C calc'!A0"},
        {{"+1,2", 4}, "\"'+1,2\""},
        {{"@a", 2}, "'@a"},
        {{"\t=1", 3}, "'\t=1"},
    };
    (void)state;
    check_quotes(text_csv_cell, cases, COUNT_OF(cases));
}

static void test_shown_texts_do_nothing_to_a_terminal(void **state)
{
    static const struct quoted cases[] = {
        {{"", 0}, ""},
        {{NULL, 0}, ""},
        {{"a \"b\\c", 6}, "a \"b\\c"},
        {{"\0\x1B[31m\n\x7F", 8}, "\\x00\\x1b[31m\\x0a\\x7f"},
        {{"\xC2\x9B\xC2\xA0", 4}, "\\xc2\\x9b\xC2\xA0"},
        {{"\xE2\x80\x8B\xEF\xBB\xBF\xD8\x9C", 8}, "\\xe2\\x80\\x8b\\xef\\xbb\\xbf\\xd8\\x9c"},
        {{"\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80", 9}, "\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80"},
        {{"\xFF\xC3", 2}, "\\xff\\xc3"},
    };
    (void)state;
    check_quotes(text_show, cases, COUNT_OF(cases));
}

static void percent_all(struct text *t, struct slice s)
{
    text_percent(t, s, NULL);
}

static void percent_slashes(struct text *t, struct slice s)
{
    text_percent(t, s, "/");
}

static void test_percent_encoding(void **state)
{
    static const struct quoted all[] = {
        {{"", 0}, ""},
        {{"aZ09-_.~", 8}, "aZ09-_.~"},
        {{"/a b%&+", 7}, "%2Fa%20b%25%26%2B"},
        {{"\0\xC3\xA9\x7F", 4}, "%00%C3%A9%7F"},
    };
    static const struct quoted slashes[] = {{{"/a b%/\xFF", 7}, "%2Fa b%25%2F\xFF"}};
    (void)state;
    check_quotes(percent_all, all, COUNT_OF(all));
    check_quotes(percent_slashes, slashes, COUNT_OF(slashes));
}

/* A JSON string taken back to its bytes; false where it is none. */
static bool read_json(struct slice s, struct text *out)
{
    if (s.len < 2 || s.ptr[0] != '"' || s.ptr[s.len - 1] != '"')
        return false;
    for (size_t i = 1; i < s.len - 1; i++) {
        unsigned char c = (unsigned char)s.ptr[i];
        if (c < 0x20 || c == '"' || c == '<' || c == '>' || c == '&')
            return false;
        if (c != '\\') {
            text_putc(out, (char)c);
            continue;
        }
        if (s.ptr[++i] != 'u') {
            text_putc(out, s.ptr[i]);
            continue;
        }
        char hex[5] = {0};
        memcpy(hex, s.ptr + i + 1, 4);
        long code = strtol(hex, NULL, 16);
        text_puts(out, code == 0xFFFD ? "?" : "");
        if (code != 0xFFFD)
            text_putc(out, (char)code);
        i += 4;
    }
    return true;
}

static void test_any_bytes_read_back_from_json(void **state)
{
    (void)state;
    struct dice d = dice_new("json");
    for (int round = 0; round < 20000; round++) {
        unsigned char raw[40];
        size_t len = (size_t)dice_roll(&d, sizeof raw);
        for (size_t i = 0; i < len; i++)
            raw[i] = (unsigned char)dice_roll(&d, dice_roll(&d, 2) == 0 ? 128 : 256);
        struct text json = {0}, back = {0}, want = {0};
        text_json(&json, slice_of((const char *)raw, len));
        assert_true(read_json(text_slice(&json), &back));
        for (size_t i = 0, n; i < len; i += n) {
            n = utf8_len(raw + i, raw + len);
            text_add(&want, n > 0 ? (const char *)raw + i : "?", n > 0 ? n : 1);
            n = n > 0 ? n : 1;
        }
        assert_true(slice_equal(text_slice(&back), text_slice(&want)));
        text_fini(&json);
        text_fini(&back);
        text_fini(&want);
    }
}

static void test_password_of_a_url_is_hidden(void **state)
{
    static const struct {
        const char *url, *shown;
    } cases[] = {
        {"mongodb://bob:geheim@h/x", "mongodb://bob:…@h/x"},
        {"mongodb://bob:a:b@c@h:27017,i:27018/x?a=b@c:d", "mongodb://bob:…@h:27017,i:27018/x?a=b@c:d"},
        {"mongodb+srv://:geheim@h", "mongodb+srv://:…@h"},
        {"mongodb://bob@h:27017", "mongodb://bob@h:27017"},
        {"mongodb://h:27017/?x=a:b@c", "mongodb://h:27017/?x=a:b@c"},
        {"sqlite:/var/lib/a:b@c.db", "sqlite:/var/lib/a:b@c.db"},
        {"", ""},
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct text out = {0};
        text_puts(&out, "");
        text_url(&out, slice_text(cases[i].url));
        assert_string_equal(cases[i].shown, out.ptr);
        text_fini(&out);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_text_grows),
        cmocka_unit_test(test_password_of_a_url_is_hidden),
        cmocka_unit_test(test_long_texts_are_whole),
        cmocka_unit_test(test_json_strings),
        cmocka_unit_test(test_csv_fields),
        cmocka_unit_test(test_csv_cells_are_no_formulas),
        cmocka_unit_test(test_shown_texts_do_nothing_to_a_terminal),
        cmocka_unit_test(test_percent_encoding),
        cmocka_unit_test(test_any_bytes_read_back_from_json),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
