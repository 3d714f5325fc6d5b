#include "base/index.h"

#include "base/check.h"
#include "base/mem.h"

#define XXH_INLINE_ALL
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#define SLOTS_MIN 64

uint64_t index_hash_text(const char *text)
{
    return XXH3_64bits(text, strlen(text));
}

void index_fini(struct index *ix)
{
    free(ix->slots);
    *ix = (struct index){0};
}

void index_clear(struct index *ix)
{
    if (ix->count > 0)
        memset(ix->slots, 0, ix->slot_count * sizeof *ix->slots);
    ix->count = 0;
}

static void put_slot(struct index *ix, struct index_slot slot)
{
    size_t at = slot.hash;
    while (ix->slots[at & (ix->slot_count - 1)].number != 0)
        at++;
    ix->slots[at & (ix->slot_count - 1)] = slot;
}

uint32_t index_add(struct index *ix, uint64_t hash)
{
    ASSERT(ix->count < UINT32_MAX);
    if ((size_t)ix->count * 2 >= ix->slot_count) {
        struct index old = *ix;
        ix->slot_count = old.slot_count > 0 ? old.slot_count * 2 : SLOTS_MIN;
        ix->slots = xtable(ix->slot_count, sizeof *ix->slots);
        for (size_t i = 0; i < old.slot_count; i++) {
            if (old.slots[i].number != 0)
                put_slot(ix, old.slots[i]);
        }
        free(old.slots);
    }
    put_slot(ix, (struct index_slot){(uint32_t)hash, ++ix->count});
    return ix->count;
}
