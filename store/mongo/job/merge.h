/* mongo/job/merge.h - sets the documents of one year or week from those of its months, or those of a week of
 * a sketch. mongo/job/roll.c calls it under the lease. EX_DATAERR: a value is damaged.
 *
 * Set    : time buckets of months are copied as they are. A year takes the months that are named. A week
 *          takes its days, from one month or two, and their sum. Beside the parts of a mean stands its value,
 *          with the time of the roll-up.
 * Sketch : the week of a histogram takes its days from its months, too; that of a distinct count only has the
 *          union of its days, from the documents of these. The sum of a week is replaced as a whole.
 * Order  : documents come sorted by `_id`, which has the same beginning in a whole month. So all documents of
 *          a series are at hand at once, and one pass over each month is enough.
 * Memory : MONGO_ROLL_LOG_BYTES, one reply of the server for each source, and one sketch.
 */
#pragma once

#include "store/mongo/job/lease.h"

#define MONGO_ROLL_LOG_BYTES ((size_t)256 << 10) /* packed updates that are sent together */
#define MONGO_ROLL_SLOT      "rollup"
#define MONGO_ROLL_APPLIED   "applied." MONGO_ROLL_SLOT
#define MONGO_SOURCES_MAX    12

/* A month, or the part of a month that is in the week; of a distinct count a day. */
struct mongo_source {
    int64_t from_ms, to_ms;
    uint64_t documents; /* documents read from it so far */
    struct mongo_cursor *cursor;
    const bson_t *document; /* the next document; NULL: none is left */
    const char *rest;       /* its `_id` without the time; the same in the year or week */
};

struct mongo_merge {
    struct mongo_job
        *job; /* asked after each request; documents with its fence or a higher one are left alone */
    struct mongo_store *m; /* of the job */
    const struct mongo_target *target;
    size_t report;
    bool of_sketch;   /* it sets documents of a sketch; else of all measures without one */
    size_t sketch;    /* its index among the report's sketches */
    int64_t start_ms; /* of the year or week */
    struct mongo_source sources[MONGO_SOURCES_MAX];
    size_t count;
    uint64_t documents; /* documents set so far */

    int64_t now_ms;
    const struct mongo_kind *from; /* the kind of the sources */
    char collection[MONGO_NAME_BYTES], from_collection[MONGO_NAME_BYTES];
    struct mongo_log log;
    struct sketch_work work; /* of one week */
};

/* Fails as mongo/job/lease.h says. */
bool mongo_merge(struct mongo_merge *g) MUST_CHECK;
