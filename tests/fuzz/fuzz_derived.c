/* Any bytes as lines of a log whose derived fields are made, by rules of routes, some of them careless. */
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/fuzz_decode.h"

#define LINE_MAX 65536

static const char *const fields[] = {"host_net",         "host_id", "hour_of_day",  "day_of_week", "query:a",
                                     "query:utm_source", "route",   "agent_family", "agent_os",    "bot"};
static const char *const steps[] = {"auto", "tsv:time,host,target,agent", "json"};
static char key[] = "0123456789abcdef";

static void ask(struct derive *d)
{
    static const char *const rules[][2] = {
        {"^/shop/([a-z]+)/.*", "/shop/$1"}, {"(a*)*[bd]$", "$0!"}, {"(.*)(.*)(.*)x$", "$3$1$9$$"}};
    struct err e;
    bool good = true;
    for (size_t i = 0; i < COUNT_OF(fields); i++)
        good = good && derive_ask(d, slice_text(fields[i]), false, &e);
    for (size_t i = 0; i < COUNT_OF(rules); i++)
        good = good && route_add_rule(&d->routes, slice_text(rules[i][0]), slice_text(rules[i][1]), &e);
    good = good && derive_open(d, &e);
    ASSERT(good);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct derive derives[2] = {{.key = key}, {.key = key, .anonymise = true}};
    static struct decode decodes[2 * COUNT_OF(steps)];
    static struct chain *chains[2 * COUNT_OF(steps)];
    struct record r = {.value = slice_of((const char *)data, size), .timestamp_ms = -1};
    for (size_t i = 0; i < COUNT_OF(chains); i++) {
        if (chains[i] == NULL) {
            chain_free(fuzz_chain_of(&decodes[i], steps[i / 2], NULL, LINE_MAX));
            decodes[i].derive = &derives[i % 2];
            if (derives[i % 2].field_count == 0)
                ask(&derives[i % 2]);
            chains[i] = chain_new(&decodes[i], LINE_MAX);
        }
        fuzz_decode_in_time(chains[i], &decodes[i], &r);
    }
    return 0;
}
