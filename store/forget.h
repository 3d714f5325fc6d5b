/* forget.h - takes counts out of a store: those of one file, or of a generation of a report; or has another
 * report take a report's place. `tallyd forget` and `tallyd backfill` call it, on a STORE_WRITE handle
 * (store.h). Every function with a struct err may fail.
 *
 * Source : after store_forget_begin() the caller counts the file's lines again, and hands over the cells that
 *          were once applied by store_forget().
 *          - SQLite: one transaction takes out the cells, the position and the books; store_forget_end()
 *            commits it. A crash before its end changes nothing.
 *          - A server (store_forgets_by_stripes()): store_forget() only looks whether the documents have the
 *            cells. The caller then counts the file stripe by stripe once more, from its end to its begin.
 *            store_forget_stripe() takes out each, and moves the position back, in one commit. After a crash
 *            the file is counted up to the position, as if its rest had never been read: run it again.
 * Exact  : every bucket that has not expired has all events that ever came, so it has those of the file.
 *          SQLite deletes expired buckets first: a watermark that is ahead of all remaining events moves back
 *          (store_move_back()). A server keeps the file's documents, with zeros, so it does not move back.
 *          The series stay known, without counts.
 * Errors : EX_DATAERR: a cell is not in the store, or less of it. EX_UNAVAILABLE: this kind of store takes
 *          nothing out, or raw events of the source are stored. EX_TEMPFAIL: another writer lives. After any
 *          error the caller must call store_forget_undo().
 */
#pragma once

#include "aggregate/batch.h"
#include "store/store.h"

/* The amounts that store_drop() deletes. */
struct store_dropped {
    uint64_t rows, bytes; /* rows (documents) of counts, and their bytes if the store can tell */
    uint64_t series;
};

/* The result of store_replace(). */
struct store_replaced {
    int generation; /* of the report now */
    int replaced;   /* the generation that was the newest before */
};

/* Any may be NULL: the store does not do it. */
struct store_forget_ops {
    bool (*begin)(struct store *st, const struct range *of, struct err *e);
    bool (*take)(struct store *st, const struct batch *batch, const bool *reports, struct err *e);
    bool (*end)(struct store *st, const struct range *of, struct err *e);
    bool (*stripe)(struct store *st, const struct batch *batch, const bool *reports, struct err *e);
    void (*undo)(struct store *st);
    bool (*drop)(struct store *st, const char *report, int generation, bool dry_run,
                 struct store_dropped *dropped, struct err *e);
    bool (*replace)(struct store *st, const char *by, const char *report, bool drops_old,
                    struct store_replaced *done, struct err *e);
};

/* Begin to forget a source, `of` being its stored position. Refuses a source that was also counted in
 * generations of reports that this handle has not (EX_CONFIG). */
bool store_forget_begin(struct store *st, const struct range *of, struct err *e) MUST_CHECK;
/* Take the cells of a batch's parts out of the reports whose place in `reports` is true. Ranges and books of
 * the batch are not read. Parts may be given back to their shards afterwards. */
bool store_forget(struct store *st, const struct batch *batch, const bool *reports, struct err *e) MUST_CHECK;
/* Does the store take out a file in several commits? If not, store_forget_end() does all at once. */
bool store_forgets_by_stripes(const struct store *st);
/* Take the one range of a batch out of the reports whose place in `reports` is true, and commit; durable on
 * return. The range goes back, from `from`, the source's position, to `to`; its tail is that before `to`. If
 * all of it lies in a stretch of the books (latest.FROM.MS), latest_from and latest_ms name that; otherwise
 * latest_from is -1. The books are those of the stripe. `to` 0: position and books of the source are gone
 * afterwards. Pre: the parts are of the shard whose cells store_forget() has seen. */
bool store_forget_stripe(struct store *st, const struct batch *batch, const bool *reports,
                         struct err *e) MUST_CHECK;
/* Delete the position and the books of the source, and commit; durable on return. */
bool store_forget_end(struct store *st, const struct range *of, struct err *e) MUST_CHECK;
/* Undo everything since store_forget_begin(). */
void store_forget_undo(struct store *st);

/* Delete all counts, series and books of a report's generation. EX_NOINPUT: there is none. The handle must
 * not be used for this report afterwards. `dry_run`: only say how much. */
bool store_drop(struct store *st, const char *report, int generation, bool dry_run,
                struct store_dropped *dropped, struct err *e) MUST_CHECK;
/* Make the report `by` the newest generation of `report`, in one commit. Queries see the one or the other.
 * With `drops_old` the one before is dropped: in SQLite in the same commit, on a server afterwards. Pre: this
 * handle has neither report. EX_NOINPUT: one of them is not in the store. EX_TEMPFAIL: another writer
 * lives. */
bool store_replace(struct store *st, const char *by, const char *report, bool drops_old,
                   struct store_replaced *done, struct err *e) MUST_CHECK;
