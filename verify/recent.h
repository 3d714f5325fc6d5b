/* recent.h - the events of a report by series and day, of which the newest are compared with those that a
 * store keeps (aggregate/recent.h). The recount fills it; buckets.c compares.
 *
 * Naive  : a list of events, which is sorted and cut to the newest of each series and day now and then. It
 *          has no code of what it judges, but what an event's document is (recent_document.h).
 * Memory : the documents of twice as many events as are left, and LIST_MIN at least.
 */
#pragma once

#include "aggregate/recent_document.h"
#include "aggregate/report.h"
#include "ingest/event.h"

/* A source and its partition, as the store names them. */
struct recount_origin {
    uint64_t salt; /* sample_salt() */
    const char *source, *partition;
};

struct recent_seen {
    uint32_t series;
    int64_t at_ms;
    struct slice document; /* owned */
};

/* Zeros: empty. */
struct recent_list {
    struct recent_seen *list;
    size_t count, capacity;
    size_t cut_at; /* it is cut once it has so many */
    struct text place;
    struct recent_room room;
};

void recent_list_fini(struct recent_list *l);
void recent_list_add(struct recent_list *l, const struct report *r, uint32_t series, const struct event *ev,
                     const struct recount_origin *of);
/* Sorts and cuts the list: by series, and in it by time, the newest first. */
void recent_list_cut(struct recent_list *l, uint32_t newest);
/* The events of a series and day: the first of them, and their number. Pre: recent_list_cut() was called, and
 * nothing was added since. */
const struct recent_seen *recent_list_find(const struct recent_list *l, uint32_t series, int64_t day_ms,
                                           size_t *count);
