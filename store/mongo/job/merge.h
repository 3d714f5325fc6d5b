/* mongo/job/merge.h - the documents of one year, or week, from those of its months.
 *
 * Set    : what slots of months hold is taken over as it stands: of a year the months that are named, of a
 *          week its days, from one month or two, and their sum. A mean is told beside what it is made of,
 *          with the time: it is as of then.
 * Order  : documents come sorted by `_id`, whose beginnings are alike in a month: so all of a series are at
 *          hand at once, and one pass over each month is enough.
 * Memory : MONGO_ROLL_LOG_BYTES, and of each month what a server answers at once.
 */
#pragma once

#include "store/mongo/job/lease.h"

#define MONGO_ROLL_LOG_BYTES ((size_t)256 << 10) /* packed, of updates that are sent together */
#define MONGO_ROLL_SLOT      "rollup"
#define MONGO_ROLL_APPLIED   "applied." MONGO_ROLL_SLOT
#define MONGO_SOURCES_MAX    12

/* A month, or the part of it that is in the week. */
struct mongo_source {
    int64_t from_ms, to_ms;
    uint64_t documents; /* it has */
    struct mongo_cursor *cursor;
    const bson_t *document; /* the next; NULL: none is left */
    const char *rest;       /* of its `_id`, behind the time: the same in what is set, and in order */
};

struct mongo_merge {
    struct mongo_store *m;
    const struct mongo_target *target;
    size_t report;
    int64_t start_ms; /* of the year, or week */
    int64_t fence;    /* of the lease: what has as high a one is left alone */
    struct mongo_source sources[MONGO_SOURCES_MAX];
    size_t count;
    mongo_goes_on_fn *goes_on; /* asked whenever something was sent */
    void *context;
    uint64_t documents; /* that were set */

    int64_t now_ms;
    char collection[MONGO_NAME_BYTES];
    struct mongo_log log;
};

/* False with *e as it was where `goes_on` said so. */
bool mongo_merge(struct mongo_merge *g, struct err *e);
