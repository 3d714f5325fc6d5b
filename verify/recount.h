/* recount.h - the judge: counts lines again, naively, event by event, into one plain table.
 *
 * Shares with the counting path only what defines an event and a series (decoder, filter, dimension); no
 * shard, batch, store or threads. The same table also takes what a scan of the store returns, so that the
 * two can be compared cell by cell.
 *
 * Memory: 16 bytes a cell and 8 a column in tables at most 3/4 full, three of them while a report is
 *         compared, and the keys: about half a GiB for five million cells of the usual two columns.
 */
#pragma once

#include "aggregate/books.h"
#include "aggregate/report.h"
#include "base/arena.h"
#include "base/civil.h"
#include "base/err.h"
#include "ingest/decode/clf.h"

#include <stdint.h>

struct recount_cell {
    uint32_t series;
    int64_t slot_ms;   /* -1: an empty place of the table */
    int64_t columns[]; /* of the report */
};

/* (series, slot) → columns, by open addressing. */
struct recount_cells {
    char *data;
    size_t column_count;
    uint32_t salt; /* its own: filled in another table's order, the same hashes would pile up */
    size_t mask, count;
};

void recount_cells_init(struct recount_cells *t, uint32_t salt, size_t column_count);
void recount_cells_fini(struct recount_cells *t);
/* Place `i` of 0 to mask. */
struct recount_cell *recount_cells_at(const struct recount_cells *t, size_t i);
struct recount_cell *recount_cells_get(struct recount_cells *t, uint32_t series, int64_t slot_ms);
/* NULL where it is not there. */
const struct recount_cell *recount_cells_find(const struct recount_cells *t, uint32_t series,
                                              int64_t slot_ms);

struct recount_key {
    struct slice text; /* ptr NULL: an empty place */
    uint32_t series;
};

/* One report, recounted. Series are numbered from 0 in order of first sight. */
struct recount {
    const struct report *report;
    struct recount_key *keys;
    size_t key_mask;
    struct slice *key_of; /* by series */
    size_t series_count, key_capacity;
    struct arena arena;
    struct recount_cells cells; /* as long as the report's */
    size_t dimension_bytes_max;
    char *scratch;
};

void recount_init(struct recount *rc, const struct report *report, size_t dimension_bytes_max);
void recount_fini(struct recount *rc);
/* True if the event passed the report's filter. */
bool recount_add(struct recount *rc, const struct event *ev);
/* The series of a key; UINT32_MAX where there is none. */
uint32_t recount_series(const struct recount *rc, struct slice key);
/* The cells summed up by longer slots, those from an instant on, into an empty table. */
void recount_sum(const struct recount *rc, enum span slot, int64_t from_ms, struct recount_cells *into);
