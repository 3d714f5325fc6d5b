/* Any bytes as lines of metric values. Not timed: a line of N bytes makes up to N events or rejects. */
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/fuzz_decode.h"

#define LINE_MAX 65536

static const char *const steps[] = {"influx", "statsd"};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct decode decodes[COUNT_OF(steps)];
    static struct chain *chains[COUNT_OF(steps)];
    struct record r = {.value = slice_of((const char *)data, size), .timestamp_ms = 1286720242123};
    for (size_t i = 0; i < COUNT_OF(steps); i++) {
        if (chains[i] == NULL)
            chains[i] = fuzz_chain_of(&decodes[i], steps[i], NULL, LINE_MAX);
        fuzz_decode(chains[i], &decodes[i], &r);
    }
    return 0;
}
