/* Any bytes as MessagePack: the JSON that is made of it is well-formed, and lies within its bound. */
#include "ingest/decode/msgpack.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/fuzz_decode.h"

#define LINE_MAX 65536

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct decode decode;
    static struct chain *chain;
    static struct arena memory;
    const struct slice bytes = slice_of((const char *)data, size);
    struct record r = {.value = bytes, .timestamp_ms = 1286720242123};
    struct event ev;
    struct reject why;
    struct slice json, origin;
    const char *at;
    enum chain_result what;
    if (chain == NULL) {
        struct err e;
        decode_init(&decode);
        bool good = decode_add_step(&decode, slice_text("msgpack"), &e) &&
                    decode_add_step(&decode, slice_text("json"), &e) && decode_finish(&decode, &e);
        ASSERT(good);
        chain = chain_new(&decode, LINE_MAX);
        arena_init(&memory, 65536);
    }
    if (msgpack_to_json(bytes, &memory, &json, &at) != NULL)
        ASSERT(json.len > 0 && json.len <= MSGPACK_GROWTH * size + 64 && at <= slice_end(bytes));
    arena_reset(&memory);
    chain_start(chain, &r);
    while ((what = chain_next(chain, &ev, &why, &origin)) != CHAIN_END) {
        if (what == CHAIN_EVENT)
            fuzz_check_event(&ev, &decode);
        else
            ASSERT(why.reason != REJECT_JSON); /* it may be too deep for JSON by one */
    }
    chain_flush(chain);
    return 0;
}
