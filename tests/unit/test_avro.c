/* Schemas of Avro, and data by them: what they become as JSON, or where they cannot be. */
#include "ingest/decode/avro.h"
#include "tests/support/hex.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#define JSON_MAX 4096

static struct avro_schema *schema_of(const char *text)
{
    struct err e;
    struct slice slice = slice_text(text);
    struct avro_schema *s = avro_schema_new(&slice, 1, &e);
    if (s == NULL)
        fail_msg("%s: %s", text, e.text);
    return s;
}

static const struct {
    const char *schema, *datum, *json;
} good[] = {
    {"\"null\"", "", "null"},
    {"\"boolean\"", "01", "true"},
    {"\"int\"", "01", "-1"},
    {"\"int\"", "FF FF FF FF 0F", "-2147483648"},
    {"\"long\"", "FF FF FF FF FF FF FF FF FF 01", "-9223372036854775808"},
    {"\"long\"", "80 00", "0"},
    {"\"float\"", "00 00 20 C0", "-2.5"},
    {"\"float\"", "CD CC CC 3D", "0.1"},
    {"\"double\"", "9A 99 99 99 99 99 B9 3F", "0.1"},
    {"\"double\"", "00 00 00 00 00 00 F0 7F", "null"},
    {"\"string\"", "0A 61 22 5C 0A C3", "\"a\\\"\\\\\\u000a\xC3\""},
    {"\"bytes\"", "02 00", "\"\\u0000\""},
    {"{\"type\":\"fixed\",\"name\":\"f\",\"size\":2}", "61 62", "\"ab\""},
    {"{\"type\":\"fixed\",\"name\":\"f\",\"size\":16,\"logicalType\":\"uuid\"}",
     "00 11 22 33 44 55 66 77 88 99 AA BB CC DD EE FF", "\"00112233-4455-6677-8899-aabbccddeeff\""},
    {"{\"type\":\"enum\",\"name\":\"e\",\"symbols\":[\"A\",\"B\"]}", "02", "\"B\""},
    {"{\"type\":\"array\",\"items\":\"int\"}", "04 02 04 03 04 06 08 00", "[1,2,3,4]"},
    {"{\"type\":\"array\",\"items\":\"int\"}", "00", "[]"},
    {"{\"type\":\"map\",\"values\":\"int\"}", "02 02 61 02 00", "{\"a\":1}"},
    {"[\"null\",\"string\"]", "02 02 61", "\"a\""},
    {"{\"type\":\"record\",\"name\":\"r\",\"fields\":[{\"name\":\"a\",\"type\":\"int\"},{\"name\":\"b\\\"\","
     "\"type\":[\"null\",\"r\"]}]}",
     "02 02 04 00", "{\"a\":1,\"b\\\"\":{\"a\":2,\"b\\\"\":null}}"},
    {"{\"type\":\"record\",\"name\":\"a.r\",\"fields\":[{\"name\":\"x\",\"type\":{\"type\":\"enum\",\"name\":"
     "\"e\",\"symbols\":[\"A\"]}},{\"name\":\"y\",\"type\":\"e\"},{\"name\":\"z\",\"type\":\"a.e\"}]}",
     "00 00 00", "{\"x\":\"A\",\"y\":\"A\",\"z\":\"A\"}"},
    /* logical types */
    {"{\"type\":\"int\",\"logicalType\":\"date\"}", "D6 E8 01", "\"2010-10-09\""},
    {"{\"type\":\"int\",\"logicalType\":\"date\"}", "01", "-1"},
    {"{\"type\":\"long\",\"logicalType\":\"timestamp-millis\"}", "F6 85 86 E8 F2 4A", "1286720242.043"},
    {"{\"type\":\"long\",\"logicalType\":\"timestamp-millis\"}", "01", "-0.001"},
    {"{\"type\":\"long\",\"logicalType\":\"timestamp-micros\"}", "02", "0.000001"},
    {"{\"type\":\"long\",\"logicalType\":\"timestamp-nanos\"}", "FF FF FF FF FF FF FF FF FF 01",
     "-9223372036.854775808"},
    {"{\"type\":\"int\",\"logicalType\":\"time-millis\"}", "FE 07", "0.511"},
    {"{\"type\":\"string\",\"logicalType\":\"date\"}", "02 61", "\"a\""},
    {"{\"type\":\"bytes\",\"logicalType\":\"decimal\",\"scale\":2}", "02 05", "0.05"},
    {"{\"type\":\"bytes\",\"logicalType\":\"decimal\",\"scale\":2}", "02 FB", "-0.05"},
    {"{\"type\":\"bytes\",\"logicalType\":\"decimal\"}", "00", "0"},
    {"{\"type\":\"bytes\",\"logicalType\":\"decimal\"}", "0A 02 54 0B E4 00", "10000000000"},
    {"{\"type\":\"bytes\",\"logicalType\":\"decimal\",\"scale\":3}", "08 3B 9A CA 00", "1000000.000"},
    {"{\"type\":\"bytes\",\"logicalType\":\"decimal\",\"scale\":1}", "12 80 00 00 00 00 00 00 00 00",
     "-236118324143482260684.8"},
    {"{\"type\":\"fixed\",\"name\":\"f\",\"size\":3,\"logicalType\":\"decimal\",\"scale\":0}", "FF FF FF",
     "-1"},
};

static void test_avro_data_become_json(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(good); i++) {
        char buf[HEX_BYTES_MAX];
        const char *at;
        struct json_out out = {.max = JSON_MAX};
        struct avro_schema *s = schema_of(good[i].schema);
        struct slice datum = hex_bytes(good[i].datum, buf);
        assert_int_equal(avro_to_json(s, datum, &out, &at), AVRO_IS_GOOD);
        if (!slice_equal(slice_of(out.bytes, out.len), slice_text(good[i].json)))
            fail_msg("%s %s is %.*s, expected %s", good[i].schema, good[i].datum, (int)out.len, out.bytes,
                     good[i].json);
        json_out_fini(&out);
        avro_schema_free(s);
    }
}

#define RECORD_OF_NOTHING "{\"type\":\"record\",\"name\":\"n\",\"fields\":[]}"
#define FIELD_OF_LIST     "{\"name\":\"n\",\"type\":[\"null\",\"l\"]}"
#define LIST              "{\"type\":\"record\",\"name\":\"l\",\"fields\":[" FIELD_OF_LIST "]}"

static const struct {
    const char *schema, *datum;
    enum avro_result result;
    size_t at;
} bad[] = {
    {"\"null\"", "00", AVRO_IS_BROKEN, 0},
    {"\"boolean\"", "02", AVRO_IS_BROKEN, 0},
    {"\"boolean\"", "", AVRO_IS_BROKEN, 0},
    {"\"int\"", "80", AVRO_IS_BROKEN, 0},
    {"\"int\"", "80 80 80 80 10", AVRO_IS_BROKEN, 0},
    {"\"long\"", "FF FF FF FF FF FF FF FF FF FF 01", AVRO_IS_BROKEN, 0},
    {"\"float\"", "00 00 00", AVRO_IS_BROKEN, 0},
    {"\"string\"", "04 61", AVRO_IS_BROKEN, 1},
    {"\"string\"", "01", AVRO_IS_BROKEN, 1},
    {"\"string\"", "FE FF FF FF FF FF FF FF FF 01", AVRO_IS_BROKEN, 10},
    {"[\"null\",\"string\"]", "04", AVRO_IS_BROKEN, 0},
    {"[\"null\",\"string\"]", "01", AVRO_IS_BROKEN, 0},
    {"{\"type\":\"enum\",\"name\":\"e\",\"symbols\":[\"A\"]}", "02", AVRO_IS_BROKEN, 0},
    {"{\"type\":\"array\",\"items\":\"int\"}", "02 02", AVRO_IS_BROKEN, 2},
    /* 2^62 elements that take no byte; and -2^63 of them */
    {"{\"type\":\"array\",\"items\":\"null\"}", "80 80 80 80 80 80 80 80 80 01", AVRO_IS_LONG, 10},
    {"{\"type\":\"array\",\"items\":" RECORD_OF_NOTHING "}", "FF FF FF FF FF FF FF FF FF 01 00", AVRO_IS_LONG,
     11},
    {LIST,
     "02 02 02 02 02 02 02 02 02 02 02 02 02 02 02 02 02 02 02 02 02 02 02 02 02 02 02 02 02 02 02 02 02 02",
     AVRO_IS_DEEP, 32},
    {"{\"type\":\"record\",\"name\":\"r\",\"fields\":[{\"name\":\"r\",\"type\":\"r\"}]}", "", AVRO_IS_DEEP,
     0},
};

static void test_avro_bad_data_are_refused_where_they_are_bad(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        char buf[HEX_BYTES_MAX];
        const char *at;
        struct json_out out = {.max = JSON_MAX};
        struct avro_schema *s = schema_of(bad[i].schema);
        struct slice datum = hex_bytes(bad[i].datum, buf);
        enum avro_result result = avro_to_json(s, datum, &out, &at);
        if (result != bad[i].result || (size_t)(at - buf) != bad[i].at)
            fail_msg("%s %s gives %d at %zu", bad[i].schema, bad[i].datum, (int)result, (size_t)(at - buf));
        assert_true(out.capacity <= JSON_MAX);
        json_out_fini(&out);
        avro_schema_free(s);
    }
}

static const struct {
    const char *schema, *why;
} refused[] = {
    {"{", "line 1"},
    {"1", "found no type"},
    {"\"Thing\"", "found the type, which is not defined: Thing"},
    {"{\"type\":\"record\",\"fields\":[]}", "found a type without a name"},
    {"{\"type\":\"record\",\"name\":\"r\"}", "found a record without fields"},
    {"{\"type\":\"record\",\"name\":\"r\",\"fields\":[{\"type\":\"int\"}]}", "found a field without a name"},
    {"[{\"type\":\"enum\",\"name\":\"e\",\"symbols\":[]},{\"type\":\"enum\",\"name\":\"e\",\"symbols\":[]}]",
     "found twice the type e"},
    {"{\"type\":\"fixed\",\"name\":\"f\",\"size\":-1}", "found a fixed type without a size"},
};

static void test_avro_bad_schemas_are_refused_with_a_reason(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(refused); i++) {
        struct err e;
        struct slice text = slice_text(refused[i].schema);
        assert_null(avro_schema_new(&text, 1, &e));
        if (strstr(e.text, refused[i].why) == NULL)
            fail_msg("%s says %s", refused[i].schema, e.text);
    }
    struct text deep = {0};
    for (int i = 0; i < 1000; i++)
        text_puts(&deep, "[");
    for (int i = 0; i < 1000; i++)
        text_puts(&deep, "]");
    struct slice text = text_slice(&deep);
    struct err e;
    assert_null(avro_schema_new(&text, 1, &e));
    assert_non_null(strstr(e.text, "nested deeper"));
    text_fini(&deep);
}

/* A schema may use what an earlier one defines. */
static void test_avro_earlier_texts_are_known(void **state)
{
    (void)state;
    struct err e;
    char buf[HEX_BYTES_MAX];
    const char *at;
    struct json_out out = {.max = JSON_MAX};
    const struct slice texts[] = {
        slice_text("{\"type\":\"enum\",\"name\":\"e\",\"namespace\":\"a.b\",\"symbols\":[\"X\"]}"),
        slice_text("{\"type\":\"array\",\"items\":\"a.b.e\"}")};
    struct avro_schema *s = avro_schema_new(texts, 2, &e);
    assert_non_null(s);
    assert_int_equal(avro_to_json(s, hex_bytes("02 00 00", buf), &out, &at), AVRO_IS_GOOD);
    assert_memory_equal(out.bytes, "[\"X\"]", 5);
    json_out_fini(&out);
    avro_schema_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_avro_data_become_json),
        cmocka_unit_test(test_avro_bad_data_are_refused_where_they_are_bad),
        cmocka_unit_test(test_avro_bad_schemas_are_refused_with_a_reason),
        cmocka_unit_test(test_avro_earlier_texts_are_known),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
