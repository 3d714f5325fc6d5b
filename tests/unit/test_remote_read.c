/* Prometheus' remote_read: the samples of each shape, the limits of an answer, and requests that are none. */
#include "base/varint.h"
#include "prom/remote_message.h"
#include "prom/remote_read.h"
#include "tests/support/expiring.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define NOON "2015-05-17T12:00"

static int setup_of_seconds(void **state)
{
    world_setup(state);
    struct world *w = *state;
    world_hit(w, FIXTURE_SITE, "", "2015-05-17T11:59:57", 5);
    world_hit(w, FIXTURE_SITE, "", "2015-05-17T11:59:58", 5);
    world_hit(w, FIXTURE_SITE, "", "2015-05-17T11:59:58", 5);
    world_apply(w, 1);
    return 0;
}

static int setup(void **state)
{
    world_setup(state);
    struct world *w = *state;
    world_hit(w, FIXTURE_PAGES, "/a", "2015-01-01", 100);
    world_hit(w, FIXTURE_PAGES, "/a", "2015-05-17T11:30", 10);
    world_hit(w, FIXTURE_PAGES, "/a", "2015-05-17T11:59", 1);
    world_hit(w, FIXTURE_PAGES, "/a", "2015-05-17T11:59", 1);
    world_hit(w, FIXTURE_PAGES, "/b", "2015-05-17T12:00", 7); /* begins at noon, so it is later */
    world_hit(w, FIXTURE_PAGES, "/idle", "2015-01-01", 5);
    world_hit(w, FIXTURE_SITE, "", "2015-05-17T11:58", 9);
    world_apply(w, 1);
    return 0;
}

/* ---- requests and answers, by code of their own */

static void put(struct text *t, uint64_t number)
{
    uint8_t bytes[VARINT_BYTES_MAX];
    text_add(t, (const char *)bytes, (size_t)(varint_put(bytes, number) - bytes));
}

static void put_part(struct text *t, uint64_t number, struct slice part)
{
    put(t, number << 3 | 2);
    put(t, part.len);
    text_add(t, part.ptr, part.len);
}

static void put_matcher(struct text *t, enum matcher_kind kind, const char *name, const char *value)
{
    struct text m = {0};
    put(&m, 1 << 3);
    put(&m, kind);
    put_part(&m, 2, slice_text(name));
    put_part(&m, 3, slice_text(value));
    put_part(t, 3, text_slice(&m));
    text_fini(&m);
}

struct asked {
    const char *metric, *path; /* path NULL: any */
    const char *from, *to;
};

static void put_query(struct text *t, const struct asked *a)
{
    struct text q = {0};
    put(&q, 1 << 3);
    put(&q, (uint64_t)fixture_ms(a->from));
    put(&q, 2 << 3);
    put(&q, (uint64_t)fixture_ms(a->to));
    put_matcher(&q, MATCHER_EQUAL, "__name__", a->metric);
    if (a->path != NULL)
        put_matcher(&q, MATCHER_EQUAL, "path", a->path);
    put_part(t, 1, text_slice(&q));
    text_fini(&q);
}

static uint64_t take(struct slice *s)
{
    uint64_t number = 0;
    const uint8_t *end = varint_get((const uint8_t *)s->ptr, (const uint8_t *)s->ptr + s->len, &number);
    assert_non_null(end);
    s->len -= (size_t)(end - (const uint8_t *)s->ptr);
    s->ptr = (const char *)end;
    return number;
}

static struct slice take_bytes(struct slice *s, size_t len)
{
    struct slice bytes = slice_of(s->ptr, len);
    assert_true(s->len >= len);
    *s = slice_of(s->ptr + len, s->len - len);
    return bytes;
}

static struct slice take_part(struct slice *s, uint64_t *tag)
{
    *tag = take(s);
    assert_int_equal(*tag & 7, 2);
    return take_bytes(s, take(s));
}

/* A series as `name=value,… minutes to noon:value …`. */
static void show_series(struct slice series, struct text *out)
{
    while (series.len > 0) {
        uint64_t tag, bits = 0;
        double value;
        struct slice part = take_part(&series, &tag);
        if (tag >> 3 == 1) {
            struct slice name = take_part(&part, &tag), text = take_part(&part, &tag);
            text_printf(out, "%.*s=%.*s,", SLICE_ARGS(name), SLICE_ARGS(text));
            continue;
        }
        assert_int_equal(take(&part), 1 << 3 | 1);
        struct slice little = take_bytes(&part, sizeof bits);
        for (size_t i = 0; i < sizeof bits; i++)
            bits |= (uint64_t)(uint8_t)little.ptr[i] << 8 * i;
        memcpy(&value, &bits, sizeof value);
        assert_int_equal(take(&part), 2 << 3);
        text_printf(out, " %" PRId64 ":%g", (int64_t)take(&part) - fixture_ms(NOON), value);
    }
    text_puts(out, "\n");
}

static void show(const struct text *answer, struct text *out)
{
    struct slice rest = text_slice(answer);
    uint64_t tag;
    text_clear(out);
    while (rest.len > 0) {
        struct slice result = take_part(&rest, &tag);
        while (result.len > 0)
            show_series(take_part(&result, &tag), out);
    }
    text_puts(out, "");
}

static bool ask(struct world *w, const struct asked *a, const struct remote_limits *limits, struct text *out,
                struct err *e)
{
    struct text request = {0}, answer = {0};
    put_query(&request, a);
    bool good = remote_read(w->store, text_slice(&request), limits, &answer, e);
    if (good)
        show(&answer, out);
    text_fini(&request);
    text_fini(&answer);
    return good;
}

static void check(struct world *w, struct asked a, const char *now, const char *expected)
{
    const struct remote_limits limits = {.rows_max = 1000, .bytes_max = 10000, .now_ms = fixture_ms(now)};
    struct text out = {0};
    struct err e = {0};
    if (!ask(w, &a, &limits, &out, &e))
        fail_msg("%s: %s", a.metric, e.text);
    assert_string_equal(out.ptr, expected);
    text_fini(&out);
}

/* ---- answers */

#define LATER "2015-05-18"

static void test_a_counter_has_all_before_each_minute(void **state)
{
    struct asked a = {"pages:hits", NULL, "2015-05-17T11:58", NOON};
    check(*state, a, LATER, "__name__=pages:hits,path=/a, -120000:2 -60000:2 0:4\n");
    a.metric = "pages:bytes";
    check(*state, a, LATER, "__name__=pages:bytes,path=/a, -120000:110 -60000:110 0:112\n");
    a = (struct asked){"pages:hits", "/idle", "2015-05-17T11:59:30", NOON};
    check(*state, a, LATER, "__name__=pages:hits,path=/idle, 0:1\n");
    a = (struct asked){"site:hits", NULL, "2015-05-17T11:58:01", "2015-05-17T11:59:59"};
    check(*state, a, LATER, "__name__=site:hits, -60000:1\n");
}

static void test_an_increase_is_of_one_minute(void **state)
{
    struct asked a = {"pages:hits:increase1m", NULL, "2015-05-17T11:58", NOON};
    check(*state, a, LATER, "__name__=pages:hits:increase1m,path=/a, -60001:0 -1:2\n");
    a.to = "2015-05-17T12:01";
    check(*state, a, LATER,
          "__name__=pages:hits:increase1m,path=/a, -60001:0 -1:2 59999:0\n"
          "__name__=pages:hits:increase1m,path=/b, -60001:0 -1:0 59999:1\n");
}

static void test_a_report_of_seconds_has_each_second(void **state)
{
    struct asked a = {"site:hits", NULL, "2015-05-17T11:59:58", NOON};
    check(*state, a, LATER, "__name__=site:hits, -2000:1 -1000:3 0:3\n");
    a.metric = "site:hits:increase1s";
    check(*state, a, LATER, "__name__=site:hits:increase1s, -1001:2 -1:0\n");
    a.metric = "site:hits:increase1m";
    check(*state, a, LATER, "");
}

static void test_no_sample_is_in_the_future(void **state)
{
    struct asked a = {"pages:hits", "/a", "2015-05-17T11:58", LATER};
    check(*state, a, "2015-05-17T11:59:59", "__name__=pages:hits,path=/a, -120000:2 -60000:2\n");
    check(*state, a, "2015-05-17T11:57:59", "");
    a.metric = "pages:hits:increase1m";
    check(*state, a, NOON, "__name__=pages:hits:increase1m,path=/a, -60001:0 -1:2\n");
}

static void test_ranges_and_names_without_anything(void **state)
{
    check(*state, (struct asked){"pages:hits", "/a", NOON, "2015-05-17T11:00"}, LATER, "");
    check(*state, (struct asked){"pages:hits", "/never", "2015-05-17T11:00", NOON}, LATER, "");
    check(*state, (struct asked){"pages:hits", NULL, "2015-05-17T11:00:01", "2015-05-17T11:00:59"}, LATER,
          "");
    check(*state, (struct asked){"pages:hits:increase1s", NULL, "2015-05-17T11:00", NOON}, LATER, "");
}

static void test_what_is_too_much_is_refused(void **state)
{
    static const struct {
        struct asked asked;
        struct remote_limits limits;
        const char *complaint;
    } cases[] = {
        {{"pages:hits", NULL, "2015-05-17T11:00", NOON},
         {.rows_max = 1000, .bytes_max = 300},
         "the samples are more than 300 bytes (half of query.response_max)"},
        {{"pages:hits", NULL, "1970-01-01", NOON},
         {.rows_max = 1000, .bytes_max = 1 << 20},
         "more than 4000000 samples at once"},
        {{"pages:hits", NULL, "2015-05-17T11:00", NOON},
         {.rows_max = 1, .bytes_max = 1 << 20},
         "more than 1 rows of the store (query.rows_max)"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct remote_limits limits = cases[i].limits;
        struct text out = {0};
        struct err e = {0};
        limits.now_ms = fixture_ms(LATER);
        assert_false(ask(*state, &cases[i].asked, &limits, &out, &e));
        if (strstr(e.text, cases[i].complaint) == NULL)
            fail_msg("\"%s\" is not in \"%s\"", cases[i].complaint, e.text);
        assert_int_equal(e.code, EX_UNAVAILABLE);
    }
}

/* A counter still has what it had in them. */
static void test_a_minute_that_has_expired_is_refused(void **state)
{
    const struct remote_limits limits = {.rows_max = 1000, .bytes_max = 10000, .now_ms = fixture_ms(LATER)};
    struct world *w = *state;
    struct asked a = {"pages:hits", "/a", "2015-01-01T00:01", "2015-01-01T00:02"};
    struct text out = {0};
    struct err e = {0};
    if (!world_kind->on_disk) /* it expires nothing */
        skip();
    expiring_open(w, "minute=2h hour=62d");
    expiring_run(w, fixture_ms("2015-05-17T14:30"));
    assert_false(ask(w, &a, &limits, &out, &e));
    if (strstr(e.text, "report pages has its minutes from 2015-05-17T") == NULL)
        fail_msg("%s", e.text);
    a.from = "2015-05-17T12:01";
    a.to = "2015-05-17T12:02";
    check(w, a, LATER, "__name__=pages:hits,path=/a, 60000:4 120000:4\n");
    text_fini(&out);
}

/* ---- requests */

static void test_requests_that_are_none(void **state)
{
    static const char *const wrong[] = {"",
                                        "\x0b",
                                        "\x0a",
                                        "\x0a\x02\x08",
                                        "\x08\x01",
                                        "\x0a\x02\x1a\x05",
                                        "\x0a\x01\x0d",
                                        "\x0a\x04\x1a\x02\x08\x04"};
    struct remote_request *rq = calloc(1, sizeof *rq);
    (void)state;
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        struct err e = {0};
        if (remote_parse(slice_text(wrong[i]), rq, &e))
            fail_msg("request %zu is taken", i);
        assert_int_equal(e.code, EX_PROTOCOL);
    }
    free(rq);
}

static void test_every_prefix_of_a_request_is_read_in_its_bounds(void **state)
{
    struct remote_request *rq = calloc(1, sizeof *rq);
    struct text request = {0};
    (void)state;
    put_query(&request, &(struct asked){"pages:hits", "/a", "2015-05-17T11:00", NOON});
    for (size_t len = 0; len <= request.len; len++) {
        char *copy = malloc(len + 1); /* whose end a sanitizer watches */
        struct err e = {0};
        memcpy(copy, request.ptr, len);
        assert_true(remote_parse(slice_of(copy, len), rq, &e) == (len == request.len));
        free(copy);
    }
    assert_int_equal(rq->query_count, 1);
    assert_int_equal(rq->matcher_count, 2);
    assert_int_equal(rq->queries[0].from_ms, fixture_ms("2015-05-17T11:00"));
    text_fini(&request);
    free(rq);
}

int main(void)
{
    const struct CMUnitTest requests[] = {
        cmocka_unit_test(test_requests_that_are_none),
        cmocka_unit_test(test_every_prefix_of_a_request_is_read_in_its_bounds),
    };
    const struct CMUnitTest seconds[] = {
        cmocka_unit_test_setup_teardown(test_a_report_of_seconds_has_each_second, setup_of_seconds,
                                        world_teardown),
    };
    const struct CMUnitTest minutes[] = {
        cmocka_unit_test_setup_teardown(test_a_counter_has_all_before_each_minute, setup, world_teardown),
        cmocka_unit_test_setup_teardown(test_an_increase_is_of_one_minute, setup, world_teardown),
        cmocka_unit_test_setup_teardown(test_no_sample_is_in_the_future, setup, world_teardown),
        cmocka_unit_test_setup_teardown(test_ranges_and_names_without_anything, setup, world_teardown),
        cmocka_unit_test_setup_teardown(test_what_is_too_much_is_refused, setup, world_teardown),
        cmocka_unit_test_setup_teardown(test_a_minute_that_has_expired_is_refused, setup, world_teardown),
    };
    int failed = cmocka_run_group_tests(requests, NULL, NULL);
    for (size_t i = 0; i < world_kind_count(); i++) {
        world_kind = &world_kinds[i];
        failed += world_kind->layout == LAYOUT_MINUTE
                      ? cmocka_run_group_tests_name(world_kind->name, seconds, NULL, NULL)
                      : cmocka_run_group_tests_name(world_kind->name, minutes, NULL, NULL);
    }
    return failed;
}
