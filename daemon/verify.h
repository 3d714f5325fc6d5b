/* verify.h - compares a store with what its sources say: books, and every bucket of every report.
 *
 * Other  : once a report has as many series as it may, new ones are counted in `other`. A series in the
 *          store may then hold less than the recount (it came later, or never); what is missing in a slot
 *          must be exactly what `other` holds there.
 * Expiry : what the store has let go of a span is judged by the longer ones. An event that was late is, for
 *          the recount, one that was counted: it cannot know what was kept when it came.
 * Spans  : a report counts a source from its book entry `since` to `until`, but for gaps (while it was not
 *           configured); so does the recount. Lines in the future were so by the clock of their batch.
 */
#pragma once

#include "config/config.h"
#include "daemon/recount.h"
#include "ingest/chain.h"
#include "store/store.h"

#include <stdio.h>

#define VERIFY_PRINTED_MAX 20

struct verify {
    const struct config *config;
    struct store *store;
    struct recount *recounts; /* by report of the store */
    FILE *out;
    uint64_t compared, differences;
    uint64_t events; /* and rejects */
};

/* An exception that the books name, for the records of [from, to). */
struct verify_stretch {
    int report; /* not counted in this report; -1: records in the future were later than latest_ms */
    int64_t from, to, latest_ms;
};

/* One partition: its books as stored, beside those of the recount. */
struct verify_part {
    struct verify *v;
    const struct range *range;
    struct books stored, recounted;
    int64_t *since, *until; /* by report; since -1: it does not count this source */
    struct verify_stretch *stretches;
    size_t stretch_count, stretch_capacity;
};

void verify_init(struct verify *v, const struct config *config, struct store *store, FILE *out);
void verify_fini(struct verify *v);
/* Recount the part of the file at `path` that the store has counted as `position`, and compare its books. */
bool verify_file(struct verify *v, const char *path, const struct decode *decode,
                 const struct position *position, struct err *e) MUST_CHECK;

/* The same of any partition, record by record; several may be under way at once. `position` is borrowed until
 * verify_end(). Records at or behind its `to` were not counted yet: they are not to be given. */
bool verify_begin(struct verify_part *b, struct verify *v, const struct position *position,
                  struct err *e) MUST_CHECK;
void verify_record(struct verify_part *b, struct chain *chain, const struct record *r);
/* `whole`: every record was given, so that the books can be compared. */
void verify_end(struct verify_part *b, bool whole);
/* After the last source: compare every bucket. */
bool verify_buckets(struct verify *v, struct err *e) MUST_CHECK;
