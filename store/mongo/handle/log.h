/* mongo/handle/log.h - the log of one batch: its updates, packed. A writer writes it ahead of the commit; the
 * writer, or another that recovers the batch, applies it.
 *
 * Shape  : BSON documents one behind the other, in zstd:
 *
 *            { c: "pages.day",
 *              f: { _id: …, "metadata.path": …, "applied.w0": { $not: { $gte: 42 } } },
 *              u: { $inc: { daily: 3, "hourly.13": 3, … }, $set: { "applied.w0": 42, … }, … } }
 *
 *          or, to preallocate a document unless it exists:
 *
 *            { c: "pages.day", f: { _id: …, "metadata.path": … }, u: { $setOnInsert: { applied: {}, … } } }
 *
 *          `u` may also have $min, $max, $push (with $each, $sort and $slice) and $unset. Each is an upsert
 *          of one document. Updates of one collection stand together. So recovery needs no configuration; any
 *          version of the program that reads this format can do it.
 * Checks : the frame ends with a checksum. A log read from the database is checked as a whole before any of
 *          it is applied; code that applies it relies on the shape above.
 * Memory : packed, however large the batch.
 * Errors : EX_DATAERR: the log is damaged.
 */
#pragma once

#include "base/err.h"
#include "base/text.h"

#include <bson/bson.h>

#define MONGO_LOG_LEVEL      1
#define MONGO_LOG_PART_BYTES ((size_t)7 << 20) /* a document of `batches` has a part of two logs */

struct mongo_log {
    void *packer; /* compressor, while the log is written */
    struct text packed;
};

void mongo_log_begin(struct mongo_log *l);
void mongo_log_add(struct mongo_log *l, const bson_t *update);
void mongo_log_end(struct mongo_log *l);
void mongo_log_fini(struct mongo_log *l);

/* Reads a log; `packed` is borrowed. */
struct mongo_log_reader {
    void *unpacker;
    bson_reader_t *updates;
    struct slice packed;    /* bytes that are not unpacked yet */
    size_t unpacked, taken; /* bytes of all updates: unpacked, and given to the caller */
    bool has_ended, has_failed;
};

void mongo_log_open(struct mongo_log_reader *r, struct slice packed);
void mongo_log_close(struct mongo_log_reader *r);
/* The next update, valid until the next call; NULL: the end. EX_DATAERR: damaged. */
bool mongo_log_next(struct mongo_log_reader *r, const bson_t **update, struct err *e) MUST_CHECK;
/* Calls `fn` for each update, until it returns false: then the walk fails, too, with *e as `fn` leaves it. */
typedef bool mongo_update_fn(void *context, const bson_t *update, struct err *e);
bool mongo_log_each(struct slice packed, mongo_update_fn *fn, void *context, struct err *e) MUST_CHECK;
/* Checks the whole log. EX_DATAERR: damaged. */
bool mongo_log_check(struct slice packed, struct err *e) MUST_CHECK;
