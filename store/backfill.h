/* backfill.h - what a report did not count of a source: it was configured later, or not all the time. The
 * command `backfill` counts it then (daemon/backfill.h).
 *
 *   offset   0 ........ since ........ gap.FROM ........ its value ........ until ...... the position
 *            not counted      counted          not counted        counted        not counted
 *
 * Batch  : a batch that backfills has counts of one report, and ranges before the positions of their sources
 *          only. It moves the entries `since`, `until` and `gap.FROM` of reader.h in the same transaction as
 *          the counts. So a crash leaves each stretch either uncounted or counted.
 * Begun  : a topic may hold records from before it was first counted (`start: latest`). They count in the
 *          report alone. The source's own entry `since` says where its own books begin.
 * Future : events that were in the future when their source was counted stay rejected: the books say from
 *          which instant on.
 * Threads: the handle's.
 */
#pragma once

#include "store/reader.h"
#include "store/writer.h"

/* A report's entries for one partition, as far as they concern the offsets [from, to). */
struct backfill_span {
    int64_t from, to;
    int64_t since, until;     /* -1: the report counted nothing of it */
    int64_t gap_from, gap_to; /* the gap around the offsets; -1: there is none */
};

/* An entry to write; value -1: to delete. */
struct backfill_entry {
    char name[STORE_ENTRY_BYTES];
    int64_t value;
};

#define BACKFILL_ENTRIES_MAX 2

struct backfill_span backfill_span(const struct range *r);
/* Take one entry of the report and the partition. */
void backfill_read(struct backfill_span *s, const char *entry, int64_t value);
/* Get the entries that counting the offsets changes. EX_DATAERR: some of them were counted before. */
bool backfill_change(const struct backfill_span *s, struct backfill_entry entries[BACKFILL_ENTRIES_MAX],
                     size_t *count, struct err *e) MUST_CHECK;

/* Fails: the range of a batch that backfills is not before the position of its source. */
bool backfill_ahead(const struct range *r, struct err *e);

/* Offsets of a partition that a report did not count. */
struct backfill_stretch {
    size_t position; /* index in positions */
    int64_t from, to;
    int64_t latest_ms; /* later events were in the future; INT64_MAX: none was */
    /* First offset of the partition that was counted at all, if the stretch is before it: no report has these
     * records, and a topic may still hold them. 0: it was counted. */
    int64_t begun;
};

struct backfill_plan {
    struct position *positions; /* of the whole store */
    size_t position_count;
    struct backfill_stretch *stretches; /* by position, then by offset */
    size_t stretch_count;
};

/* List what a report did not count. backfill_plan_fini() frees the plan, also after a failure. */
bool backfill_plan(struct backfill_plan *plan, struct store *st, size_t report, struct err *e) MUST_CHECK;
void backfill_plan_fini(struct backfill_plan *plan);
