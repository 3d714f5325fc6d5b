/* compare.h - does Kafka still have the records that were counted? Sessions ask this when they begin
 * (topic.h), and while they count (recheck.h).
 *
 *   witnesses, newest first → read the record at that offset → the same: the log is the one that was counted
 *                                                             → another: it is a different log
 *                                                             → none: ask the next older witness
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
    COMPARISON_OPEN,  /* no answer yet */
    COMPARISON_SAME,  /* the record at `offset` is the one that was counted */
    COMPARISON_OTHER, /* the record at `offset` is a different one */
    COMPARISON_GONE,  /* no witness's offset has a record */
    COMPARISON_LOST   /* Kafka has no such offset or partition */
};

/* A partition's witnesses, and the result of comparing them. */
struct comparison {
    const char *topic; /* borrowed */
    int32_t partition;
    const struct witness *witnesses; /* oldest first; borrowed */
    size_t left;                     /* number of witnesses that were not asked yet */
    enum comparison_result result;
    int64_t offset; /* offset of the witness asked last */
    bool is_asked;  /* that witness is not answered yet */
};

/* Compare witnesses; each partition appears at most once. After an error, OPEN partitions are those that did
 * not answer. */
bool compare(struct kafka *reader, struct comparison *comparisons, size_t count, int timeout_ms,
             struct err *e) MUST_CHECK;
/* Hash of a record's key, value and time. */
uint64_t compare_hash(const rd_kafka_message_t *m);
