/* Any bytes as OTLP, in protobuf and JSON; also bodies that are lines, attributes by name, and the broker's
 * time. Not timed: a message of N bytes makes up to N / 2 events or rejects. */
#include "ingest/event.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/fuzz_decode.h"

#define LINE_MAX 65536

static const char *const second_steps[] = {NULL, "combined", "json", NULL};

static struct chain *make(struct decode *d, const char *second, bool is_brokers_time)
{
    struct err e;
    decode_init(d);
    bool good = decode_add_step(d, slice_text("otlp"), &e) &&
                (second == NULL || decode_add_step(d, slice_text(second), &e)) &&
                decode_add_field(d, slice_text("region"), slice_text("tag:service.name"), &e) &&
                (!is_brokers_time || decode_set_time(d, slice_text("broker"), &e)) && decode_finish(d, &e);
    ASSERT(good);
    return chain_new(d, LINE_MAX);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct decode decodes[COUNT_OF(second_steps)];
    static struct chain *chains[COUNT_OF(second_steps)];
    static const char *const own[] = {"service_name", "n",     "body", "severity", "severity_number",
                                      "trace_id",     "scope", "type", "unit",     "duration"};
    struct record r = {.value = slice_of((const char *)data, size), .timestamp_ms = 1286720242123};
    enum field f;
    for (size_t i = 0; i < COUNT_OF(own) && chains[0] == NULL; i++)
        ASSERT(field_intern(slice_text(own[i]), &f));
    for (size_t i = 0; i < COUNT_OF(second_steps); i++) {
        if (chains[i] == NULL)
            chains[i] = make(&decodes[i], second_steps[i], i == COUNT_OF(second_steps) - 1);
        fuzz_decode(chains[i], &decodes[i], &r);
    }
    return 0;
}
