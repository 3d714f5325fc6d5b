/* compare.h - does Kafka still have the records that were counted?
 *
 *   witnesses, newest first → read the record at that offset → the same: the log is the one that was counted
 *                                                             → another: it is not
 *                                                             → none: ask the next older one
 *
 * Reads  : one record of each partition at a time, all partitions together: about 10 ms for a few of them.
 * Errors : EX_UNAVAILABLE + retryable if the records do not come in time.
 * Threads: a reader belongs to one thread.
 */
#pragma once

#include "aggregate/witness.h"
#include "base/err.h"
#include "ingest/kafka/kafka.h"

enum comparison_result {
    COMPARISON_OPEN,  /* not found out yet */
    COMPARISON_SAME,  /* the record at `offset` is the one that was counted */
    COMPARISON_OTHER, /* … is another */
    COMPARISON_GONE,  /* no witness's offset has a record */
    COMPARISON_LOST   /* Kafka has no such offset or partition */
};

/* One partition's witnesses, and what became of them. */
struct comparison {
    const char *topic; /* borrowed */
    int32_t partition;
    const struct witness *witnesses; /* oldest first; borrowed */
    size_t left;                     /* so many of them are not asked yet */
    enum comparison_result result;
    int64_t offset; /* of the witness asked last, … */
    bool is_asked;  /* … and not answered yet */
};

/* Each partition at most once. Those that are OPEN afterwards, with an error, are out of reach. */
bool compare(struct kafka *reader, struct comparison *comparisons, size_t count, int timeout_ms,
             struct err *e) MUST_CHECK;
/* The hash of a record: of its key, value and time. */
uint64_t compare_hash(const rd_kafka_message_t *m);
