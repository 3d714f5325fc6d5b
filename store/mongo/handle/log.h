/* mongo/handle/log.h - the deltas of one batch as the updates that carry them out, packed: what is written
 * ahead, and what is applied, by its writer or by whoever recovers it.
 *
 * Shape  : BSON documents one behind the other, in zstd:
 *
 *            { c: "pages.day",
 *              f: { _id: …, "metadata.path": …, "applied.w0": { $not: { $gte: 42 } } },
 *              u: { $inc: { daily: 3, "hourly.13": 3, … }, $set: { "applied.w0": 42, … }, … } }
 *
 *          or, of a document that is made before anything is counted in it, and only if it is not there:
 *
 *            { c: "pages.day", f: { _id: …, "metadata.path": … }, u: { $setOnInsert: { applied: {}, … } } }
 *
 *          each an upsert of one document, those of one collection together. So recovery needs no
 *          configuration, and no version of the program but one that reads this.
 * Checks : the frame ends with a checksum. What was in the database is checked as a whole before anything of
 *          it is carried out; who carries it out relies on the shape above.
 * Memory : packed, however large the batch.
 */
#pragma once

#include "base/err.h"
#include "base/text.h"

#include <bson/bson.h>

#define MONGO_LOG_LEVEL      1
#define MONGO_LOG_PART_BYTES ((size_t)8 << 20) /* of one document of `batches` */

struct mongo_log {
    void *packer; /* while it is written */
    struct text packed;
};

void mongo_log_begin(struct mongo_log *l);
void mongo_log_add(struct mongo_log *l, const bson_t *update);
void mongo_log_end(struct mongo_log *l);
void mongo_log_fini(struct mongo_log *l);

/* Reading one, which is borrowed. */
struct mongo_log_reader {
    void *unpacker;
    struct slice packed; /* what is left of it */
    struct text raw;     /* unpacked, … */
    size_t at;           /* … and taken up to here */
    bool has_ended;
};

void mongo_log_open(struct mongo_log_reader *r, struct slice packed);
void mongo_log_close(struct mongo_log_reader *r);
/* The next update, in order, until the next call; of no bytes: the end. EX_DATAERR: it is damaged. */
bool mongo_log_next(struct mongo_log_reader *r, struct slice *update, struct err *e) MUST_CHECK;
/* Is all of it as it was written? EX_DATAERR: no. */
bool mongo_log_check(struct slice packed, struct err *e) MUST_CHECK;
