/* update_internal.h - shared by update.c, which writes series and documents, update_sketches.c,
 * update_tops.c and update_books.c. */
#pragma once

#include "store/mongo/handle/handle.h"

/* An update under construction. */
struct update {
    struct mongo_store *m;
    struct mongo_log *log;
    int64_t after, number; /* the guard lets batches of the slot up to `after` pass; its own number */
    bool rolls_up;         /* it is of a roll-up, in pieces: mongo/writer/longer.h */
    const char *collection;
    size_t report;
    bool of_newest; /* whether the cells have newest events only */
    int64_t now_ms;
    bson_t inc, min, max, push, unset;
};

void mongo_begin_update(struct update *u);
/* Forgets the update. */
void mongo_drop_update(struct update *u);
/* Writes the update { c, f, u } to the log. `set` may be NULL. */
void mongo_end_update(struct update *u, const bson_t *filter, const bson_t *set);

/* Writes the update of a document of a series. */
void mongo_end_document(struct update *u, uint32_t series, enum span span, int64_t date_ms);

/* The cells of the report, sorted by series and time. */
static inline uint32_t update_series_at(const struct update *u, size_t i)
{
    return (uint32_t)(u->m->sorting.items[i].key >> 32);
}

static inline int64_t update_ms_at(const struct update *u, size_t i)
{
    return (uint32_t)u->m->sorting.items[i].key * report_cell_ms(&u->m->reports[u->report]);
}

static inline struct cell *update_cell_at(const struct update *u, size_t i)
{
    return u->m->sorting.cells[u->m->sorting.items[i].index];
}

/* Is the cell, of `count`, of this series, and before a time? */
static inline bool update_is_within(const struct update *u, size_t i, size_t count, uint32_t series,
                                    int64_t end_ms)
{
    return i < count && update_series_at(u, i) == series && update_ms_at(u, i) < end_ms;
}

/* Writes the documents of the report's sketches. */
void mongo_write_sketches(struct update *u, size_t cell_count);
/* Writes the documents of the report's rankings. */
void mongo_write_tops(struct update *u, size_t cell_count);
/* Writes the books of the report itself: events of the series `other`, and of expired buckets. */
void mongo_write_report_books(struct update *u, const struct batch *batch, int64_t other);
/* Writes the books of the sources. */
void mongo_write_books(struct update *u, const struct batch *batch);
