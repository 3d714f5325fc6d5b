#include "aggregate/sketch.h"

#include <string.h>

#define WORK_BYTES ((size_t)64 << 10)

void sketch_pack(enum sketch_kind kind, const union sketch *s, struct text *out)
{
    if (kind == SKETCH_HISTOGRAM)
        histogram_pack(&s->histogram, out);
    else
        distinct_pack(&s->distinct, out);
}

bool sketch_merge(enum sketch_kind kind, union sketch *to, struct arena *arena, struct slice packed)
{
    return kind == SKETCH_HISTOGRAM ? histogram_merge(&to->histogram, arena, packed)
                                    : distinct_merge(&to->distinct, arena, packed);
}

static void add_histogram(struct histogram *to, struct arena *arena, const struct histogram *from)
{
    struct histogram_walk w = histogram_walk(from);
    struct histogram_bucket b;
    while (histogram_next(&w, &b))
        histogram_add(to, arena, b.slot, b.count);
}

static void add_registers(struct distinct *to, struct arena *arena, const struct distinct *from)
{
    uint8_t ranks[DISTINCT_REGISTERS];
    distinct_ranks(from, ranks);
    for (uint32_t i = 0; i < DISTINCT_REGISTERS; i++) {
        const bool is_good = ranks[i] == 0 || distinct_add_register(to, arena, i, ranks[i]);
        ASSERT(is_good);
    }
}

static void add_entries(struct distinct *to, struct arena *arena, const struct distinct *from)
{
    uint32_t places;
    const uint32_t *entries = distinct_entries(from, &places);
    for (uint32_t i = 0; i < places; i++) {
        if (entries[i] != 0)
            distinct_add_entry(to, arena, entries[i]);
    }
}

void sketch_add(enum sketch_kind kind, union sketch *to, struct arena *arena, const union sketch *from)
{
    if (kind == SKETCH_HISTOGRAM)
        add_histogram(&to->histogram, arena, &from->histogram);
    else if (from->distinct.mask == DISTINCT_MANY)
        add_registers(&to->distinct, arena, &from->distinct);
    else
        add_entries(&to->distinct, arena, &from->distinct);
}

struct arena *sketch_work_ready(struct sketch_work *w)
{
    if (w->arena.chunk_bytes == 0)
        arena_init(&w->arena, WORK_BYTES);
    else
        arena_reset(&w->arena);
    return &w->arena;
}

void sketch_work_fini(struct sketch_work *w)
{
    arena_fini(&w->arena);
    *w = (struct sketch_work){0};
}

bool sketch_join(enum sketch_kind kind, struct slice a, struct slice b, struct sketch_work *w,
                 struct text *out)
{
    if (kind == SKETCH_DISTINCT && distinct_join(a, b, out))
        return true;
    struct arena *arena = sketch_work_ready(w);
    union sketch both;
    memset(&both, 0, sizeof both);
    if (!sketch_merge(kind, &both, arena, a) || !sketch_merge(kind, &both, arena, b))
        return false;
    sketch_pack(kind, &both, out);
    return true;
}

bool sketch_cut(enum sketch_kind kind, struct slice from, struct slice what, struct sketch_work *w,
                struct text *out)
{
    struct arena *arena = sketch_work_ready(w);
    union sketch rest;
    memset(&rest, 0, sizeof rest);
    if (what.len > 0 && kind != SKETCH_HISTOGRAM)
        return false;
    if (!sketch_merge(kind, &rest, arena, from) ||
        (what.len > 0 && !histogram_take(&rest.histogram, arena, what)))
        return false;
    sketch_pack(kind, &rest, out);
    return true;
}
