#include "base/civil.h"
#include "base/mem.h"
#include "base/text.h"
#include "ingest/decode/chain.h"
#include "ingest/distribution.h"
#include "tests/support/golden.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define GOLDEN   "tests/golden/chain.txt"
#define LINE_MAX 4096
#define COMBINED "10.0.0.1 - - [10/Oct/2010:14:17:22 +0000] \"GET /a?b HTTP/1.1\" 200 5 \"-\" \"curl\""

static void print_side(const char *name, const struct distribution_side *side, struct text *out)
{
    struct distribution_walk w = distribution_walk(side);
    int64_t index;
    uint64_t count;
    while (distribution_next(&w, &index, &count))
        text_printf(out, " %s%" PRId64 ":%" PRIu64, name, index, count);
    assert_ptr_equal(w.p, w.end);
}

static void print_distribution(const struct distribution *d, struct text *out)
{
    text_printf(out, "many %" PRId64 " scale %d zeros %" PRId64, d->count, d->scale, d->zeros);
    print_side("", &d->sides[DISTRIBUTION_ABOVE_0], out);
    print_side("-", &d->sides[DISTRIBUTION_BELOW_0], out);
    if (d->has_min)
        text_printf(out, " min %" PRId64, d->min);
    if (d->has_max)
        text_printf(out, " max %" PRId64, d->max);
    text_putc(out, '\n');
}

/* ~ is odd, ~~ odd and literal. */
static void print_event(const struct event *ev, struct text *out)
{
    struct civil c = civil_from_ms(ev->at_ms);
    text_printf(out, "at %04d-%02d-%02dT%02d:%02d:%02d.%03d\n", c.year, c.month, c.day, c.hour, c.minute,
                c.second, c.ms);
    for (int i = 0; i < field_count(); i++) {
        enum field f = (enum field)i;
        if (!event_has(ev, f))
            continue;
        bool odd = event_is_odd(ev, f), literal = odd && ((ev->literal >> f) & 1);
        text_printf(out, "%s%s%s", field_name(f),
                    literal ? "~~"
                    : odd   ? "~"
                            : "",
                    ev->field[f].len > 0 ? " " : "");
        golden_fold(ev->field[f], '`', '`', out);
        if (field_is_number(f) && event_has_number(ev, f))
            text_printf(out, " = %" PRId64, ev->number[f]);
        text_putc(out, '\n');
    }
    if (event_has(ev, FIELD_VALUE) && event_distribution(ev, FIELD_VALUE) != NULL)
        print_distribution(event_distribution(ev, FIELD_VALUE), out);
}

struct message {
    struct record record; /* first: a message is a record */
    struct text key, topic, header_name, header_value;
};

static bool find_header(const struct record *r, const char *name, struct slice *value)
{
    const struct message *m = (const struct message *)r;
    if (!slice_is(text_slice(&m->header_name), name))
        return false;
    *value = text_slice(&m->header_value);
    return true;
}

/* In memory of just its size, so that reading past it is seen. */
static char *copy_exactly(struct slice s)
{
    char *copy = xmalloc(s.len > 0 ? s.len : 1);
    if (s.len > 0)
        memcpy(copy, s.ptr, s.len);
    return copy;
}

static void check_reject(struct reject why, struct slice bytes)
{
    assert_true((unsigned)why.reason < REJECT_COUNT);
    assert_true(why.column >= 1 && why.column <= bytes.len + 1);
}

static void decode_message(struct chain *c, struct message *m, struct slice value, struct text *out)
{
    struct event ev;
    struct reject why;
    struct slice bytes;
    enum chain_result what;
    char *copy = value.ptr != NULL ? copy_exactly(value) : NULL;
    m->record.value = slice_of(copy, value.len);
    m->record.header = find_header;
    m->record.key = text_slice(&m->key);
    m->record.topic = text_slice(&m->topic);
    chain_start(c, &m->record);
    for (int count = 0; (what = chain_next(c, &ev, &why, &bytes)) != CHAIN_END; count++) {
        assert_true(count < 1000);
        if (what == CHAIN_EVENT) {
            print_event(&ev, out);
            continue;
        }
        if (what == CHAIN_REJECT) {
            check_reject(why, bytes);
            text_printf(out, "reject %s %zu", reject_name(why.reason), why.column);
        } else {
            text_puts(out, "directive");
        }
        text_puts(out, bytes.len > 0 ? " " : "");
        golden_fold(bytes, '`', '`', out);
        text_putc(out, '\n');
    }
    assert_int_equal(chain_next(c, &ev, &why, &bytes), CHAIN_END);
    chain_flush(c);
    free(copy);
}

/* One file of cases: settings stay until the next `decode`. */
struct golden {
    struct decode decode;
    struct registry registry; /* of schemas in files */
    struct chain *chain;
    struct message m;
    struct text value, want;
    bool has_value, is_tombstone;
    int line_number, cases, failed;
    bool met[REJECT_COUNT];
};

static void run_case(struct golden *g)
{
    struct text got = {0};
    struct err e = {0};
    if (!g->has_value && !g->is_tombstone)
        return;
    if (g->chain == NULL) {
        bool good = decode_finish(&g->decode, &e);
        g->decode.registry = &g->registry;
        if (good && decode_needs_schema(&g->decode))
            good = registry_ask(&g->registry, decode_schema_kind(&g->decode), g->decode.schema_path, &e) &&
                   registry_open(&g->registry, &clock_system, &e);
        if (!good)
            fail_msg("%s:%d: %s", GOLDEN, g->line_number, e.text);
        g->chain = chain_new(&g->decode, LINE_MAX);
    }
    struct slice value = g->is_tombstone ? (struct slice){NULL, 0} : text_slice(&g->value);
    decode_message(g->chain, &g->m, value, &got);
    if (got.len == 0)
        text_puts(&got, "nothing\n");
    if (!slice_equal(text_slice(&got), text_slice(&g->want))) {
        print_error("%s:%d is\n%s\n", GOLDEN, g->line_number, got.ptr);
        g->failed++;
    }
    for (int i = 0; i < REJECT_COUNT; i++) {
        char reject[64];
        snprintf(reject, sizeof reject, "reject %s ", reject_name((enum reject_reason)i));
        g->met[i] |= strstr(got.ptr, reject) != NULL;
    }
    g->cases++;
    text_fini(&got);
    text_clear(&g->value);
    text_clear(&g->want);
    g->has_value = g->is_tombstone = false;
}

static void set_text(struct text *t, const char *value)
{
    text_clear(t);
    text_puts(t, value);
}

static void restart(struct golden *g)
{
    chain_free(g->chain);
    g->chain = NULL;
    decode_init(&g->decode);
    text_fini(&g->m.key);
    text_fini(&g->m.topic);
    text_fini(&g->m.header_name);
    text_fini(&g->m.header_value);
    g->m.record = (struct record){.timestamp_ms = -1};
}

static const struct {
    const char *word;
    enum metric_member member;
} members[] = {
    {"name_is", METRIC_NAME}, {"ts_is", METRIC_TIME}, {"value_is", METRIC_VALUE}, {"tags_are", METRIC_TAGS}};

/* "decode combined", "field path /uri", … */
static bool take_setting(struct golden *g, const char *word, const char *a, const char *b)
{
    struct err e = {0};
    bool good = true;
    if (strcmp(word, "decode") == 0) {
        restart(g);
        good = decode_add_step(&g->decode, slice_text(a), &e) &&
               (*b == '\0' || decode_add_step(&g->decode, slice_text(b), &e));
    } else if (strcmp(word, "then") == 0) {
        good = decode_add_step(&g->decode, slice_text(a), &e);
    } else if (strcmp(word, "field") == 0) {
        good = decode_add_field(&g->decode, slice_text(a), slice_text(b), &e);
    } else if (strcmp(word, "own") == 0) {
        enum field f;
        good = field_intern(slice_text(a), &f);
    } else if (strcmp(word, "time") == 0) {
        good = decode_set_time(&g->decode, slice_text(a), &e);
    } else if (strcmp(word, "key") == 0) {
        set_text(&g->m.key, a);
    } else if (strcmp(word, "topic") == 0) {
        set_text(&g->m.topic, a);
    } else if (strcmp(word, "partition") == 0) {
        g->m.record.partition = atoi(a);
    } else if (strcmp(word, "stamp") == 0) {
        g->m.record.timestamp_ms = atoll(a);
    } else if (strcmp(word, "header") == 0) {
        set_text(&g->m.header_name, a);
        set_text(&g->m.header_value, b);
    } else {
        for (size_t i = 0; i < COUNT_OF(members); i++) {
            if (strcmp(word, members[i].word) == 0)
                return decode_set_metric(&g->decode, members[i].member, slice_text(a), &e);
        }
        return false;
    }
    if (!good)
        fail_msg("%s:%d: %s", GOLDEN, g->line_number, e.text);
    return good;
}

static void take_row(struct golden *g, char *row, size_t len)
{
    char word[32] = "", a[256] = "", b[256] = "";
    if (row[0] == '#')
        return;
    if (len == 0) {
        run_case(g);
    } else if (row[0] == '>') {
        if (g->has_value)
            text_putc(&g->value, '\n');
        g->has_value = true;
        text_add(&g->value, "", 0);
        golden_unfold(slice_of(row + 1 + (row[1] == ' '), len - 1 - (row[1] == ' ')), '`', '`', &g->value);
    } else if (strcmp(row, "tombstone") == 0) {
        g->is_tombstone = true;
    } else if (g->has_value || g->is_tombstone) {
        text_printf(&g->want, "%s\n", row);
    } else if (sscanf(row, "%31s %255s %255s", word, a, b) < 2 || !take_setting(g, word, a, b)) {
        fail_msg("%s:%d: what is \"%s\"?", GOLDEN, g->line_number, row);
    }
}

static void test_chain_golden_messages_become_what_they_must(void **state)
{
    (void)state;
    struct golden g = {0};
    enum field f;
    char *row = NULL;
    size_t cap = 0;
    FILE *file = fopen(GOLDEN, "r");
    assert_non_null(file);
    assert_true(field_intern(slice_text("userid"), &f) && field_intern(slice_text("region"), &f));
    for (ssize_t len; (len = getline(&row, &cap, file)) > 0;) {
        g.line_number++;
        row[--len] = '\0';
        take_row(&g, row, (size_t)len);
    }
    run_case(&g);
    free(row);
    fclose(file);
    restart(&g);
    registry_fini(&g.registry);
    text_fini(&g.value);
    text_fini(&g.want);
    assert_true(g.cases > 100);
    assert_int_equal(g.failed, 0);
    for (int i = REJECT_TOMBSTONE; i < REJECT_COUNT; i++) {
        bool is_of_registry = i == REJECT_SCHEMA || i == REJECT_SCHEMA_KIND; /* test_registry.c meets them */
        if (!g.met[i] && !is_of_registry)
            fail_msg("no message is rejected for %s", reject_name((enum reject_reason)i));
    }
}

static struct chain *make_chain(struct decode *d, const char *step)
{
    struct err e;
    decode_init(d);
    assert_true(decode_add_step(d, slice_text(step), &e) && decode_finish(d, &e));
    return chain_new(d, LINE_MAX);
}

static void test_chain_of_plain_lines_lends_its_decoder(void **state)
{
    (void)state;
    struct decode d;
    struct err e;
    struct event ev;
    struct reject why;
    struct chain *c = make_chain(&d, "combined");
    assert_non_null(chain_decoder(c));
    assert_true(decoder_decode(chain_decoder(c), slice_text(COMBINED), &ev, &why));
    chain_free(c);
    assert_true(decode_add_field(&d, slice_text("userid"), slice_text("key"), &e));
    c = chain_new(&d, LINE_MAX);
    assert_null(chain_decoder(c));
    chain_free(c);
    c = make_chain(&d, "metric");
    assert_null(chain_decoder(c));
    chain_free(c);
}

static void expect_field(const struct event *ev, enum field f, const char *text)
{
    assert_true(event_has(ev, f));
    if (!slice_is(ev->field[f], text))
        fail_msg("%s is %.*s, wanted %s", field_name(f), SLICE_ARGS(ev->field[f]), text);
}

/* One event of a line, as a lane gets it: by the chain's decoder if it lends one. */
static void decode_line(struct chain *c, const char *line, struct event *ev)
{
    struct reject why;
    struct slice bytes;
    struct record r = {.value = slice_text(line), .timestamp_ms = -1};
    struct decoder *lent = chain_decoder(c);
    if (lent != NULL) {
        assert_true(decoder_decode(lent, r.value, ev, &why));
        return;
    }
    chain_start(c, &r);
    assert_int_equal(chain_next(c, ev, &why, &bytes), CHAIN_EVENT);
}

/* The constants win over the line, on the fast path and behind every step, and only until they change. */
static void test_chain_puts_constants_into_every_event(void **state)
{
    (void)state;
    static const char *const steps[] = {"auto", "syslog", "json"};
    static const char *const lines[] = {
        "www.example.org:80 " COMBINED, "<13>Oct 10 13:55:36 host app: www.example.org:80 " COMBINED,
        "{\"time\": \"2010-10-10T14:17:22Z\", \"vhost\": \"www.example.org\", \"shard\": \"x\"}"};
    static struct event ev;
    struct constants blog = {0}, shop = {0};
    enum field shard;
    assert_true(field_intern(slice_text("shard"), &shard));
    constants_add(&blog, FIELD_VHOST, slice_text("blog"));
    constants_add(&blog, shard, slice_text("17"));
    constants_add(&shop, FIELD_VHOST, slice_text("\xc3\xa4\\x"));
    for (size_t i = 0; i < COUNT_OF(steps); i++) {
        struct decode d;
        struct err e;
        decode_init(&d);
        assert_true(decode_add_step(&d, slice_text(steps[i]), &e));
        assert_true(i != 1 || decode_add_step(&d, slice_text("auto"), &e));
        assert_true(decode_finish(&d, &e));
        struct chain *c = chain_new(&d, LINE_MAX);
        chain_set_constants(c, &blog);
        decode_line(c, lines[i], &ev);
        expect_field(&ev, FIELD_VHOST, "blog");
        expect_field(&ev, shard, "17");
        assert_true(event_is_plain(&ev, FIELD_VHOST) && event_has_number(&ev, shard));
        assert_int_equal(ev.number[shard], 17 * EVENT_SCALE);
        chain_set_constants(c, &shop);
        decode_line(c, lines[i], &ev);
        expect_field(&ev, FIELD_VHOST, "\xc3\xa4\\x");
        assert_true(event_is_odd(&ev, FIELD_VHOST) && (ev.literal >> FIELD_VHOST & 1) != 0);
        assert_true(event_has(&ev, shard) == (i == 2));
        chain_set_constants(c, NULL);
        decode_line(c, lines[i], &ev);
        expect_field(&ev, FIELD_VHOST, "www.example.org");
        assert_true(event_is_plain(&ev, FIELD_VHOST));
        chain_free(c);
    }
    constants_fini(&blog);
    constants_fini(&shop);
}

static void test_constants_of_a_dash_are_absent(void **state)
{
    (void)state;
    struct constants k = {0};
    enum field own;
    assert_true(field_intern(slice_text("shard"), &own));
    constants_add(&k, FIELD_VHOST, slice_text("-"));
    assert_true(k.count == 0 && k.bits == 0);
    constants_add(&k, own, slice_text("-"));
    assert_int_equal(k.count, 1);
    constants_fini(&k);
    assert_int_equal(k.count, 0);
}

/* Events of several messages are collected before a flush: none may lose what its slices point to. */
static void test_chain_events_stay_until_the_flush(void **state)
{
    (void)state;
    enum { MESSAGES = 3000 };
    static char texts[MESSAGES][64];
    static struct event events[MESSAGES];
    struct decode d;
    struct reject why;
    struct slice bytes;
    struct chain *c = make_chain(&d, "metric");
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < MESSAGES; i++) {
            int n = snprintf(texts[i], sizeof texts[i],
                             "{\"name\":\"\\u0041%d\",\"ts\":1286720242,\"value\":%d}", i, i);
            struct record r = {.value = slice_of(texts[i], (size_t)n), .timestamp_ms = -1};
            chain_start(c, &r);
            assert_int_equal(chain_next(c, &events[i], &why, &bytes), CHAIN_EVENT);
            assert_int_equal(chain_next(c, &events[i], &why, &bytes), CHAIN_END);
        }
        for (int i = 0; i < MESSAGES; i++) {
            char want[32];
            snprintf(want, sizeof want, "A%d", i);
            assert_true(slice_is(events[i].field[FIELD_NAME], want));
            assert_int_equal(events[i].number[FIELD_VALUE], (int64_t)i * EVENT_SCALE);
        }
        chain_flush(c);
    }
    chain_free(c);
}

/* Fuzz it is not, but each end of each message is cut off once, and no result depends on what follows. */
static void test_chain_cut_messages_are_rejected(void **state)
{
    (void)state;
    static const char text[] = "[{\"name\":\"s\\u00e9\",\"ts\":\"2010-10-10T14:17:22Z\",\"value\":-9.5e1,"
                               "\"tags\":{\"userid\":\"rick\",\"x\":[true,false,null,{}]}}]";
    struct decode d;
    struct text out = {0};
    struct message m = {.record = {.timestamp_ms = -1}};
    struct chain *c = make_chain(&d, "metric");
    for (size_t len = 0; len < sizeof text - 1; len++) {
        text_clear(&out);
        decode_message(c, &m, slice_of(text, len), &out);
        if (strncmp(out.ptr, len == 0 ? "reject empty " : "reject json ", 12) != 0)
            fail_msg("%.*s is %s", (int)len, text, out.ptr);
    }
    text_fini(&out);
    chain_free(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_chain_golden_messages_become_what_they_must),
        cmocka_unit_test(test_chain_of_plain_lines_lends_its_decoder),
        cmocka_unit_test(test_chain_puts_constants_into_every_event),
        cmocka_unit_test(test_constants_of_a_dash_are_absent),
        cmocka_unit_test(test_chain_events_stay_until_the_flush),
        cmocka_unit_test(test_chain_cut_messages_are_rejected),
    };
    return cmocka_run_group_tests_name("chain", tests, NULL, NULL);
}
