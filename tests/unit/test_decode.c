#include "ingest/decode/decode.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static struct err e;

static bool add_steps(struct decode *d, const char *steps)
{
    decode_init(d);
    for (struct slice rest = slice_text(steps); rest.len > 0;) {
        const char *comma = memchr(rest.ptr, ',', rest.len);
        size_t n = comma != NULL ? (size_t)(comma - rest.ptr) : rest.len, used = n + (comma != NULL);
        if (!decode_add_step(d, slice_of(rest.ptr, n), &e))
            return false;
        rest = slice_of(rest.ptr + used, rest.len - used);
    }
    return true;
}

static bool add_field(struct decode *d, const char *name, const char *origin)
{
    return decode_add_field(d, slice_text(name), slice_text(origin), &e);
}

static void test_decode_steps_print_as_they_were_given(void **state)
{
    (void)state;
    static const char *const lists[][2] = {
        {"combined", "[combined]"},
        {"", "[auto]"},
        {"json:/message,combined", "[json:/message, combined]"},
        {"syslog,json:/a~1b/0,metric", "[syslog, json:/a~1b/0, metric]"},
        {"json:/a b,json", "[\"json:/a b\", json]"},
        {"json:/log,syslog,vhost_combined", "[json:/log, syslog, vhost_combined]"},
        {"apache:vhost_combined", "[{apache: 'vhost_combined'}]"},
        {"syslog,nginx:$msec \"$request\"", "[syslog, {nginx: '$msec \"$request\"'}]"},
    };
    for (size_t i = 0; i < COUNT_OF(lists); i++) {
        struct decode d;
        struct text out = {0};
        assert_true(add_steps(&d, lists[i][0]));
        assert_true(decode_finish(&d, &e));
        decode_print_steps(&d, &out);
        assert_string_equal(out.ptr, lists[i][1]);
        text_fini(&out);
    }
}

static void test_decode_wrong_steps_are_refused(void **state)
{
    (void)state;
    static const char *const wrong[] = {"apache",
                                        "combind",
                                        "json:",
                                        "json:message",
                                        "json:/a~2",
                                        "json,syslog",
                                        "auto,auto",
                                        "combined,json",
                                        "json:/a~",
                                        "",
                                        "syslog,syslog,syslog,syslog,auto"};
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        struct decode d;
        bool good = add_steps(&d, wrong[i]);
        assert_true(good == (wrong[i][0] == '\0'));
    }
    struct decode d;
    assert_false(add_steps(&d, "combind"));
    assert_non_null(strstr(e.text, "found \"combind\", expected auto, "));
    assert_non_null(strstr(e.text, "(did you mean \"combined\"?)"));
    assert_int_equal(e.code, EX_CONFIG);
    assert_true(add_steps(&d, "syslog"));
    assert_false(decode_finish(&d, &e));
    assert_true(add_steps(&d, "json:/message"));
    assert_false(decode_finish(&d, &e));
    assert_non_null(strstr(e.text, "json:/message"));
}

static void test_decode_origins_print_as_they_were_given(void **state)
{
    (void)state;
    static const char *const origins[][2] = {
        {"userid", "tag:userid"}, {"dc", "header:dc"},       {"device", "key"},        {"part", "partition"},
        {"queue", "topic"},       {"produced", "timestamp"}, {"path", "/request/uri"},
    };
    struct decode d;
    assert_true(add_steps(&d, "metric"));
    for (size_t i = 0; i < COUNT_OF(origins); i++)
        assert_true(add_field(&d, origins[i][0], origins[i][1]));
    assert_true(decode_finish(&d, &e));
    assert_int_equal(d.origin_count, COUNT_OF(origins));
    for (size_t i = 0; i < COUNT_OF(origins); i++) {
        struct text out = {0};
        decode_print_origin(&d.origins[i], &out);
        assert_string_equal(out.ptr, origins[i][1]);
        assert_string_equal(field_name(d.origins[i].field), origins[i][0]);
        text_fini(&out);
    }
}

static void test_decode_wrong_fields_are_refused(void **state)
{
    (void)state;
    static const char *const wrong[][2] = {
        {"a", "keys"}, {"a", ""},     {"a", "tag:"}, {"a", "header:"}, {"a", "/b~2"},
        {"A", "key"},  {"1a", "key"}, {"", "key"},   {"ok", "topic"},  {"a", "tag"},
    };
    struct decode d, before;
    assert_true(add_steps(&d, "metric"));
    assert_true(add_field(&d, "ok", "key"));
    before = d;
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        assert_false(add_field(&d, wrong[i][0], wrong[i][1]));
        assert_memory_equal(&d, &before, sizeof d);
    }
}

static void test_decode_the_whole_must_fit(void **state)
{
    (void)state;
    static const struct {
        const char *steps, *origin, *time;
        bool good;
    } cases[] = {
        {"combined", "tag:a", NULL, false},     {"combined", "/a", NULL, false},
        {"combined", "header:a", NULL, true},   {"json:/message,combined", "/a", NULL, true},
        {"json", "tag:a", NULL, false},         {"json", "/a", "/when", true},
        {"metric", "tag:a", NULL, true},        {"metric", "key", "/when", false},
        {"combined", "key", "/when", false},    {"combined", "key", "broker", true},
        {"syslog,combined", "/a", NULL, false},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct decode d;
        assert_true(add_steps(&d, cases[i].steps));
        assert_true(add_field(&d, "a", cases[i].origin));
        if (cases[i].time != NULL)
            assert_true(decode_set_time(&d, slice_text(cases[i].time), &e));
        if (decode_finish(&d, &e) != cases[i].good)
            fail_msg("%s with %s", cases[i].steps, cases[i].origin);
    }
}

static void test_decode_members_of_metrics_differ(void **state)
{
    (void)state;
    struct decode d;
    assert_true(add_steps(&d, "metric"));
    assert_true(decode_set_metric(&d, METRIC_NAME, slice_text("metric"), &e));
    assert_false(decode_set_metric(&d, METRIC_NAME, slice_text(""), &e));
    assert_string_equal(d.metric[METRIC_NAME], "metric");
    assert_true(decode_finish(&d, &e));
    assert_true(decode_set_metric(&d, METRIC_TAGS, slice_text("metric"), &e));
    assert_false(decode_finish(&d, &e));
}

static void test_decode_knows_which_fields_events_have(void **state)
{
    (void)state;
    struct decode d;
    enum field own, other;
    assert_true(field_intern(slice_text("own"), &own));
    assert_true(field_intern(slice_text("other"), &other));
    assert_true(add_steps(&d, "common") && add_field(&d, "own", "key") && decode_finish(&d, &e));
    assert_true(decode_provides(&d, FIELD_PATH) && decode_provides(&d, own));
    assert_false(decode_provides(&d, FIELD_AGENT) || decode_provides(&d, FIELD_VALUE));
    assert_false(decode_provides(&d, other) || decode_is_open(&d));
    assert_true(add_steps(&d, "metric") && add_field(&d, "request", "key") && decode_finish(&d, &e));
    assert_true(decode_provides(&d, FIELD_VALUE) && decode_provides(&d, FIELD_METHOD));
    assert_true(decode_provides(&d, other) && decode_is_open(&d));
    assert_false(decode_provides(&d, FIELD_STATUS));
    assert_true(add_steps(&d, "json") && decode_finish(&d, &e));
    assert_true(decode_provides(&d, FIELD_AGENT) && decode_provides(&d, other));
}

static bool add_constant(struct decode *d, const char *name)
{
    return decode_add_constant(d, slice_text(name), &e);
}

static void test_decode_constants_are_fields(void **state)
{
    (void)state;
    struct decode d;
    enum field shard;
    assert_true(add_steps(&d, "common") && add_constant(&d, "vhost") && add_constant(&d, "shard"));
    assert_true(add_constant(&d, "shard") && decode_finish(&d, &e));
    assert_true(field_parse(slice_text("shard"), &shard));
    assert_true(decode_provides(&d, FIELD_VHOST) && decode_provides(&d, shard));
    static const char *const wrong[] = {"status", "bytes", "value", "request", "target"};
    for (size_t i = 0; i < COUNT_OF(wrong); i++)
        assert_false(add_constant(&d, wrong[i]));
    assert_string_equal(e.text, "found \"target\", expected a field that is just a text, such as vhost, or a "
                                "name of your own");
    assert_true(add_steps(&d, "json") && add_field(&d, "vhost", "/a") && add_constant(&d, "vhost"));
    assert_false(decode_finish(&d, &e));
    assert_string_equal(e.text, "found the field vhost in the path and in fields, expected it in one");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_decode_constants_are_fields),
        cmocka_unit_test(test_decode_steps_print_as_they_were_given),
        cmocka_unit_test(test_decode_wrong_steps_are_refused),
        cmocka_unit_test(test_decode_origins_print_as_they_were_given),
        cmocka_unit_test(test_decode_wrong_fields_are_refused),
        cmocka_unit_test(test_decode_the_whole_must_fit),
        cmocka_unit_test(test_decode_members_of_metrics_differ),
        cmocka_unit_test(test_decode_knows_which_fields_events_have),
    };
    return cmocka_run_group_tests_name("decode", tests, NULL, NULL);
}
