#include "base/mem.h"
#include "ingest/decode/chain.h"
#include "ingest/derive/hide.h"
#include "tests/support/decoded.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define AT "1286720242000"

/* Asks for fields with blanks between their names, and opens what they need. */
static void ask(struct derive *d, const char *names)
{
    struct err e;
    for (const char *end = names; *end != '\0'; names = end + 1) {
        end = strchrnul(names, ' ');
        struct slice name = slice_of(names, (size_t)(end - names));
        assert_true(derive_is_name(name) && derive_ask(d, name, false, &e));
    }
    if (!derive_open(d, &e))
        fail_msg("%s", e.text);
}

static void check(const struct derive *settings, const char *steps, const struct decoded_case *cases,
                  size_t count)
{
    struct decode d;
    struct err e;
    struct text out = {0};
    assert_true(decoded_configure(&d, steps, NULL, &e));
    d.derive = settings;
    for (size_t i = 0; i < count; i++) {
        text_clear(&out);
        decoded_line(&d, slice_text(cases[i].line), &out);
        assert_string_equal(out.ptr, cases[i].expected);
    }
    text_fini(&out);
}

static void test_derived_network_of_addresses(void **state)
{
    (void)state;
    struct derive d = {0};
    ask(&d, "host_net");
    static const struct decoded_case cases[] = {
        {"2010-10-10T14:17:22Z,192.0.2.17", AT " host=192.0.2.17 host_net=192.0.2.0/24"},
        {"2010-10-10T14:17:22Z,::ffff:192.0.2.17", AT " host=::ffff:192.0.2.17 host_net=192.0.2.0/24"},
        {"2010-10-10T14:17:22Z,2001:db8:1:2::3", AT " host=2001:db8:1:2::3 host_net=2001:db8:1::/48"},
        {"2010-10-10T14:17:22Z,2001:DB8::", AT " host=2001:DB8:: host_net=2001:db8::/48"},
        {"2010-10-10T14:17:22Z,::1", AT " host=::1 host_net=::/48"},
        {"2010-10-10T14:17:22Z,host.example", AT " host=host.example"},
        {"2010-10-10T14:17:22Z,192.0.2", AT " host=192.0.2"},
        {"2010-10-10T14:17:22Z,192.0.2.17:80", AT " host=192.0.2.17:80"},
        {"2010-10-10T14:17:22Z,fe80::1%eth0", AT " host=fe80::1%eth0"},
        {"2010-10-10T14:17:22Z,-", AT},
    };
    check(&d, "csv:time,host", cases, COUNT_OF(cases));
    derive_fini(&d);
}

static void test_derived_hours_and_days_of_a_zone(void **state)
{
    (void)state;
    struct derive d = {.timezone = xstrdup("Europe/Berlin")};
    ask(&d, "hour_of_day day_of_week");
    static const struct decoded_case cases[] = {
        {"2010-10-10T14:17:22Z", AT " hour_of_day=16#16000000 day_of_week=sunday"},
        {"2010-10-10T21:59:59.999Z", "1286747999999 hour_of_day=23#23000000 day_of_week=sunday"},
        {"2010-10-10T22:00:00Z", "1286748000000 hour_of_day=00#0 day_of_week=monday"},
        {"2010-10-31T00:30:00Z", "1288485000000 hour_of_day=02#2000000 day_of_week=sunday"},
        {"2010-10-31T01:30:00Z", "1288488600000 hour_of_day=02#2000000 day_of_week=sunday"},
        {"2010-10-31T02:00:00Z", "1288490400000 hour_of_day=03#3000000 day_of_week=sunday"},
        {"1970-01-01T00:00:00Z", "0 hour_of_day=01#1000000 day_of_week=thursday"},
    };
    check(&d, "csv:time", cases, COUNT_OF(cases));
    derive_fini(&d);
}

static void test_derived_hours_before_1970_of_a_zone(void **state)
{
    (void)state;
    struct derive d = {.timezone = xstrdup("America/New_York")};
    ask(&d, "hour_of_day day_of_week");
    static const struct decoded_case cases[] = {
        {"1970-01-01T00:00:00Z", "0 hour_of_day=19#19000000 day_of_week=wednesday"},
        {"1970-01-01T00:30:00.001Z", "1800001 hour_of_day=19#19000000 day_of_week=wednesday"},
        {"1970-01-01T04:59:59Z", "17999000 hour_of_day=23#23000000 day_of_week=wednesday"},
        {"1970-01-01T05:00:00Z", "18000000 hour_of_day=00#0 day_of_week=thursday"},
    };
    check(&d, "csv:time", cases, COUNT_OF(cases));
    derive_fini(&d);
}

static void test_derived_parameters_of_the_query(void **state)
{
    (void)state;
    struct derive d = {0};
    ask(&d, "query:a query:utm_source");
    static const struct decoded_case cases[] = {
        {"2010-10-10T14:17:22Z\t/x?a=1&a=2", AT " target=/x?a=1&a=2 path=/x query:a=1#1000000"},
        {"2010-10-10T14:17:22Z\t/x?aa=1&a&a=%41+b%2", AT " target=/x?aa=1&a&a=%41+b%2 path=/x query:a=A b%2"},
        {"2010-10-10T14:17:22Z\t/?utm_source=news&a=",
         AT " target=/?utm_source=news&a= path=/ query:utm_source=news"},
        {"2010-10-10T14:17:22Z\t/?a=%5c%0A#&utm_source=1",
         AT " target=/?a=%5c%0A#&utm_source=1 path=/ query:a~~=\\\\x0a"},
        {"2010-10-10T14:17:22Z\t/?", AT " target=/? path=/"},
        {"2010-10-10T14:17:22Z\ta=1", AT " target=a=1 path=a=1"},
    };
    check(&d, "tsv:time,target", cases, COUNT_OF(cases));
    static const struct decoded_case escaped[] = {
        {"h - - [10/Oct/2010:14:17:22 +0000] \"GET /?a=%5Cx41\\x42%43 HTTP/1.0\" 200 1",
         AT " host=h request~=GET /?a=%5Cx41\\x42%43 HTTP/1.0 method=GET target~=/?a=%5Cx41\\x42%43 path=/ "
            "protocol=HTTP/1.0 status=200#200 bytes=1#1 query:a~=\\\\x41\\x42C"},
    };
    check(&d, "common", escaped, COUNT_OF(escaped));
    derive_fini(&d);
}

static void add_rule(struct derive *d, const char *match, const char *replace)
{
    struct err e;
    if (!route_add_rule(&d->routes, slice_text(match), slice_text(replace), &e))
        fail_msg("%s", e.text);
}

static void test_derived_routes_of_paths(void **state)
{
    (void)state;
    struct derive d = {0};
    ask(&d, "route");
    static const struct decoded_case plain[] = {
        {"2010-10-10T14:17:22Z\t/user/17/a", AT " path=/user/17/a route=/user/:id/a"},
        {"2010-10-10T14:17:22Z\t/0b0f3b5a-0000-1111-2222-33333333333F/1",
         AT " path=/0b0f3b5a-0000-1111-2222-33333333333F/1 route=/:id/:id"},
        {"2010-10-10T14:17:22Z\t/dead0000/deadbeef/dead000/17a",
         AT " path=/dead0000/deadbeef/dead000/17a route=/:id/deadbeef/dead000/17a"},
        {"2010-10-10T14:17:22Z\t/\xc3\xa4/7", AT " path~~=/\\xc3\\xa4/7 route~~=/\\xc3\\xa4/:id"},
        {"2010-10-10T14:17:22Z\t7//", AT " path=7// route=:id//"},
    };
    check(&d, "tsv:time,path", plain, COUNT_OF(plain));
    add_rule(&d, "^/shop/([a-z]+)/(\\d+)?", "/$2$1$$");
    add_rule(&d, "^/(g)()()()()()()()()()(r)(e)", "/$1$9."); /* more groups than a replacement can name */
    add_rule(&d, "(a*)*[bd]$", "$0!");
    static const struct decoded_case ruled[] = {
        {"2010-10-10T14:17:22Z\t/x/shop/a/", AT " path=/x/shop/a/ route=/x/shop/a/"},
        {"2010-10-10T14:17:22Z\t/shop/ab/12/34", AT " path=/shop/ab/12/34 route=/12ab$/34"},
        {"2010-10-10T14:17:22Z\t/shop/ab/x", AT " path=/shop/ab/x route=/ab$x"},
        {"2010-10-10T14:17:22Z\t/gre/x", AT " path=/gre/x route=/g./x"},
        {"2010-10-10T14:17:22Z\t/1/aab", AT " path=/1/aab route=/1/aab!"},
        {"2010-10-10T14:17:22Z\t/1/2", AT " path=/1/2 route=/:id/:id"},
        {"2010-10-10T14:17:22Z\taaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaac",
         AT " path=aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaac route=(match limit)"},
    };
    check(&d, "tsv:time,path", ruled, COUNT_OF(ruled));
    derive_fini(&d);
}

static void test_derived_wrong_rules_are_refused(void **state)
{
    (void)state;
    struct derive d = {0};
    struct err e;
    assert_false(route_add_rule(&d.routes, slice_text("("), slice_text(""), &e));
    assert_non_null(strstr(e.text, "found no regular expression: at byte 2"));
    assert_false(route_add_rule(&d.routes, slice_text("a"), slice_text("b$"), &e));
    assert_non_null(strstr(e.text, "found a $ in replace"));
    for (int i = 0; i < ROUTE_RULES_MAX; i++)
        add_rule(&d, "a", "");
    assert_false(route_add_rule(&d.routes, slice_text("a"), slice_text(""), &e));
    derive_fini(&d);
}

static void test_derived_ids_and_hidden_addresses(void **state)
{
    (void)state;
    struct derive d = {.anonymise = true, .key = xstrdup("0123456789abcdef")};
    ask(&d, "host_id route query:ip");
    /* The ids are those of Python's hmac. */
    static const struct decoded_case cases[] = {
        {"2010-10-10T14:17:22Z\t192.0.2.17\t/a/192.0.2.17?ip=192.0.2.17\tx 2001:db8:1:2::3 y",
         AT " host=192.0.2.0/24 target=/a/192.0.2.0?ip=192.0.2.0 path=/a/192.0.2.0 agent=x 2001:db8:1:: y "
            "route=/a/192.0.2.0 host_id=f86dfe55d2ff22d8 query:ip=192.0.2.0"},
        {"2010-10-11T14:17:22Z\t192.0.2.17\t/\t",
         "1286806642000 host=192.0.2.0/24 path=/ route=/ host_id=720f7f1a59f0bee2"},
        {"2010-10-10T14:17:22Z\ta.example\t/\t", AT " path=/ route=/ host_id=20a3f1c66791e996"},
    };
    check(&d, "tsv:time,host,path,agent", cases, COUNT_OF(cases));
    derive_fini(&d);
}

static void test_derived_addresses_are_hidden_wherever_they_stand(void **state)
{
    (void)state;
    static const struct {
        const char *text, *hidden;
        size_t column, moved;
    } cases[] = {
        {"10.20.30.40", "10.20.30.0", 10, 10},
        {"a 10.20.30.40, 1.2.3.255:80 x", "a 10.20.30.0, 1.2.3.0:80 x", 29, 26},
        {"10.20.30.0", "10.20.30.0", 1, 1},
        {"x=10.20.30.456.1", "x=10.20.30.0.1", 17, 15},
        {"10.20.30", "10.20.30", 1, 1},
        {"10.20..30.40 1.2.3.4567", "10.20..30.40 1.2.3.4567", 1, 1},
        {"static.1.2.3.44.example", "static.1.2.3.0.example", 1, 1},
        {"[2001:db8:1:2::3]:443", "[2001:db8:1::]:443", 22, 19},
        {"2001:db8:1:2:3:4:5:6:8080", "2001:db8:1::", 12, 12},
        {"::1 fe80::1%eth0 2001::", ":: fe80::%eth0 2001::", 24, 22},
        {"::ffff:1.2.3.4 1:2:3:4:5:6:7.8.9.10", ":: 1:2:3::", 1, 1},
        {"[10/Oct/2000:13:55:36 -0700] aa:bb:cc:dd:ee:ff", "[10/Oct/2000:13:55:36 -0700] aa:bb:cc:dd:ee:ff",
         7, 7},
        {"", "", 1, 1},
    };
    struct arena memory;
    arena_init(&memory, 4096);
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        size_t column = cases[i].column;
        char *copy = xstrdup(cases[i].text);
        struct slice hidden = hide_addresses(slice_text(copy), &memory, &column);
        if (!slice_is(hidden, cases[i].hidden) || column != cases[i].moved)
            fail_msg("%s: %.*s %zu", cases[i].text, SLICE_ARGS(hidden), column);
        free(copy);
    }
    arena_fini(&memory);
}

static void test_derived_fields_that_events_have_stay(void **state)
{
    (void)state;
    struct derive d = {0};
    ask(&d, "host_net hour_of_day query:a");
    static const struct decoded_case json[] = {
        {"{\"time\":\"2010-10-10T14:17:22Z\",\"host\":\"10.1.2.3\",\"host_net\":\"own\",\"hour_of_day\":7}",
         AT " host=10.1.2.3 host_net=own hour_of_day=7#7000000"},
        {"{\"time\":\"2010-10-10T14:17:22Z\",\"host\":\"10.1.2.3\",\"target\":\"/?a=b\"}",
         AT " host=10.1.2.3 target=/?a=b path=/ host_net=10.1.2.0/24 hour_of_day=14#14000000 query:a=b"},
    };
    check(&d, "json", json, COUNT_OF(json));
    static const struct decoded_case columns[] = {
        {"2010-10-10T14:17:22Z,10.1.2.3,x", AT " host=10.1.2.3 host_net=x hour_of_day=14#14000000"},
    };
    check(&d, "csv:time,host,host_net", columns, COUNT_OF(columns));
    derive_fini(&d);
}

/* More hosts than a memo keeps, so that it forgets them; each twice. */
static void test_derived_texts_live_until_the_flush(void **state)
{
    (void)state;
    struct derive settings = {0};
    struct decode d;
    struct err e;
    struct event evs[64];
    struct reject why;
    char lines[64][64];
    enum field net;
    ask(&settings, "host_net");
    assert_true(field_parse(slice_text("host_net"), &net));
    assert_true(decoded_configure(&d, "csv:time,host", NULL, &e));
    d.derive = &settings;
    struct chain *c = chain_new(&d, 65536);
    for (unsigned n = 0; n < 80000; n += COUNT_OF(evs)) {
        for (unsigned i = 0; i < COUNT_OF(evs); i++) {
            unsigned host = (n + i) / 2;
            snprintf(lines[i], sizeof lines[i], "2010-10-10T14:17:22Z,10.%u.%u.%u", host >> 16,
                     host >> 8 & 255, host & 255);
            struct record r = {.value = slice_text(lines[i]), .timestamp_ms = -1};
            struct slice bytes;
            chain_start(c, &r);
            assert_int_equal(chain_next(c, &evs[i], &why, &bytes), CHAIN_EVENT);
        }
        for (unsigned i = 0; i < COUNT_OF(evs); i++) {
            char expected[64];
            unsigned host = (n + i) / 2;
            snprintf(expected, sizeof expected, "10.%u.%u.0/24", host >> 16, host >> 8 & 255);
            assert_true(slice_is(evs[i].field[net], expected));
        }
        chain_flush(c);
    }
    chain_free(c);
    derive_fini(&settings);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_derived_network_of_addresses),
        cmocka_unit_test(test_derived_hours_and_days_of_a_zone),
        cmocka_unit_test(test_derived_hours_before_1970_of_a_zone),
        cmocka_unit_test(test_derived_parameters_of_the_query),
        cmocka_unit_test(test_derived_routes_of_paths),
        cmocka_unit_test(test_derived_wrong_rules_are_refused),
        cmocka_unit_test(test_derived_ids_and_hidden_addresses),
        cmocka_unit_test(test_derived_addresses_are_hidden_wherever_they_stand),
        cmocka_unit_test(test_derived_fields_that_events_have_stay),
        cmocka_unit_test(test_derived_texts_live_until_the_flush),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
