/* Any bytes as lines of a log whose derived fields are made, by rules of routes, some of them careless. */
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/fuzz_decode.h"

#define LINE_MAX 65536

static const char *const fields[] = {"host_net", "hour_of_day",      "day_of_week",
                                     "query:a",  "query:utm_source", "route"};
static const char *const steps[] = {"auto", "tsv:time,host,target,agent", "json"};

static void ask(struct derive *d)
{
    static const char *const rules[][2] = {
        {"^/shop/([a-z]+)/.*", "/shop/$1"}, {"(a*)*[bd]$", "$0!"}, {"(.*)(.*)(.*)x$", "$3$1$9$$"}};
    struct err e;
    bool good = true;
    for (size_t i = 0; i < COUNT_OF(fields); i++)
        good = good && derive_ask(d, slice_text(fields[i]), &e);
    for (size_t i = 0; i < COUNT_OF(rules); i++)
        good = good && route_add_rule(&d->routes, slice_text(rules[i][0]), slice_text(rules[i][1]), &e);
    good = good && derive_open(d, &e);
    ASSERT(good);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct derive derive;
    static struct decode decodes[COUNT_OF(steps)];
    static struct chain *chains[COUNT_OF(steps)];
    struct record r = {.value = slice_of((const char *)data, size), .timestamp_ms = -1};
    if (derive.field_count == 0)
        ask(&derive);
    for (size_t i = 0; i < COUNT_OF(steps); i++) {
        if (chains[i] == NULL) {
            chain_free(fuzz_chain_of(&decodes[i], steps[i], NULL, LINE_MAX));
            decodes[i].derive = &derive;
            chains[i] = chain_new(&decodes[i], LINE_MAX);
        }
        fuzz_decode_in_time(chains[i], &decodes[i], &r);
    }
    return 0;
}
