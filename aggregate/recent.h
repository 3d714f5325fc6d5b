/* recent.h - the newest events of a series: the N greatest of all that came, by time, then by place in their
 * source. Shards fill it for a cell, stores keep it packed for a day, queries and stores merge it.
 *
 *   packed = N  event*      N: a varint; events: BSON documents (recent_document.h), the newest first
 *
 * Merge   : in any order to the same bytes: the N greatest of a union are among the N greatest of each part.
 *           An event that is in both parts is in the union once.
 * Place   : source, partition, offset and number within the record, as one text: raw_document.h. So the order
 *           is total, and the same for every writer. A server sorts the texts alike.
 * Limits  : RECENT_MAX events of at most RECENT_EVENT_BYTES: a document with all of them is below 256 KiB.
 * Memory  : events and their bytes are in the arena that the caller names, the same in each call. An event
 *           that falls out leaves its room to the next. Up to N rooms, and as much again that grew too small.
 * Errors  : merging is false if the bytes are damaged.
 * Source  : the subset pattern of the MongoDB Data Modeling Workshop.
 */
#pragma once

#include "base/arena.h"
#include "base/slice.h"
#include "base/text.h"

#include <stdint.h>

#define RECENT_NAME        "newest" /* of the key, and in the names of collections */
#define RECENT_MAX         150
#define RECENT_FIELDS_MAX  16
#define RECENT_EVENT_BYTES 1700 /* of a document: its fields, its time and the longest place */

struct recent_event {
    int64_t at_ms;
    char *document; /* of `len` bytes, in a room of `room` */
    uint32_t len, room;
};

/* Zeros: empty. */
struct recent {
    struct recent_event *events; /* a ring of `capacity`; the oldest is at `first` */
    uint32_t count, capacity, first;
    uint32_t limit; /* N */
};

/* May an event of this time be among the newest? If not, the caller need not make its document. */
static inline bool recent_wants(const struct recent *n, uint32_t limit, int64_t at_ms)
{
    return n->count < limit || at_ms >= n->events[n->first].at_ms;
}

/* Adds an event by its document, which is copied. */
void recent_add(struct recent *n, struct arena *arena, uint32_t limit, struct slice document);
/* Adds all events of another one. */
void recent_add_all(struct recent *n, struct arena *arena, const struct recent *from);
void recent_pack(const struct recent *n, struct text *out);
bool recent_merge(struct recent *to, struct arena *arena, struct slice packed);

/* Does every byte of packed events decode, also those of their members? Merging looks only at lengths, times
 * and places. */
bool recent_is_whole(struct slice packed) MUST_CHECK;
/* Takes the next event off packed ones, the newest first. Pre: *packed begins behind N: recent_begin().
 * False: there is none, or the bytes are damaged; *packed is empty only if there is none. */
bool recent_next(struct slice *packed, struct slice *document) MUST_CHECK;
/* Takes N off packed events; 0: the bytes are damaged. */
uint32_t recent_begin(struct slice *packed);
/* The time and the place of an event. False: the document does not begin with them. */
bool recent_key(struct slice document, int64_t *at_ms, struct slice *place) MUST_CHECK;
/* The order of two events: below 0 if `a` is the older. */
int recent_compare(struct slice a, struct slice b);
