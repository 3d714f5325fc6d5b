/* mixed.h - adds an event to a cell of any measures and sketches. A shard calls it for each event of a report
 * that has more than a count and a sum, which it adds up itself. Nothing here fails.
 */
#pragma once

#include "aggregate/report.h"

/* The memory of sketches, and how dimensions are settled. */
struct mixed {
    struct arena *memory;       /* of the cell's part */
    size_t dimension_bytes_max; /* bytes of one dimension's text */
    char *scratch;              /* DIMENSION_KEY_BYTES() of them */
};

void mixed_add(const struct mixed *mx, const struct report *r, const struct event *ev, struct cell *c);
