/* record.h - what a source delivers at one offset: a message of Kafka. (Lines of files need no more than
 * themselves.)
 *
 * Owner : the source; everything is borrowed and lives until the record is given back.
 */
#pragma once

#include "base/civil.h"
#include "base/slice.h"

#include <stdbool.h>
#include <stdint.h>

struct record {
    struct slice value; /* ptr NULL: none, a tombstone */
    struct slice key;   /* ptr NULL: none */
    struct slice topic;
    int32_t partition;
    int64_t offset;
    int64_t timestamp_ms; /* the broker's or producer's; -1: none */
    /* The last header of that name; false: there is none. Looked for only when asked. */
    bool (*header)(const struct record *r, const char *name, struct slice *value);
    void *message; /* the source's own */
};

/* The latest time of events by the wall clock, rounded up to a 24th of what is allowed, a minute at least and
 * an hour at most: it stays the same for many batches, and the books, from which it is judged again, need to
 * say it once. Where a producer's clock is wrong for months, they must not outgrow a document. */
static inline int64_t record_clock_latest(int64_t now_ms, int64_t future_max_ms)
{
    int64_t step_ms = future_max_ms / 24;
    step_ms = step_ms < MINUTE_MS ? MINUTE_MS : step_ms > HOUR_MS ? HOUR_MS : step_ms;
    return (now_ms / step_ms + 1) * step_ms + future_max_ms;
}

/* Events after this are in the future: `latest_ms`, by the wall clock when the batch was begun, or as long
 * after the record's own time, which is the later one in a batch that grew while the store was away. */
static inline int64_t record_latest(const struct record *r, int64_t latest_ms, int64_t future_max_ms)
{
    int64_t own_ms = 0;
    if (r->timestamp_ms >= 0 && __builtin_add_overflow(r->timestamp_ms, future_max_ms, &own_ms))
        own_ms = INT64_MAX; /* a producer may claim any time */
    return own_ms > latest_ms ? own_ms : latest_ms;
}

/* Its place in its source, for events of one instant (event.h): the offset of the record, and the number of
 * the line or element in there. No two events of a partition share one, so that the last never depends on
 * which of them was counted first (beyond 2^18 elements or 2^45 records it is by their values). */
#define RECORD_ELEMENT_BITS 18
static inline int64_t record_order(int64_t offset, uint32_t element)
{
    const uint32_t most = (1u << RECORD_ELEMENT_BITS) - 1;
    return (int64_t)((uint64_t)offset << RECORD_ELEMENT_BITS | (element < most ? element : most));
}
