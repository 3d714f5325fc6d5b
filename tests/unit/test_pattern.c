#include "ingest/file/pattern.h"

#include "base/text.h"
#include "tests/support/dice.h"

#include <fnmatch.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

static struct pattern *make(const char *text)
{
    struct err e;
    struct pattern *p = pattern_new(slice_text(text), &e);
    if (p == NULL)
        fail_msg("%s: %s", text, e.text);
    return p;
}

static bool matches(const char *text, const char *path)
{
    struct slice captures[PATTERN_CAPTURES_MAX];
    struct pattern *p = make(text);
    bool does = pattern_match(p, slice_text(path), captures);
    pattern_free(p);
    return does;
}

static void test_pattern_matches_as_glob_does(void **state)
{
    (void)state;
    static const char *const good[][2] = {
        {"/a/b.log", "/a/b.log"},     {"/a/b.log", "//a/./b.log"},
        {"/./a//b.log", "/a/b.log"},  {"b.log", "./b.log"},
        {"../b.log", "../b.log"},     {"/a/*.log", "/a/x y.log"},
        {"/a/*.log", "/a/x\ny.log"},  {"/a/*.log", "/a/\xff\xfe.log"},
        {"/a/*.log", "/a/x.log.log"}, {"/a/*.log*", "/a/x.log"},
        {"/a/*.log*", "/a/x.log.1"},  {"/*/b", "/a/b"},
        {"/a/?", "/a/\xff"},          {"/a/[a-cx]", "/a/b"},
        {"/a/[a-cx]", "/a/x"},        {"/a/[!a-c]", "/a/d"},
        {"/a/[^a-c]", "/a/d"},        {"/a/[]x]", "/a/]"},
        {"/a/[a-]", "/a/-"},          {"/a/[\\]]", "/a/]"},
        {"/a/x[*]", "/a/x*"},         {"/a/\\*", "/a/*"},
        {"/a/\\[1\\]", "/a/[1]"},     {"/a/\\{x}", "/a/{x}"},
        {"/a/\\\\", "/a/\\"},         {"/a/x}", "/a/x}"},
        {"/a/.*", "/a/.x"},           {"/a/a*a*a*a*a*a*b", "/a/aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab"},
        {"/a/*ab*ab", "/a/abxabab"},  {"/a/\xff[\xf0-\xff]", "/a/\xff\xf1"},
    };
    static const char *const bad[][2] = {
        {"/a/b.log", "a/b.log"},
        {"b.log", "/b.log"},
        {"/a/b.log", "/a/b.log/"},
        {"/a/b.log", "/a/b.log/c"},
        {"/a/*.log", "/a/b/c.log"},
        {"/a/*", "/a"},
        {"/a/*.log", "/a/.x.log"},
        {"/a/?x", "/a/.x"},
        {"/a/[.]x", "/a/.x"},
        {"/a/{v}x", "/a/.x"},
        {"/a/{v}.log", "/a/.log"},
        {"/a/[!a-c]", "/a/b"},
        {"/a/[a-c]", "/a/d"},
        {"/a/[a-c]", "/a/"},
        {"/a/\\*", "/a/b"},
        {"/a/*", ""},
        {"/a/[b]", "/a/[b]"},
        {"/a/*.log", "/a/x.LOG"},
        {"/a/a*a*a*a*a*a*a*a*b", "/a/aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"},
    };
    for (size_t i = 0; i < COUNT_OF(good); i++) {
        if (!matches(good[i][0], good[i][1]))
            fail_msg("%s must match %s", good[i][0], good[i][1]);
    }
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        if (matches(bad[i][0], bad[i][1]))
            fail_msg("%s must not match %s", bad[i][0], bad[i][1]);
    }
}

/* `wanted`: the captures, each with | behind it; NULL: no match. */
static void expect_captures(const char *text, const char *path, const char *wanted)
{
    struct slice captures[PATTERN_CAPTURES_MAX];
    struct text found = {0};
    struct pattern *p = make(text);
    bool does = pattern_match(p, slice_text(path), captures);
    for (size_t i = 0; does && i < p->capture_count; i++)
        text_printf(&found, "%s=%.*s|", p->captures[i], SLICE_ARGS(captures[i]));
    assert_true(does == (wanted != NULL));
    if (does)
        assert_string_equal(found.ptr, wanted);
    text_fini(&found);
    pattern_free(p);
}

static void test_pattern_gives_captures(void **state)
{
    (void)state;
    expect_captures("/l/{vhost}.access.log", "/l/www.example.org.access.log", "vhost=www.example.org|");
    expect_captures("/l/{vhost}.access.log", "/l/a.access.log.access.log", "vhost=a.access.log|");
    expect_captures("/l/{vhost}.access.log*", "/l/a.access.log.access.log", "vhost=a|");
    expect_captures("/srv/{site}/logs/{kind}-*.log", "/srv/x y/logs/error-1.log", "site=x y|kind=error|");
    expect_captures("{a}-{b}.log", "x-y-z.log", "a=x|b=y-z|");
    expect_captures("{a}-{b}.log", "-y-z.log", "a=-y|b=z|");
    expect_captures("{a}-{b}.log", "--.log", NULL);
    expect_captures("{a}-{b}.log", "---.log", "a=-|b=-|");
    expect_captures("{vhost}", "\xff\n[x]", "vhost=\xff\n[x]|");
    expect_captures("{vhost}?.log", "abc.log", "vhost=ab|");
    expect_captures("/a/{v}", "/a//./b", "v=b|");
    expect_captures("/{v}/b", "//a//b", "v=a|");
    expect_captures("*-{v}", "a-b-c", "v=b-c|");
}

static void test_pattern_knows_the_one_path_it_matches(void **state)
{
    (void)state;
    static const char *const plain[][2] = {
        {"/a/b.log", "/a/b.log"}, {"/a//./b", "/a//./b"}, {"/\\[\\*\\]\\?", "/[*]?"}, {"\\\\", "\\"}};
    static const char *const others[] = {"/a*/b", "/a/?", "[a]", "{v}", "/a/[*]"};
    for (size_t i = 0; i < COUNT_OF(plain); i++) {
        struct pattern *p = make(plain[i][0]);
        assert_string_equal(p->plain, plain[i][1]);
        assert_string_equal(p->text, plain[i][0]);
        pattern_free(p);
    }
    for (size_t i = 0; i < COUNT_OF(others); i++) {
        struct pattern *p = make(others[i]);
        assert_null(p->plain);
        pattern_free(p);
    }
}

static void test_pattern_refuses_what_has_no_meaning(void **state)
{
    (void)state;
    static const char *const wrong[][2] = {
        {"", "found \"\", expected a path"},
        {"/", "found \"/\", expected the path of a file, not of a folder"},
        {".", "found \".\", expected the path of a file, not of a folder"},
        {"/a/*/", "found \"/a/*/\", expected the path of a file, not of a folder"},
        {"/a/**/b", "found \"/a/**/b\", expected a single *, since there is no **"},
        {"/{a}{b}", "found \"/{a}{b}\", expected a text between a capture and another one, or *"},
        {"/{a}*", "found \"/{a}*\", expected a text between a capture and another one, or *"},
        {"/*{a}", "found \"/*{a}\", expected a text between a capture and another one, or *"},
        {"/{a}/{a}", "found \"/{a}/{a}\", expected each capture once"},
        {"/[ab", "found \"/[ab\", expected a ] at the end of [ (\\[ stands for a bracket)"},
        {"/[a/b]", "found \"/[a/b]\", expected a ] at the end of [ (\\[ stands for a bracket)"},
        {"/[]", "found \"/[]\", expected a ] at the end of [ (\\[ stands for a bracket)"},
        {"/[!]", "found \"/[!]\", expected a ] at the end of [ (\\[ stands for a bracket)"},
        {"/[\\", "found \"/[\\\", expected a ] at the end of [ (\\[ stands for a bracket)"},
        {"/a\\", "found \"/a\\\", expected a byte behind the backslash, for which it stands"},
        {"/{a,b}.log", "found \"/{a,b}.log\", expected the name of a field in braces, such as {vhost} (\\{ "
                       "stands for a brace)"},
        {"/{}", "found \"/{}\", expected the name of a field in braces, such as {vhost} (\\{ stands for a "
                "brace)"},
        {"/{V}", "found \"/{V}\", expected the name of a field in braces, such as {vhost} (\\{ stands for a "
                 "brace)"},
        {"/{v", "found \"/{v\", expected the name of a field in braces, such as {vhost} (\\{ stands for a "
                "brace)"},
        {"{a}-{b}-{c}-{d}-{e}-{f}-{g}-{h}-{i}",
         "found \"{a}-{b}-{c}-{d}-{e}-{f}-{g}-{h}-{i}\", expected at most 8 captures"},
    };
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        struct err e = {0};
        struct pattern *p = pattern_new(slice_text(wrong[i][0]), &e);
        if (p != NULL)
            fail_msg("%s must not be good", wrong[i][0]);
        assert_string_equal(e.text, wrong[i][1]);
        assert_int_equal(e.code, EX_CONFIG);
    }
}

/* Texts of few letters, so that many match. Names with a dot in front are left out: glibc's FNM_PERIOD takes
 * other dots for such a one, too (`*?[!a-b]` against `-.`). */
static void test_pattern_agrees_with_fnmatch(void **state)
{
    (void)state;
    static const char in_patterns[] = "ab.*?-a", in_names[] = "ab.-";
    struct dice dice = dice_new("pattern");
    size_t matched = 0;
    for (int round = 0; round < 100000; round++) {
        char text[64] = "", name[16] = "";
        size_t len = 0;
        for (int64_t i = 1 + dice_roll(&dice, 6); i > 0; i--) {
            char next = in_patterns[dice_roll(&dice, 7)];
            if (dice_roll(&dice, 5) == 0)
                len += (size_t)sprintf(text + len, "[%sa-b%s]", i & 1 ? "!" : "", i & 2 ? "." : "");
            else if (next != '*' || len == 0 || text[len - 1] != '*')
                text[len++] = next;
        }
        for (int64_t i = dice_roll(&dice, 6); i >= 0; i--)
            name[i] = in_names[dice_roll(&dice, 4)];
        if (strcmp(text, ".") == 0 || name[0] == '.')
            continue;
        bool wanted = fnmatch(text, name, FNM_PATHNAME) == 0;
        matched += wanted;
        if (matches(text, name) != wanted)
            fail_msg("%s must%s match %s", text, wanted ? "" : " not", name);
    }
    assert_true(matched > 2000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pattern_matches_as_glob_does),
        cmocka_unit_test(test_pattern_gives_captures),
        cmocka_unit_test(test_pattern_agrees_with_fnmatch),
        cmocka_unit_test(test_pattern_knows_the_one_path_it_matches),
        cmocka_unit_test(test_pattern_refuses_what_has_no_meaning),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
