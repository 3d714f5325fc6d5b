#include "aggregate/filter.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

static void set_field(struct event *ev, enum field f, const char *text)
{
    ev->field[f] = slice_text(text);
    ev->number[f] = strtoll(text, NULL, 10);
    ev->present |= 1U << f;
}

/* Everything present but the user. */
static struct event sample(void)
{
    struct event ev = {0};
    set_field(&ev, FIELD_HOST, "192.0.2.7");
    set_field(&ev, FIELD_METHOD, "GET");
    set_field(&ev, FIELD_PATH, "/a/index.html");
    set_field(&ev, FIELD_STATUS, "404");
    set_field(&ev, FIELD_BYTES, "2326");
    set_field(&ev, FIELD_AGENT, "Mozilla/5.0 (compatible; bot/2.1)");
    return ev;
}

static void test_condition_holds_table(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool holds;
    } rows[] = {
        {"status=404", true},      {"status!=404", false},
        {"status=4*", true},       {"status=5*|2*", false},
        {"status<404", false},     {"status<405", true},
        {"status<=404", true},     {"status>404", false},
        {"status>403", true},      {"status>=404", true},
        {"status>=405", false},    {"bytes>=2326", true},
        {"method=GET", true},      {"method=get", false},
        {"method=POST|GET", true}, {"method=POST|PUT", false},
        {"method=GE", false},      {"method=GETS", false},
        {"path=*.html", true},     {"path=*.htm", false},
        {"path=/a/*", true},       {"path=/b/*", false},
        {"path=*/index*", true},   {"path=/a*l*l", false}, /* the two stars may not share the one l */
        {"path=/*x*h*l", true},    {"path=/a/index.html*", true},
        {"path=*", true},          {"path=/a/index.html*.html", false}, /* head and tail may not overlap */
        {"agent!=*bot*", false},   {"agent=*bot*|*spider*", true},
        {"agent=*; bot*", true},   {"user=-", true},
        {"user!=-", false},        {"user=frank", false},
        {"user!=frank", true},     {"user=*", true},
        {"method!=-", true},       {"referrer!=*spam*", true},
    };
    struct event ev = sample();
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct condition c;
        struct err e = {0};
        if (!condition_parse(&c, slice_text(rows[i].text), &e))
            fail_msg("%s: %s", rows[i].text, e.text);
        if (condition_holds(&c, &ev) != rows[i].holds)
            fail_msg("%s must be %s", rows[i].text, rows[i].holds ? "true" : "false");
    }
}

static void test_condition_absent_number_never_compares(void **state)
{
    (void)state;
    static const char *const texts[] = {"bytes<1", "bytes<=0", "bytes>0", "bytes>=0"};
    struct event ev = {0};
    for (size_t i = 0; i < COUNT_OF(texts); i++) {
        struct condition c;
        struct err e;
        assert_true(condition_parse(&c, slice_text(texts[i]), &e));
        assert_false(condition_holds(&c, &ev));
    }
}

/* Fractions are compared as what they are; an own field only where it is a number. */
static void test_condition_compares_decimals(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t value;
        bool holds;
    } rows[] = {
        {"value>=95.5", 95500000, true},      {"value>=95.5", 95499999, false},
        {"value>95.5", 95500000, false},      {"value<-0.000001", -2, true},
        {"value<-0.000001", -1, false},       {"value<=-1", -1000000, true},
        {"load>0.999999", 1000000, true},     {"load<=0.999999", 1000000, false},
        {"load<1", EVENT_DECIMAL_MAX, false}, {"load>-1000000000000", -EVENT_DECIMAL_MAX, false},
    };
    enum field load;
    assert_true(field_intern(slice_text("load"), &load));
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct condition c;
        struct err e;
        if (!condition_parse(&c, slice_text(rows[i].text), &e))
            fail_msg("%s: %s", rows[i].text, e.text);
        struct event ev = {.present = (uint64_t)1 << c.field, .numeric = (uint64_t)1 << c.field};
        ev.number[c.field] = rows[i].value;
        if (condition_holds(&c, &ev) != rows[i].holds)
            fail_msg("%s must be %s", rows[i].text, rows[i].holds ? "true" : "false");
        ev.numeric = 0; /* a text: 12abc */
        assert_int_equal(condition_holds(&c, &ev), c.field == FIELD_VALUE && rows[i].holds);
    }
    static const char *const refused[] = {"value<",
                                          "value<-",
                                          "value<.5",
                                          "value<5.",
                                          "value<1.0000001",
                                          "value<+1",
                                          "value<1000000000000.000001",
                                          "value<1 2",
                                          "value<--1",
                                          "value<NaN",
                                          "status<200.5",
                                          "name<5"};
    for (size_t i = 0; i < COUNT_OF(refused); i++) {
        struct condition c;
        struct err e;
        if (condition_parse(&c, slice_text(refused[i]), &e))
            fail_msg("%s was taken", refused[i]);
    }
}

static void test_condition_nul_is_a_byte(void **state)
{
    (void)state;
    struct event ev = {0};
    struct condition c;
    struct err e;
    ev.field[FIELD_REQUEST] = slice_of("a\0b", 3);
    ev.present = 1U << FIELD_REQUEST;
    assert_true(condition_parse(&c, slice_text("request=*b"), &e));
    assert_true(condition_holds(&c, &ev));
    assert_true(condition_parse(&c, slice_text("request=a"), &e));
    assert_false(condition_holds(&c, &ev));
}

static void test_condition_print_has_one_spelling(void **state)
{
    (void)state;
    static const char *const rows[][2] = {
        {"status<400", "status<400"},
        {" status  <  0400 ", "status<400"},
        {"method=POST | GET", "method=GET|POST"},
        {"method=GET|GET|GET", "method=GET"},
        {"agent!=**bot***", "agent!=*bot*"},
        {"path=a**|a*", "path=a*"},
        {"user!=-", "user!=-"},
        {"agent=a=b<c", "agent=a=b<c"},
        {"path=ab|a", "path=a|ab"},
        {"value<95.50", "value<95.5"},
        {"value >= -0.000001", "value>=-0.000001"},
        {"value>-0", "value>0"},
        {"value<=1000000000000.000000", "value<=1000000000000"},
        {"value<0.50", "value<0.5"},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct condition c, again;
        struct err e;
        struct text out = {0};
        assert_true(condition_parse(&c, slice_text(rows[i][0]), &e));
        condition_print(&c, &out);
        assert_string_equal(out.ptr, rows[i][1]);
        assert_true(condition_parse(&again, text_slice(&out), &e));
        assert_memory_equal(&c, &again, sizeof c);
        text_fini(&out);
    }
}

static void test_condition_parse_refuses(void **state)
{
    (void)state;
    static const char *const rows[][2] = {
        {"", "found \"\", expected a field, one of = != < <= > >=, and a value (status<400)"},
        {"status", "found \"status\", expected a field, one of = != < <= > >=, and a value (status<400)"},
        {"stauts=1", "found \"stauts\", expected a field (did you mean \"status\"?)"},
        {"=1", "found \"\", expected a field"},
        {"status_class=4xx", "found \"status_class\", expected a field: write status=4* for 4xx"},
        {"referrer_host=a", "found \"referrer_host\", expected a field: write referrer=*://example.com*"},
        {"path<5", "found \"5\" after <, but path is a text: expected status, bytes, value or a number of "
                   "your own before "
                   "<, or = and a text after it"},
        {"value<1e3",
         "found \"1e3\" after <, expected a number such as -95.5, with at most 6 digits after the "
         "point, up to 1000000000000"},
        {"status<4xx", "found \"4xx\" after <, expected a number from 0 to 70368744177664"},
        {"status>=", "found \"\" after >=, expected a number from 0 to 70368744177664"},
        {"status>-1", "found \"-1\" after >, expected a number from 0 to 70368744177664"},
        {"bytes>70368744177665",
         "found \"70368744177665\" after >, expected a number from 0 to 70368744177664"},
        {"user=", "found nothing after =, expected a text (- stands for absent)"},
        {"user=a||b", "found \"a||b\", expected a text on each side of |"},
        {"user=a|", "found \"a|\", expected a text on each side of |"},
        {"user=|", "found \"|\", expected a text on each side of |"},
        {"user=a\nb", "found \"a\\x0ab\", expected a text without control characters"},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct condition c = {.text_len = 7}, before = c;
        struct err e = {0};
        assert_false(condition_parse(&c, slice_text(rows[i][0]), &e));
        assert_string_equal(e.text, rows[i][1]);
        assert_int_equal(e.code, EX_CONFIG);
        assert_memory_equal(&c, &before, sizeof c);
    }
}

/* Texts that no event has are refused before they silently count nothing. */
static void test_condition_check_texts(void **state)
{
    (void)state;
    static const char *const rows[][2] = {
        {"status=5xx",
         "found \"5xx\" after =, expected digits, with * for any, or - for absent (did you mean \"5*\"?)"},
        {"status!=2*|50X",
         "found \"50X\" after !=, expected digits, with * for any, or - for absent (did you mean \"50*\"?)"},
        {"status=200,304",
         "found \"200,304\" after =, expected digits, with * for any, or - for absent (did you "
         "mean \"200|304\"?)"},
        {"bytes=1MB", "found \"1MB\" after =, expected digits, with * for any, or - for absent"},
        {"status==200", "found ==, expected = and a text, in which * stands for any part"},
        {"status => 500", "found =>, expected >="},
        {"bytes=<5", "found =<, expected <="},
        {"path==/x", "found ==, expected = and a text, in which * stands for any part"},
        {"path!==/x", "found !==, expected != and a text, in which * stands for any part"},
        {"path=~^/x", "found =~, expected = and a text, in which * stands for any part"},
        {"path=^/pres", "found =^, expected = and a text, in which * stands for any part"},
        {"path=/a | =/b", "found |=, expected | and a text, in which * stands for any part"},
        {"host=10.0.0.0/8", "found \"10.0.0.0/8\" after =, expected an address or name, such as 192.0.2.*"},
        {"host=a|2001:db8::/32",
         "found \"2001:db8::/32\" after =, expected an address or name, such as 192.0.2.*"},
    };
    static const char *const good[] = {
        "status=200",   "status!=2*|-|404", "bytes=1e6",     "bytes=*", "bytes!=-",
        "path=/a=b|*=", "path=*~*",         "host=*/8|10.*", "name=5xx"};
    struct condition c;
    struct slice name, operand;
    struct err e;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        assert_true(condition_parse(&c, slice_text(rows[i][0]), &e)); /* as a store may have it */
        assert_true(condition_split(slice_text(rows[i][0]), &name, &c.op, &operand));
        assert_false(condition_check_texts(c.field, c.op, operand, &e));
        assert_string_equal(e.text, rows[i][1]);
    }
    for (size_t i = 0; i < COUNT_OF(good); i++) {
        assert_true(condition_parse(&c, slice_text(good[i]), &e));
        assert_true(condition_split(slice_text(good[i]), &name, &c.op, &operand));
        if (!condition_check_texts(c.field, c.op, operand, &e))
            fail_msg("%s: %s", good[i], e.text);
    }
}

static void test_condition_longest_text_fits(void **state)
{
    (void)state;
    char text[300] = "user=";
    struct condition c;
    struct err e;
    for (size_t i = 0; i < CONDITION_TEXT_BYTES - 1; i++)
        text[5 + i] = i % 2 ? '|' : (char)('a' + i % 26);
    assert_true(condition_parse(&c, slice_text(text), &e));
    memset(text + 5, 'a', CONDITION_TEXT_BYTES);
    assert_false(condition_parse(&c, slice_text(text), &e));
    assert_string_equal(e.text, "found a text of 256 bytes after =, expected at most 255");
}

/* The meaning of a pattern, written as simply as possible. */
static bool naive(const char *p, const char *t)
{
    if (*p == '\0')
        return *t == '\0';
    if (*p == '*')
        return naive(p + 1, t) || (*t != '\0' && naive(p, t + 1));
    return *p == *t && naive(p + 1, t + 1);
}

static void fill(unsigned *seed, const char *alphabet, char *to, size_t max)
{
    size_t len = 1 + (size_t)rand_r(seed) % max;
    for (size_t i = 0; i < len; i++)
        to[i] = alphabet[(size_t)rand_r(seed) % strlen(alphabet)];
    to[len] = '\0';
}

static void test_condition_patterns_agree_with_a_naive_matcher(void **state)
{
    (void)state;
    unsigned seed = 20150517;
    size_t matched = 0;
    for (int i = 0; i < 20000; i++) {
        char text[16], pattern[16] = "path=";
        fill(&seed, "ab", text, 8);
        fill(&seed, "ab*", pattern + 5, 6);
        struct event ev = {0};
        struct condition c;
        struct err e;
        set_field(&ev, FIELD_PATH, text);
        assert_true(condition_parse(&c, slice_text(pattern), &e));
        bool wanted = naive(pattern + 5, text);
        matched += wanted;
        if (condition_holds(&c, &ev) != wanted)
            fail_msg("%s on %s must be %d", pattern, text, wanted);
    }
    assert_in_range(matched, 1000, 15000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_condition_holds_table),
        cmocka_unit_test(test_condition_absent_number_never_compares),
        cmocka_unit_test(test_condition_compares_decimals),
        cmocka_unit_test(test_condition_nul_is_a_byte),
        cmocka_unit_test(test_condition_print_has_one_spelling),
        cmocka_unit_test(test_condition_parse_refuses),
        cmocka_unit_test(test_condition_check_texts),
        cmocka_unit_test(test_condition_longest_text_fits),
        cmocka_unit_test(test_condition_patterns_agree_with_a_naive_matcher),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
