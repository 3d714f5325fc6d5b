/* batch.h - a batch: a sealed, immutable set of deltas, with the exact ranges of the sources in it. Shards
 * fill its parts, stores commit it.
 *
 * Shape  : one part per ingest thread; a part holds, per report, its cells (series, time → columns)
 *          and the keys of the series it met for the first time.
 *
 *            cells:  | series 7, time 24183241 | count 3 | bytes 5120 |   stride: report_cell_bytes()
 *
 *          Behind its columns, a cell has the sketches of the report (report_sketch()).
 *          A cell is one minute long, or one second if the report's layout is `minute` (report_cell()).
 * Series : a shard numbers its series from 0 in order of first sight. The store keeps a map from (shard,
 *          epoch, number) to its own name for the series; a new epoch empties the map.
 * Raw    : if a source has `raw`, its events are also here as documents (raw_document.h), in their order.
 * Ranges : one per file or partition that an ingest thread counted. Each has books of its own.
 * Owner  : the writer; a store only reads. Keys live until the part is given back to its shard.
 */
#pragma once

#include "aggregate/books.h"
#include "aggregate/sketch.h"
#include "aggregate/witness.h"
#include "base/text.h"
#include "ingest/derive/builds.h"

#include <stdint.h>

struct cell {
    uint32_t series; /* the series' number in its shard */
    uint32_t time;   /* minutes since 1970, until the year 10136; or seconds, until 2106 */
    int64_t value[]; /* the report's columns, see measure.h; then its sketches, in SKETCH_VALUES each */
};

/* Length of a key that is none: the series is `other` of a store. Shards add no such series, copies do. */
#define SERIES_OTHER_LEN UINT32_MAX

struct series {
    uint32_t number;
    uint32_t last;    /* index of the cell it used last in the open batch; only its shard may read it */
    uint32_t key_len; /* bytes of `key`; or SERIES_OTHER_LEN, and there is none */
    char key[];       /* settled dimension texts, joined by DIMENSION_SEPARATOR */
};

struct cells {
    char *data;
    size_t stride;
    size_t count, capacity;
};

static inline struct cell *cells_at(const struct cells *c, size_t i)
{
    return (struct cell *)(void *)(c->data + i * c->stride);
}

/* Sums saturate at the ends of int64; they never wrap. */
static inline int64_t value_add(int64_t a, int64_t b)
{
    int64_t sum;
    if (__builtin_add_overflow(a, b, &sum))
        return b < 0 ? INT64_MIN : INT64_MAX;
    return sum;
}

struct part_report {
    struct cells cells;
    struct series **added; /* numbers first_added, first_added + 1, … */
    size_t added_count, added_capacity;
    uint32_t first_added;
};

struct part {
    uint32_t shard, epoch;
    size_t report_count;
    struct part_report *reports;
    struct arena sketch_memory; /* what the sketches of all reports point to */
    struct text raw;            /* raw events: each a struct raw_head and its document */
    struct books books;         /* entries that were not taken before the seal (shard_take_books()) */
};

#define RANGE_SOURCE_BYTES    288 /* "kafka:", a topic of 249 bytes, "~" and a number */
#define RANGE_PARTITION_BYTES 16
#define RANGE_TAIL_BYTES_MAX  4096

/* State of a file that a daemon follows. A batch reports it, and the store keeps it as the book entry
 * STORE_STATE_ENTRY (store/reader.h), so a released value never changes. */
enum range_state {
    RANGE_UNCHANGED, /* the batch reports no state; an import never does */
    RANGE_FOLLOWED,  /* more lines of it may come: if it is not found later, they are lost */
    RANGE_ENDED,     /* it was read to its end, and its successor has begun */
    RANGE_LOST,      /* its rest was not found */
};
#define RANGE_STATES 256 /* in a number that has a state, the state is modulo this (daemon/file/known.h) */

/* The offsets [from, to) of a partition of a source that a batch counts. It may be empty. */
struct range {
    char source[RANGE_SOURCE_BYTES];       /* identity: "file:4096:9f…", "kafka:access" */
    char partition[RANGE_PARTITION_BYTES]; /* "" for a file, "0", "1", … for a topic */
    char label[512];                       /* name for people: the path last seen */
    int64_t from, to;
    uint64_t tail_hash; /* file: hash of tail_len bytes before `to`; topic: of the record at to - tail_len */
    uint32_t tail_len;
    struct witnesses witnesses; /* topic: counted records before `to`; file: one (daemon/file/known.h) */
    int64_t state;              /* of a followed file: enum range_state, and more (daemon/file/known.h) */
    int64_t latest_ms;          /* last instant that was not in the future, by the clock and limit of then */
    int64_t latest_from;        /* offset from which on all ranges had this latest_ms */
    struct builds builds;       /* of the lists and databases that made fields of its events */
};

/* The latest_ms of a partition's last range, and the offset since which all its ranges had that. */
struct latest {
    int64_t ms, from; /* 0: no range yet */
};

/* Set the latest_ms of a range that begins at r->from. */
static inline void range_set_latest(struct range *r, struct latest *last, int64_t latest_ms)
{
    if (last->ms != latest_ms)
        *last = (struct latest){latest_ms, r->from};
    r->latest_ms = last->ms;
    r->latest_from = last->from;
}

struct batch {
    const struct range *ranges;
    const struct books *books; /* one per range */
    size_t range_count;
    struct part **parts;
    size_t part_count;
    /* The ranges were counted before, by other reports than `report`, an index in the store: positions stay,
     * and so do the books of the sources themselves and of other reports. See store/backfill.h. */
    bool backfills;
    size_t report;
    int64_t only_from_ms, only_to_ms; /* it has only events of these times, [from, to); both 0: of any time */
    bool of_newest; /* to fill a store (store/fill.h): cells stand for days, and have newest events only */
    int64_t begun; /* the ranges are before this offset, the first that was counted at all; 0: they are not */
};
