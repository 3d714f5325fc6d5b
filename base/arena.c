#include "base/arena.h"

#include "base/check.h"
#include "base/mem.h"

#include <stdlib.h>

struct arena_chunk {
    struct arena_chunk *next;
    size_t bytes;
    _Alignas(16) char data[];
};

void arena_init(struct arena *a, size_t chunk_bytes)
{
    ASSERT(chunk_bytes >= 64);
    *a = (struct arena){.chunk_bytes = chunk_bytes};
}

static void free_chunks(struct arena *a, struct arena_chunk *chunk)
{
    while (chunk != NULL) {
        struct arena_chunk *next = chunk->next;
        a->total -= chunk->bytes;
        free(chunk);
        chunk = next;
    }
}

void arena_fini(struct arena *a)
{
    free_chunks(a, a->chunks);
    a->chunks = NULL;
    ASSERT(a->total == 0);
}

void arena_reset(struct arena *a)
{
    a->used = 0;
    if (a->chunks == NULL)
        return;
    free_chunks(a, a->chunks->next);
    a->chunks->next = NULL;
}

void *arena_add(struct arena *a, size_t bytes)
{
    size_t rounded = (bytes + 7) & ~(size_t)7;
    if (a->chunks == NULL || a->used + rounded > a->chunks->bytes) {
        size_t room = rounded > a->chunk_bytes ? rounded : a->chunk_bytes;
        struct arena_chunk *chunk = xmalloc(sizeof *chunk + room);
        chunk->bytes = room;
        chunk->next = a->chunks;
        a->chunks = chunk;
        a->used = 0;
        a->total += room;
    }
    void *ptr = a->chunks->data + a->used;
    a->used += rounded;
    return ptr;
}

struct slice arena_copy(struct arena *a, struct slice s)
{
    char *copy = arena_add(a, s.len);
    if (s.len > 0)
        memcpy(copy, s.ptr, s.len);
    return slice_of(copy, s.len);
}

struct slice arena_join(struct arena *a, struct slice first, const char *between, struct slice last)
{
    const struct slice middle = slice_text(between);
    char *out = arena_add(a, first.len + middle.len + last.len);
    size_t len = 0;
    slice_write(first, out, &len);
    slice_write(middle, out, &len);
    slice_write(last, out, &len);
    return slice_of(out, len);
}
