/* audit.h - does a store agree with itself? `tallyd verify --store-only` asks, when no source can be
 * recounted (verify.h).
 *
 * Check  : the store's own checks: checksums, and the ledger against documents (store_check()).
 * Books  : each partition's books balance, and no report counts past the partition's position. The sources'
 *          counts in a report equal the sum of its months; the events that went to `other` equal the count of
 *          that series. If months have expired, only the books still include them: then the books have at
 *          least as much.
 * Spans  : each time bucket equals its shorter ones merged, series by series, as far back as both are stored.
 *          It also equals its copies elsewhere in the store (store_copy()). Every series is a known one.
 *          Sketches (aggregate/sketch.h) are merged and compared by their packed bytes.
 * Newest : a series keeps as many newest events (aggregate/recent.h) as it counts on a day, up to the limit,
 *          each once, in order, of that day, and with members that decode.
 * Memory : about cells_max cells at a time, and AUDIT_SKETCH_BYTES of packed sketches for each: a range that
 *          has more is read again in pieces.
 * Beside : daemons may count meanwhile. An embedded store is read from one snapshot. On a server, a step that
 *          found differences is repeated until nothing is written meanwhile; otherwise it is reported as not
 *          judged.
 * Errors : differences are printed and counted. audit_store() fails only if the store cannot be read.
 */
#pragma once

#include "store/reader.h"

#include <stdio.h>

#define AUDIT_CELLS_MAX    ((size_t)1 << 20)
#define AUDIT_SKETCH_BYTES ((size_t)256)
#define AUDIT_PRINTED_MAX  20 /* differences printed for each comparison */

struct audit {
    struct store *store;
    FILE *out;
    size_t cells_max;
    uint64_t compared, partitions; /* figures compared; partitions read */
    uint64_t differences, unjudged;
    uint64_t found, found_last; /* differences found by the current step, and by its current comparison */
    struct text said;           /* text of the current step's differences, printed when it ends */
};

void audit_init(struct audit *a, struct store *store, FILE *out);
void audit_fini(struct audit *a);
/* Audit the whole store: prints what differs, and what was compared. False: it could not be read. */
bool audit_store(struct audit *a, struct err *e) MUST_CHECK;

/* ---- Steps: each may be repeated, and then starts from nothing found. */

/* Count one difference. Returns the text to describe it in; NULL: enough is printed already. */
struct text *audit_find(struct audit *a);
/* Begin the next comparison, with as much room for differences. */
void audit_next(struct audit *a);
/* audit_books.c */
int audit_count(const struct report *r); /* index of its first count; -1: it has none */
bool audit_books(struct audit *a, size_t report, struct err *e) MUST_CHECK; /* of all reports */
/* a report's, against cells */
bool audit_totals(struct audit *a, size_t report, struct err *e) MUST_CHECK;
/* audit_spans.c */
bool audit_spans(struct audit *a, size_t report, struct err *e) MUST_CHECK;
/* audit_recent.c: its newest events, against the counts of days */
bool audit_recent(struct audit *a, size_t report, struct err *e) MUST_CHECK;
