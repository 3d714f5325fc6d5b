/* verify.h - compares a store with what its sources say: books, and every bucket of every report.
 *
 * Other  : once a report has as many series as it may, new ones are counted in `other`. A series in the
 *          store may then hold less than the recount (it came later, or never); what is missing in a slot
 *          must be exactly what `other` holds there.
 * Spans  : a report counts a source from its book entry `since` to `until`, but for gaps (while it was not
 *           configured); so does the recount. Lines in the future were so by the clock of their batch.
 */
#pragma once

#include "config/config.h"
#include "daemon/recount.h"
#include "store/store.h"

#include <stdio.h>

#define VERIFY_PRINTED_MAX 20

struct verify {
    const struct config *config;
    struct store *store;
    struct recount *recounts; /* by report of the store */
    FILE *out;
    uint64_t compared, differences;
    uint64_t lines;
};

void verify_init(struct verify *v, const struct config *config, struct store *store, FILE *out);
void verify_fini(struct verify *v);
/* Recount the part of the file at `path` that the store has counted as `position`, and compare its books. */
bool verify_source(struct verify *v, const char *path, const struct position *position,
                   struct err *e) MUST_CHECK;
/* After the last source: compare every bucket. */
bool verify_buckets(struct verify *v, struct err *e) MUST_CHECK;
