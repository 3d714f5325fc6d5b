/* The document that an update makes where there is none. */
#include "store/mongo/send/new.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void check_document(const char *update, const char *expected)
{
    bson_error_t error;
    bson_t *of = bson_new_from_json((const uint8_t *)update, -1, &error);
    bson_t *wanted = bson_new_from_json((const uint8_t *)expected, -1, &error);
    bson_t document;
    assert_non_null(of);
    assert_non_null(wanted);
    mongo_new_document(of, &document);
    char *found = bson_as_canonical_extended_json(&document, NULL);
    char *said = bson_as_canonical_extended_json(wanted, NULL);
    assert_string_equal(found, said);
    bson_free(found);
    bson_free(said);
    bson_destroy(&document);
    bson_destroy(wanted);
    bson_destroy(of);
}

static void test_members_are_nested_by_their_names(void **state)
{
    (void)state;
    check_document(
        "{\"c\": \"pages.day\","
        " \"f\": {\"_id\": \"20101010/a\", \"metadata.date\": {\"$date\": \"2010-10-10T00:00:00Z\"},"
        "         \"metadata.path\": \"a\", \"applied.w0\": {\"$not\": {\"$gte\": {\"$numberLong\": "
        "\"7\"}}}},"
        " \"u\": {\"$inc\": {\"minute.9.59\": {\"$numberLong\": \"1\"}, \"hourly.9\": {\"$numberLong\": "
        "\"1\"},"
        "                    \"minute.10.3\": {\"$numberLong\": \"2\"}, \"minute.10.20\": {\"$numberLong\": "
        "\"3\"},"
        "                    \"hourly.10\": {\"$numberLong\": \"5\"}, \"daily\": {\"$numberLong\": \"6\"}},"
        "         \"$set\": {\"applied.w0\": {\"$numberLong\": \"7\"}}, \"$setOnInsert\": {\"v\": 1}}}",
        "{\"_id\": \"20101010/a\", \"applied\": {\"w0\": {\"$numberLong\": \"7\"}},"
        " \"daily\": {\"$numberLong\": \"6\"},"
        " \"hourly\": {\"9\": {\"$numberLong\": \"1\"}, \"10\": {\"$numberLong\": \"5\"}},"
        " \"metadata\": {\"date\": {\"$date\": \"2010-10-10T00:00:00Z\"}, \"path\": \"a\"},"
        " \"minute\": {\"9\": {\"59\": {\"$numberLong\": \"1\"}},"
        "              \"10\": {\"3\": {\"$numberLong\": \"2\"}, \"20\": {\"$numberLong\": \"3\"}}}, \"v\": "
        "1}");
}

static void test_smallest_greatest_and_last_are_as_given(void **state)
{
    (void)state;
    check_document(
        "{\"c\": \"x.month\", \"f\": {\"_id\": \"201010\", \"applied.w12\": {\"$not\": {\"$gte\": 1}}},"
        " \"u\": {\"$min\": {\"low.total\": -4}, \"$max\": {\"high.total\": 9,"
        "         \"now.daily.10\": {\"t\": 1, \"v\": 2}}, \"$set\": {\"applied.w12\": 1}}}",
        "{\"_id\": \"201010\", \"applied\": {\"w12\": 1}, \"high\": {\"total\": 9},"
        " \"low\": {\"total\": -4}, \"now\": {\"daily\": {\"10\": {\"t\": 1, \"v\": 2}}}}");
}

/* Names that begin alike are not of one document. */
static void test_names_that_begin_alike(void **state)
{
    (void)state;
    check_document(
        "{\"c\": \"books\", \"f\": {\"_id\": \"b\"},"
        " \"u\": {\"$inc\": {\"a.x\": 1, \"a-b.y\": 2, \"ab\": 3, \"a.z\": 4, \"a0.x\": 5, \"a.x1\": 6}}}",
        "{\"_id\": \"b\", \"a-b\": {\"y\": 2}, \"a\": {\"x\": 1, \"x1\": 6, \"z\": 4},"
        " \"a0\": {\"x\": 5}, \"ab\": 3}");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_members_are_nested_by_their_names),
        cmocka_unit_test(test_smallest_greatest_and_last_are_as_given),
        cmocka_unit_test(test_names_that_begin_alike),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
