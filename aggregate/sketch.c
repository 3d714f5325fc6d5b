#include "aggregate/sketch.h"

#include <string.h>

#define WORK_BYTES  ((size_t)64 << 10)
#define UNITED_LIST 2048 /* entries of distinct counts that are united at once */

void sketch_pack(enum sketch_kind kind, const union sketch *s, struct text *out)
{
    if (kind == SKETCH_HISTOGRAM)
        histogram_pack(&s->histogram, out);
    else if (kind == SKETCH_DISTINCT)
        distinct_pack(&s->distinct, out);
    else
        recent_pack(&s->recent, out);
}

void sketch_unite(enum sketch_kind kind, union sketch *to, struct arena *arena, const union sketch *from,
                  int schema)
{
    if (kind == SKETCH_HISTOGRAM)
        histogram_unite(&to->histogram, arena, &from->histogram, schema);
    else if (kind == SKETCH_DISTINCT)
        distinct_unite(&to->distinct, arena, &from->distinct);
    else
        recent_add_all(&to->recent, arena, &from->recent);
}

static void unite_histograms(struct histogram *to, struct arena *arena, const union sketch *const *from,
                             size_t count, int schema)
{
    struct histogram_sides sides = {0};
    size_t used = 0;
    for (size_t i = 0; i < count; i++) {
        histogram_cover(&sides, &from[i]->histogram);
        used += !sketch_is_empty(SKETCH_HISTOGRAM, from[i]);
    }
    if (used > HISTOGRAM_FEW && schema == HISTOGRAM_SCHEMA_MAX)
        histogram_make_room(to, arena, &sides);
    for (size_t i = 0; i < count; i++)
        histogram_unite(to, arena, &from[i]->histogram, schema);
}

static void unite_distincts(struct distinct *to, struct arena *arena, const union sketch *const *from,
                            size_t count)
{
    uint32_t list[UNITED_LIST], scratch[UNITED_LIST];
    size_t n = 0, i = 0;
    for (; i < count && from[i]->distinct.mask != DISTINCT_MANY && n + from[i]->distinct.count <= UNITED_LIST;
         i++)
        n += distinct_list(&from[i]->distinct, list + n);
    distinct_add_list(to, arena, list, scratch, n);
    for (; i < count; i++)
        distinct_unite(to, arena, &from[i]->distinct);
}

void sketch_unite_all(enum sketch_kind kind, union sketch *to, struct arena *arena,
                      const union sketch *const *from, size_t count, int schema)
{
    ASSERT(kind != SKETCH_RECENT); /* newest events are no measure's */
    if (kind == SKETCH_HISTOGRAM)
        unite_histograms(&to->histogram, arena, from, count, schema);
    else
        unite_distincts(&to->distinct, arena, from, count);
}

bool sketch_merge(enum sketch_kind kind, union sketch *to, struct arena *arena, struct slice packed)
{
    return sketch_merge_wide(kind, to, arena, packed, HISTOGRAM_SCHEMA_MAX);
}

bool sketch_merge_wide(enum sketch_kind kind, union sketch *to, struct arena *arena, struct slice packed,
                       int schema)
{
    return kind == SKETCH_HISTOGRAM  ? histogram_merge(&to->histogram, arena, packed, schema)
           : kind == SKETCH_DISTINCT ? distinct_merge(&to->distinct, arena, packed)
                                     : recent_merge(&to->recent, arena, packed);
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

bool sketch_widen(struct slice packed, int schema, struct sketch_work *w, struct text *out)
{
    struct histogram wide = {0};
    if (!histogram_merge(&wide, sketch_work_ready(w), packed, schema))
        return false;
    histogram_pack(&wide, out);
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
