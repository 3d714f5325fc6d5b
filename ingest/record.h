/* record.h - what a source delivers at one offset: a message of Kafka. (Lines of files need no more than
 * themselves.)
 *
 * Owner : the source; everything is borrowed and lives until the record is given back.
 */
#pragma once

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

/* Its place among the records of all partitions, for events of one instant (event.h). */
static inline int64_t record_order(const struct record *r)
{
    return (int64_t)r->partition << 48 | r->offset;
}
