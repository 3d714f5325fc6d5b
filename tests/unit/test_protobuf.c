/* Schemas of Protobuf, and messages by them: what they become as JSON, or where they cannot be. */
#include "ingest/decode/protobuf.h"

#include "base/check.h"
#include "tests/support/hex.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#define JSON_MAX 4096
#define PROTO3   "syntax = \"proto3\"; "

static struct proto_schema *schema_of(const char *text)
{
    struct err e;
    struct slice slice = slice_text(text);
    struct proto_schema *s = proto_schema_new(&slice, 1, &e);
    if (s == NULL)
        fail_msg("%s: %s", text, e.text);
    return s;
}

static const struct {
    const char *schema, *datum, *json;
} good[] = {
    {PROTO3 "message M {}", "", "{}"},
    {PROTO3 "message M {}", "08 01 12 01 61 1D 00 00 00 00 21 00 00 00 00 00 00 00 00", "{}"},
    /* defaults: of proto3, but not behind a label, in a oneof, or of a message */
    {PROTO3 "message M { int32 a = 1; string b = 2; bool c = 3; E d = 4; optional int32 e = 5; M f = 6; "
            "repeated int32 g = 7; oneof o { int32 h = 8; } } enum E { X = 0; Y = 1; }",
     "", "{\"a\":0,\"b\":\"\",\"c\":false,\"d\":\"X\"}"},
    {"message M { optional int32 a = 1; required int32 b = 2 [default = 7]; }", "", "{}"},
    {"edition = \"2023\"; message M { int32 a = 1; }", "", "{}"},
    /* numbers */
    {"message M { optional int32 a = 1; }", "08 FF FF FF FF FF FF FF FF FF 01", "{\"a\":-1}"},
    {"message M { optional uint32 a = 1; }", "08 FF FF FF FF 0F", "{\"a\":4294967295}"},
    {"message M { optional uint64 a = 1; }", "08 FF FF FF FF FF FF FF FF FF 01",
     "{\"a\":18446744073709551615}"},
    {"message M { optional sint32 a = 1; }", "08 FF FF FF FF 0F", "{\"a\":-2147483648}"},
    {"message M { optional sint64 a = 1; }", "08 03", "{\"a\":-2}"},
    {"message M { optional fixed32 a = 1; }", "0D FF FF FF FF", "{\"a\":4294967295}"},
    {"message M { optional sfixed64 a = 1; }", "09 FF FF FF FF FF FF FF FF", "{\"a\":-1}"},
    {"message M { optional float a = 1; }", "0D CD CC CC 3D", "{\"a\":0.1}"},
    {"message M { optional double a = 1; }", "09 00 00 00 00 00 00 F8 7F", "{\"a\":null}"},
    {"message M { optional E a = 1; } enum E { X = -1; }", "08 FF FF FF FF FF FF FF FF FF 01",
     "{\"a\":\"X\"}"},
    {"message M { optional E a = 1; } enum E { X = 1; }", "08 05", "{\"a\":5}"},
    /* order, repetition */
    {"message M { optional int32 b = 2; optional string a = 1; }", "10 07 0A 01 22",
     "{\"a\":\"\\\"\",\"b\":7}"},
    {"message M { optional int32 a = 1; }", "08 01 08 02", "{\"a\":2}"},
    {"message M { repeated int32 a = 1; optional int32 b = 2; }", "08 01 10 05 0A 02 02 03 08 04",
     "{\"a\":[1,2,3,4],\"b\":5}"},
    {"message M { repeated string a = 1; }", "0A 00 0A 01 61", "{\"a\":[\"\",\"a\"]}"},
    {"message M { repeated int32 a = 1; }", "0A 00", "{\"a\":[]}"},
    {"message M { oneof o { int32 a = 1; int32 b = 2; } }", "08 01 10 02", "{\"b\":2}"},
    {"message M { map<string, int32> a = 1; }", "0A 05 0A 01 61 10 01 0A 02 10 02 0A 00",
     "{\"a\":{\"a\":1,\"\":2,\"\":0}}"},
    {PROTO3 "message M { map<sint32, M> a = 1; map<bool, E> b = 2; } enum E { X = 0; }",
     "0A 02 08 01 12 02 08 01", "{\"a\":{\"-1\":{}},\"b\":{\"true\":\"X\"}}"},
    {"message M { optional M a = 1; optional int32 b = 2; }", "0A 04 0A 00 10 01",
     "{\"a\":{\"a\":{},\"b\":1}}"},
    /* names as seen from within */
    {"package p.q; message M { message N { optional int32 a = 1; } optional N a = 1; optional q.M b = 2; "
     "optional .p.q.M.N c = 3; }",
     "0A 02 08 01 12 00 1A 00", "{\"a\":{\"a\":1},\"b\":{},\"c\":{}}"},
    /* Google's types */
    {PROTO3 "import \"google/protobuf/timestamp.proto\"; message M { google.protobuf.Timestamp a = 1; }",
     "0A 06 08 02 10 80 CA B5 EE", ""},
    {PROTO3 "message M { google.protobuf.Timestamp a = 1; google.protobuf.Int32Value b = 2; "
            "google.protobuf.StringValue c = 3; google.protobuf.Struct d = 4; }",
     "0A 06 08 02 10 80 CA B5 12 00 1A 03 0A 01 78 22 00", ""},
    {PROTO3 "message M { google.protobuf.Timestamp a = 1; google.protobuf.Int32Value b = 2; "
            "google.protobuf.StringValue c = 3; google.protobuf.ListValue d = 4; }",
     "0A 04 08 02 10 05 12 00 1A 03 0A 01 78 22 04 0A 02 20 01",
     "{\"a\":2.000000005,\"b\":0,\"c\":\"x\",\"d\":{\"values\":[{\"bool_value\":true}]}}"},
    {"message M { optional google.protobuf.Duration a = 1; }", "0A 0B 08 FF FF FF FF FF FF FF FF FF 01",
     "{\"a\":-1}"},
};

static void test_protobuf_messages_become_json(void **state)
{
    (void)state;
    struct proto_scratch scratch = {0};
    for (size_t i = 0; i < COUNT_OF(good); i++) {
        char buf[HEX_BYTES_MAX];
        const char *at;
        struct json_out out = {.max = JSON_MAX};
        struct proto_schema *s = schema_of(good[i].schema);
        struct slice datum = hex_bytes(good[i].datum, buf);
        enum proto_result result =
            proto_to_json(s, proto_schema_find(s, PROTO_NONE, 0), datum, &scratch, &out, &at);
        bool is_good = good[i].json[0] != '\0';
        if (result != (is_good ? PROTO_IS_GOOD : PROTO_IS_BROKEN) ||
            (is_good && !slice_equal(slice_of(out.bytes, out.len), slice_text(good[i].json))))
            fail_msg("%s %s is %d %.*s, expected %s", good[i].schema, good[i].datum, (int)result,
                     (int)out.len, out.bytes, good[i].json);
        json_out_fini(&out);
        proto_schema_free(s);
    }
    proto_scratch_fini(&scratch);
}

static const struct {
    const char *schema, *datum;
    enum proto_result result;
    size_t at;
} bad[] = {
    {"message M { optional int32 a = 1; }", "08", PROTO_IS_BROKEN, 0},
    {"message M { optional int32 a = 1; }", "08 01 00 01", PROTO_IS_BROKEN, 2},
    {"message M { optional int32 a = 1; }", "0A 01 61", PROTO_IS_BROKEN, 0},
    {"message M { optional string a = 1; }", "0A 02 61", PROTO_IS_BROKEN, 0},
    {"message M { optional string a = 1; }", "08 01", PROTO_IS_BROKEN, 0},
    {"message M { optional double a = 1; }", "09 00", PROTO_IS_BROKEN, 0},
    {"message M { repeated int32 a = 1; }", "08 01 0A 02 01 80", PROTO_IS_BROKEN, 5},
    {"message M { optional M a = 1; }", "0A 00 0A 00", PROTO_IS_BROKEN, 2},
    {"message M { optional M a = 1; }", "0A 02 0A 05", PROTO_IS_BROKEN, 2},
    {"message M { optional M a = 1; }", "0B 0C", PROTO_IS_BROKEN, 0},
    {"message M { map<string, int32> a = 1; }", "0A 03 0A 01 61 0A 02 08 01", PROTO_IS_BROKEN, 7},
};

static void test_protobuf_bad_messages_are_refused_where_they_are_bad(void **state)
{
    (void)state;
    struct proto_scratch scratch = {0};
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        char buf[HEX_BYTES_MAX];
        const char *at;
        struct json_out out = {.max = JSON_MAX};
        struct proto_schema *s = schema_of(bad[i].schema);
        struct slice datum = hex_bytes(bad[i].datum, buf);
        enum proto_result result =
            proto_to_json(s, proto_schema_find(s, PROTO_NONE, 0), datum, &scratch, &out, &at);
        if (result != bad[i].result || (size_t)(at - buf) != bad[i].at)
            fail_msg("%s %s gives %d at %zu", bad[i].schema, bad[i].datum, (int)result, (size_t)(at - buf));
        json_out_fini(&out);
        proto_schema_free(s);
    }
    proto_scratch_fini(&scratch);
}

/* A message in a message, a hundred times. */
static void test_protobuf_depth_is_limited(void **state)
{
    (void)state;
    char buf[HEX_BYTES_MAX];
    const char *at;
    struct proto_scratch scratch = {0};
    struct json_out out = {.max = JSON_MAX};
    struct proto_schema *s = schema_of("message M { optional M a = 1; }");
    for (int i = 0; i < 63; i++) {
        buf[2 * i] = 0x0A;
        buf[2 * i + 1] = (char)(2 * (62 - i));
    }
    uint32_t m = proto_schema_find(s, PROTO_NONE, 0);
    assert_int_equal(proto_to_json(s, m, slice_of(buf, 126), &scratch, &out, &at), PROTO_IS_GOOD);
    char deep[140] = {0x0A, (char)0x80, 0x01, 0x0A, 0x7E};
    for (int i = 0; i < 63; i++) {
        deep[5 + 2 * i] = 0x0A;
        deep[6 + 2 * i] = (char)(2 * (62 - i));
    }
    out.len = 0;
    assert_int_equal(proto_to_json(s, m, slice_of(deep, 131), &scratch, &out, &at), PROTO_IS_DEEP);
    out.len = 0;
    out.max = out.capacity = 0;
    free(out.bytes);
    out.bytes = NULL;
    assert_int_equal(proto_to_json(s, m, slice_of("", 0), &scratch, &out, &at), PROTO_IS_LONG);
    json_out_fini(&out);
    proto_scratch_fini(&scratch);
    proto_schema_free(s);
}

static const struct {
    const char *schema, *why;
} refused[] = {
    {"message M {", "found \"\", expected }"},
    {"message { }", "expected a name"},
    {"message M { int32 a 1; }", "found \"1\", expected ="},
    {"message M { int32 a = b; }", "found \"b\", expected a number"},
    {"message M { int32 a = 0; }", "found a field with the number 0"},
    {"message M { int32 a = 1; int64 b = 1; }", "found twice a field with the number 1"},
    {"message M { N a = 1; }", "found the type, which is not defined: N"},
    {"message M {} message M {}", "found twice the type M"},
    {"enum E {}", "expected an enum with a value"},
    {"message M { optional group G = 1 { } }", "expected no group"},
    {"message M { int32 a = 1 [", "found \"\", expected ]"},
    {"message M { map<string> a = 1; }", "found \">\", expected ,"},
    {"QUJDREVG", "found base64 that is no FileDescriptorProto"},
    {"}", "expected the end of a statement"},
};

static void test_protobuf_bad_schemas_are_refused_with_a_reason(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(refused); i++) {
        struct err e;
        struct slice text = slice_text(refused[i].schema);
        assert_null(proto_schema_new(&text, 1, &e));
        if (strstr(e.text, refused[i].why) == NULL)
            fail_msg("%s says %s", refused[i].schema, e.text);
    }
}

/* Which message is it? Some count the entries of maps, some do not. */
static void test_protobuf_numbers_of_messages(void **state)
{
    (void)state;
    char buf[HEX_BYTES_MAX];
    uint32_t m, n;
    struct proto_schema *s =
        schema_of("message A { message B { } map<int32, int32> m = 1; message C { } } message D { "
                  "map<int32, int32> m = 1; message E { } message F { } message G { } }");
    uint32_t a = proto_schema_find(s, PROTO_NONE, 0), d = proto_schema_find(s, PROTO_NONE, 1);
    assert_non_null(proto_take_index(s, hex_bytes("00", buf), &m));
    assert_int_equal(m, a);
    assert_non_null(proto_take_index(s, hex_bytes("02 02", buf), &m));
    assert_int_equal(m, d);
    assert_non_null(proto_take_index(s, hex_bytes("04 00 00", buf), &m));
    assert_int_equal(m, proto_schema_find(s, a, 0));
    assert_non_null(proto_take_index(s, hex_bytes("04 00 02", buf), &m)); /* C, or the map */
    assert_non_null(proto_take_index(s, hex_bytes("04 00 04", buf), &n)); /* nothing, or C */
    assert_int_equal(m, n);
    assert_non_null(proto_take_index(s, hex_bytes("04 02 00", buf), &m)); /* E, or the map */
    assert_null(proto_take_index(s, hex_bytes("04 02 02", buf), &m));     /* F, or E */
    assert_non_null(proto_take_index(s, hex_bytes("04 02 06", buf), &m)); /* nothing, or G */
    assert_null(proto_take_index(s, hex_bytes("02 04", buf), &m));
    assert_null(proto_take_index(s, hex_bytes("04 00", buf), &m));
    assert_null(proto_take_index(s, hex_bytes("01", buf), &m));
    assert_null(proto_take_index(s, hex_bytes("", buf), &m));
    proto_schema_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_protobuf_messages_become_json),
        cmocka_unit_test(test_protobuf_bad_messages_are_refused_where_they_are_bad),
        cmocka_unit_test(test_protobuf_depth_is_limited),
        cmocka_unit_test(test_protobuf_bad_schemas_are_refused_with_a_reason),
        cmocka_unit_test(test_protobuf_numbers_of_messages),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
