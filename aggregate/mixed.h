/* mixed.h - adds events to cells of any measures and sketches. A shard calls it with the events of a call,
 * for each report that has more than the usual measures (report.h), or a sample. Nothing here fails.
 *
 * Usual: the shard adds up the usual measures itself, unless the report has a sample.
 * Newest: an event that may be among the newest of its cell is made a document, and kept there (recent.h).
 * Cost: each measure runs over all events of the call, so that it is told from others once a call.
 */
#pragma once

#include "aggregate/recent_document.h"
#include "aggregate/report.h"

/* The memory of sketches, and how dimensions are settled. */
struct mixed {
    struct arena *memory;       /* of the cells' part */
    size_t dimension_bytes_max; /* bytes of one dimension's text */
    char *scratch;              /* DIMENSION_KEY_BYTES() of them */
    struct slice place;         /* the beginning of an event's place: raw_document_prefix() */
    struct recent_room *room;   /* for the newest events */
};

#define MIXED_USUAL 2 /* usual measures of a report that begins with them */

/* An event on its way into a report, and what is known about it so far. */
struct passage {
    const struct event *ev;
    struct cell *cell;
    struct slice key; /* the next four: only on the way to the cell */
    uint64_t hash;
    struct series *series;
    uint32_t time;
};

/* Pre: all passages have their cells. */
void mixed_add(const struct mixed *mx, const struct report *r, const struct passage *passages, size_t count);
