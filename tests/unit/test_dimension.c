/* Settled text of dimensions: golden texts, and rules that hold for any text. */
#include "aggregate/report.h"
#include "base/check.h"
#include "base/utf8.h"
#include "tests/support/dice.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define MAX 64

/* As it is settled, in memory of just the room it may take. */
static struct slice settle(struct slice raw, bool escaped, size_t max_bytes, char out[DIMENSION_BYTES_MAX])
{
    char *exact = malloc(max_bytes), *in = malloc(raw.len > 0 ? raw.len : 1);
    memcpy(in, raw.ptr, raw.len);
    size_t len = dimension_settle(slice_of(in, raw.len), escaped, max_bytes, exact);
    assert_true(len <= max_bytes);
    memcpy(out, exact, len);
    free(exact);
    free(in);
    return slice_of(out, len);
}

static void test_settled_texts(void **state)
{
    static const struct {
        const char *raw, *settled, *unescaped; /* unescaped: where the log's escapes are undone */
    } cases[] = {
        {"", "", ""},
        {"/index.html", "/index.html", "/index.html"},
        {"(other)", "%28other)", "%28other)"},
        {"(other).", "(other).", "(other)."},
        {"\\x28other)", "\\x28other)", "%28other)"},
        {"a b~%41", "a b~%41", "a b~%41"},
        {"\\\"", "\\\"", "\""},
        {"\\\\", "\\\\", "\\"},
        {"\\x41", "\\x41", "A"},
        {"\\xe9", "\\xe9", "%E9"},
        {"\\xC3\\xa9", "\\xC3\\xa9", "\xC3\xA9"},
        {"\xC3\\xa9", "%C3\\xa9", "\xC3\xA9"},
        {"\\xc3\xA9", "\\xc3%A9", "\xC3\xA9"},
        {"\\xf0\\x9f\\x98\\x80", "\\xf0\\x9f\\x98\\x80", "\xF0\x9F\x98\x80"},
        {"\\xf0\\x9f\\x98", "\\xf0\\x9f\\x98", "%F0%9F%98"},
        {"\\xf0\\x9f\\x41", "\\xf0\\x9f\\x41", "%F0%9FA"},
        {"\\n\\t\\r\\b\\v", "\\n\\t\\r\\b\\v", "%0A%09%0D%08%0B"},
        {"\\x00\\x1f\\x7f\\x20", "\\x00\\x1f\\x7f\\x20", "%00%1F%7F "},
        {"\\", "\\", "\\"},
        {"\\x", "\\x", "\\x"},
        {"\\x4", "\\x4", "\\x4"},
        {"\\x4g", "\\x4g", "\\x4g"},
        {"\\q\\\\x41", "\\q\\\\x41", "\\q\\x41"},
        {"\\u00e9", "\\u00e9", "\\u00e9"},
        {"\t\n\x01\x1F\x7F", "%09%0A%01%1F%7F", "%09%0A%01%1F%7F"},
        {"\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80", "\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80",
         "\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80"},
        {"\xC3", "%C3", "%C3"},
        {"a\xC3"
         "b",
         "a%C3b", "a%C3b"},
        {"\xE2\x82", "%E2%82", "%E2%82"},
        {"\xE2\x82\xC3\xA9", "%E2%82\xC3\xA9", "%E2%82\xC3\xA9"},
        {"\xC0\x80\xC1\xBF", "%C0%80%C1%BF", "%C0%80%C1%BF"},
        {"\xED\xA0\x80", "%ED%A0%80", "%ED%A0%80"},
        {"\xF4\x90\x80\x80", "%F4%90%80%80", "%F4%90%80%80"},
        {"\xFF\xFE\x80", "%FF%FE%80", "%FF%FE%80"},
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        char out[DIMENSION_BYTES_MAX];
        struct slice raw = slice_text(cases[i].raw);
        struct slice plain = settle(raw, false, MAX, out);
        if (!slice_is(plain, cases[i].settled))
            fail_msg("case %zu: \"%.*s\"", i, SLICE_ARGS(plain));
        struct slice unescaped = settle(raw, true, MAX, out);
        if (!slice_is(unescaped, cases[i].unescaped))
            fail_msg("case %zu, escaped: \"%.*s\"", i, SLICE_ARGS(unescaped));
    }
}

static bool ends_in_mark(struct slice s)
{
    if (s.len < 17 || s.ptr[s.len - 17] != '~')
        return false;
    for (size_t i = s.len - 16; i < s.len; i++) {
        if (strchr("0123456789ABCDEF", s.ptr[i]) == NULL)
            return false;
    }
    return true;
}

/* `unit` over and over, after `before` letters, so long as `total` bytes. */
static struct slice repeat(const char *unit, size_t before, size_t total, char buf[400])
{
    size_t n = strlen(unit);
    memset(buf, 'a', before);
    for (size_t i = before; i + n <= total; i += n)
        memcpy(buf + i, unit, n);
    return slice_of(buf, before + (total - before) / n * n);
}

static void test_cut_is_at_the_limit_and_between_characters(void **state)
{
    (void)state;
    static const struct {
        const char *unit;
        size_t before, total, kept; /* kept: bytes before the mark; 0: not cut */
    } cases[] = {
        {"x", 0, MAX - 1, 0},
        {"x", 0, MAX, 0},
        {"x", 0, MAX + 1, MAX - 17},
        {"x", 0, 300, MAX - 17},
        {"\xC3\xA9", 0, MAX, 0},
        {"\xC3\xA9", 0, MAX + 2, 46}, /* 47 would be within a character */
        {"\xC3\xA9", 1, MAX + 1, 47},
        {"\xE2\x82\xAC", 0, 300, 45},
        {"\xE2\x82\xAC", 1, 300, 46},
        {"\xE2\x82\xAC", 2, 300, 47},
        {"\xF0\x9F\x98\x80", 0, 300, 44},
        {"\xF0\x9F\x98\x80", 3, 300, 47},
        {"\xFF", 0, 21, 0},  /* 63 bytes of %FF */
        {"\xFF", 0, 22, 45}, /* 66, of which whole ones are kept */
        {"\xFF", 1, 22, 0},  /* a and 21 times %FF: 64 */
        {"\xFF", 2, 24, 47},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        char buf[400], out[DIMENSION_BYTES_MAX];
        struct slice raw = repeat(cases[i].unit, cases[i].before, cases[i].total, buf);
        struct slice s = settle(raw, false, MAX, out);
        if (cases[i].kept == 0 ? ends_in_mark(s) : !ends_in_mark(s) || s.len != cases[i].kept + 17)
            fail_msg("case %zu: \"%.*s\"", i, SLICE_ARGS(s));
        if (cases[i].kept > 0 && cases[i].unit[0] != '\xFF')
            assert_memory_equal(s.ptr, raw.ptr, cases[i].kept);
    }
}

/* Bytes as logs and attackers have them. */
static struct slice roll_raw(struct dice *d, char buf[400])
{
    static const char *const pieces[] = {"\\",       "\\x",  "\\xc3",    "\\xa9",    "\xC3",       "\xA9",
                                         "\xE2\x82", "\xAC", "\xF0\x9F", "\x98\x80", "a",          "/path",
                                         "\t",       "\n",   "\\\\",     "\\\"",     "%41",        "~0123",
                                         "\xFF",     "\x7F", "\\x0",     "\\xED",    "\\xA0\\x80", " "};
    size_t len = 0;
    int64_t count = dice_roll(d, dice_roll(d, 2) == 0 ? 8 : 60);
    for (int64_t i = 0; i < count; i++) {
        const char *piece = pieces[dice_roll(d, COUNT_OF(pieces))];
        if (dice_roll(d, 4) == 0) {
            buf[len++] = (char)dice_roll(d, 256);
            continue;
        }
        memcpy(buf + len, piece, strlen(piece));
        len += strlen(piece);
    }
    return slice_of(buf, len);
}

static void assert_clean(struct slice s)
{
    const unsigned char *p = (const unsigned char *)s.ptr, *end = p + s.len;
    for (size_t n; p < end; p += n) {
        n = utf8_len(p, end);
        assert_true(n > 0);
        assert_true(*p >= 0x20 && *p != 0x7F);
    }
}

static void test_any_text_settles_to_clean_text(void **state)
{
    (void)state;
    struct dice d = dice_new("settle");
    for (int round = 0; round < 20000; round++) {
        char raw_buf[400], out[DIMENSION_BYTES_MAX], again[DIMENSION_BYTES_MAX], whole[DIMENSION_BYTES_MAX];
        size_t max_bytes = DIMENSION_BYTES_MIN + (size_t)dice_roll(&d, 100);
        bool escaped = dice_roll(&d, 2) == 0;
        struct slice raw = roll_raw(&d, raw_buf), s = settle(raw, escaped, max_bytes, out);
        assert_clean(s);
        assert_true(slice_equal(s, settle(raw, escaped, max_bytes, again)));
        struct slice full = settle(raw, escaped, DIMENSION_BYTES_MAX, whole);
        if (full.len <= max_bytes) {
            assert_true(slice_equal(s, full));
            assert_true(slice_equal(s, settle(s, false, max_bytes, again))); /* settled is settled */
        } else {
            assert_true(ends_in_mark(s) && s.len > max_bytes - 20);
            assert_memory_equal(s.ptr, full.ptr, s.len - 17);
        }
    }
}

static void test_long_texts_that_differ_stay_apart(void **state)
{
    (void)state;
    struct dice d = dice_new("apart");
    for (int round = 0; round < 2000; round++) {
        char a[1000], b[1000], out_a[DIMENSION_BYTES_MAX], out_b[DIMENSION_BYTES_MAX];
        size_t len = 100 + (size_t)dice_roll(&d, 900), at = (size_t)dice_roll(&d, (int64_t)len);
        for (size_t i = 0; i < len; i++)
            a[i] = b[i] = (char)('a' + dice_roll(&d, 26));
        b[at] = (char)(b[at] == 'z' ? 'a' : b[at] + 1);
        struct slice s = settle(slice_of(a, len), false, MAX, out_a);
        assert_false(slice_equal(s, settle(slice_of(b, len), false, MAX, out_b)));
        assert_false(slice_equal(s, settle(slice_of(a, len - 1), false, MAX, out_b)));
    }
}

static struct report make_report(const char *const *dimensions)
{
    struct report r;
    struct err e;
    assert_true(report_init(&r, slice_text("r"), 1, &e));
    for (; *dimensions != NULL; dimensions++)
        assert_true(report_add_dimension(&r, slice_text(*dimensions), &e));
    assert_true(report_finish(&r, &e));
    return r;
}

static void set(struct event *ev, enum field f, const char *text, bool odd)
{
    ev->present |= 1u << f;
    ev->odd |= (uint32_t)odd << f;
    ev->field[f] = slice_text(text);
    if (f == FIELD_STATUS)
        ev->number[f] = strtoll(text, NULL, 10);
}

static void check_key(const char *const *dimensions, const struct event *ev, const char *want)
{
    struct report r = make_report(dimensions);
    char scratch[DIMENSION_KEY_BYTES(MAX)];
    struct slice key = dimension_key(r.dimensions, r.dimension_count, ev, MAX, scratch);
    if (!slice_is(key, want))
        fail_msg("found \"%.*s\", expected \"%s\"", SLICE_ARGS(key), want);
    report_fini(&r);
}

static void check_one(const char *dimension, enum field f, const char *text, const char *want)
{
    struct event ev = {.at_ms = 0};
    if (text != NULL)
        set(&ev, f, text, false);
    check_key((const char *const[]){dimension, NULL}, &ev, want);
    if (text != NULL && f != FIELD_STATUS) { /* the same by the way of odd texts */
        ev.odd = 1u << f;
        check_key((const char *const[]){dimension, NULL}, &ev, want);
    }
}

static void test_derived_dimensions(void **state)
{
    static const struct {
        const char *dimension;
        enum field field;
        const char *text, *want;
    } cases[] = {
        {"path", FIELD_PATH, "/a/b", "/a/b"},
        {"path", FIELD_PATH, "", ""},
        {"path", FIELD_PATH, NULL, "-"},
        {"path:1", FIELD_PATH, "/a/b/c.html", "/a"},
        {"path:2", FIELD_PATH, "/a/b/c.html", "/a/b"},
        {"path:9", FIELD_PATH, "/a/b/c.html", "/a/b/c.html"},
        {"path:1", FIELD_PATH, "/", "/"},
        {"path:1", FIELD_PATH, "/a/", "/a"},
        {"path:2", FIELD_PATH, "/a/", "/a/"},
        {"path:1", FIELD_PATH, "//a", "/"},
        {"path:1", FIELD_PATH, "*", "*"},
        {"path:1", FIELD_PATH, "http://e.example/a/b", "http://e.example/a/b"},
        {"path:1", FIELD_PATH, NULL, "-"},
        {"status", FIELD_STATUS, "404", "404"},
        {"status_class", FIELD_STATUS, "404", "4xx"},
        {"status_class", FIELD_STATUS, "000", "0xx"},
        {"status_class", FIELD_STATUS, "999", "9xx"},
        {"status_class", FIELD_STATUS, NULL, "-"},
        {"referrer", FIELD_REFERRER, "http://e.example/x", "http://e.example/x"},
        {"referrer_host", FIELD_REFERRER, "http://e.example/x?y=http://z/", "e.example"},
        {"referrer_host", FIELD_REFERRER, "https://e.example", "e.example"},
        {"referrer_host", FIELD_REFERRER, "http://e.example:8080/", "e.example"},
        {"referrer_host", FIELD_REFERRER, "http://e.example?q", "e.example"},
        {"referrer_host", FIELD_REFERRER, "http://e.example#f", "e.example"},
        {"referrer_host", FIELD_REFERRER, "http://user:secret@e.example/", "e.example"},
        {"referrer_host", FIELD_REFERRER, "http://e.example/a@b", "e.example"},
        {"referrer_host", FIELD_REFERRER, "http://[2001:db8::1]:80/", "[2001:db8::1]"},
        {"referrer_host", FIELD_REFERRER, "http://[2001:db8::1]/", "[2001:db8::1]"},
        {"referrer_host", FIELD_REFERRER, "e.example/x", "e.example"},
        {"referrer_host", FIELD_REFERRER, "http://[2001:db8::1", "[2001"},
        {"referrer_host", FIELD_REFERRER, "http://", ""},
        {"referrer_host", FIELD_REFERRER, "http:/", "http"},
        {"referrer_host", FIELD_REFERRER, "://x", "x"},
        {"referrer_host", FIELD_REFERRER, "e.example?u=http://z/", "e.example"},
        {"referrer_host", FIELD_REFERRER, "/x?u=http://z/", ""},
        {"referrer_host", FIELD_REFERRER, "", ""},
        {"referrer_host", FIELD_REFERRER, NULL, "-"},
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++)
        check_one(cases[i].dimension, cases[i].field, cases[i].text, cases[i].want);
}

static void test_key_joins_settled_dimensions(void **state)
{
    (void)state;
    char text[200], want[200];
    struct event ev = {.at_ms = 0};
    check_key((const char *const[]){NULL}, &ev, "");
    check_key((const char *const[]){"host", "path", "status", NULL}, &ev, "-\t-\t-");
    set(&ev, FIELD_HOST, "h", false);
    set(&ev, FIELD_PATH, "/a\tb\\x41\xFF", true);
    set(&ev, FIELD_STATUS, "200", false);
    check_key((const char *const[]){"host", "path", "status", NULL}, &ev, "h\t/a%09bA%FF\t200");
    check_key((const char *const[]){"path", NULL}, &ev, "/a%09bA%FF");
    check_key((const char *const[]){"user", "host", NULL}, &ev, "-\th");
    set(&ev, FIELD_HOST, "", false);
    check_key((const char *const[]){"host", "path:1", "status_class", NULL}, &ev, "\t/a%09bA%FF\t2xx");

    memset(text, 'x', sizeof text);
    ev.field[FIELD_HOST] = slice_of(text, MAX + 1);
    size_t n = dimension_settle(ev.field[FIELD_HOST], false, MAX, want);
    snprintf(want + n, sizeof want - n, "\t200");
    check_key((const char *const[]){"host", "status", NULL}, &ev, want);
}

/* Every dimension at its longest: the key fits the room it is given. */
static void test_longest_key_fits(void **state)
{
    (void)state;
    static const char *const all[] = {"host",     "user",  "path",     "target", "method",
                                      "referrer", "agent", "protocol", NULL};
    static char text[DIMENSION_BYTES_MAX + 1];
    struct report r = make_report(all);
    struct event ev = {.at_ms = 0};
    memset(text, 'x', sizeof text);
    for (int f = 0; f < FIELD_COUNT; f++) {
        ev.present |= 1u << f;
        ev.field[f] = slice_of(text, sizeof text);
    }
    assert_int_equal(r.dimension_count, REPORT_DIMENSIONS_MAX);
    for (size_t max_bytes = DIMENSION_BYTES_MIN; max_bytes <= DIMENSION_BYTES_MAX; max_bytes *= 2) {
        char *scratch = malloc(DIMENSION_KEY_BYTES(max_bytes));
        struct slice key = dimension_key(r.dimensions, r.dimension_count, &ev, max_bytes, scratch);
        assert_int_equal(key.len, REPORT_DIMENSIONS_MAX * (max_bytes + 1) - 1);
        free(scratch);
    }
    report_fini(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_settled_texts),
        cmocka_unit_test(test_cut_is_at_the_limit_and_between_characters),
        cmocka_unit_test(test_any_text_settles_to_clean_text),
        cmocka_unit_test(test_long_texts_that_differ_stay_apart),
        cmocka_unit_test(test_derived_dimensions),
        cmocka_unit_test(test_key_joins_settled_dimensions),
        cmocka_unit_test(test_longest_key_fits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
