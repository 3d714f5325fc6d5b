/* Any bytes as a message, by several chains: every event's fields lie in the message or in memory that is
 * there, numbers are within their limits, rejects have a reason and a column, and it comes to an end. */
#include "base/check.h"
#include "base/civil.h"
#include "ingest/decode/chain.h"
#include "ingest/scan.h"
#include "tests/fuzz/fuzz.h"

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

static bool is_within(struct slice part, struct slice whole)
{
    return part.ptr >= whole.ptr && slice_end(part) <= slice_end(whole);
}

static void check_event(const struct event *ev, const struct decode *d)
{
    static volatile char sum; /* so that every byte is read, and must be there */
    ASSERT(ev->at_ms >= 0 && ev->at_ms < CIVIL_END_MS);
    ASSERT((ev->odd & ~ev->present) == 0);
    for (int i = 0; i < field_count(); i++) {
        enum field f = (enum field)i;
        if (!event_has(ev, f))
            continue;
        struct slice s = ev->field[f];
        for (size_t k = 0; k < s.len; k++)
            sum = (char)(sum ^ s.ptr[k]);
        ASSERT(decode_provides(d, f));
        ASSERT(event_is_odd(ev, f) == scan_has_odd(s.ptr, slice_end(s)));
        if (!field_is_number(f) || !event_has_number(ev, f))
            continue;
        int64_t max = f == FIELD_STATUS ? 999 : f == FIELD_BYTES ? EVENT_NUMBER_MAX : EVENT_DECIMAL_MAX;
        ASSERT(ev->number[f] <= max && ev->number[f] >= (field_scale(f) == 1 ? 0 : -max));
    }
}

static void run(struct chain *c, const struct decode *d, const struct record *r)
{
    struct event ev;
    struct reject why;
    struct slice bytes;
    enum chain_result what;
    size_t results = 0;
    chain_start(c, r);
    while ((what = chain_next(c, &ev, &why, &bytes)) != CHAIN_END) {
        ASSERT(++results <= r->value.len + 1);
        if (what == CHAIN_EVENT)
            check_event(&ev, d);
        else
            ASSERT((unsigned)why.reason < REJECT_COUNT && why.column >= 1 && why.column <= bytes.len + 1);
        if (d->step_count == 1)
            ASSERT(is_within(bytes, r->value));
    }
    chain_flush(c);
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
        run(chains[i], &decodes[i], &r);
    }
    return 0;
}
