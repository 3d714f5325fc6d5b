/* Any bytes as lines of logfmt, with the default times, a time of another name, and the broker's. */
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/fuzz_decode.h"

#define LINE_MAX 65536

static const char *const times[] = {NULL, "/level", "broker"};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct decode decodes[COUNT_OF(times)];
    static struct chain *chains[COUNT_OF(times)];
    struct record r = {.value = slice_of((const char *)data, size), .timestamp_ms = 1286720242123};
    enum field f;
    for (size_t i = 0; i < COUNT_OF(times); i++) {
        if (chains[i] == NULL) {
            ASSERT(field_intern(slice_text("level"), &f) && field_intern(slice_text("msg"), &f));
            chains[i] = fuzz_chain_of(&decodes[i], "logfmt", times[i], LINE_MAX);
        }
        fuzz_decode_in_time(chains[i], &decodes[i], &r);
    }
    return 0;
}
