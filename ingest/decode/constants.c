#include "ingest/decode/constants.h"

#include "base/check.h"
#include "base/mem.h"
#include "ingest/decode/chain_field.h"

#include <stdlib.h>

void constants_add(struct constants *k, enum field f, struct slice text)
{
    struct event ev = {0};
    uint64_t bit = (uint64_t)1 << f;
    ASSERT(k->count < CONSTANTS_MAX && (k->bits & bit) == 0);
    ASSERT(f >= FIELD_COUNT || (CHAIN_FIELD_TEXTS & bit) != 0);
    enum reject_reason reason = chain_field_put(&ev, f, text, false);
    ASSERT(reason == REJECT_COUNT);
    if (!event_has(&ev, f))
        return;
    text.ptr = xstrndup(text.ptr, text.len);
    k->list[k->count++] = (struct constant){f, text, ev.number[f]};
    k->bits |= bit;
    k->odd |= ev.odd;
    k->numeric |= ev.numeric;
}

void constants_fini(struct constants *k)
{
    for (size_t i = 0; i < k->count; i++)
        free((char *)k->list[i].text.ptr);
    *k = (struct constants){0};
}
