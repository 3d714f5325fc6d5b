#include "ingest/timestamp.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

static const struct {
    const char *text;
    int64_t at_ms;
} good[] = {
    {"2010-10-10T14:17:22Z", 1286720242000},
    {"2010-10-10t14:17:22z", 1286720242000},
    {"2010-10-10 14:17:22", 1286720242000},
    {"2010-10-10T14:17:22.5Z", 1286720242500},
    {"2010-10-10T14:17:22.123456789Z", 1286720242123},
    {"2010-10-10T14:17:22,9999", 1286720242999},
    {"2010-10-10T16:17:22+02:00", 1286720242000},
    {"2010-10-10T16:17:22.007+0200", 1286720242007},
    {"2010-10-10T16:17:22+02", 1286720242000},
    {"2010-10-10T08:47:22-05:30", 1286720242000},
    {"2010-10-10T14:17Z", 1286720220000},
    {"2010-10-10T14:17", 1286720220000},
    {"2010-10-10T14:17:60Z", 1286720280000},
    {"1970-01-01T00:00:00Z", 0},
    {"1970-01-01T01:00:00+01:00", 0},
    {"9999-12-31T23:59:59.999Z", 253402300799999},
    {"2012-02-29T00:00:00Z", 1330473600000},
    {"1286720242", 1286720242000},
    {"1286720242.25", 1286720242250},
    {"1286720242.2509", 1286720242250},
    {"1286720242250", 1286720242250},
    {"1.286720242e9", 1286720242000},
    {"0", 0},
    {"-0", 0},
    {"100000000000", 100000000000000},
    {"100000000001", 100000000001},
    {"99999999999999", 99999999999999},
    {"100000000000000", 100000000000},
    {"1286720242250123", 1286720242250},
    {"1286720242250999.75", 1286720242250},
    {"99999999999999999", 99999999999999},
    {"100000000000000000", 100000000000},
    {"1286720242250123456", 1286720242250},
    {"9223372036854775807", 9223372036854},
    {"253402300799999999999", 253402300799999},
};

static const struct {
    const char *text;
    enum reject_reason reason;
} bad[] = {
    {"", REJECT_TIME},
    {"yesterday", REJECT_TIME},
    {"2010-10-10", REJECT_TIME},
    {"2010-10-10T14:17:22Zulu", REJECT_TIME},
    {"2010-10-10T14:17:2", REJECT_TIME},
    {"2010-10-10T14:17:22.Z", REJECT_TIME},
    {"2010-10-10T24:00:00Z", REJECT_TIME},
    {"2010-10-10T23:60:00Z", REJECT_TIME},
    {"2010-10-10T23:59:61Z", REJECT_TIME},
    {"2010-10-10T14:17:22+24:00", REJECT_TIME},
    {"2010-10-10T14:17:22+02:60", REJECT_TIME},
    {"2010-10-10T14:17:22+2", REJECT_TIME},
    {"2010-10-10T14:17:22+02:", REJECT_TIME},
    {"2010-10-1xT14:17:22Z", REJECT_TIME},
    {"2o10-10-10T14:17:22Z", REJECT_TIME},
    {"2010/10/10T14:17:22Z", REJECT_TIME},
    {"10/Oct/2010:14:17:22 +0000", REJECT_TIME},
    {"2010-13-10T14:17:22Z", REJECT_TIME_RANGE},
    {"2010-00-10T14:17:22Z", REJECT_TIME_RANGE},
    {"2010-02-29T14:17:22Z", REJECT_TIME_RANGE},
    {"2010-02-00T14:17:22Z", REJECT_TIME_RANGE},
    {"1969-12-31T23:59:59Z", REJECT_TIME_RANGE},
    {"1970-01-01T00:00:00+00:01", REJECT_TIME_RANGE},
    {"9999-12-31T23:59:59-00:01", REJECT_TIME_RANGE},
    {"9999-12-31T23:59:60Z", REJECT_TIME_RANGE},
    {"-1", REJECT_TIME_RANGE},
    {"253402300800000000000", REJECT_TIME_RANGE},
    {"1286720242250123456789012", REJECT_TIME_RANGE},
    {"1286720242250123.", REJECT_TIME},
    {"1286720242250123x", REJECT_TIME},
    {"-1286720242250123", REJECT_TIME_RANGE},
    {"1286720242250123e3", REJECT_TIME_RANGE},
    {"1e20", REJECT_TIME_RANGE},
};

static void test_timestamp_good_ones_are_read(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        int64_t at_ms = -1;
        enum reject_reason reason;
        if (!timestamp_parse(slice_text(good[i].text), &at_ms, &reason) || at_ms != good[i].at_ms)
            fail_msg("%s is %" PRId64, good[i].text, at_ms);
    }
}

static void test_timestamp_bad_ones_have_a_reason(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        int64_t at_ms = -1;
        enum reject_reason reason = REJECT_COUNT;
        if (timestamp_parse(slice_text(bad[i].text), &at_ms, &reason) || reason != bad[i].reason)
            fail_msg("\"%s\" is %" PRId64 ", %d", bad[i].text, at_ms, reason);
    }
}

static void check_near(struct timestamp_minute *m, const char *text)
{
    int64_t at_ms = -1, near_ms = -1;
    enum reject_reason reason = REJECT_COUNT, near_reason = REJECT_COUNT;
    bool is_good = timestamp_parse(slice_text(text), &at_ms, &reason);
    bool is_near = timestamp_parse_near(m, slice_text(text), &near_ms, &near_reason);
    if (is_good != is_near || (is_good && at_ms != near_ms) || (!is_good && reason != near_reason))
        fail_msg("\"%s\" is %" PRId64 ", but %" PRId64 " near the last one", text, at_ms, near_ms);
}

/* Each before each other, and in the same minute. */
static void test_timestamp_a_known_minute_changes_nothing(void **state)
{
    (void)state;
    static const char *const ends[] = {
        "",          "Z",     ":00Z",         ":59.5Z",       ":60Z",        ":61Z",
        ":5Z",       ":07",   ":07+02:00",    ":08.25+02:00", ":08.25+0200", ":08.25+02",
        ":08-02:00", ":08.Z", ":08.1234567Z", ":08,5Z",       ":08Zx",       "x",
        ":"};
    size_t count = sizeof good / sizeof good[0];
    struct timestamp_minute m = {0};
    for (size_t i = 0; i < count; i++) {
        for (size_t k = 0; k < count; k++) {
            check_near(&m, good[i].text);
            check_near(&m, good[k].text);
        }
    }
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        for (size_t k = 0; k < sizeof ends / sizeof ends[0]; k++) {
            char first[64], second[64];
            snprintf(first, sizeof first, "9999-12-31T23:59%s", ends[i]);
            snprintf(second, sizeof second, "9999-12-31T23:59%s", ends[k]);
            check_near(&m, first);
            check_near(&m, second);
            memcpy(first, "1970-01-01T00:00", 16);
            memcpy(second, "1970-01-01T00:00", 16);
            check_near(&m, first);
            check_near(&m, second);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_timestamp_good_ones_are_read),
        cmocka_unit_test(test_timestamp_bad_ones_have_a_reason),
        cmocka_unit_test(test_timestamp_a_known_minute_changes_nothing),
    };
    return cmocka_run_group_tests_name("timestamp", tests, NULL, NULL);
}
