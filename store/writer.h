/* writer.h - writes a store: claims partitions, applies batches, folds rows, and expires time buckets. The
 * thread that counts calls it, on a STORE_WRITE handle (store.h). Every function with a struct err may fail.
 *
 * Raw    : a batch's documents of raw events (batch.h) are stored before the batch, under names of their own.
 *          So a repeated batch stores none twice. Documents that a server refuses are counted as such; their
 *          events are counted all the same.
 */
#pragma once

#include "aggregate/batch.h"
#include "store/store.h"

/* Work of one call of store_expire(). */
struct expired {
    uint64_t rows, bytes; /* rows (documents) deleted, and their bytes if the store can tell */
    bool more;            /* whether the call ended before all was done */
};

struct store_forget_ops;
struct store_splice_ops;

/* The writing operations of a kind of store. */
struct store_writer_ops {
    /* NULL, both: there is only one writer at a time. */
    bool (*meet)(struct store *st, struct err *e);
    bool (*claim)(struct store *st, struct range *ranges, size_t count, struct err *e);
    bool (*settle)(struct store *st, struct err *e); /* NULL: books are never behind positions */
    bool (*apply)(struct store *st, const struct batch *batch, struct err *e);
    bool (*housekeep)(struct store *st, bool all, struct err *e);
    bool (*expire)(struct store *st, int64_t now_ms, bool trusts_clock, struct expired *expired,
                   struct err *e);
    bool (*move_back)(struct store *st, size_t report, int64_t now_ms, struct err *e);
    const struct store_forget_ops *forget; /* forget.h; NULL: it takes nothing out again */
    const struct store_splice_ops *splice; /* splice.h; NULL: a report takes only a whole place */
    bool backfills;                        /* does `apply` take batches that backfill? */
};

/* May this writer continue beside the other writers of the same server? The store asks by itself now and
 * then; call it before a consumer group is joined. EX_CONFIG: no; the error names the other writer. */
bool store_meet(struct store *st, struct err *e) MUST_CHECK;
/* Make partitions, named by `source` and `partition` of their ranges, this handle's own: their former writer
 * can no longer count them. `from` and `to` become the offset up to which the partition is counted; -1: it
 * was never counted. Tail, latest_ms and label become those of the last range. Without a claim, the first
 * batch with a range of a partition makes it. */
bool store_claim(struct store *st, struct range *ranges, size_t count, struct err *e) MUST_CHECK;
/* Have the books of all positions that store_positions() gave before: another writer's batch may have moved a
 * position, and not be in the books yet. */
bool store_settle(struct store *st, struct err *e) MUST_CHECK;
/* Apply all of a batch or nothing; durable on return. Parts may be given back to their shards afterwards.
 * EX_DATAERR: a range does not begin at its position; or, if the batch backfills, it was counted before. */
bool store_apply(struct store *st, const struct batch *batch, struct err *e) MUST_CHECK;
/* Compaction between batches, bounded in time: fold fresh rows into rows of longer buckets; in a server,
 * delete batch logs. `all`: leave none, however long it takes. */
bool store_housekeep(struct store *st, bool all, struct err *e) MUST_CHECK;

/* Move the expiry watermarks to what reports keep at `now_ms`. Delete some of the buckets before them, for
 * little longer than STORE_EXPIRE_MS. The caller that admits events must read the watermarks before the next
 * batch. Expiry is irreversible: the caller takes `now_ms` from daemon/count/event_time.h. Unless
 * `trusts_clock`, the caller must also keep watermarks from leaping. The store then moves the newest period
 * of raw events by one period at most. */
#define STORE_EXPIRE_MS 30
bool store_expire(struct store *st, int64_t now_ms, bool trusts_clock, struct expired *expired,
                  struct err *e) MUST_CHECK;
/* Move back a report's expiry watermarks that are ahead of its events. They move to the end of the newest
 * hour or day that has events, since nothing behind it was deleted or left out yet. In a server they also
 * stay ahead of the clock by a margin, since other daemons may have read events by the old watermarks. They
 * never move before the time from which the report keeps buckets at `now_ms`. The caller must know that the
 * watermarks are wrong. */
bool store_move_back(struct store *st, size_t report, int64_t now_ms, struct err *e) MUST_CHECK;

/* ---- shared by the kinds of store: entries of the books, as book_fn of reader.h lists them */

/* The number that a cell of the series `other` adds to the book entry `other`: the cell's first count, or 1
 * in a report without counts. */
static inline int64_t store_cell_count(const struct report *r, const struct cell *c)
{
    for (size_t i = 0; i < r->measure_count; i++) {
        if (r->measures[i].kind == MEASURE_COUNT)
            return c->value[r->measures[i].column];
    }
    return 1;
}

#define STORE_ENTRY_BYTES 64
const char *store_late_entry(enum span span, char buf[STORE_ENTRY_BYTES]);
const char *store_gap_entry(int64_t from, char buf[STORE_ENTRY_BYTES]);
const char *store_latest_entry(const struct range *r, char buf[STORE_ENTRY_BYTES]);
