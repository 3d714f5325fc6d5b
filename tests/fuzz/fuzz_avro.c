/* Any bytes as a schema of Avro and a datum: its JSON is well-formed, and stays within its bound. The first
 * byte chooses one of the schemas below; 0: the text up to the first line feed is the schema. */
#include "base/check.h"
#include "ingest/decode/avro.h"
#include "ingest/decode/json.h"
#include "ingest/decode/json_paths.h"
#include "tests/fuzz/fuzz.h"

#define JSON_MAX 65536

#define RECORD_OF(name, type) \
    "{\"type\":\"record\",\"name\":\"" name "\",\"fields\":[{\"name\":\"f\",\"type\":" type "}]}"
#define ARRAY_OF(type)      "{\"type\":\"array\",\"items\":" type "}"
#define LOGICAL(type, name) "{\"type\":\"" type "\",\"logicalType\":\"" name "\",\"scale\":4}"
#define MICROS              LOGICAL("long", "timestamp-micros")
#define DECIMAL             LOGICAL("bytes", "decimal")
#define ENUM                "{\"type\":\"enum\",\"name\":\"e\",\"symbols\":[\"A\",\"B\"]}"
#define UUID                "{\"type\":\"fixed\",\"name\":\"u\",\"size\":16,\"logicalType\":\"uuid\"}"
#define MAP_OF(type)        "{\"type\":\"map\",\"values\":" type "}"

static const char *const texts[] = {
    RECORD_OF("r", "[\"null\",\"r\",\"string\"," MAP_OF("\"double\"") "," MICROS "," ARRAY_OF(ENUM) "]"),
    ARRAY_OF("\"null\""),
    ARRAY_OF(DECIMAL),
    MAP_OF(LOGICAL("int", "date")),
    ARRAY_OF(UUID),
    RECORD_OF("l", "[\"null\",\"l\",\"boolean\",\"float\"]"),
};
static struct avro_schema *schemas[COUNT_OF(texts)];

static void decode(const struct avro_schema *s, struct slice datum)
{
    static struct json_out out = {.max = JSON_MAX};
    static struct json_paths *paths;
    static struct json_found found;
    const char *at;
    if (paths == NULL)
        paths = json_paths_new(2 * AVRO_DEPTH_MAX);
    out.len = 0;
    enum avro_result result = avro_to_json(s, datum, &out, &at);
    ASSERT(out.capacity <= JSON_MAX && at >= datum.ptr && at <= slice_end(datum));
    if (result != AVRO_IS_GOOD)
        return;
    ASSERT(json_read(paths, slice_of(out.bytes, out.len), &found, &at) == JSON_OK);
    ASSERT(at == out.bytes + out.len);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct err e;
    struct slice bytes = slice_of((const char *)data, size);
    if (size == 0)
        return 0;
    size_t chosen = data[0] % (COUNT_OF(texts) + 1);
    bytes = slice_of(bytes.ptr + 1, size - 1);
    if (chosen > 0) {
        const struct slice text = slice_text(texts[chosen - 1]);
        if (schemas[chosen - 1] == NULL)
            schemas[chosen - 1] = avro_schema_new(&text, 1, &e);
        decode(schemas[chosen - 1], bytes);
        return 0;
    }
    const char *feed = memchr(bytes.ptr, '\n', bytes.len);
    if (feed == NULL)
        return 0;
    const struct slice text = slice_of(bytes.ptr, (size_t)(feed - bytes.ptr));
    struct avro_schema *s = avro_schema_new(&text, 1, &e);
    if (s != NULL)
        decode(s, slice_of(feed + 1, (size_t)(slice_end(bytes) - feed - 1)));
    avro_schema_free(s);
    return 0;
}
