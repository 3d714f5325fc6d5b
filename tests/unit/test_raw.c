/* The configuration of raw events, their periods, and their documents, read back by libbson. */
#include "aggregate/raw.h"
#include "aggregate/raw_document.h"
#include "base/civil.h"
#include "ingest/distribution.h"
#include "ingest/record.h"

#include <bson/bson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void test_growth_is_printed_as_it_is_read(void **state)
{
    static const char *const good[] = {"forever",
                                       "ttl 7d",
                                       "ttl 90s",
                                       "capped 1GiB",
                                       "capped 65KiB",
                                       "collection per day",
                                       "collection per day keep 30",
                                       "collection per week keep 1",
                                       "collection per month",
                                       "database per month keep 10000"};
    (void)state;
    for (size_t i = 0; i < COUNT_OF(good); i++) {
        struct raw r = {0};
        struct text out = {0};
        struct err e;
        assert_true(raw_set_growth(&r, slice_text(good[i]), &e));
        raw_print_growth(&r, &out);
        assert_string_equal(out.ptr, good[i]);
        text_fini(&out);
    }
}

static void test_what_is_no_growth_is_refused(void **state)
{
    static const char *const bad[] = {"",
                                      "never",
                                      "forever 7d",
                                      "ttl",
                                      "ttl 7",
                                      "ttl d",
                                      "ttl 0s",
                                      "ttl 99999d",
                                      "ttl  7d",
                                      "ttl 7d ",
                                      "capped",
                                      "capped 1KiB",
                                      "capped 9999999TiB",
                                      "capped 99999999999999GiB",
                                      "collection per hour",
                                      "collection per day keep",
                                      "collection per day keep 0",
                                      "collection per day keep 7d",
                                      "database per day",
                                      "database per month keep 10001"};
    (void)state;
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        struct raw r = {.growth = RAW_FOREVER};
        struct err e = {0};
        assert_false(raw_set_growth(&r, slice_text(bad[i]), &e));
        assert_int_equal(e.code, EX_CONFIG);
        assert_non_null(strstr(e.text, "collection per day"));
        assert_int_equal(r.growth, RAW_FOREVER);
    }
}

static void test_concern(void **state)
{
    static const char *const good[] = {"0", "1", "50", "majority"};
    static const char *const bad[] = {"", "51", "-1", "all", "1 ", "99999999999999999999"};
    (void)state;
    for (size_t i = 0; i < COUNT_OF(good); i++) {
        struct raw r = {0};
        struct text out = {0};
        struct err e;
        assert_true(raw_set_w(&r, slice_text(good[i]), &e));
        raw_print_w(&r, &out);
        assert_string_equal(out.ptr, good[i]);
        text_fini(&out);
    }
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        struct raw r = {0};
        struct err e = {0};
        assert_false(raw_set_w(&r, slice_text(bad[i]), &e));
        assert_int_equal(e.code, EX_CONFIG);
    }
}

static int64_t at(const char *text)
{
    int64_t ms = -1;
    assert_true(civil_parse(slice_text(text), 0, &ms));
    return ms;
}

static void test_periods(void **state)
{
    static const struct {
        const char *growth, *at, *period, *first_kept;
    } rows[] = {
        {"collection per day keep 2", "2024-03-01T00:00:00Z", "2024-03-01", "2024-02-29"},
        {"collection per day keep 1", "2024-02-29T23:59:59Z", "2024-02-29", "2024-02-29"},
        {"collection per week keep 2", "2026-01-04T23:59:59Z", "2025-12-29", "2025-12-22"},
        {"collection per week keep 1", "2026-01-05T00:00:00Z", "2026-01-05", "2026-01-05"},
        {"collection per week keep 9", "1970-01-04T12:00:00Z", "1970-01-01", "1970-01-01"},
        {"collection per month keep 3", "2026-01-31T12:00:00Z", "2026-01-01", "2025-11-01"},
        {"database per month keep 13", "2010-10-10T20:55:36Z", "2010-10-01", "2009-10-01"},
        {"database per month keep 13", "1970-02-10T20:55:36Z", "1970-02-01", "1970-01-01"},
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct raw r = {0};
        struct err e;
        assert_true(raw_set_growth(&r, slice_text(rows[i].growth), &e));
        int64_t period_ms = raw_period(&r, at(rows[i].at));
        assert_int_equal(period_ms, at(rows[i].period));
        assert_int_equal(raw_period(&r, period_ms), period_ms);
        assert_int_equal(raw_first_kept(&r, period_ms), at(rows[i].first_kept));
    }
    struct raw forever = {.growth = RAW_FOREVER}, all = {.growth = RAW_COLLECTION_PER_DAY};
    assert_int_equal(raw_period(&forever, at("2026-01-31")), 0);
    assert_int_equal(raw_first_kept(&all, at("2026-01-31")), INT64_MIN);
}

static void finish(struct raw *r, const char *step, const char *const *names, bool good)
{
    struct decode d;
    struct err e = {0};
    decode_init(&d);
    assert_true(decode_add_step(&d, slice_text(step), &e) && decode_finish(&d, &e));
    for (; *names != NULL; names++)
        assert_true(raw_add_field(r, slice_text(*names), &e));
    assert_int_equal(raw_finish(r, &d, &e), good);
    assert_int_equal(e.code, good ? 0 : EX_CONFIG);
}

static void test_fields_are_those_of_the_source(void **state)
{
    (void)state;
    struct raw lines = {0}, strange = {0}, metrics = {0}, timeless = {.growth = RAW_TTL};
    finish(&lines, "combined", (const char *const[]){"host", "time", "user_agent", "response_size", NULL},
           true);
    assert_int_equal(lines.fields[1].id, RAW_TIME);
    assert_int_equal(lines.fields[2].id, FIELD_AGENT);
    assert_int_equal(lines.fields[3].id, FIELD_BYTES);
    assert_true(raw_has_field(&lines, RAW_TIME) && !raw_has_field(&lines, FIELD_PATH));
    struct raw all = {.kind = RAW_ALL}, objects = all, values = all;
    finish(&all, "common", (const char *const[]){NULL}, true);
    finish(&objects, "json", (const char *const[]){NULL}, true);
    finish(&values, "metric", (const char *const[]){NULL}, true);
    assert_true(raw_has_field(&all, FIELD_PATH) && !raw_has_field(&all, FIELD_AGENT));
    assert_true(raw_has_field(&objects, FIELD_PATH) && raw_has_field(&objects, FIELD_HOST));
    assert_true(raw_has_field(&values, RAW_TIME) && !raw_has_field(&values, FIELD_STATUS));
    finish(&strange, "common", (const char *const[]){"host", "nonsense", NULL}, false);
    finish(&timeless, "common", (const char *const[]){"host", NULL}, false);
    finish(&metrics, "metric", (const char *const[]){"name", "user_agent", NULL}, true);
    assert_true(metrics.fields[1].id >= FIELD_COUNT);
    struct err e;
    assert_false(raw_add_field(&lines, slice_text("host"), &e));
    assert_false(raw_add_field(&lines, slice_text("v"), &e));
}

static void put(struct event *ev, enum field f, const char *text)
{
    ev->present |= (uint64_t)1 << f;
    ev->field[f] = slice_text(text);
}

static char *json_of(const struct raw *r, const struct event *ev)
{
    struct text out = {0};
    struct raw_head head;
    bson_t document;
    raw_document_add(&out, r, slice_text("kafka:a/3/"), ev);
    memcpy(&head, out.ptr, sizeof head);
    assert_int_equal(head.at_ms, ev->at_ms);
    assert_int_equal(head.number, r->number);
    assert_int_equal(head.len, out.len - sizeof head);
    assert_true(bson_init_static(&document, (const uint8_t *)out.ptr + sizeof head, head.len));
    assert_true(bson_validate(&document, BSON_VALIDATE_UTF8, NULL));
    char *json = bson_as_canonical_extended_json(&document, NULL);
    text_fini(&out);
    return json;
}

static void expect(const struct raw *r, const struct event *ev, const char *expected)
{
    char *json = json_of(r, ev);
    assert_string_equal(json, expected);
    bson_free(json);
}

static void test_documents(void **state)
{
    (void)state;
    struct raw all = {.kind = RAW_ALL, .number = 7}, some = {.kind = RAW_LIST, .number = 7};
    struct event ev = {.at_ms = 1286720242500, .order = record_order(4711, 0)};
    enum field own = FIELD_HOST, taken = FIELD_HOST;
    assert_true(field_intern(slice_text("zip"), &own) && field_intern(slice_text("v"), &taken));
    put(&ev, FIELD_PATH, "/\\xc3\\xbc");
    ev.odd = (uint64_t)1 << FIELD_PATH;
    put(&ev, FIELD_STATUS, "304");
    ev.number[FIELD_STATUS] = 304;
    put(&ev, FIELD_BYTES, "70368744177664");
    ev.number[FIELD_BYTES] = EVENT_NUMBER_MAX;
    put(&ev, own, "00123");
    ev.numeric = (uint64_t)1 << own;
    ev.number[own] = 123 * (int64_t)EVENT_SCALE;
    expect(&all, &ev,
           "{ \"_id\" : \"kafka:a/3/0000000000000004711\", \"time\" : { \"$date\" : { \"$numberLong\" : "
           "\"1286720242500\" } }, \"path\" : \"/\303\274\", \"status\" : { \"$numberInt\" : \"304\" }, "
           "\"response_size\" : { \"$numberLong\" : \"70368744177664\" }, \"zip\" : \"00123\", "
           "\"v\" : { \"$numberInt\" : \"1\" } }");
    ev.present = 0;
    put(&ev, own, "-0.5");
    ev.number[own] = -EVENT_SCALE / 2;
    put(&ev, taken, "x");
    ev.order = record_order(4711, 12);
    expect(&all, &ev,
           "{ \"_id\" : \"kafka:a/3/0000000000000004711.000012\", \"time\" : { \"$date\" : { "
           "\"$numberLong\" : \"1286720242500\" } }, \"zip\" : { \"$numberDouble\" : \"-0.5\" }, "
           "\"v_\" : \"x\", \"v\" : { \"$numberInt\" : \"1\" } }");
    finish(&some, "combined", (const char *const[]){"path", "time", NULL}, true);
    expect(
        &some, &ev,
        "{ \"_id\" : \"kafka:a/3/0000000000000004711.000012\", \"path\" : null, \"time\" : { \"$date\" : { "
        "\"$numberLong\" : \"1286720242500\" } }, \"v\" : { \"$numberInt\" : \"1\" } }");
}

static void test_a_value_of_many_numbers_is_a_document(void **state)
{
    const struct raw all = {.kind = RAW_ALL};
    const struct distribution many = {.count = 4,
                                      .zeros = 1,
                                      .max = 1500000,
                                      .has_max = true,
                                      .scale = -1,
                                      .sides = {{-2, slice_of("\x02\x00\x81\x01", 4), false}}};
    struct event ev = {.order = record_order(1, 0), .distribution = &many};
    (void)state;
    put(&ev, FIELD_VALUE, "-2.5");
    ev.numeric = ev.present;
    ev.number[FIELD_VALUE] = -5 * EVENT_SCALE / 2;
    expect(
        &all, &ev,
        "{ \"_id\" : \"kafka:a/3/0000000000000000001\", \"time\" : { \"$date\" : { \"$numberLong\" : \"0\" } "
        "}, "
        "\"value\" : { \"count\" : { \"$numberLong\" : \"4\" }, \"sum\" : { \"$numberDouble\" : \"-2.5\" }, "
        "\"max\" : { \"$numberDouble\" : \"1.5\" }, \"scale\" : { \"$numberInt\" : \"-1\" }, "
        "\"zero_count\" : { \"$numberLong\" : \"1\" }, \"positive\" : { \"offset\" : { \"$numberInt\" : "
        "\"-2\" }, "
        "\"bucket_counts\" : [ { \"$numberLong\" : \"2\" }, { \"$numberLong\" : \"0\" }, { \"$numberLong\" : "
        "\"129\" } "
        "] } }, \"v\" : { \"$numberInt\" : \"1\" } }");
}

static void test_buckets_with_gaps_are_named_by_index(void **state)
{
    const struct raw all = {.kind = RAW_ALL};
    const struct distribution many = {
        .count = 131, .scale = 8, .sides = {{-300, slice_of("\x00\x02\xd4\x02\x81\x01", 6), true}}};
    struct event ev = {.order = record_order(1, 0), .distribution = &many};
    (void)state;
    put(&ev, FIELD_VALUE, "1");
    ev.numeric = ev.present;
    ev.number[FIELD_VALUE] = EVENT_SCALE;
    expect(
        &all, &ev,
        "{ \"_id\" : \"kafka:a/3/0000000000000000001\", \"time\" : { \"$date\" : { \"$numberLong\" : \"0\" } "
        "}, "
        "\"value\" : { \"count\" : { \"$numberLong\" : \"131\" }, \"sum\" : { \"$numberLong\" : \"1\" }, "
        "\"scale\" : { \"$numberInt\" : \"8\" }, \"zero_count\" : { \"$numberLong\" : \"0\" }, "
        "\"positive\" : { \"bucket_counts\" : { \"-300\" : { \"$numberLong\" : \"2\" }, \"41\" : { "
        "\"$numberLong\" : \"129\" } } } }, \"v\" : { \"$numberInt\" : \"1\" } }");
}

static void expect_number(const char *text, const char *type, const char *json)
{
    char start[64], back[32];
    snprintf(start, sizeof start, "\"zip\" : { \"%s\" : \"", type);
    const char *found = strstr(json, start);
    if (found == NULL)
        fail_msg("%s is no %s in %s", text, type, json);
    snprintf(back, sizeof back, "%.15g", strtod(found + strlen(start), NULL));
    assert_string_equal(back, text);
}

static void expect_text(const char *text, const char *json)
{
    char whole[64];
    snprintf(whole, sizeof whole, "\"zip\" : \"%s\"", text);
    if (strstr(json, whole) == NULL)
        fail_msg("%s is no text in %s", text, json);
}

/* A number that is read back is the text; what would be another stays one. */
static void test_numbers(void **state)
{
    static const char *const longs[] = {"0", "-17", "9223372036"};
    static const char *const doubles[] = {"0.25", "-0.5", "10.000001", "123456789.123456"};
    static const char *const texts[] = {
        "1234567890.123456", "1.10", "1.0",  "1.", ".5",  "12e5", "1E2",  "1e-7",
        "0.1234567",         "-0",   "-0.0", "00", "007", "-07",  "00.5", "+1"};
    static const struct {
        const char *const *texts;
        size_t count;
        const char *type; /* NULL: a text */
    } kinds[] = {{longs, COUNT_OF(longs), "$numberLong"},
                 {doubles, COUNT_OF(doubles), "$numberDouble"},
                 {texts, COUNT_OF(texts), NULL}};
    enum field own = FIELD_HOST;
    (void)state;
    assert_true(field_intern(slice_text("zip"), &own));
    for (size_t k = 0; k < COUNT_OF(kinds); k++) {
        for (size_t i = 0; i < kinds[k].count; i++) {
            const struct raw all = {.kind = RAW_ALL};
            const char *text = kinds[k].texts[i];
            struct event ev = {.numeric = (uint64_t)1 << own};
            put(&ev, own, text);
            ev.number[own] = (int64_t)(atof(text) * EVENT_SCALE + (text[0] == '-' ? -0.5 : 0.5));
            char *json = json_of(&all, &ev);
            if (kinds[k].type != NULL)
                expect_number(text, kinds[k].type, json);
            else
                expect_text(text, json);
            bson_free(json);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_growth_is_printed_as_it_is_read),
        cmocka_unit_test(test_what_is_no_growth_is_refused),
        cmocka_unit_test(test_concern),
        cmocka_unit_test(test_periods),
        cmocka_unit_test(test_fields_are_those_of_the_source),
        cmocka_unit_test(test_documents),
        cmocka_unit_test(test_a_value_of_many_numbers_is_a_document),
        cmocka_unit_test(test_buckets_with_gaps_are_named_by_index),
        cmocka_unit_test(test_numbers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
