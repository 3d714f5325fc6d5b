/* sketch.h - the part of a measure that has no fixed number of columns: a histogram, or a distinct count.
 * Whatever holds a row of columns holds the row's sketches beside it. Shards fill them, stores keep them
 * packed, and queries merge them.
 *
 *   measure                 columns (measure.h)                    sketch
 *   histogram(duration)     those of mean(duration)                histogram.h
 *   distinct(host)          one: the number of events with a host  distinct.h
 *   none                    none                                   recent.h
 *
 * Order : the sketches of a row are in the order of the report's measures that have one.
 * Newest: the newest events of a report are kept by day, beside the rows: only cells and days have them.
 * Merge : in any order to the same state, and the same state has the same bytes. An empty sketch has none.
 * Owner : a sketch has its memory from the arena that the caller names, the same in each call.
 */
#pragma once

#include "aggregate/distinct.h"
#include "aggregate/histogram.h"
#include "aggregate/recent.h"

enum sketch_kind { SKETCH_HISTOGRAM, SKETCH_DISTINCT, SKETCH_RECENT };

/* Zeros: an empty sketch of any kind. It may be moved as bytes. */
union sketch {
    struct histogram histogram;
    struct distinct distinct;
    struct recent recent;
};

#define SKETCH_VALUES (sizeof(union sketch) / sizeof(int64_t)) /* in a cell */
_Static_assert(sizeof(union sketch) % sizeof(int64_t) == 0, "cells are made of int64");

void sketch_pack(enum sketch_kind kind, const union sketch *s, struct text *out);
/* Is it certainly empty? A histogram that everything was taken out of may not say so. */
static inline bool sketch_is_empty(enum sketch_kind kind, const union sketch *s)
{
    return kind == SKETCH_HISTOGRAM  ? histogram_is_empty(&s->histogram)
           : kind == SKETCH_DISTINCT ? s->distinct.mask == 0 && s->distinct.count == 0
                                     : s->recent.count == 0;
}

/* Merges another sketch of the kind, in buckets of a schema, as histogram_unite() does. It keeps no memory of
 * it; both may have theirs from the same arena. */
void sketch_unite(enum sketch_kind kind, union sketch *to, struct arena *arena, const union sketch *from,
                  int schema);
/* Merges several sketches into an empty one, in buckets of a schema. It keeps no memory of them. Quicker than
 * one by one. */
void sketch_unite_all(enum sketch_kind kind, union sketch *to, struct arena *arena,
                      const union sketch *const *from, size_t count, int schema);
/* Merges a packed sketch. False: it is damaged; `to` is then partly changed. */
bool sketch_merge(enum sketch_kind kind, union sketch *to, struct arena *arena, struct slice packed);
/* Merges it in buckets of a schema (histogram.h), if it is a histogram. */
bool sketch_merge_wide(enum sketch_kind kind, union sketch *to, struct arena *arena, struct slice packed,
                       int schema);

/* Working memory for unions. Zeros: unused. */
struct sketch_work {
    struct arena arena;
};

void sketch_work_fini(struct sketch_work *w);
/* The emptied arena of the working memory, for other unions of sketches. */
struct arena *sketch_work_ready(struct sketch_work *w);
/* Appends the union of two packed sketches to `out`. False: one is damaged. */
bool sketch_join(enum sketch_kind kind, struct slice a, struct slice b, struct sketch_work *w,
                 struct text *out);
/* Appends a packed histogram in buckets of a schema. False: it is damaged. */
bool sketch_widen(struct slice packed, int schema, struct sketch_work *w, struct text *out);
/* Appends `from` without `what`, which was merged into it before. False: one is damaged, or it was not; or it
 * cannot be told, since a distinct count forgets how often a text came. */
bool sketch_cut(enum sketch_kind kind, struct slice from, struct slice what, struct sketch_work *w,
                struct text *out);
