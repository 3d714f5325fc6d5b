/* Ranks periods that are over: reads all series of a period, and keeps the largest.
 *
 * Exact  : the job reads `written`, waits for every open batch, then reads the documents. It sets the
 *          ranking only if `written` is still the same.
 * Cost   : the hours of one day that wait are ranked together, and so are the days of one month: one pass
 *          over the documents that hold them, and one over those of each sketch.
 * Memory : LISTS_MAX lists of MONGO_TOP_SERIES series, with their keys; and the list of waiting periods.
 */
#include "store/mongo/job/top_job.h"

#include "base/civil.h"
#include "base/clock.h"
#include "base/failpoint.h"
#include "base/mem.h"
#include "store/mongo/doc/document.h"
#include "store/mongo/doc/scan.h"
#include "store/mongo/doc/top.h"
#include "store/mongo/doc/walk.h"
#include "store/mongo/doc/watermarks.h"
#include "store/mongo/job/lease.h"
#include "store/mongo/job/top_period.h"
#include "store/mongo/job/waits.h"
#include "store/mongo/wire/command.h"
#include "store/mongo/wire/field.h"

#include <stdlib.h>

#define LISTS_MAX    96
#define SEEN_BUCKETS 4096 /* buckets between two checks whether to go on */

_Static_assert(REPORT_MEASURES_MAX *(RANK_BY_END - 1) <= LISTS_MAX, "a period can be ranked");

struct period {
    struct mongo_wait what;
    struct top_period tops;
};

struct ranking {
    struct mongo_job job;
    char collection[MONGO_NAME_BYTES];
    uint64_t seen;                    /* time buckets read */
    bool was_cut;                     /* mongo_job_keep() ended the pass before all were read */
    struct period periods[LISTS_MAX]; /* the periods of one pass */
    size_t count;
    bool of_sketch;          /* a sketch is being read */
    size_t sketch;           /* its index in the report */
    struct sketch_work work; /* of one series */
};

/* ---- what waits */

/* Reads a waiting period. False: the document was damaged by others. */
static bool take_wait(const bson_t *document, struct mongo_wait *wait)
{
    char id[MONGO_TOP_ID_BYTES];
    *wait = (struct mongo_wait){.written = mongo_number_at(document, "written", 0)};
    if (!mongo_date_of(document, &wait->start_ms) || wait->written <= 0)
        return false;
    for (size_t i = 0; i < MONGO_TOP_SPANS; i++) {
        wait->span = mongo_top_spans[i];
        wait->end_ms = span_next(wait->span, wait->start_ms);
        if (span_floor(wait->span, wait->start_ms) == wait->start_ms &&
            strcmp(mongo_text_at(document, "_id"), mongo_top_id(wait->span, wait->start_ms, id)) == 0)
            return true;
    }
    return false;
}

static bool see_waiting(void *context, const bson_t *document)
{
    struct mongo_wait wait;
    if (take_wait(document, &wait))
        mongo_waits_add(context, &wait);
    return true;
}

static bool read_waiting(struct mongo_store *m, size_t report, struct mongo_waits *waits, struct err *e)
{
    char collection[MONGO_NAME_BYTES];
    bson_t *options =
        BCON_NEW("projection", "{", "metadata", BCON_BOOL(true), "written", BCON_BOOL(true), "}");
    return mongo_look(m->client, mongo_collection(m, report, MONGO_TOP, collection),
                      BCON_NEW("waiting", BCON_BOOL(true)), options, see_waiting, waits, e);
}

static struct mongo_waits *waits_of(const struct ranking *r)
{
    return &r->job.m->more[r->job.report].waits[MONGO_TARGETS];
}

static bool is_gone(const struct mongo_wait *wait, const struct watermarks *watermarks)
{
    return wait->start_ms < watermarks->before_ms[wait->span]; /* its document is deleted soon */
}

/* Finds the periods that are due, in order. */
static bool find_due(const struct ranking *r, struct mongo_waits *due)
{
    const struct mongo_job *job = &r->job;
    struct watermarks watermarks;
    size_t count = 0;
    *due = (struct mongo_waits){.count = 0};
    if (!mongo_watermarks(&job->m->store, job->report, &watermarks, job->e) ||
        !read_waiting(job->m, job->report, due, job->e))
        return false;
    mongo_waits_follow(waits_of(r), due, job->m);
    for (size_t i = 0; i < due->count; i++) {
        if (!is_gone(&due->list[i], &watermarks) && mongo_wait_is_due(&due->list[i], job->what, job->m))
            due->list[count++] = due->list[i];
    }
    due->count = count;
    return true;
}

/* ---- rankings */

static struct period *find_period(struct ranking *r, int64_t start_ms)
{
    size_t i = 0;
    while (i < r->count && r->periods[i].what.start_ms != start_ms)
        i++;
    return i < r->count ? &r->periods[i] : NULL;
}

static bool see_bucket(void *context, const struct slice *key, int64_t bucket_ms, const int64_t *values,
                       struct slice sketch)
{
    struct ranking *r = context;
    struct period *p = find_period(r, bucket_ms);
    if (p != NULL && r->of_sketch) /* else the period lies between two that wait */
        top_period_add_sketch(&p->tops, r->sketch, key, values, sketch, &r->work);
    else if (p != NULL)
        top_period_add(&p->tops, key, values);
    r->was_cut = ++r->seen % SEEN_BUCKETS == 0 && !mongo_job_keep(&r->job);
    return !r->was_cut;
}

static void end_periods(struct ranking *r)
{
    for (size_t p = 0; p < r->count; p++)
        top_period_fini(&r->periods[p].tops);
    r->count = 0;
}

static void write_ranking(const struct ranking *r, struct period *p, bson_t *update)
{
    bson_t part;
    bson_init(update);
    BSON_APPEND_DOCUMENT_BEGIN(update, "$set", &part);
    BSON_APPEND_INT64(&part, "ranked", p->what.written);
    BSON_APPEND_DATE_TIME(&part, "at", clock_wall_ms(r->job.m->store.clock));
    top_period_append(&p->tops, r->job.m, r->job.report, &part);
    bson_append_document_end(update, &part);
    BSON_APPEND_DOCUMENT_BEGIN(update, "$unset", &part);
    BSON_APPEND_UTF8(&part, "waiting", "");
    if (mongo_wait_is_over(&p->what, r->job.m))
        BSON_APPEND_UTF8(&part, "open", ""); /* mongo/live/groups.h */
    bson_append_document_end(update, &part);
}

/* Sets the ranking, unless something was written since. */
static bool set_ranking(struct ranking *r, struct period *p)
{
    char id[MONGO_TOP_ID_BYTES];
    bson_t update;
    bool matched;
    bson_t *filter = BCON_NEW("_id", BCON_UTF8(mongo_top_id(p->what.span, p->what.start_ms, id)), "written",
                              BCON_INT64(p->what.written));
    write_ranking(r, p, &update);
    failpoint(FAILPOINT_TOP_RANKED);
    bool good = mongo_change(r->job.m->client, r->collection, filter, &update, false, &matched, r->job.e);
    if (good && matched)
        r->job.what->done(r->job.what->context, r->job.m->reports[r->job.report].name, p->what.span,
                          p->what.start_ms, top_period_series(&p->tops));
    else if (good)
        mongo_waits_anew(waits_of(r), p->what.span, p->what.start_ms, r->job.m);
    return good;
}

/* ---- several at once */

/* The measures without a sketch that are ranked, a bit each. */
static uint32_t ranked_measures(const struct report *r)
{
    uint32_t measures = 0;
    for (size_t i = 0; i < r->measure_count; i++) {
        if (!measure_has_sketch(&r->measures[i]) && rank_by_is_of(RANK_BY_VALUE, &r->measures[i]))
            measures |= (uint32_t)1 << i;
    }
    return measures;
}

static struct scan scan_of(const struct ranking *r)
{
    const struct mongo_wait *first = &r->periods[0].what, *last = &r->periods[r->count - 1].what;
    return (struct scan){.report = r->job.report,
                         .resolution = first->span,
                         .from_ms = first->start_ms,
                         .to_ms = span_next(last->span, last->start_ms),
                         .series = {.kind = SERIES_ALL},
                         .rows_max = UINT64_MAX};
}

/* Reads all series of the periods: once, and once for each sketch. */
static bool read_periods(struct ranking *r)
{
    const struct report *report = &r->job.m->reports[r->job.report];
    struct scan_stats stats = {0};
    struct scan scan = scan_of(r);
    bool good = true;
    scan.measures = ranked_measures(report);
    r->of_sketch = false;
    if (scan.measures != 0)
        good = mongo_scan_keys(r->job.m, (struct mongo_from){.kind = mongo_kind_for(report, scan.resolution)},
                               &scan, see_bucket, r, &stats, r->job.e);
    r->of_sketch = true;
    for (r->sketch = 0; good && !r->was_cut && r->sketch < report->sketch_count; r->sketch++)
        good = mongo_scan_keys(r->job.m, mongo_from_sketch(report, r->sketch, scan.resolution), &scan,
                               see_bucket, r, &stats, r->job.e);
    return good;
}

static bool rank_periods(struct ranking *r)
{
    bool good = read_periods(r);
    if (r->was_cut)
        return !r->job.goes_on;
    for (size_t i = 0; good && i < r->count; i++)
        good = set_ranking(r, &r->periods[i]);
    return good;
}

/* Are both periods in the same documents? */
static bool is_together(const struct ranking *r, const struct mongo_wait *a, const struct mongo_wait *b)
{
    enum span whole = mongo_kind_for(&r->job.m->reports[r->job.report], a->span)->span;
    return a->span == b->span && span_floor(whole, a->start_ms) == span_floor(whole, b->start_ms);
}

/* Ranks the newest periods first: of a long history they are queried most. Damage of some keeps no others
 * from being ranked: *r->job.e says the first. */
static bool rank_due(struct ranking *r, const struct mongo_waits *due)
{
    const struct report *report = &r->job.m->reports[r->job.report];
    const size_t lists = top_period_lists(report);
    size_t end = due->count;
    bool all_good = true;
    struct err damage;
    while (end > 0 && mongo_job_keep(&r->job)) {
        size_t first = end - 1;
        while (first > 0 && is_together(r, &due->list[first - 1], &due->list[end - 1]) &&
               (end - first + 1) * lists <= LISTS_MAX)
            first--;
        for (size_t i = first; i < end; i++) {
            r->periods[r->count].what = due->list[i];
            top_period_init(&r->periods[r->count++].tops, report, due->list[i].span);
        }
        bool good = rank_periods(r);
        end_periods(r);
        if (!good && r->job.e->code != EX_DATAERR)
            return false;
        if (!good && all_good)
            damage = *r->job.e;
        all_good = all_good && good;
        end = store_roll_has_time(&r->job.m->store, r->job.what) ? first : 0;
    }
    if (end > 0 && r->job.goes_on)
        return false; /* mongo_job_keep() says why */
    if (!all_good)
        *r->job.e = damage;
    return all_good;
}

/* ---- periods that are ranked again */

/* Adds an update that raises the stamp of a ranking as a batch does, except for `applied`. */
static void add_mark(bson_t *updates, uint32_t n, enum span span, int64_t start_ms, int64_t now_ms)
{
    char id[MONGO_TOP_ID_BYTES], room[MONGO_KEY_BYTES];
    BCON_APPEND(updates, mongo_array_key(n, room), "{", "q", "{", "_id",
                BCON_UTF8(mongo_top_id(span, start_ms, id)), "metadata.date", BCON_DATE_TIME(start_ms), "}",
                "u", "{", "$inc", "{", "written", BCON_INT64(1), "}", "$set", "{", "waiting", BCON_BOOL(true),
                "modified", BCON_DATE_TIME(now_ms), "v", BCON_INT32(MONGO_SCHEMA), "}", "$setOnInsert", "{",
                "applied", "{", "}", "}", "}", "upsert", BCON_BOOL(true), "}");
}

struct again {
    struct mongo_store *m;
    size_t report;
    int64_t from_ms, to_ms;
    struct watermarks gone;
};

/* Raises the stamps of the month's periods that are within the range and not expired: 776 at most. A batch
 * that makes one of the documents meanwhile has stamped it. */
static bool mark_month(void *context, int64_t month_ms, struct err *e)
{
    const struct again *a = context;
    char name[MONGO_NAME_BYTES];
    const char *collection = mongo_collection(a->m, a->report, MONGO_TOP, name);
    int64_t from_ms = month_ms > a->from_ms ? month_ms : a->from_ms, end_ms = span_next(SPAN_MONTH, month_ms);
    bson_t updates = BSON_INITIALIZER;
    uint32_t count = 0;
    int64_t written;
    for (size_t s = 0; s < MONGO_TOP_SPANS; s++) {
        enum span span = mongo_top_spans[s];
        int64_t gone_ms = a->gone.before_ms[span];
        int64_t at_ms = span_floor(span, from_ms > gone_ms ? from_ms : gone_ms);
        for (; at_ms < end_ms && at_ms < a->to_ms; at_ms = span_next(span, at_ms))
            add_mark(&updates, count++, span, at_ms, clock_wall_ms(a->m->store.clock));
    }
    bool good = count == 0 || mongo_upsert_all(a->m->client, collection, &updates, &written, e);
    bson_destroy(&updates);
    return good;
}

/* Raises the stamps of existing rankings: all documents that a ranking was made of may have been deleted. */
static bool mark_kept(const struct again *a, enum span span, struct err *e)
{
    char name[MONGO_NAME_BYTES], from[MONGO_TOP_ID_BYTES], to[MONGO_TOP_ID_BYTES];
    const char *collection = mongo_collection(a->m, a->report, MONGO_TOP, name);
    int64_t gone_ms = a->gone.before_ms[span];
    mongo_top_id(span, a->from_ms > gone_ms ? a->from_ms : gone_ms, from);
    mongo_top_id(span, a->to_ms - 1, to);
    bson_t *filter = BCON_NEW("_id", "{", "$gte", BCON_UTF8(from), "$lte", BCON_UTF8(to), "}", "ranked", "{",
                              "$exists", BCON_BOOL(true), "}");
    bson_t *update =
        BCON_NEW("$inc", "{", "written", BCON_INT64(1), "}", "$set", "{", "waiting", BCON_BOOL(true), "}");
    return mongo_change_all(a->m->client, collection, filter, update, NULL, e);
}

/* Has the periods of [from_ms, to_ms) ranked again that have documents or rankings, also those without a
 * stamp: for counts from a version that does not stamp, or changed by hand. Future and expired periods are
 * left out. */
static bool mark_again(struct mongo_store *m, size_t report, int64_t from_ms, int64_t to_ms, struct err *e)
{
    int64_t end_ms = clock_wall_ms(m->store.clock) + 1;
    struct again a = {.m = m, .report = report, .from_ms = from_ms, .to_ms = to_ms < end_ms ? to_ms : end_ms};
    bool good = mongo_watermarks(&m->store, report, &a.gone, e);
    for (size_t s = 0; good && s < MONGO_TOP_SPANS; s++)
        good = mark_kept(&a, mongo_top_spans[s], e);
    return good && mongo_each_month(m, report, from_ms, a.to_ms, mark_month, &a, e);
}

/* ---- one report */

/* Takes the lease, and makes its document if that is the first time. */
static bool take_lease(struct mongo_job *job)
{
    bson_t after;
    bson_t *update = BCON_NEW("$setOnInsert", "{", "fence", BCON_INT64(0), "}");
    if (!mongo_change(job->m->client, MONGO_JOBS, BCON_NEW("_id", BCON_UTF8(job->id)), update, true, NULL,
                      job->e))
        return false;
    bool good = mongo_job_take(job, &after);
    bson_destroy(&after);
    return good;
}

/* Is any of the periods read from documents that are rolled up after a batch? */
static bool are_of_longer(const struct ranking *r, const struct mongo_waits *due)
{
    const struct report *report = &r->job.m->reports[r->job.report];
    const struct mongo_kind *fine = mongo_kinds(report, NULL);
    bool are = false;
    for (size_t i = 0; !are && i < due->count; i++)
        are = mongo_kind_for(report, due->list[i].span) != fine;
    return are;
}

static bool rank_with_lease(struct ranking *r)
{
    struct mongo_waits due = {.count = 0};
    if (!take_lease(&r->job))
        return false;
    if (!r->job.goes_on)
        return true;
    bool good = find_due(r, &due);
    good = good &&
           (due.count == 0 || mongo_job_wait_for_open(&r->job, are_of_longer(r, &due)) || !r->job.goes_on);
    good = good && rank_due(r, &due);
    free(due.list);
    return mongo_job_give(&r->job, good);
}

static bool rank_report(struct ranking *r)
{
    const struct store_roll *what = r->job.what;
    struct mongo_waits due = {.count = 0};
    bool good =
        (what->from_ms < 0 || mark_again(r->job.m, r->job.report, what->from_ms, what->to_ms, r->job.e)) &&
        find_due(r, &due);
    for (size_t i = 0; good && what->dry && i < due.count; i++)
        what->done(what->context, r->job.m->reports[r->job.report].name, due.list[i].span,
                   due.list[i].start_ms, 0);
    if (good && !what->dry && due.count > 0)
        good = rank_with_lease(r);
    free(due.list);
    return good;
}

static bool rank_one(struct mongo_store *m, const struct store_roll *what, size_t report, size_t n,
                     struct err *e)
{
    (void)n;
    if (!mongo_top_is_cached(&m->reports[report]))
        return true;
    struct ranking *r = xcalloc(1, sizeof *r);
    r->job = mongo_job_of(m, what, report, MONGO_TOP, e);
    mongo_collection(m, report, MONGO_TOP, r->collection);
    bool good = rank_report(r);
    sketch_work_fini(&r->work);
    free(r);
    return good;
}

bool mongo_rank(struct store *st, const struct store_roll *what, struct err *e)
{
    return mongo_each_job(st, what, 1, rank_one, e);
}

bool mongo_rank_job(struct mongo_store *m, size_t report, job_fn *fn, void *context, struct err *e)
{
    struct store_job job = {.name = "top", .report = m->reports[report].name, .owner = ""};
    const struct mongo_job of = mongo_job_of(m, NULL, report, MONGO_TOP, e);
    struct watermarks watermarks;
    struct mongo_waits waits = {.count = 0};
    bson_t lease = BSON_INITIALIZER;
    if (!mongo_top_is_cached(&m->reports[report]))
        return true;
    bool good = mongo_watermarks(&m->store, report, &watermarks, e) && read_waiting(m, report, &waits, e) &&
                mongo_read_document(m->client, MONGO_JOBS, of.id, &lease, e);
    for (size_t i = 0; i < waits.count; i++)
        job.waiting += mongo_wait_is_over(&waits.list[i], m) && !is_gone(&waits.list[i], &watermarks);
    job.last_run_ms = mongo_number_at(&lease, "last_run", 0);
    if (mongo_number_at(&lease, "until", 0) > clock_wall_ms(m->store.clock))
        job.owner = mongo_text_at(&lease, "owner");
    if (good)
        fn(context, &job);
    bson_destroy(&lease);
    free(waits.list);
    return good;
}
