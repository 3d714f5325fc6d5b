/* witness.h - witnesses: counted records that later prove that a partition's log is still the same.
 *
 * A topic's offsets begin at 0 again when it is deleted and created. A broker that lost the end of its log
 * assigns the same offsets twice. So the position of a partition holds offsets and hashes of some counted
 * records: the last ones, and older ones at about doubling distances. Compaction may take some of them;
 * the others can still be compared (daemon/topic/compare.h).
 *
 * Stored : WITNESS_BYTES each, oldest first: offset, then hash, both 8 bytes, little-endian.
 * Threads: plain values, used by their owner's thread.
 */
#pragma once

#include "base/slice.h"

#include <stdbool.h>
#include <stdint.h>

#define WITNESSES_MAX    16
#define WITNESSES_RECENT 3 /* so many of the newest always stay */
#define WITNESS_BYTES    16

struct witness {
    int64_t offset;
    uint64_t hash; /* hash of key, value and time: partition_hash() */
};

/* Oldest first. */
struct witnesses {
    uint32_t count;
    struct witness at[WITNESSES_MAX];
};

static inline const struct witness *witnesses_newest(const struct witnesses *w)
{
    return w->count > 0 ? &w->at[w->count - 1] : NULL;
}

/* Does nothing unless `offset` is above all others. A full list drops the witness that proves least. */
void witnesses_add(struct witnesses *w, int64_t offset, uint64_t hash);
/* Returns the number of bytes written. */
size_t witnesses_pack(const struct witnesses *w, unsigned char bytes[WITNESSES_MAX * WITNESS_BYTES]);
/* False: the bytes are damaged, and the list is empty. */
bool witnesses_unpack(struct witnesses *w, struct slice bytes);
