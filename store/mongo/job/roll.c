#include "store/mongo/job/roll.h"

#include "base/check.h"
#include "base/civil.h"
#include "base/clock.h"
#include "base/failpoint.h"
#include "base/mem.h"
#include "store/mongo/doc/version_stamps.h"
#include "store/mongo/doc/watermarks.h"
#include "store/mongo/job/lease.h"
#include "store/mongo/job/merge.h"
#include "store/mongo/job/stamping.h"
#include "store/mongo/job/top_job.h"
#include "store/mongo/job/weeks.h"

#include <stdlib.h>

#define LEASE_KEEP_MS 10000
#define GROUP_MAX     MONGO_SOURCES_MAX /* stamps that are rolled up under one lease */
#define DONE_MAX      (2 * GROUP_MAX)

/* A period that waits to be rolled up, as last seen. */
struct mongo_look {
    const struct mongo_target *target;
    size_t report;
    int64_t start_ms, written;
    int64_t first_ms, seen_ms; /* monotonic: since when it waits; since when `written` is the same */
};

/* A period that was rolled up, for the caller's report. */
struct done {
    int64_t start_ms;
    uint64_t documents;
};

struct rolling {
    struct mongo_store *m;
    const struct store_roll *what;
    const struct mongo_target *target;
    size_t report;
    int64_t fence;                                /* fence of the lease; 0: not taken */
    struct mongo_version_stamp stamps[GROUP_MAX]; /* stamps of one year, or of some weeks */
    size_t count;
    struct done done[DONE_MAX];
    size_t done_count;
    int64_t kept_ms;   /* when the lease was renewed last, monotonic */
    const char *owner; /* owner of the lease when it was read; borrowed */
    bool goes_on;      /* false: another has the lease, or the job must stop; not a failure */
    struct err *e;
};

static bool is_stopped(struct rolling *r)
{
    if (r->what->is_stopped != NULL && r->what->is_stopped(r->what->context))
        r->goes_on = false;
    return !r->goes_on;
}

/* ---- one year, or week */

static bool keep_lease(struct rolling *r)
{
    int64_t now_ms = clock_mono_ms(r->m->store.clock);
    if (now_ms - r->kept_ms < LEASE_KEEP_MS)
        return true;
    r->kept_ms = now_ms;
    bool held, asked = mongo_keep_lease(r->m, r->target, r->report, r->fence, &held, r->e);
    r->goes_on = held || !asked;
    return held;
}

static bool goes_on(void *context)
{
    struct rolling *r = context;
    return !is_stopped(r) && keep_lease(r);
}

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
    return (struct mongo_merge){.m = r->m,
                                .target = r->target,
                                .report = r->report,
                                .start_ms = start_ms,
                                .fence = r->fence,
                                .goes_on = goes_on,
                                .context = r};
}

/* Rolls up the months of a year that wait. */
static bool roll_year(struct rolling *r)
{
    struct mongo_merge g = merge_of(r, span_floor(SPAN_YEAR, r->stamps[0].start_ms));
    for (size_t i = 0; i < r->count; i++)
        add_source(&g, r->stamps[i].start_ms, span_next(SPAN_MONTH, r->stamps[i].start_ms));
    bool good = mongo_merge(&g, r->e);
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
    const struct report *report = &r->m->reports[r->report];
    struct mongo_merge g = merge_of(r, start_ms);
    add_days(&g, SPAN_MONTH);
    bool good = mongo_merge(&g, r->e);
    uint64_t documents = g.documents;
    for (size_t i = 0; good && i < report->sketch_count; i++) {
        g = merge_of(r, start_ms);
        g.of_sketch = true;
        g.sketch = i;
        add_days(&g, mongo_sketch_kind_for(report, i, SPAN_DAY)->span);
        good = mongo_merge(&g, r->e);
        documents += g.documents;
    }
    note_done(r, start_ms, documents);
    return good;
}

static int64_t week_of(const struct rolling *r, int64_t ms)
{
    return civil_week_floor(r->what->week_start, ms);
}

/* The end of the last week that a stamp leads to. */
static int64_t weeks_end(const struct rolling *r, const struct mongo_version_stamp *stamp)
{
    return week_of(r, stamp->start_ms + WEEK_MS - 1) + WEEK_MS;
}

/* Rolls up the weeks that still have all their days. Others have expired, or are about to. */
static bool roll_weeks(struct rolling *r)
{
    struct watermarks gone;
    int64_t at_ms = INT64_MIN;
    bool good = mongo_watermarks(&r->m->store, r->report, &gone, r->e);
    for (size_t i = 0; good && i < r->count; i++) {
        int64_t first_ms = week_of(r, r->stamps[i].start_ms), end_ms = weeks_end(r, &r->stamps[i]);
        for (at_ms = at_ms > first_ms ? at_ms : first_ms; good && at_ms < end_ms; at_ms += WEEK_MS) {
            bool is_gone = gone.before_ms[SPAN_DAY] > 0 && at_ms < gone.before_ms[SPAN_DAY];
            good = is_gone || roll_week(r, at_ms);
        }
    }
    return good;
}

static bool roll_group(struct rolling *r)
{
    bool good = mongo_wait_for_open(r->m, goes_on, r, r->e) &&
                (r->target->kind == &mongo_week ? roll_weeks(r) : roll_year(r));
    if (!good)
        return false;
    failpoint(FAILPOINT_ROLLUP_STAMPING);
    bool held,
        asked = mongo_stamp_rolled(r->m, r->target, r->report, r->fence, r->stamps, r->count, &held, r->e);
    r->goes_on = held || !asked;
    return held;
}

/* ---- which */

static struct mongo_look *find_look(const struct rolling *r, int64_t start_ms)
{
    for (size_t i = 0; i < r->m->worker.look_count; i++) {
        struct mongo_look *look = &r->m->worker.looks[i];
        if (look->target == r->target && look->report == r->report && look->start_ms == start_ms)
            return look;
    }
    return NULL;
}

/* Is something still being written to the period? */
static bool must_wait(const struct rolling *r, const struct mongo_version_stamp *stamp)
{
    struct mongo_store *m = r->m;
    int64_t now_ms = clock_mono_ms(m->store.clock);
    struct mongo_look *look = find_look(r, stamp->start_ms);
    if (look == NULL) {
        m->worker.looks = xgrow(m->worker.looks, &m->worker.look_capacity, m->worker.look_count + 1,
                                sizeof *m->worker.looks);
        look = &m->worker.looks[m->worker.look_count++];
        *look = (struct mongo_look){r->target, r->report, stamp->start_ms, stamp->written, now_ms, now_ms};
    }
    if (look->written != stamp->written) {
        look->written = stamp->written;
        look->seen_ms = now_ms;
    }
    return now_ms - look->seen_ms < r->what->quiet_ms && now_ms - look->first_ms < MONGO_ROLL_WAIT_MS;
}

static void forget_look(const struct rolling *r, int64_t start_ms)
{
    struct mongo_look *look = find_look(r, start_ms);
    if (look != NULL)
        *look = r->m->worker.looks[--r->m->worker.look_count];
}

static bool is_due(const struct rolling *r, const struct mongo_version_stamp *stamp)
{
    int64_t end_ms =
        r->target->kind == &mongo_week ? weeks_end(r, stamp) : span_next(SPAN_MONTH, stamp->start_ms);
    if (stamp->written == stamp->rolled) {
        forget_look(r, stamp->start_ms); /* also if another has rolled it up */
        return false;
    }
    if (r->what->now)
        return true;
    return end_ms <= clock_wall_ms(r->m->store.clock) && !(r->what->quiet_ms > 0 && must_wait(r, stamp));
}

static void tell_held(const struct rolling *r)
{
    if (r->what->held != NULL)
        r->what->held(r->what->context, r->m->reports[r->report].name, r->owner);
}

static bool is_of_our_day(const struct rolling *r, const struct mongo_version_stamps *stamps)
{
    return r->target->kind != &mongo_week ||
           (!stamps->is_stale && strcmp(stamps->start, civil_weekdays[r->what->week_start]) == 0);
}

/* Takes the lease, and keeps those of r->stamps that still wait. *taken false: another holds it. */
static bool take_group(struct rolling *r, bool *taken)
{
    struct mongo_version_stamps stamps;
    size_t wanted = r->count;
    r->kept_ms = clock_mono_ms(r->m->store.clock);
    bool good = mongo_take_lease(r->m, r->target, r->report, r->fence, taken, &stamps, r->e);
    r->count = 0;
    if (good && *taken)
        r->fence = stamps.fence;
    if (good && *taken && !is_of_our_day(r, &stamps))
        wanted = 0; /* the first day of weeks changed while this process was stopped */
    for (size_t i = 0, k = 0; good && *taken && i < stamps.count && k < wanted; i++) {
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
    const char *name = r->m->reports[r->report].name;
    for (size_t i = 0; i < r->done_count; i++)
        r->what->done(r->what->context, name, r->target->stamped, r->done[i].start_ms, r->done[i].documents);
}

/* Rolls up r->stamps, as far as they are ours to do. */
static bool roll_stamps(struct rolling *r)
{
    bool taken = true;
    r->done_count = 0;
    for (size_t i = 0; r->what->dry && i < r->count; i++)
        note_done(r, r->stamps[i].start_ms, 0);
    if (r->what->dry || r->count == 0) {
        tell_done(r);
        return true;
    }
    if (!take_group(r, &taken))
        return false;
    r->goes_on = taken;
    if (!taken)
        tell_held(r);
    if (r->count == 0)
        return true;
    if (!roll_group(r))
        return !r->goes_on;
    for (size_t i = 0; i < r->count; i++)
        forget_look(r, r->stamps[i].start_ms);
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
    bool good = true;
    for (size_t i = 0; good && !is_stopped(r) && i < found->count;) {
        int64_t first_ms = found->list[i].start_ms;
        r->count = 0;
        for (; i < found->count && r->count < GROUP_MAX && is_together(r, first_ms, found->list[i].start_ms);
             i++) {
            if (is_due(r, &found->list[i]))
                r->stamps[r->count++] = found->list[i];
        }
        good = roll_stamps(r);
        if (r->count > 0 && !store_roll_has_time(&r->m->store, r->what))
            break;
    }
    return good;
}

/* ---- the job */

/* Deletes the weeks of another first day before any week is set; the holder of the lease does it. A rebuild
 * always looks for them. */
static bool clear_weeks(struct rolling *r, const struct mongo_version_stamps *found)
{
    bool taken, is_new = strcmp(found->start, civil_weekdays[r->what->week_start]) != 0;
    struct mongo_version_stamps stamps;
    if (is_of_our_day(r, found) && r->what->from_ms < 0)
        return true;
    if (is_new && r->what->from_ms < 0)
        return err_set(r->e, EX_CONFIG,
                       "the weeks of report %s begin on %s in %s, not on %s as query.week_start says: "
                       "`tallyd job run rollup --rebuild FROM TO` makes them again",
                       r->m->reports[r->report].name, found->start, mongo_client_name(r->m->client),
                       civil_weekdays[r->what->week_start]);
    r->kept_ms = clock_mono_ms(r->m->store.clock);
    bool good = mongo_take_lease(r->m, r->target, r->report, r->fence, &taken, &stamps, r->e);
    free(stamps.list);
    if (!good)
        return false;
    r->goes_on = taken;
    if (!taken) {
        tell_held(r);
        return true;
    }
    r->fence = stamps.fence;
    struct mongo_clearing clearing = {.m = r->m,
                                      .report = r->report,
                                      .fence = r->fence,
                                      .first = r->what->week_start,
                                      .is_new = is_new,
                                      .goes_on = goes_on,
                                      .context = r};
    good = mongo_clear_weeks(&clearing, r->e);
    r->goes_on = r->goes_on && clearing.held;
    return good || !r->goes_on;
}

static bool read_again(struct rolling *r, struct mongo_version_stamps *found)
{
    free(found->list);
    found->list = NULL;
    return mongo_read_stamps(r->m, r->target, r->report, found, r->e);
}

/* Finds the stamps that wait. Also makes stamps for counts from before there were stamps, and raises those
 * that must be rolled up again. */
static bool find_stamps(struct rolling *r, struct mongo_version_stamps *found)
{
    const struct store_roll *what = r->what;
    bool good = mongo_read_stamps(r->m, r->target, r->report, found, r->e);
    r->owner = found->owner;
    if (!good || what->dry)
        return good;
    if (!found->has_begun)
        good = mongo_begin_stamps(r->m, r->target, r->report, what->week_start, r->e) && read_again(r, found);
    if (good && r->target->kind == &mongo_week)
        good = clear_weeks(r, found);
    if (!good || !r->goes_on || what->from_ms < 0)
        return good;
    return mongo_stamp_again(r->m, r->target, r->report, what->week_start, what->from_ms, what->to_ms,
                             r->e) &&
           read_again(r, found);
}

static bool give_lease(struct rolling *r, bool good)
{
    struct err ignored;
    if (r->fence == 0)
        return good;
    if (good)
        return mongo_give_lease(r->m, r->target, r->report, r->fence, r->e);
    if (r->e->code != EX_UNAVAILABLE) /* nobody should wait for the lease of a failed job */
        (void)!mongo_give_lease(r->m, r->target, r->report, r->fence, &ignored);
    return false;
}

static bool roll_one(struct mongo_store *m, const struct store_roll *what, size_t report,
                     const struct mongo_target *target, struct err *e)
{
    struct rolling r = {.m = m, .what = what, .target = target, .report = report, .e = e, .goes_on = true};
    struct mongo_version_stamps found = {0};
    bool good = find_stamps(&r, &found) && (!r.goes_on || roll_due(&r, &found));
    free(found.list);
    return give_lease(&r, good);
}

/* If one report fails, the others are still rolled up. */
bool mongo_roll(struct store *st, const struct store_roll *what, struct err *e)
{
    bool all_good = true, goes_on = true;
    size_t targets = what->weeks ? MONGO_TARGETS : MONGO_WEEKS;
    for (size_t i = 0; goes_on && i < st->report_count * targets; i++) {
        struct err own = {0};
        bool good = roll_one(mongo_of(st), what, i / targets, &mongo_targets[i % targets], &own);
        if (!good && all_good)
            *e = own;
        all_good = all_good && good;
        goes_on = (good || !own.retryable) && (what->is_stopped == NULL || !what->is_stopped(what->context));
    }
    return all_good;
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

bool mongo_jobs(struct store *st, job_fn *fn, void *context, struct err *e)
{
    bool good = true;
    for (size_t report = 0; good && report < st->report_count; report++) {
        for (size_t t = 0; good && t < MONGO_TARGETS; t++)
            good = tell_job(mongo_of(st), report, &mongo_targets[t], fn, context, e);
        good = good && mongo_rank_job(mongo_of(st), report, fn, context, e);
    }
    return good;
}
