/* backfill.h - what a report did not count of a source: it was configured later, or not all the time. The
 * command `backfill` counts it then (daemon/backfill.h).
 *
 *   offset   0 ........ since ........ gap.FROM ........ its value ........ until ...... the position
 *            not counted      counted          not counted        counted        not counted
 *
 * Batch  : a batch that backfills has counts of one report, and ranges before the positions of their sources
 *          only. It moves the entries `since`, `until` and `gap.FROM` of reader.h in the same transaction as
 *          the counts. So a crash leaves each stretch either uncounted or counted.
 * Times  : a batch may have only the events of a range of times. Then these entries stay. The entry
 *          `filled.FROM.MS.MS` says up to which offset events between both times were counted, from FROM. A
 *          later batch of these offsets leaves such events out: the plan names their times.
 * Kept   : the entry `kept.FROM.MS.MS` says the same of counts of another generation, whose place the report
 *          took for other times (store/splice.h).
 * Begun  : a topic may hold records from before it was first counted (`start: latest`). They count in the
 *          report alone. The source's own entry `since` says where its own books begin.
 * Future : events that were in the future when their source was counted stay rejected: the books say from
 *          which instant on.
 * Threads: the handle's.
 */
#pragma once

#include "store/builds.h"
#include "store/reader.h"
#include "store/writer.h"

/* Times of events: [from_ms, to_ms). Both 0: all. */
struct backfill_times {
    int64_t from_ms, to_ms;
};

static inline bool backfill_has_all(const struct backfill_times *t)
{
    return t->from_ms == 0 && t->to_ms == 0;
}

static inline bool backfill_has_time(const struct backfill_times *t, int64_t at_ms)
{
    return backfill_has_all(t) || (t->from_ms <= at_ms && at_ms < t->to_ms);
}

/* The events that a stretch's batches have: those of `only`, but for times that were counted before. */
struct backfill_filter {
    struct backfill_times only;
    const struct backfill_times *without;
    size_t without_count;
};

static inline bool backfill_wants(const struct backfill_filter *f, int64_t at_ms)
{
    bool wants = backfill_has_time(&f->only, at_ms);
    for (size_t i = 0; wants && i < f->without_count; i++)
        wants = !backfill_has_time(&f->without[i], at_ms);
    return wants;
}

/* A report's entries for one partition, as far as they concern the offsets [from, to). */
struct backfill_span {
    int64_t from, to;
    int64_t since, until;     /* -1: the report counted nothing of it */
    int64_t gap_from, gap_to; /* the gap around the offsets; -1: there is none */
    struct backfill_times only;
    int64_t
        filled_from; /* events of these times were counted from here up to the offsets; -1: they were not */
    bool is_filled;  /* events of these times were counted of some of the offsets */
    /* The stretches that the offsets begin or continue; build 0: none. */
    struct build_stretch builds[BUILD_COUNT];
};

/* An entry to write; value -1: to delete. */
struct backfill_entry {
    char name[STORE_ENTRY_BYTES];
    int64_t value;
};

#define BACKFILL_ENTRIES_MAX (2 + BUILD_COUNT)

struct backfill_span backfill_span(const struct batch *batch, const struct range *r);
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
    size_t without, without_count; /* times of which all events were counted, in `times` of the plan */
};

struct backfill_plan {
    struct position *positions; /* of the whole store */
    size_t position_count;
    struct backfill_stretch *stretches; /* by position, then by offset */
    size_t stretch_count;
    struct backfill_times *times;
    struct backfill_times only; /* the times that are to be counted */
    /* The report counted some sources, but not the end of the one that was counted last: it counts no
     * more. */
    bool is_behind;
    int64_t others; /* events that the report counted in the series `other` */
};

/* List what a report did not count of events of the times `only` (NULL: of any). backfill_plan_fini() frees
 * the plan, also after a failure. */
bool backfill_plan(struct backfill_plan *plan, struct store *st, size_t report,
                   const struct backfill_times *only, struct err *e) MUST_CHECK;
/* Did the report of `old` count offsets that the report of `plan` lacks? *found: some of them. `whole`: only
 * those of which it counted all events, else those of which it counted any. Pre: both are plans of one moment
 * of a store, `old` of all times. */
bool backfill_lacks(const struct backfill_plan *plan, const struct backfill_plan *old, bool whole,
                    struct backfill_stretch *found);
/* Refuse, since the report `name` lacks what `other` counted: EX_NOINPUT. `hint`: what to do. Returns
 * false. */
bool backfill_refuse(const struct backfill_plan *plan, const struct backfill_stretch *lacking,
                     const char *name, const char *other, const char *hint, struct err *e) MUST_CHECK;
/* Call `fn` for each piece of offsets that the report of `old` counted, and that of `plan` lacks. False: the
 * report of `old` counted only events of some times of it. Pre: as above. */
typedef void backfill_kept_fn(void *context, size_t position, int64_t from, int64_t to);
bool backfill_each_only_of(const struct backfill_plan *plan, const struct backfill_plan *old,
                           backfill_kept_fn *fn, void *context);
/* The events that the stretch lacks. It borrows from the plan. */
struct backfill_filter backfill_filter(const struct backfill_plan *plan, const struct backfill_stretch *s);
void backfill_plan_fini(struct backfill_plan *plan);
