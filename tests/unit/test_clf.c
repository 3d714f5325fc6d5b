#include "base/civil.h"
#include "base/mem.h"
#include "base/text.h"
#include "ingest/decode/clf.h"
#include "ingest/scan.h"
#include "tests/support/dice.h"
#include "tests/support/golden.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <cmocka.h>

#define GOLDEN          "tests/golden/clf.txt"
#define PROPERTY_ROUNDS 20000
#define MUTATION_ROUNDS 40000

static struct dice dice;

static uint32_t random_below(uint32_t n)
{
    return (uint32_t)dice_roll(&dice, n);
}

/* An event as the golden file writes it: a line for the time, and one for each field; ~ is odd. */
static void print_event(const struct event *ev, struct text *out)
{
    char iso[CIVIL_ISO_BYTES];
    text_printf(out, "at %s\n", civil_iso(ev->at_ms, iso));
    for (int i = 0; i < FIELD_COUNT; i++) {
        enum field f = (enum field)i;
        if (!event_has(ev, f))
            continue;
        text_printf(out, "%s%s%s", field_name(f), event_is_odd(ev, f) ? "~" : "",
                    ev->field[f].len > 0 ? " " : "");
        golden_fold(ev->field[f], '{', '}', out);
        if (f == FIELD_STATUS || f == FIELD_BYTES)
            text_printf(out, " = %" PRId64, ev->number[f]);
        text_putc(out, '\n');
    }
}

static void check_event(const struct event *ev, struct slice line)
{
    assert_true(ev->at_ms >= 0 && ev->at_ms < CIVIL_END_MS);
    assert_int_equal(ev->odd & ~ev->present, 0);
    for (int i = 0; i < FIELD_COUNT; i++) {
        enum field f = (enum field)i;
        if (!event_has(ev, f))
            continue;
        struct slice s = ev->field[f];
        assert_true(s.ptr >= line.ptr && s.ptr + s.len <= line.ptr + line.len);
        assert_int_equal(event_is_odd(ev, f), scan_has_odd(s.ptr, s.ptr + s.len));
    }
}

static void decode_exact(struct clf *c, struct slice line, struct text *out)
{
    struct event ev;
    struct reject why;
    if (decoder_decode(&c->decoder, line, &ev, &why)) {
        check_event(&ev, line);
        print_event(&ev, out);
    } else {
        assert_true(why.column >= 1 && why.column <= line.len + 1);
        text_printf(out, "reject %s %zu\n", reject_name(why.reason), why.column);
    }
}

/* The result for a line, as text: the same with every CPU. The line is copied so that reading past it is
 * seen. */
static void decode_to_text(struct clf *c, struct slice line, struct text *out)
{
    char *copy = malloc(line.len > 0 ? line.len : 1);
    assert_non_null(copy);
    if (line.len > 0)
        memcpy(copy, line.ptr, line.len);
    struct slice exact = slice_of(copy, line.len);
    struct clf twin = *c;
    struct text by_twin = {0};
    twin.decoder.decode = clf_decode_any;
    decode_exact(c, exact, out);
    decode_exact(&twin, exact, &by_twin);
    if (!slice_equal(text_slice(out), text_slice(&by_twin)))
        fail_msg("%.*s\nis\n%sbut clf_decode_any() says\n%s", SLICE_ARGS(line), out->ptr, by_twin.ptr);
    text_fini(&by_twin);
    free(copy);
}

struct golden_case {
    enum clf_format format;
    int line_number;
    struct text line, want;
};

static struct golden_case golden[256];
static size_t golden_count;

static int read_golden(void **state)
{
    (void)state;
    char *row = NULL;
    size_t cap = 0;
    int number = 0;
    struct golden_case *g = NULL;
    FILE *f = fopen(GOLDEN, "r");
    if (f == NULL)
        return -1;
    for (ssize_t len; (len = getline(&row, &cap, f)) > 0;) {
        number++;
        if (row[0] == '#' || row[0] == '\n') {
            g = NULL;
        } else if (g != NULL) {
            text_add(&g->want, row, (size_t)len);
        } else {
            const char *colon = strchr(row, ':');
            g = &golden[golden_count++];
            if (colon == NULL || golden_count == COUNT_OF(golden) ||
                !clf_format_parse(slice_of(row, (size_t)(colon - row)), &g->format))
                return -1;
            g->line_number = number;
            const char *from = colon + 1 + (colon[1] == ' ');
            golden_unfold(slice_of(from, (size_t)(row + len - 1 - from)), '{', '}', &g->line);
        }
    }
    free(row);
    fclose(f);
    return 0;
}

static int free_golden(void **state)
{
    (void)state;
    for (size_t i = 0; i < golden_count; i++) {
        text_fini(&golden[i].line);
        text_fini(&golden[i].want);
    }
    return 0;
}

static void test_clf_golden_lines_become_what_they_must(void **state)
{
    (void)state;
    int failed = 0;
    assert_true(golden_count > 60);
    for (size_t i = 0; i < golden_count; i++) {
        struct clf c;
        struct text got = {0};
        clf_init(&c, golden[i].format);
        decode_to_text(&c, text_slice(&golden[i].line), &got);
        if (!slice_equal(text_slice(&got), text_slice(&golden[i].want))) {
            print_error("%s:%d is\n%s", GOLDEN, golden[i].line_number, got.ptr);
            failed++;
        }
        text_fini(&got);
    }
    assert_int_equal(failed, 0);
}

static void test_clf_golden_lines_meet_every_reason(void **state)
{
    (void)state;
    for (int i = 0; i < REJECT_TOMBSTONE; i++) { /* the later ones are of other decoders */
        char want[64];
        bool met = i == REJECT_TOO_LONG || i == REJECT_FUTURE; /* not the decoder's */
        snprintf(want, sizeof want, "reject %s ", reject_name((enum reject_reason)i));
        for (size_t k = 0; k < golden_count && !met; k++)
            met = strncmp(golden[k].want.ptr, want, strlen(want)) == 0;
        if (!met)
            fail_msg("no line is rejected for %s", reject_name((enum reject_reason)i));
    }
}

/* A line being made up, and the event that it must be read as; its slices are offsets until the end. */
struct made {
    struct text line;
    struct event ev;
};

static void put_made(struct made *m, enum field f, size_t from)
{
    const char *base = m->line.ptr;
    m->ev.field[f] = slice_of((const char *)(uintptr_t)from, m->line.len - from);
    m->ev.present |= 1u << f;
    m->ev.odd |= (uint32_t)scan_has_odd(base + from, base + m->line.len) << f;
}

static void add_plain(struct made *m, uint32_t max)
{
    for (uint32_t n = 1 + random_below(max); n > 0; n--)
        text_putc(&m->line, (char)('a' + random_below(26)));
}

/* Bytes as they may stand between quotes: escapes, UTF-8 and rubbish, but no line feed. */
static void add_quotable(struct made *m, uint32_t max)
{
    static const char *const pieces[] = {"\\\"", "\\\\", "\\x16", "\\n", "\xC3\xA9", "\xFF", "?",
                                         "|",    "}",    " ",     "[",   "\x7F",     "\t"};
    for (uint32_t n = random_below(max); n > 0; n--) {
        if (random_below(8) == 0)
            text_puts(&m->line, pieces[random_below(COUNT_OF(pieces))]);
        else
            text_putc(&m->line, "abcdefghijklmnop/_-.%&=;:(),+012345"[random_below(35)]);
    }
}

static void make_vhost(struct made *m)
{
    size_t from = m->line.len;
    if (random_below(4) == 0)
        text_puts(&m->line, "[::1]");
    else
        add_plain(m, 20);
    put_made(m, FIELD_VHOST, from);
    text_putc(&m->line, ':');
    from = m->line.len;
    text_printf(&m->line, "%u", random_below(65536));
    put_made(m, FIELD_PORT, from);
    text_putc(&m->line, ' ');
}

/* Behind a logname, auto takes a word "-" of the user for one that was moved. */
static void hide_dashes(struct text *line, size_t from)
{
    for (size_t i = from + 1; i < line->len; i++) {
        if (line->ptr[i] == '-' && line->ptr[i - 1] == ' ')
            line->ptr[i] = '_';
    }
}

static void make_identity(struct made *m)
{
    size_t from = m->line.len;
    if (random_below(3) == 0)
        text_printf(&m->line, "2001:db8::%x", random_below(65536));
    else
        add_plain(m, 40);
    put_made(m, FIELD_HOST, from);
    text_putc(&m->line, ' ');
    from = m->line.len;
    if (random_below(3) == 0) {
        add_plain(m, 5);
        put_made(m, FIELD_LOGNAME, from);
    } else {
        text_putc(&m->line, '-');
    }
    text_putc(&m->line, ' ');
    from = m->line.len;
    if (random_below(3) == 0) {
        add_plain(m, 3);
        add_quotable(m, 20);
        hide_dashes(&m->line, from);
        put_made(m, FIELD_USER, from);
    } else {
        text_putc(&m->line, '-');
    }
}

static void make_time(struct made *m)
{
    static int64_t second = 0;
    char buf[64];
    struct tm tm;
    if (second == 0 || random_below(2) == 0)
        second = (int64_t)random_below(253402300u) * 1000 + random_below(800);
    else
        second += random_below(3);
    int zone = (int)random_below(2 * 1439 + 1) - 1439;
    time_t local = second + zone * 60;
    if (local < 0 || local >= CIVIL_END_MS / 1000)
        zone = 0, local = second;
    m->ev.at_ms = second * 1000;
    gmtime_r(&local, &tm);
    strftime(buf, sizeof buf, " [%d/%b/%Y:%H:%M:%S", &tm);
    text_puts(&m->line, buf);
    text_printf(&m->line, " %c%02d%02d]", zone < 0 ? '-' : '+', abs(zone) / 60, abs(zone) % 60);
}

/* An absolute address needs a protocol behind it. */
static void make_target(struct made *m, bool may_be_address)
{
    size_t from = m->line.len;
    if (may_be_address && random_below(4) == 0)
        text_puts(&m->line, random_below(2) == 0 ? "http://a.example:80" : "s+1://[::1]");
    size_t path = m->line.len;
    text_putc(&m->line, '/');
    add_quotable(m, 60);
    put_made(m, FIELD_TARGET, from);
    put_made(m, FIELD_PATH, path);
    const char *target = m->line.ptr + path, *question = strchr(target, '?');
    if (question != NULL) {
        m->ev.field[FIELD_PATH].len = (size_t)(question - target);
        m->ev.odd &= ~(1u << FIELD_PATH);
        m->ev.odd |= (uint32_t)scan_has_odd(target, question) << FIELD_PATH;
    }
}

static void make_request(struct made *m)
{
    text_puts(&m->line, " \"");
    size_t from = m->line.len;
    bool has_protocol = random_below(4) != 0;
    switch (random_below(8)) {
    case 0:
        text_putc(&m->line, '-');
        break;
    case 1: /* an empty request is absent, too */
        break;
    case 2:
        text_puts(&m->line, "\\x16\\x03");
        add_quotable(m, 30);
        put_made(m, FIELD_REQUEST, from);
        break;
    default:
        text_puts(&m->line, random_below(2) == 0 ? "GET" : random_below(2) == 0 ? "M-SEARCH" : "x");
        put_made(m, FIELD_METHOD, from);
        text_putc(&m->line, ' ');
        make_target(m, has_protocol);
        if (has_protocol) {
            size_t space = m->line.len;
            text_puts(&m->line, random_below(4) != 0 ? " HTTP/1.1" : " HTTP/3");
            put_made(m, FIELD_PROTOCOL, space + 1);
        }
        put_made(m, FIELD_REQUEST, from);
    }
    text_putc(&m->line, '"');
}

static void make_number(struct made *m, enum field f, int64_t value, const char *shape)
{
    text_putc(&m->line, ' ');
    size_t from = m->line.len;
    if (random_below(4) == 0) {
        text_putc(&m->line, '-');
        return;
    }
    char buf[32];
    int n = snprintf(buf, sizeof buf, shape[0] == '3' ? "%03" PRId64 : "%" PRId64, value);
    text_add(&m->line, buf, (size_t)n);
    put_made(m, f, from);
    m->ev.number[f] = value;
}

static void make_quoted(struct made *m, enum field f)
{
    text_puts(&m->line, " \"");
    size_t from = m->line.len;
    add_quotable(m, 150);
    if (m->line.len == from + 1 && m->line.ptr[from] == '-')
        text_putc(&m->line, '-');
    if (random_below(4) == 0) {
        m->line.len = from;
        if (random_below(2) == 0)
            text_putc(&m->line, '-');
    } else if (m->line.len > from) {
        put_made(m, f, from);
    }
    text_putc(&m->line, '"');
}

static void make_line(struct made *m, enum clf_format shape)
{
    text_clear(&m->line);
    m->ev = (struct event){0};
    if (shape == CLF_VHOST_COMBINED)
        make_vhost(m);
    make_identity(m);
    make_time(m);
    make_request(m);
    int64_t bytes = ((int64_t)random_below(1u << 31) << 16 | random_below(65536)) >> random_below(47);
    make_number(m, FIELD_STATUS, random_below(1000), "3");
    make_number(m, FIELD_BYTES, bytes % (EVENT_NUMBER_MAX + 1), "1");
    if (shape != CLF_COMMON) {
        make_quoted(m, FIELD_REFERRER);
        make_quoted(m, FIELD_AGENT);
    }
    if (random_below(8) == 0)
        text_puts(&m->line, random_below(2) == 0 ? "  " : "\r");
    for (int f = 0; f < FIELD_COUNT; f++)
        m->ev.field[f].ptr = m->line.ptr + (uintptr_t)m->ev.field[f].ptr;
}

static void test_clf_reads_back_what_a_naive_printer_wrote(void **state)
{
    (void)state;
    struct made m = {0};
    struct clf kept[CLF_FORMAT_COUNT]; /* with their caches, from line to line */
    for (int i = 0; i < CLF_FORMAT_COUNT; i++)
        clf_init(&kept[i], (enum clf_format)i);
    for (int round = 0; round < PROPERTY_ROUNDS; round++) {
        enum clf_format shape = (enum clf_format)(CLF_COMMON + random_below(3));
        make_line(&m, shape);
        struct text want = {0}, got = {0};
        print_event(&m.ev, &want);
        decode_to_text(&kept[random_below(2) == 0 ? CLF_AUTO : shape], text_slice(&m.line), &got);
        if (!slice_equal(text_slice(&got), text_slice(&want)))
            fail_msg("%s\nis read as\n%sbut was made of\n%s", m.line.ptr, got.ptr, want.ptr);
        text_fini(&want);
        text_fini(&got);
    }
    text_fini(&m.line);
}

static void test_clf_mutated_lines_stay_within_bounds(void **state)
{
    (void)state;
    for (int round = 0; round < MUTATION_ROUNDS; round++) {
        const struct golden_case *g = &golden[random_below((uint32_t)golden_count)];
        struct text line = {0}, first = {0}, again = {0};
        size_t len = g->line.len < 4096 ? g->line.len : 0;
        text_add(&line, g->line.ptr, random_below(4) == 0 ? random_below((uint32_t)len + 1) : len);
        for (uint32_t flips = random_below(8); flips > 0 && line.len > 0; flips--)
            line.ptr[random_below((uint32_t)line.len)] ^= (char)(1 << random_below(8));
        struct clf c;
        clf_init(&c, (enum clf_format)random_below(CLF_FORMAT_COUNT));
        decode_to_text(&c, text_slice(&line), &first);
        decode_to_text(&c, text_slice(&line), &again); /* now with the time cached */
        assert_string_equal(first.ptr, again.ptr);
        text_fini(&line);
        text_fini(&first);
        text_fini(&again);
    }
}

static void test_clf_cached_time_is_compared_in_every_byte(void **state)
{
    (void)state;
    static const char good[] = "h - - [10/Oct/2000:13:55:36 -0700] \"-\" - -";
    struct clf kept, fresh;
    clf_init(&kept, CLF_AUTO);
    for (size_t at = 6; at < 34; at++) {
        for (int byte = ' '; byte < 0x7F; byte++) {
            char line[sizeof good];
            struct text warm = {0}, got = {0}, want = {0};
            memcpy(line, good, sizeof good);
            line[at] = (char)byte;
            clf_init(&fresh, CLF_AUTO);
            decode_to_text(&kept, slice_text(good), &warm);
            decode_to_text(&kept, slice_text(line), &got);
            decode_to_text(&fresh, slice_text(line), &want);
            assert_string_equal(got.ptr, want.ptr);
            text_fini(&warm);
            text_fini(&got);
            text_fini(&want);
        }
    }
}

/* The two minutes of which only some seconds are in range. */
static void test_clf_minutes_at_the_ends_of_time_are_not_cached(void **state)
{
    (void)state;
    static const char *const lines[][2] = {
        {"h - - [01/Jan/1970:00:59:60 +0100] \"-\" - -", "h - - [01/Jan/1970:00:59:59 +0100] \"-\" - -"},
        {"h - - [31/Dec/9999:23:59:59 +0000] \"-\" - -", "h - - [31/Dec/9999:23:59:60 +0000] \"-\" - -"}};
    for (size_t i = 0; i < COUNT_OF(lines); i++) {
        struct clf c;
        struct text good = {0}, bad = {0};
        clf_init(&c, CLF_AUTO);
        decode_to_text(&c, slice_text(lines[i][0]), &good);
        decode_to_text(&c, slice_text(lines[i][1]), &bad);
        assert_int_equal(strncmp(good.ptr, "at ", 3), 0);
        assert_string_equal(bad.ptr, "reject time_range 8\n");
        text_fini(&good);
        text_fini(&bad);
    }
}

static void test_scan_twins_agree(void **state)
{
    (void)state;
    char buf[100];
    for (int round = 0; round < PROPERTY_ROUNDS; round++) {
        memset(buf, 'a', sizeof buf);
        for (uint32_t n = random_below(4); n > 0; n--)
            buf[random_below(sizeof buf)] = (char)random_below(256);
        const char *end = buf + SCAN_STEP + random_below(sizeof buf - SCAN_STEP + 1);
        const char *p = end - random_below((uint32_t)(end - buf) + 1);
        assert_ptr_equal(scan_word(p, end), scan_word_bytes(p, end));
        assert_int_equal(scan_has_odd(p, end), scan_has_odd_bytes(p, end));
        assert_ptr_equal(scan_quoted(p, end, '"'), scan_quoted_bytes(p, end, '"'));
        assert_ptr_equal(scan_quoted(p, end, '?'), scan_quoted_bytes(p, end, '?'));
    }
}

static void test_clf_format_names_are_read_back(void **state)
{
    (void)state;
    enum clf_format format;
    for (int i = 0; i < CLF_FORMAT_COUNT; i++) {
        assert_true(clf_format_parse(slice_text(clf_format_name((enum clf_format)i)), &format));
        assert_int_equal(format, i);
    }
    assert_false(clf_format_parse(slice_text("combine"), &format));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_clf_golden_lines_become_what_they_must),
        cmocka_unit_test(test_clf_golden_lines_meet_every_reason),
        cmocka_unit_test(test_clf_reads_back_what_a_naive_printer_wrote),
        cmocka_unit_test(test_clf_mutated_lines_stay_within_bounds),
        cmocka_unit_test(test_clf_cached_time_is_compared_in_every_byte),
        cmocka_unit_test(test_clf_minutes_at_the_ends_of_time_are_not_cached),
        cmocka_unit_test(test_scan_twins_agree),
        cmocka_unit_test(test_clf_format_names_are_read_back),
    };
    dice = dice_new("clf");
    return cmocka_run_group_tests(tests, read_golden, free_golden);
}
