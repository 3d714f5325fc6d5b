/* Any bytes as a .proto file and a message: its JSON is well-formed, and stays within its bound. The first
 * byte chooses one of the schemas below; 0: the text up to the first NUL is the schema. */
#include "base/check.h"
#include "ingest/decode/json.h"
#include "ingest/decode/json_paths.h"
#include "ingest/decode/protobuf.h"
#include "tests/fuzz/fuzz.h"

#define JSON_MAX 65536

static const char *const texts[] = {
    "syntax = \"proto3\"; message M { int32 a = 1; string b = 2; M c = 3; repeated M d = 4; repeated sint64 "
    "e = 5; "
    "map<string, M> f = 6; oneof o { double g = 7; bytes h = 8; } E i = 9; float j = 10; } enum E { X = 0; Y "
    "= 5; }",
    "message M { repeated google.protobuf.Timestamp a = 1; repeated google.protobuf.DoubleValue b = 2; "
    "optional google.protobuf.Struct c = 3; repeated fixed64 d = 4; map<fixed32, google.protobuf.Value> e = "
    "5; }",
    "message M { optional M a = 1; optional bool b = 500; repeated E c = 70000; } enum E { X = -1; }"};
static struct proto_schema *schemas[COUNT_OF(texts)];

static void decode(const struct proto_schema *s, struct slice bytes)
{
    static struct json_out out = {.max = JSON_MAX};
    static struct json_paths *paths;
    static struct json_found found;
    static struct proto_scratch scratch;
    const char *at;
    uint32_t message;
    const char *from = proto_take_index(s, bytes, &message);
    if (paths == NULL)
        paths = json_paths_new(3 * PROTO_DEPTH_MAX);
    if (from == NULL)
        return;
    struct slice datum = slice_of(from, (size_t)(slice_end(bytes) - from));
    out.len = 0;
    enum proto_result result = proto_to_json(s, message, datum, &scratch, &out, &at);
    ASSERT(out.capacity <= JSON_MAX && at >= datum.ptr && at <= slice_end(bytes));
    if (result != PROTO_IS_GOOD)
        return;
    ASSERT(json_read(paths, slice_of(out.bytes, out.len), &found, &at) == JSON_OK);
    ASSERT(at == out.bytes + out.len);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct err e;
    if (size == 0)
        return 0;
    size_t chosen = data[0] % (COUNT_OF(texts) + 1);
    struct slice bytes = slice_of((const char *)data + 1, size - 1);
    if (chosen > 0) {
        const struct slice text = slice_text(texts[chosen - 1]);
        if (schemas[chosen - 1] == NULL)
            schemas[chosen - 1] = proto_schema_new(&text, 1, &e);
        decode(schemas[chosen - 1], bytes);
        return 0;
    }
    const char *nul = memchr(bytes.ptr, '\0', bytes.len);
    if (nul == NULL)
        return 0;
    const struct slice text = slice_of(bytes.ptr, (size_t)(nul - bytes.ptr));
    struct proto_schema *s = proto_schema_new(&text, 1, &e);
    if (s != NULL)
        decode(s, slice_of(nul + 1, (size_t)(slice_end(bytes) - nul - 1)));
    proto_schema_free(s);
    return 0;
}
