/* verify.h - compares a store with what its sources say: books, and every bucket of every report.
 *
 * Other  : once a report has as many series as it may, new ones are counted in `other`. A series in the
 *          store may then hold less than the recount (it came later, or never); what is missing in a slot
 *          must be exactly what `other` holds there.
 * Expiry : what the store has let go of a span is judged by the longer ones. An event that was late is, for
 *          the recount, one that was counted: it cannot know what was kept when it came.
 * Gone   : of a source of which records are gone (retention, compaction, a file that was not given), those
 *          that are left were counted, too: so slots and books hold at least what is recounted; a smallest
 *          number is no larger, a largest no smaller. In all, slots hold as many events more as the books.
 *          Which of them do is not to be told: a record's time says nothing of its event's. Reports all of
 *          whose events are left are compared as ever.
 * Spans  : a report counts a source from its book entry `since` to `until`, but for gaps (while it was not
 *           configured); so does the recount. Lines in the future were so by the clock of their batch.
 */
#pragma once

#include "config/config.h"
#include "ingest/decode/chain.h"
#include "store/store.h"
#include "verify/recount.h"

#include <stdio.h>

#define VERIFY_PRINTED_MAX 20

/* What the books of a report have, but no source tells any more. */
struct verify_missing {
    int64_t events;
    int64_t late; /* so many of them at most were late, and are in no bucket */
};

struct verify {
    const struct config *config;
    struct store *store;
    struct recount *recounts;       /* by report of the store */
    struct verify_missing *missing; /* the same */
    FILE *out;
    uint64_t compared, differences;
    uint64_t bounded;  /* of those compared: what is there is less than what was counted, as it may be */
    uint64_t unjudged; /* beside those: of the store alone, as it may be */
    uint64_t events;   /* and rejects */
};

/* What became of one of the sources that the store knows. */
struct verify_source {
    enum { SOURCE_NOT_GIVEN, SOURCE_WHOLE, SOURCE_IN_PART, SOURCE_GONE } is;
    int64_t from, to; /* the offsets between which all that is left was recounted */
    int64_t missing;  /* events in its books that were not */
    char why[128];    /* it is not whole */
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
enum verify_extent {
    VERIFY_NOTHING, /* not all that is there was given: nothing is compared */
    VERIFY_WHOLE,   /* every record that was counted was given */
    VERIFY_REST     /* all that are left were given, and some may be gone */
};
/* Compare the books. How many events they have that were not given. */
int64_t verify_end(struct verify_part *b, enum verify_extent extent);
/* Of a partition of which nothing can be given. */
bool verify_gone(struct verify *v, const struct position *position, int64_t *missing,
                 struct err *e) MUST_CHECK;
/* After the last source: compare every bucket. */
bool verify_buckets(struct verify *v, struct err *e) MUST_CHECK;
/* One difference more: true if it is to be printed. */
bool verify_differs(struct verify *v);
