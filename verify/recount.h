/* recount.h - counts lines again, naively, event by event, into one plain table. verify.h compares the table
 * with the store.
 *
 * The recount shares with the counting path only the definitions of event and series (decoder, filter,
 * sample, dimension): no shard, batch, store or threads. The same kind of table also takes what a scan of the
 * store returns, so that the two can be compared cell by cell.
 *
 * Memory: 16 bytes a cell and 8 a column in tables at most 3/4 full, three of them while a report is
 *         compared, and the keys: about half a GiB for five million cells of two columns each. A histogram or
 *         distinct count takes 24 bytes more for each event that has the number or text (observations.h);
 *         while it is compared, also its packed sketches of one resolution, twice.
 */
#pragma once

#include "aggregate/books.h"
#include "aggregate/report.h"
#include "base/arena.h"
#include "base/civil.h"
#include "base/err.h"
#include "base/index.h"
#include "ingest/decode/clf.h"
#include "verify/observations.h"
#include "verify/recent.h"

#include <stdint.h>

struct recount_cell {
    uint32_t series;
    int64_t bucket_ms; /* start of the time bucket; -1: an empty place of the table */
    int64_t columns[]; /* the report's columns */
};

/* (series, bucket) → columns, by open addressing. It is no base/index.h, since cells within the table take
 * less memory than cells beside it: there are millions. */
struct recount_cells {
    char *data;
    size_t column_count;
    uint32_t salt; /* differs by table: filled in another table's order, equal hashes would pile up */
    size_t mask, count;
};

void recount_cells_init(struct recount_cells *t, uint32_t salt, size_t column_count);
void recount_cells_fini(struct recount_cells *t);
/* The cell at place `i`, from 0 to mask. */
struct recount_cell *recount_cells_at(const struct recount_cells *t, size_t i);
struct recount_cell *recount_cells_get(struct recount_cells *t, uint32_t series, int64_t bucket_ms);
/* Returns NULL if there is no such cell. */
const struct recount_cell *recount_cells_find(const struct recount_cells *t, uint32_t series,
                                              int64_t bucket_ms);

/* One report, recounted. Series are numbered from 0 in order of first sight. */
struct recount {
    const struct report *report;
    struct index by_key;
    struct slice *key_of; /* keys, by series */
    size_t series_count, key_capacity;
    struct arena arena;
    struct recount_cells cells;                            /* cells of the report's shortest resolution */
    struct observations observations[REPORT_MEASURES_MAX]; /* by sketch of the report */
    struct recent_list recent;                             /* if the report keeps newest events */
    size_t dimension_bytes_max;
    char *scratch;
};

void recount_init(struct recount *rc, const struct report *report, size_t dimension_bytes_max);
void recount_fini(struct recount *rc);
/* True if the event passed the report's filter, and is drawn if the report has a sample. `of`: the
 * event's partition. */
bool recount_add(struct recount *rc, const struct event *ev, const struct recount_origin *of);
/* The series of a key; UINT32_MAX: there is none. */
uint32_t recount_series(const struct recount *rc, struct slice key);
/* Merge the cells from from_ms on into time buckets of a longer resolution. Pre: the table is empty. */
void recount_sum(const struct recount *rc, enum span resolution, int64_t from_ms, struct recount_cells *into);
