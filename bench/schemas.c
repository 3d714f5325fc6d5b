/* schemas.c - what one message costs that is read by a schema: decodes the same message N times. Run it under
 * callgrind with N and 2N: the difference is what N events cost. */
#include "ingest/decode/chain.h"

#include <stdio.h>
#include <stdlib.h>

static bool open_schema(struct registry *r, const struct decode *d, struct err *e)
{
    return !decode_needs_schema(d) ||
           (registry_ask(r, decode_schema_kind(d), d->schema_path, e) && registry_open(r, &clock_system, e));
}

static size_t decode_all(struct chain *c, struct slice message, size_t wanted)
{
    size_t events = 0;
    const struct record r = {.value = message, .timestamp_ms = -1};
    for (size_t i = 0; i < wanted; i++) {
        struct event ev;
        struct reject why;
        struct slice bytes;
        chain_start(c, &r);
        while (chain_next(c, &ev, &why, &bytes) == CHAIN_EVENT)
            events++;
        chain_flush(c);
    }
    return events;
}

int main(int argc, char **argv)
{
    static char message[65536];
    struct err e;
    struct decode d;
    struct registry r = {0};
    FILE *file = argc >= 4 ? fopen(argv[1], "re") : NULL;
    if (file == NULL) {
        fprintf(stderr, "usage: bench_schemas MESSAGE-FILE STEP... EVENTS\n");
        return EX_USAGE;
    }
    size_t len = fread(message, 1, sizeof message, file);
    fclose(file);
    decode_init(&d);
    d.registry = &r;
    bool good = true;
    for (int i = 2; i < argc - 1 && good; i++)
        good = decode_add_step(&d, slice_text(argv[i]), &e);
    if (!good || !decode_finish(&d, &e) || !open_schema(&r, &d, &e)) {
        fprintf(stderr, "%s\n", e.text);
        return e.code;
    }
    struct chain *c = chain_new(&d, 65536);
    printf("%zu events of %zu bytes\n",
           decode_all(c, slice_of(message, len), strtoull(argv[argc - 1], NULL, 10)), len);
    chain_free(c);
    registry_fini(&r);
    return 0;
}
