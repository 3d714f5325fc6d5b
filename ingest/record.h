/* record.h - a record: what a source delivers at one offset. Sources make it, chains decode it. It is a
 * message of Kafka; a line of a file has only value and offset.
 *
 * Owner : the source; everything is borrowed and lives until the record is given back.
 */
#pragma once

#include "base/civil.h"
#include "base/slice.h"

#include <stdbool.h>
#include <stdint.h>

#define RECORD_NO_PARTITION (-1) /* `partition` of a line of a file */

struct record {
    struct slice value; /* ptr NULL: none, a tombstone */
    struct slice key;   /* ptr NULL: none */
    struct slice topic;
    int32_t partition;
    int64_t offset;
    int64_t timestamp_ms; /* the broker's or producer's; -1: none */
    /* Finds the last header of that name; false: there is none. Headers are read only by this call. */
    bool (*header)(const struct record *r, const char *name, struct slice *value);
    void *message; /* private to the source */
};

/* The latest time that events may have, by the wall clock. It is rounded up to a step of future_max_ms / 24,
 * at least a minute and at most an hour. So it stays the same for many batches. The books store each value
 * once, to judge events again; they must not outgrow a document if a producer's clock is wrong for months. */
static inline int64_t record_clock_step(int64_t future_max_ms)
{
    int64_t step_ms = future_max_ms / 24;
    return step_ms < MINUTE_MS ? MINUTE_MS : step_ms > HOUR_MS ? HOUR_MS : step_ms;
}

static inline int64_t record_clock_latest(int64_t now_ms, int64_t future_max_ms)
{
    int64_t step_ms = record_clock_step(future_max_ms);
    return (now_ms / step_ms + 1) * step_ms + future_max_ms;
}

/* The earliest time at which record_clock_latest() said so. */
static inline int64_t record_clock_since(int64_t latest_ms, int64_t future_max_ms)
{
    return latest_ms - future_max_ms - record_clock_step(future_max_ms);
}

/* The time after which an event is in the future: the later of `latest_ms`, by the wall clock at the batch's
 * start, and the record's own time plus future_max_ms. The record's time is later in a batch that grew while
 * the store was unavailable. */
static inline int64_t record_latest(const struct record *r, int64_t latest_ms, int64_t future_max_ms)
{
    int64_t own_ms = 0;
    if (r->timestamp_ms >= 0 && __builtin_add_overflow(r->timestamp_ms, future_max_ms, &own_ms))
        own_ms = INT64_MAX; /* a producer may claim any time */
    return own_ms > latest_ms ? own_ms : latest_ms;
}

/* The order of events of one instant (event.h): the record's offset, then the number of the line or element
 * in it. No two events of a partition share one, so the last event does not depend on the order of counting.
 * Beyond 2^18 elements or 2^45 records, events may share one; then their values decide. */
#define RECORD_ELEMENT_BITS 18
static inline int64_t record_order(int64_t offset, uint32_t element)
{
    const uint32_t most = (1u << RECORD_ELEMENT_BITS) - 1;
    return (int64_t)((uint64_t)offset << RECORD_ELEMENT_BITS | (element < most ? element : most));
}
