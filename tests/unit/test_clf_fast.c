/* The two readers of log lines, the fast one and the one for any line, read alike. */
#include "base/text.h"
#include "ingest/decode/clf.h"
#include "ingest/decode/clf_fast.h"
#include "tests/support/dice.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#define ROUNDS 200000

static struct dice dice;

static size_t roll(size_t below)
{
    return (size_t)dice_roll(&dice, (int64_t)below);
}

/* Lines that clf_fast.h must not leave to others, in formats that may have them. */
static const struct {
    enum clf_format format;
    const char *host, *rest;
} fast_lines[] = {
    {CLF_AUTO, "10.0.0.1 - - ", "\"GET /a?b HTTP/1.1\" 200 2326 \"-\" \"Mozilla/5.0 (X11; Linux)\""},
    {CLF_COMBINED, "1.1.1.1 - - ", "\"GET / HTTP/1.1\" 404 1 \"-\" \"-\""},
    {CLF_AUTO, "2001:db8::1 - - ", "\"HEAD /a HTTP/1.0\" 304 - \"http://a.example/?q=b\" \"curl/8.5.0\"\r"},
    {CLF_COMBINED, "2001:db8::7:1 - frank ", "\"POST /a/b?c?d HTTP/2.0\" 200 12345678 \"x\" \"-\""},
    {CLF_VHOST_COMBINED, "a.example:443 10.0.0.1 - - ", "\"GET /a HTTP/1.1\" 200 0 \"-\" \"curl/8.5.0\""},
    {CLF_AUTO, "a.example:80 2001:db8:1:2:3:4:5:6 - - ", "\"GET /?a=?b HTTP/1.1\" 999 10 \"x\" \"y\""},
    {CLF_AUTO, "host-with-a-long-name-10-0-0-1.pool.example.org - - ",
     "\"OPTIONS /a-long-way/to-go/until-this-target/of-a-request/is-at-its-end.html?and=more&of=it "
     "HTTP/1.1\" "
     "206 123 \"https://a.example/a-long-way/to-go/until-this-referrer/is-at-its-end-as-well?and=more\" "
     "\"Mozilla/5.0 (Linux; Android 10; K) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/126.0.0.0 Mobile "
     "Safari/537.36 (and so on, until it is more than two windows long)\""},
    /* and lines that look so */
    {CLF_FORMAT_COUNT, "- - - ", "\"GET /a HTTP/1.1\" 200 1 \"-\" \"curl/8.5.0\""},
    {CLF_FORMAT_COUNT, "-:80 10.0.0.1 - - ", "\"GET /a HTTP/1.1\" 200 1 \"-\" \"curl/8.5.0\""},
    {CLF_FORMAT_COUNT, "[::1]:80 10.0.0.1 - - ", "\"GET /a HTTP/1.1\" 200 1 \"-\" \"curl/8.5.0\""},
    {CLF_FORMAT_COUNT, "[::1] - - ", "\"GET /a HTTP/1.1\" 200 1 \"-\" \"curl/8.5.0\""},
};

static void make_fast(size_t i, struct text *line)
{
    text_clear(line);
    text_printf(line, "%s[05/Jan/2026:10:%02zu:%02zu +0100] %s", fast_lines[i].host, roll(2), roll(60),
                fast_lines[i].rest);
}

/* Both say the same, or fail alike. */
static void check_event(const struct event *ev, const struct event *twin)
{
    assert_int_equal(ev->at_ms, twin->at_ms);
    assert_int_equal(ev->present, twin->present);
    assert_int_equal(ev->odd, twin->odd);
    for (int i = 0; i < FIELD_COUNT; i++) {
        enum field f = (enum field)i;
        if (!event_has(ev, f))
            continue;
        assert_ptr_equal(ev->field[f].ptr, twin->field[f].ptr);
        assert_int_equal(ev->field[f].len, twin->field[f].len);
        if (f == FIELD_STATUS || f == FIELD_BYTES)
            assert_int_equal(ev->number[f], twin->number[f]);
    }
}

/* `line` must be of just its size, so that reading past it is seen. */
static void check_exact(struct clf *c, struct slice line)
{
    struct clf twin = *c;
    struct event ev, by_twin;
    struct reject why, why_twin;
    twin.decoder.decode = clf_decode_any;
    bool ok = decoder_decode(&c->decoder, line, &ev, &why);
    assert_int_equal(ok, decoder_decode(&twin.decoder, line, &by_twin, &why_twin));
    if (ok) {
        check_event(&ev, &by_twin);
    } else {
        assert_int_equal(why.reason, why_twin.reason);
        assert_int_equal(why.column, why_twin.column);
    }
}

static void check_line(struct clf *c, struct slice line)
{
    char *copy = malloc(line.len > 0 ? line.len : 1);
    assert_non_null(copy);
    memcpy(copy, line.ptr, line.len);
    check_exact(c, slice_of(copy, line.len));
    free(copy);
}

static void test_clf_fast_lines_are_not_left_to_others(void **state)
{
    (void)state;
    if (!clf_fast_can_run())
        skip();
    for (size_t i = 0; fast_lines[i].format != CLF_FORMAT_COUNT; i++) {
        struct clf c;
        struct text line = {0};
        clf_init(&c, fast_lines[i].format);
        for (int round = 0; round < 50; round++) {
            make_fast(i, &line);
            check_line(&c, text_slice(&line));
        }
        if (c.slow_count > 2) /* one for each minute */
            fail_msg("%" PRIu64 " times unusual: %s", c.slow_count, line.ptr);
        text_fini(&line);
    }
}

/* A byte changed, or some bytes cut out or written twice, which moves all that is behind them. */
static void mutate(struct text *line)
{
    static const char watermarks[] = "\"\"\"\\   -::?[]]0169/.AzH\t\x7F\x80\xFF\r";
    struct text changed = {0};
    size_t at = roll(line->len), rest = line->len - at;
    size_t some = roll(8) == 0 ? roll(140) : roll(4);
    some = some < rest ? some : rest;
    text_add(&changed, line->ptr, at);
    switch (roll(3)) {
    case 0:
        text_putc(&changed, watermarks[roll(sizeof watermarks - 1)]);
        text_add(&changed, line->ptr + at + 1, rest - 1);
        break;
    case 1:
        text_add(&changed, line->ptr + at + some, rest - some);
        break;
    default:
        text_add(&changed, line->ptr + at, some);
        text_add(&changed, line->ptr + at, rest);
    }
    text_fini(line);
    *line = changed;
}

/* Lines that the fast reader almost takes. */
static void test_clf_fast_lines_mutated_are_read_alike(void **state)
{
    (void)state;
    struct clf kept[CLF_FORMAT_COUNT];
    for (int i = 0; i < CLF_FORMAT_COUNT; i++)
        clf_init(&kept[i], (enum clf_format)i);
    for (int round = 0; round < ROUNDS; round++) {
        struct text line = {0};
        make_fast(roll(COUNT_OF(fast_lines)), &line);
        for (size_t n = roll(4); n > 0 && line.len > 0; n--)
            mutate(&line);
        check_line(&kept[roll(CLF_FORMAT_COUNT)], text_slice(&line));
        text_fini(&line);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_clf_fast_lines_are_not_left_to_others),
        cmocka_unit_test(test_clf_fast_lines_mutated_are_read_alike),
    };
    dice = dice_new("test_clf_fast");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
