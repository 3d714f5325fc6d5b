#include "tests/support/decoded.h"

#include "base/mem.h"
#include "ingest/decode/chain.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#define LINE_MAX 65536

bool decoded_configure(struct decode *d, const char *steps, const char *time, struct err *e)
{
    decode_init(d);
    for (const char *blank; strncmp(steps, "syslog ", 7) == 0 || strncmp(steps, "json:/", 6) == 0;
         steps = blank + 1) {
        blank = strchr(steps, ' ');
        assert_non_null(blank);
        if (!decode_add_step(d, slice_of(steps, (size_t)(blank - steps)), e))
            return false;
    }
    return decode_add_step(d, slice_text(steps), e) &&
           (time == NULL || decode_set_time(d, slice_text(time), e)) && decode_finish(d, e);
}

static void print_event(const struct event *ev, struct text *out)
{
    text_printf(out, "%" PRId64, ev->at_ms);
    for (int i = 0; i < field_count(); i++) {
        enum field f = (enum field)i;
        if (!event_has(ev, f))
            continue;
        bool odd = event_is_odd(ev, f), literal = odd && (ev->literal >> f & 1);
        text_printf(out, " %s%s=", field_name(f), literal ? "~~" : odd ? "~" : "");
        for (size_t k = 0; k < ev->field[f].len; k++) {
            unsigned char byte = (unsigned char)ev->field[f].ptr[k];
            text_printf(out, byte < 0x20 || byte >= 0x7F ? "\\x%02x" : "%c", byte);
        }
        if (field_is_number(f) && event_has_number(ev, f))
            text_printf(out, "#%" PRId64, ev->number[f]);
    }
}

void decoded_line(const struct decode *d, struct slice line, struct text *out)
{
    char *copy = xmalloc(line.len > 0 ? line.len : 1);
    struct event ev;
    struct reject why;
    struct slice bytes;
    struct chain *c = chain_new(d, LINE_MAX);
    memcpy(copy, line.ptr, line.len);
    struct record r = {.value = slice_of(copy, line.len), .timestamp_ms = 1286720242123};
    chain_start(c, &r);
    enum chain_result what = chain_next(c, &ev, &why, &bytes);
    assert_int_not_equal(what, CHAIN_END);
    if (what == CHAIN_EVENT)
        print_event(&ev, out);
    else
        text_printf(out, "reject %s %zu", reject_name(why.reason), why.column);
    assert_int_equal(chain_next(c, &ev, &why, &bytes), CHAIN_END);
    chain_free(c);
    free(copy);
}

void decoded_check(const char *steps, const char *time, const struct decoded_case *cases, size_t count)
{
    struct decode d;
    struct err e;
    struct text out = {0};
    size_t failed = 0;
    if (!decoded_configure(&d, steps, time, &e))
        fail_msg("%s: %s", steps, e.text);
    for (size_t i = 0; i < count; i++) {
        text_clear(&out);
        decoded_line(&d, slice_text(cases[i].line), &out);
        if (slice_is(text_slice(&out), cases[i].expected))
            continue;
        print_error("%s is decoded as\n  %s, expected\n  %s\n", cases[i].line, out.ptr, cases[i].expected);
        failed++;
    }
    text_fini(&out);
    assert_int_equal(failed, 0);
}
