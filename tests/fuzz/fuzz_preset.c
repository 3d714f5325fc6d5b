/* Any bytes as lines of every preset. */
#include "ingest/decode/preset.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/fuzz_decode.h"

#define LINE_MAX    65536
#define PRESETS_MAX 16

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct decode decodes[PRESETS_MAX];
    static struct chain *chains[PRESETS_MAX];
    struct record r = {.value = slice_of((const char *)data, size), .timestamp_ms = -1};
    for (size_t i = 0; presets[i].name != NULL; i++) {
        ASSERT(i < PRESETS_MAX);
        if (chains[i] == NULL)
            chains[i] = fuzz_chain_of(&decodes[i], presets[i].name, NULL, LINE_MAX);
        fuzz_decode_in_time(chains[i], &decodes[i], &r);
    }
    return 0;
}
