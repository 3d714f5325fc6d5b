/* verify.h - compares a store with its sources: it recounts them, then compares the books and every time
 * bucket of every report. `tallyd verify` calls it.
 *
 * Other  : once a report has series_max series, new ones are counted in `other`. A series in the store may
 *          then hold less than the recount (it came later, or never). The part that is missing in a time
 *          bucket must be exactly what `other` holds there.
 * Expiry : expired time buckets are judged by the longer ones that contain them. The recount counts late
 *          events, too: it cannot know what had expired when they arrived.
 * Gone   : some records may be gone (retention, compaction, a file that was not given). The others were all
 *          counted, so time buckets and books hold at least the recount. A stored minimum is no larger than
 *          the recounted one, a stored maximum no smaller. In total, time buckets may exceed the recount by
 *          as many events as the books. Nothing tells which buckets do: a record's time says nothing of its
 *          event's. If no event of a report is missing, it is compared as usual.
 * Sketch : histograms and distinct counts (aggregate/sketch.h) are compared by their packed bytes. In a time
 *          bucket in which `other` has counts, a series holds no more than the recount, and all series
 *          together hold the same. If records are gone, the stored sketch includes the recounted one.
 * Newest : the newest events of series and days (aggregate/recent.h) are compared byte by byte. If records
 *          are gone, the store may have others beside them. Days in which `other` has some are not judged.
 * Spans  : a report counts a source from its book entry `since` to `until`, except for gaps (while it was not
 *          configured); so does the recount. Events were in the future by the clock of their batch.
 * Errors : differences are printed and counted; a function fails only if a source or the store cannot be
 *          read.
 */
#pragma once

#include "config/config.h"
#include "ingest/decode/chain.h"
#include "store/backfill.h"
#include "verify/recount.h"

#include <stdio.h>

#define VERIFY_PRINTED_MAX 20

/* Events that a report's books have, but no source has any more. */
struct verify_missing {
    int64_t events;
    int64_t late; /* number of late events, which may be among them, and are in no time bucket */
};

struct verify {
    const struct config *config;
    struct store *store;
    struct recount *recounts;       /* by report of the store */
    struct verify_missing *missing; /* by report of the store */
    FILE *out;
    uint64_t compared, differences;
    uint64_t bounded;  /* figures among `compared` that exceed the recount, as missing events allow */
    uint64_t unjudged; /* time buckets not in `compared`: no recount of them, as missing events allow */
    uint64_t events;   /* events and rejects recounted */
};

/* The result for one of the sources that the store knows. */
struct verify_source {
    enum { SOURCE_NOT_GIVEN, SOURCE_WHOLE, SOURCE_IN_PART, SOURCE_GONE } is;
    int64_t from, to; /* range of offsets in which all remaining records were recounted */
    int64_t missing;  /* events that its books have and the recount has not */
    char why[128];    /* reason why it is not whole */
};

/* An exception that the books name for the records of [from, to). */
struct verify_stretch {
    bool is_filled; /* the report counts those of `filled` nevertheless */
    bool is_kept;   /* it has those of `filled` from another generation: its own books lack them */
    struct backfill_times filled;
    int report; /* report that does not count them; -1: records later than latest_ms were in the future */
    int64_t from, to, latest_ms;
};

/* A partition's books, stored and recounted. */
struct verify_part {
    struct verify *v;
    const struct range *range;
    struct recount_origin origin; /* of its events; borrows from `range` */
    struct books stored, recounted;
    int64_t begun;          /* offset from which its own books count; only reports count before it */
    int64_t *since, *until; /* by report; since -1: the report does not count this source */
    struct verify_stretch *stretches;
    size_t stretch_count, stretch_capacity;
};

void verify_init(struct verify *v, const struct config *config, struct store *store, FILE *out);
void verify_fini(struct verify *v);
/* Recount the part of the file at `path` that the store has counted as `position`, and compare its books.
 * `constants`: fields of its events; NULL: none. *more: it has lines behind that. */
bool verify_file(struct verify *v, const char *path, const struct decode *decode,
                 const struct constants *constants, const struct position *position, bool *more,
                 struct err *e) MUST_CHECK;

/* Recount any partition, record by record; several may be under way at once. `position` is borrowed until
 * verify_end(). Records at or behind its `to` were not counted yet: the caller must not pass them. */
bool verify_begin(struct verify_part *b, struct verify *v, const struct position *position,
                  struct err *e) MUST_CHECK;
void verify_record(struct verify_part *b, struct chain *chain, const struct record *r);
enum verify_extent {
    VERIFY_NOTHING, /* some existing records were not passed: nothing is compared */
    VERIFY_WHOLE,   /* every record that was counted was passed */
    VERIFY_REST     /* all remaining records were passed, and some may be gone */
};
/* Compare the books. Returns how many events they have that were not recounted. */
int64_t verify_end(struct verify_part *b, enum verify_extent extent);
/* Compare the books of a partition that has no records left. */
bool verify_gone(struct verify *v, const struct position *position, int64_t *missing,
                 struct err *e) MUST_CHECK;
/* After the last source: compare every bucket. */
bool verify_buckets(struct verify *v, struct err *e) MUST_CHECK;
/* Count one difference. Returns true if it is to be printed. */
bool verify_differs(struct verify *v);
