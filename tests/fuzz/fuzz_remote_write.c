/* Any bytes as a message of Prometheus' remote write, packed by Snappy or not; also its labels by name,
 * deltas and totals by configuration, and the broker's time. Not timed: N bytes make up to 22 N / 4
 * results. */
#include "base/snappy.h"
#include "ingest/event.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/fuzz_decode.h"

#define LINE_MAX 65536

static const char *const steps[] = {"remote_write", "remote_write:deltas", "remote_write:totals",
                                    "remote_write"};

static struct chain *make(struct decode *d, const char *step, bool is_brokers_time)
{
    struct err e;
    decode_init(d);
    bool good = decode_add_step(d, slice_text(step), &e) &&
                decode_add_field(d, slice_text("region"), slice_text("tag:Region"), &e) &&
                (!is_brokers_time || decode_set_time(d, slice_text("broker"), &e)) && decode_finish(d, &e);
    ASSERT(good);
    return chain_new(d, LINE_MAX);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct decode decodes[COUNT_OF(steps)];
    static struct chain *chains[COUNT_OF(steps)];
    static const char *const own[] = {"region", "instance", "type", "unit"};
    struct record r = {.value = slice_of((const char *)data, size), .timestamp_ms = 1286720242123};
    enum field f;
    for (size_t i = 0; i < COUNT_OF(own) && chains[0] == NULL; i++)
        ASSERT(field_intern(slice_text(own[i]), &f));
    for (size_t i = 0; i < COUNT_OF(steps); i++) {
        if (chains[i] == NULL)
            chains[i] = make(&decodes[i], steps[i], i == COUNT_OF(steps) - 1);
        fuzz_decode_up_to(chains[i], &decodes[i], &r, SNAPPY_GROWTH * size + 1);
    }
    return 0;
}
