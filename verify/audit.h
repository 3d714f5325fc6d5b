/* audit.h - is a store whole, by nothing but itself? For where no source can be counted again (verify.h).
 *
 * Check  : what the store knows of itself: checksums, the ledger against documents (store_check()).
 * Books  : of each partition they balance, and no report counts behind where the partition stands. What all
 *          sources counted in a report is what its months add up to, and what went to `other` what that
 *          series has. Of months that were let go only the books know: then they have at least as much.
 * Spans  : each slot is what its shorter ones merge to, series by series, from where on both are kept; and
 *          what other places of the store have of it (store_copy()). Every series is a known one.
 * Memory : some cells_max cells at a time: a range that has more is read once more, in pieces.
 * Beside : daemons may count. An embedded store is held at one moment; of a server, what differs is looked at
 *          again until nothing was written meanwhile, and is else said to be not judged.
 */
#pragma once

#include "store/store.h"

#include <stdio.h>

#define AUDIT_CELLS_MAX   ((size_t)1 << 20)
#define AUDIT_PRINTED_MAX 20 /* of each comparison */

struct audit {
    struct store *store;
    FILE *out;
    size_t cells_max;
    uint64_t compared, partitions; /* looked at */
    uint64_t differences, unjudged;
    uint64_t found, found_last; /* by the step at hand, and by its last comparison, … */
    struct text said;           /* … and what is to be said of it */
};

void audit_init(struct audit *a, struct store *store, FILE *out);
void audit_fini(struct audit *a);
/* What differs is printed, and what was looked at. False: it could not be read. */
bool audit_store(struct audit *a, struct err *e) MUST_CHECK;

/* ---- What steps are made of: each may be taken again, and then finds what it finds anew. */

/* One thing more is wrong: where to say what; NULL: enough is said. */
struct text *audit_find(struct audit *a);
/* The next comparison has as much room. */
void audit_next(struct audit *a);
/* audit_books.c */
int audit_count(const struct report *r); /* its first count; -1: it has none */
bool audit_books(struct audit *a, size_t report, struct err *e) MUST_CHECK;  /* of all of them */
bool audit_totals(struct audit *a, size_t report, struct err *e) MUST_CHECK; /* against cells */
/* audit_spans.c */
bool audit_spans(struct audit *a, size_t report, struct err *e) MUST_CHECK;
