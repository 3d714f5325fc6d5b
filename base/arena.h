/* arena.h - memory handed out in order and given back all at once; what was handed out never moves.
 *
 * Why     : keys of series are read by the writer while their ingest thread adds more.
 * Limits  : none of its own; its user watches arena_bytes().
 * Threads : one at a time; bytes already handed out may be read by others after a hand-over.
 */
#pragma once

#include "base/slice.h"

struct arena_chunk;

struct arena {
    struct arena_chunk *chunks; /* newest first */
    size_t chunk_bytes;
    size_t used;  /* of the newest chunk */
    size_t total; /* allocated, all chunks */
};

void arena_init(struct arena *a, size_t chunk_bytes);
void arena_fini(struct arena *a);
void *arena_add(struct arena *a, size_t bytes);
struct slice arena_copy(struct arena *a, struct slice s);
/* Forget everything; keeps one chunk for the next round. */
void arena_reset(struct arena *a);

static inline size_t arena_bytes(const struct arena *a)
{
    return a->total;
}
