/* Any bytes as a message, by several chains: every event's fields lie in the message or in memory that is
 * there, numbers are within their limits, rejects have a reason and a column, and it comes to an end. */
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/fuzz_decode.h"

#include <stdlib.h>

#define LINE_MAX 2000

/* Steps, then fields; a time behind "@". */
static const char *const configurations[][8] = {
    {"auto"},
    {"combined", NULL, "host=key", "uri=topic", "n=partition"},
    {"syslog", "vhost_combined"},
    {"json:/message", "combined", "userid=/agent/hostname", "first=/list/0"},
    {"syslog", "json:/log", "path=/p", "@broker"},
    {"json"},
    {"json", NULL, "path=/request/uri", "userid=/u/0/id", "target=/target", "@/when/at"},
    {"metric"},
    {"metric", NULL, "userid=tag:user/id", "unit=/unit", "bytes=/value"},
    {"json:/log", "logfmt", "path=/p"},
    {"cri", "json"},
};

#define CONFIGURATIONS COUNT_OF(configurations)

static struct decode decodes[CONFIGURATIONS];
static struct chain *chains[CONFIGURATIONS];

static void configure(struct decode *d, const char *const words[8])
{
    struct err e;
    bool good = true;
    decode_init(d);
    for (size_t i = 0; i < 8; i++) {
        if (words[i] == NULL)
            continue;
        const char *equals = strchr(words[i], '=');
        if (words[i][0] == '@')
            good &= decode_set_time(d, slice_text(words[i] + 1), &e);
        else if (equals != NULL)
            good &= decode_add_field(d, slice_of(words[i], (size_t)(equals - words[i])),
                                     slice_text(equals + 1), &e);
        else
            good &= decode_add_step(d, slice_text(words[i]), &e);
    }
    if (d->steps[d->step_count - 1].kind == STEP_JSON_STRING)
        good &= decode_add_step(d, slice_text("common"), &e);
    ASSERT(good && decode_finish(d, &e));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct record r = {.value = slice_of((const char *)data, size),
                       .key = slice_text("key"),
                       .topic = slice_text("/a?b"),
                       .partition = 3,
                       .timestamp_ms = 1286720242123};
    for (size_t i = 0; i < CONFIGURATIONS; i++) {
        if (chains[i] == NULL) {
            configure(&decodes[i], configurations[i]);
            chains[i] = chain_new(&decodes[i], LINE_MAX);
        }
        fuzz_decode(chains[i], &decodes[i], &r);
    }
    return 0;
}
