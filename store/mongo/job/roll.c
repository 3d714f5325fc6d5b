#include "store/mongo/job/roll.h"

#include "base/check.h"
#include "base/civil.h"
#include "base/clock.h"
#include "base/failpoint.h"
#include "store/mongo/doc/unrolled.h"
#include "store/mongo/doc/version_stamps.h"
#include "store/mongo/doc/watermarks.h"
#include "store/mongo/job/lease.h"
#include "store/mongo/job/merge.h"
#include "store/mongo/job/stamping.h"
#include "store/mongo/job/top_job.h"
#include "store/mongo/job/waits.h"
#include "store/mongo/job/weeks.h"
#include "store/mongo/ledger/ledger.h"
#include "store/mongo/wire/field.h"

#include <stdlib.h>

#define GROUP_MAX MONGO_SOURCES_MAX /* stamps that are rolled up under one lease */
#define DONE_MAX  (2 * GROUP_MAX)

/* A period that was rolled up, for the caller's report. */
struct done {
    int64_t start_ms;
    uint64_t documents;
};

struct rolling {
    struct mongo_job job;
    const struct mongo_target *target;
    struct mongo_version_stamp stamps[GROUP_MAX]; /* stamps of one year, or of some weeks */
    size_t count;
    struct done done[DONE_MAX];
    size_t done_count;
};

/* ---- one year, or week */

static void add_source(struct mongo_merge *g, int64_t from_ms, int64_t to_ms)
{
    ASSERT(g->count < MONGO_SOURCES_MAX);
    g->sources[g->count++] = (struct mongo_source){.from_ms = from_ms, .to_ms = to_ms};
}

static void note_done(struct rolling *r, int64_t start_ms, uint64_t documents)
{
    ASSERT(r->done_count < DONE_MAX);
    r->done[r->done_count++] = (struct done){start_ms, documents};
}

static struct mongo_merge merge_of(struct rolling *r, int64_t start_ms)
{
    return (struct mongo_merge){
        .job = &r->job, .m = r->job.m, .target = r->target, .report = r->job.report, .start_ms = start_ms};
}

/* Rolls up the months of a year that wait. */
static bool roll_year(struct rolling *r)
{
    struct mongo_merge g = merge_of(r, span_floor(SPAN_YEAR, r->stamps[0].start_ms));
    for (size_t i = 0; i < r->count; i++)
        add_source(&g, r->stamps[i].start_ms, span_next(SPAN_MONTH, r->stamps[i].start_ms));
    bool good = mongo_merge(&g);
    for (size_t i = 0; i < g.count; i++)
        note_done(r, g.sources[i].from_ms, g.sources[i].documents);
    return good;
}

/* Adds the days of a week, which are in documents of `span`. */
static void add_days(struct mongo_merge *g, enum span span)
{
    int64_t end_ms = g->start_ms + WEEK_MS;
    for (int64_t at_ms = g->start_ms < 0 ? 0 : g->start_ms; at_ms < end_ms;) {
        int64_t next_ms = span_next(span, at_ms);
        next_ms = next_ms < end_ms ? next_ms : end_ms;
        add_source(g, at_ms, next_ms);
        at_ms = next_ms;
    }
}

/* Rolls up a week with all its days, and that of each sketch. */
static bool roll_week(struct rolling *r, int64_t start_ms)
{
    const struct report *report = &r->job.m->reports[r->job.report];
    struct mongo_merge g = merge_of(r, start_ms);
    add_days(&g, SPAN_MONTH);
    bool good = mongo_merge(&g);
    uint64_t documents = g.documents;
    for (size_t i = 0; good && i < report->sketch_count; i++) {
        g = merge_of(r, start_ms);
        g.of_sketch = true;
        g.sketch = i;
        add_days(&g, mongo_sketch_kind_for(report, i, SPAN_DAY)->span);
        good = mongo_merge(&g);
        documents += g.documents;
    }
    note_done(r, start_ms, documents);
    return good;
}

static int64_t week_of(const struct rolling *r, int64_t ms)
{
    return civil_week_floor(r->job.what->week_start, ms);
}

/* The end of the last week that a stamp leads to. */
static int64_t weeks_end(const struct rolling *r, int64_t stamp_ms)
{
    return week_of(r, stamp_ms + WEEK_MS - 1) + WEEK_MS;
}

/* Rolls up the weeks that still have all their days. Others have expired, or are about to. */
static bool roll_weeks(struct rolling *r)
{
    struct watermarks gone;
    int64_t at_ms = INT64_MIN;
    bool good = mongo_watermarks(&r->job.m->store, r->job.report, &gone, r->job.e);
    for (size_t i = 0; good && i < r->count; i++) {
        int64_t first_ms = week_of(r, r->stamps[i].start_ms), end_ms = weeks_end(r, r->stamps[i].start_ms);
        for (at_ms = at_ms > first_ms ? at_ms : first_ms; good && at_ms < end_ms; at_ms += WEEK_MS) {
            bool is_gone = gone.before_ms[SPAN_DAY] > 0 && at_ms < gone.before_ms[SPAN_DAY];
            good = is_gone || roll_week(r, at_ms);
        }
    }
    return good;
}

static bool roll_group(struct rolling *r)
{
    bool good = mongo_job_wait_for_open(&r->job, true) &&
                (r->target->kind == &mongo_week ? roll_weeks(r) : roll_year(r));
    if (!good)
        return false;
    failpoint(FAILPOINT_ROLLUP_STAMPING);
    char path[MONGO_STAMP_BYTES];
    bson_t *rolled = bson_new();
    for (size_t i = 0; i < r->count; i++)
        BSON_APPEND_INT64(rolled, mongo_stamp_path("rolled", r->target, r->stamps[i].start_ms, path),
                          r->stamps[i].written);
    return mongo_job_set(&r->job, rolled);
}

/* ---- which */

static struct mongo_waits *waits_of(const struct rolling *r)
{
    return &r->job.m->more[r->job.report].waits[r->target - mongo_targets];
}

/* The periods that wait, and since when. */
static struct mongo_waits find_waits(struct rolling *r, const struct mongo_version_stamps *found)
{
    struct mongo_waits waits = {.count = 0};
    for (size_t i = 0; i < found->count; i++) {
        const struct mongo_version_stamp *stamp = &found->list[i];
        const struct mongo_wait one = {.span = r->target->stamped,
                                       .start_ms = stamp->start_ms,
                                       .end_ms = r->target->kind == &mongo_week
                                                     ? weeks_end(r, stamp->start_ms)
                                                     : span_next(SPAN_MONTH, stamp->start_ms),
                                       .written = stamp->written};
        if (stamp->written != stamp->rolled)
            mongo_waits_add(&waits, &one);
    }
    mongo_waits_follow(waits_of(r), &waits, r->job.m);
    return waits;
}

static bool is_of_our_day(const struct rolling *r, const struct mongo_version_stamps *stamps)
{
    return r->target->kind != &mongo_week ||
           (!stamps->is_stale && strcmp(stamps->start, civil_weekdays[r->job.what->week_start]) == 0);
}

/* Takes the lease, and keeps those of r->stamps that still wait. None: another holds the lease, or the first
 * day of weeks changed while this process was stopped. */
static bool take_group(struct rolling *r)
{
    struct mongo_version_stamps stamps;
    bson_t after;
    bool good = mongo_job_take(&r->job, &after);
    mongo_take_stamps(r->target, &after, &stamps);
    bson_destroy(&after);
    size_t wanted = good && r->job.goes_on && is_of_our_day(r, &stamps) ? r->count : 0;
    r->count = 0;
    for (size_t i = 0, k = 0; i < stamps.count && k < wanted; i++) {
        const struct mongo_version_stamp *stamp = &stamps.list[i];
        while (k < wanted && r->stamps[k].start_ms < stamp->start_ms)
            k++;
        if (k < wanted && r->stamps[k].start_ms == stamp->start_ms && stamp->written != stamp->rolled)
            r->stamps[r->count++] = *stamp; /* never behind k */
    }
    free(stamps.list);
    return good;
}

static void tell_done(const struct rolling *r)
{
    const char *name = r->job.m->reports[r->job.report].name;
    for (size_t i = 0; i < r->done_count; i++)
        r->job.what->done(r->job.what->context, name, r->target->stamped, r->done[i].start_ms,
                          r->done[i].documents);
}

/* Rolls up r->stamps, as far as they are ours to do. */
static bool roll_stamps(struct rolling *r)
{
    r->done_count = 0;
    for (size_t i = 0; r->job.what->dry && i < r->count; i++)
        note_done(r, r->stamps[i].start_ms, 0);
    if (!r->job.what->dry && r->count > 0) {
        if (!take_group(r))
            return false;
        if (r->count > 0 && !roll_group(r))
            return !r->job.goes_on;
        for (size_t i = 0; i < r->count; i++)
            mongo_waits_anew(waits_of(r), r->target->stamped, r->stamps[i].start_ms, r->job.m);
    }
    tell_done(r);
    return true;
}

/* Are two periods set together? Months of a year are, and weeks. */
static bool is_together(const struct rolling *r, int64_t first_ms, int64_t start_ms)
{
    return r->target->kind == &mongo_week ||
           span_floor(SPAN_YEAR, first_ms) == span_floor(SPAN_YEAR, start_ms);
}

static bool roll_due(struct rolling *r, const struct mongo_version_stamps *found)
{
    struct mongo_waits waits = find_waits(r, found);
    bool good = true;
    for (size_t i = 0; good && !mongo_job_is_stopped(&r->job) && i < waits.count;) {
        int64_t first_ms = waits.list[i].start_ms;
        r->count = 0;
        for (; i < waits.count && r->count < GROUP_MAX && is_together(r, first_ms, waits.list[i].start_ms);
             i++) {
            if (mongo_wait_is_due(&waits.list[i], r->job.what, r->job.m))
                r->stamps[r->count++] = (struct mongo_version_stamp){.start_ms = waits.list[i].start_ms};
        }
        good = roll_stamps(r);
        if (r->count > 0 && !store_roll_has_time(&r->job.m->store, r->job.what))
            break;
    }
    free(waits.list);
    return good;
}

/* ---- the job */

/* Deletes the weeks of another first day before any week is set; the holder of the lease does it. A rebuild
 * always looks for them. */
static bool clear_weeks(struct rolling *r, const struct mongo_version_stamps *found)
{
    bool is_new = strcmp(found->start, civil_weekdays[r->job.what->week_start]) != 0;
    if (is_of_our_day(r, found) && r->job.what->from_ms < 0)
        return true;
    if (is_new && r->job.what->from_ms < 0)
        return err_set(r->job.e, EX_CONFIG,
                       "the weeks of report %s begin on %s in %s, not on %s as query.week_start says: "
                       "`tallyd job run rollup --rebuild FROM TO` makes them again",
                       r->job.m->reports[r->job.report].name, found->start,
                       mongo_client_name(r->job.m->client), civil_weekdays[r->job.what->week_start]);
    bson_t after;
    bool good = mongo_job_take(&r->job, &after);
    bson_destroy(&after);
    return good && (!r->job.goes_on || mongo_clear_weeks(&r->job, is_new) || !r->job.goes_on);
}

static bool read_again(struct rolling *r, struct mongo_version_stamps *found)
{
    free(found->list);
    found->list = NULL;
    return mongo_read_stamps(r->job.m, r->target, r->job.report, found, r->job.e);
}

/* Finds the stamps that wait. Also makes stamps for counts from before there were stamps, and raises those
 * that must be rolled up again. */
static bool find_stamps(struct rolling *r, struct mongo_version_stamps *found)
{
    const struct store_roll *what = r->job.what;
    bool good = mongo_read_stamps(r->job.m, r->target, r->job.report, found, r->job.e);
    if (!good || what->dry)
        return good;
    if (!found->has_begun)
        good = mongo_begin_stamps(r->job.m, r->target, r->job.report, what->week_start, r->job.e) &&
               read_again(r, found);
    if (good && r->target->kind == &mongo_week)
        good = clear_weeks(r, found);
    if (!good || !r->job.goes_on || what->from_ms < 0)
        return good;
    return mongo_stamp_again(r->job.m, r->target, r->job.report, what->week_start, what->from_ms, what->to_ms,
                             r->job.e) &&
           read_again(r, found);
}

static bool roll_one(struct mongo_store *m, const struct store_roll *what, size_t report, size_t n,
                     struct err *e)
{
    const struct mongo_target *target = &mongo_targets[n];
    struct rolling r = {.job = mongo_job_of(m, what, report, target->job, e), .target = target};
    struct mongo_version_stamps found = {0};
    bool good = find_stamps(&r, &found) && (!r.job.goes_on || roll_due(&r, &found));
    free(found.list);
    return mongo_job_give(&r.job, good);
}

bool mongo_roll(struct store *st, const struct store_roll *what, struct err *e)
{
    return mongo_each_job(st, what, what->weeks ? MONGO_TARGETS : MONGO_WEEKS, roll_one, e);
}

static bool tell_job(struct mongo_store *m, size_t report, const struct mongo_target *target, job_fn *fn,
                     void *context, struct err *e)
{
    struct mongo_version_stamps stamps;
    int64_t now_ms = clock_wall_ms(m->store.clock);
    struct store_job job = {.name = target->job, .report = m->reports[report].name, .owner = ""};
    bool good = mongo_read_stamps(m, target, report, &stamps, e);
    for (size_t i = 0; good && i < stamps.count; i++) {
        const struct mongo_version_stamp *stamp = &stamps.list[i];
        job.waiting +=
            stamp->written != stamp->rolled && span_next(target->stamped, stamp->start_ms) <= now_ms;
    }
    job.last_run_ms = stamps.last_run_ms;
    if (stamps.until_ms > now_ms)
        job.owner = stamps.owner;
    bool is_there = target->kind != &mongo_week || stamps.has_begun || stamps.count > 0;
    if (good && is_there)
        fn(context, &job);
    free(stamps.list);
    return good;
}

/* Tells which writers have batches that documents of months lack: they roll them up between batches. */
static bool tell_writers(struct mongo_store *m, job_fn *fn, void *context, struct err *e)
{
    bson_t ledger, seat;
    bool good = mongo_read_ledger(m, &ledger, e);
    for (int i = 0; good && i < MONGO_SLOTS; i++) {
        if (!mongo_seat_of(&ledger, mongo_slots[i], &seat) || mongo_last_unrolled(&seat) == 0)
            continue;
        const struct store_job job = {.name = "months",
                                      .report = mongo_slots[i],
                                      .is_of_writer = true,
                                      .waiting = mongo_count_unrolled(&seat),
                                      .last_run_ms = mongo_number_at(&seat, "at", 0),
                                      .owner = ""};
        fn(context, &job);
    }
    bson_destroy(&ledger);
    return good;
}

bool mongo_jobs(struct store *st, job_fn *fn, void *context, struct err *e)
{
    bool good = tell_writers(mongo_of(st), fn, context, e);
    for (size_t report = 0; good && report < st->report_count; report++) {
        for (size_t t = 0; good && t < MONGO_TARGETS; t++)
            good = tell_job(mongo_of(st), report, &mongo_targets[t], fn, context, e);
        good = good && mongo_rank_job(mongo_of(st), report, fn, context, e);
    }
    return good;
}
