/* arena.h - an arena allocator: it hands out memory in order and frees all of it at once. Memory never moves.
 *
 * Why     : since memory never moves, the writer may read the keys of series while an ingest thread adds
 *           more.
 * Limits  : none of its own; the caller watches arena_bytes(). More than chunk_bytes get a chunk of their
 *           own.
 * Errors  : none; if memory runs out, the process ends (mem.h).
 * Threads : one at a time. Others may read what was added before a lock or an atomic store told them of it.
 */
#pragma once

#include "base/slice.h"

struct arena_chunk;

struct arena {
    struct arena_chunk *chunks; /* newest first */
    size_t chunk_bytes;
    size_t used;  /* bytes used in the newest chunk */
    size_t total; /* bytes allocated in all chunks */
};

void arena_init(struct arena *a, size_t chunk_bytes);
void arena_fini(struct arena *a);
void *arena_add(struct arena *a, size_t bytes);
struct slice arena_copy(struct arena *a, struct slice s);
/* Three texts, one behind the other. */
struct slice arena_join(struct arena *a, struct slice first, const char *between, struct slice last);
/* Frees everything but one chunk, which serves the next round. */
void arena_reset(struct arena *a);

static inline size_t arena_bytes(const struct arena *a)
{
    return a->total;
}
