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
#include "base/order.h"
#include "store/mongo/doc/document.h"
#include "store/mongo/doc/scan.h"
#include "store/mongo/doc/top.h"
#include "store/mongo/doc/version_stamps.h"
#include "store/mongo/doc/watermarks.h"
#include "store/mongo/job/lease.h"
#include "store/mongo/job/top_again.h"
#include "store/mongo/job/top_period.h"
#include "store/mongo/wire/command.h"
#include "store/mongo/wire/field.h"

#include <stdio.h>
#include <stdlib.h>

#define LISTS_MAX     96
#define LEASE_KEEP_MS 10000
#define WAIT_MAX_MS   (15 * MINUTE_MS) /* longest wait for a period to be quiet */
#define SEEN_BUCKETS  4096             /* buckets between two checks whether to go on */
#define ID_BYTES      (MONGO_NAME_BYTES + 8)

/* A period that waits to be ranked, as last seen. */
struct mongo_top_look {
    enum span span;
    int64_t start_ms, written;
    int64_t first_ms, seen_ms; /* monotonic: since when it waits; since when `written` is the same */
};

struct looks {
    struct mongo_top_look *list; /* sorted by resolution and time */
    size_t count, capacity;
};

_Static_assert(REPORT_MEASURES_MAX *(RANK_BY_END - 1) <= LISTS_MAX, "a period can be ranked");

struct period {
    struct mongo_top_look what;
    struct top_period tops;
};

struct ranking {
    struct mongo_store *m;
    const struct store_roll *what;
    size_t report;
    char id[ID_BYTES]; /* `_id` of the lease */
    char collection[MONGO_NAME_BYTES];
    int64_t fence;   /* fence of the lease; 0: not taken */
    int64_t kept_ms; /* when the lease was renewed last, monotonic */
    bool goes_on;    /* false: another has the lease, or the job was told to stop; neither is a failure */
    uint64_t seen;   /* time buckets read */
    bool was_cut;    /* keep_on() ended the pass before all were read */
    struct period periods[LISTS_MAX]; /* the periods of one pass */
    size_t count;
    bool of_sketch;          /* a sketch is being read */
    size_t sketch;           /* its index in the report */
    struct sketch_work work; /* of one series */
    struct err *e;
};

static bool is_stopped(struct ranking *r)
{
    if (r->what->is_stopped != NULL && r->what->is_stopped(r->what->context))
        r->goes_on = false;
    return !r->goes_on;
}

static bool keep_on(void *context)
{
    struct ranking *r = context;
    int64_t now_ms = clock_mono_ms(r->m->store.clock);
    if (is_stopped(r))
        return false;
    if (now_ms - r->kept_ms < LEASE_KEEP_MS)
        return true;
    r->kept_ms = now_ms;
    bool held, asked = mongo_lease_keep(r->m, r->id, r->fence, &held, r->e);
    r->goes_on = !asked || held;
    return asked && held;
}

/* ---- what waits */

/* Reads a waiting period. False: the document was damaged by others. */
static bool take_look(const bson_t *document, struct mongo_top_look *look)
{
    char id[MONGO_TOP_ID_BYTES];
    bson_iter_t it, date;
    *look = (struct mongo_top_look){.written = mongo_number_at(document, "written", 0)};
    if (!mongo_find_member(document, "metadata.date", &date) || !BSON_ITER_HOLDS_DATE_TIME(&date) ||
        !bson_iter_init_find(&it, document, "_id") || !BSON_ITER_HOLDS_UTF8(&it))
        return false;
    look->start_ms = bson_iter_date_time(&date);
    if (look->written <= 0 || look->start_ms < 0 || look->start_ms >= CIVIL_END_MS)
        return false;
    for (size_t i = 0; i < MONGO_TOP_SPANS; i++) {
        look->span = mongo_top_spans[i];
        if (span_floor(look->span, look->start_ms) == look->start_ms &&
            strcmp(bson_iter_utf8(&it, NULL), mongo_top_id(look->span, look->start_ms, id)) == 0)
            return true;
    }
    return false;
}

static bool see_waiting(void *context, const bson_t *document)
{
    struct looks *looks = context;
    struct mongo_top_look look;
    if (!take_look(document, &look))
        return true;
    looks->list = xgrow(looks->list, &looks->capacity, looks->count + 1, sizeof *looks->list);
    looks->list[looks->count++] = look;
    return true;
}

static int compare_looks(const void *left, const void *right)
{
    const struct mongo_top_look *a = left, *b = right;
    int order = order_int64(a->span, b->span);
    return order != 0 ? order : order_int64(a->start_ms, b->start_ms);
}

static bool read_waiting(struct mongo_store *m, size_t report, struct looks *looks, struct err *e)
{
    char collection[MONGO_NAME_BYTES];
    bson_t *options =
        BCON_NEW("projection", "{", "metadata", BCON_BOOL(true), "written", BCON_BOOL(true), "}");
    mongo_collection(m, report, MONGO_TOP, collection);
    bool good = mongo_look(m->client, collection, BCON_NEW("waiting", BCON_BOOL(true)), options, see_waiting,
                           looks, e);
    if (looks->count > 0)
        qsort(looks->list, looks->count, sizeof *looks->list, compare_looks);
    return good;
}

static bool is_over(const struct mongo_store *m, const struct mongo_top_look *look)
{
    return span_next(look->span, look->start_ms) <= clock_wall_ms(m->store.clock);
}

/* Takes over what is known of waiting periods, in the same order: since when they wait, and since when they
 * are unchanged. A period that is not over does not wait yet. */
static void keep_looks(struct mongo_store *m, size_t report, struct looks *looks)
{
    struct mongo_report *more = &m->more[report];
    int64_t now_ms = clock_mono_ms(m->store.clock);
    size_t known = 0;
    for (size_t i = 0; i < looks->count; i++) {
        struct mongo_top_look *look = &looks->list[i];
        look->first_ms = look->seen_ms = now_ms;
        while (known < more->top_look_count && compare_looks(&more->top_looks[known], look) < 0)
            known++;
        if (known == more->top_look_count || compare_looks(&more->top_looks[known], look) != 0)
            continue;
        if (is_over(m, look))
            look->first_ms = more->top_looks[known].first_ms;
        if (more->top_looks[known].written == look->written)
            look->seen_ms = more->top_looks[known].seen_ms;
    }
    free(more->top_looks);
    more->top_looks = xmalloc(looks->count * sizeof *looks->list + 1);
    more->top_look_count = looks->count;
    if (looks->count > 0)
        memcpy(more->top_looks, looks->list, looks->count * sizeof *looks->list);
}

/* A batch was written during the ranking: the period waits again until it is quiet. */
static void wait_anew(const struct ranking *r, const struct mongo_top_look *refused)
{
    const struct mongo_report *more = &r->m->more[r->report];
    for (size_t i = 0; i < more->top_look_count; i++) {
        struct mongo_top_look *look = &more->top_looks[i];
        if (compare_looks(look, refused) == 0)
            look->first_ms = look->seen_ms = clock_mono_ms(r->m->store.clock);
    }
}

static bool is_gone(const struct mongo_top_look *look, const struct watermarks *watermarks)
{
    return look->start_ms < watermarks->before_ms[look->span]; /* its document is deleted soon */
}

static bool is_due(const struct ranking *r, const struct mongo_top_look *look,
                   const struct watermarks *watermarks)
{
    int64_t now_ms = clock_mono_ms(r->m->store.clock);
    if (is_gone(look, watermarks))
        return false;
    if (r->what->now)
        return true;
    return is_over(r->m, look) &&
           (now_ms - look->seen_ms >= r->what->quiet_ms || now_ms - look->first_ms >= WAIT_MAX_MS);
}

/* Finds the periods that are due, in order. */
static bool find_due(const struct ranking *r, struct looks *looks)
{
    struct watermarks watermarks;
    size_t count = 0;
    *looks = (struct looks){0};
    if (!mongo_watermarks(&r->m->store, r->report, &watermarks, r->e) ||
        !read_waiting(r->m, r->report, looks, r->e))
        return false;
    keep_looks(r->m, r->report, looks);
    for (size_t i = 0; i < looks->count; i++) {
        if (is_due(r, &looks->list[i], &watermarks))
            looks->list[count++] = looks->list[i];
    }
    looks->count = count;
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
    r->was_cut = ++r->seen % SEEN_BUCKETS == 0 && !keep_on(r);
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
    BSON_APPEND_DATE_TIME(&part, "at", clock_wall_ms(r->m->store.clock));
    top_period_append(&p->tops, r->m, r->report, &part);
    bson_append_document_end(update, &part);
    BSON_APPEND_DOCUMENT_BEGIN(update, "$unset", &part);
    BSON_APPEND_UTF8(&part, "waiting", "");
    if (is_over(r->m, &p->what))
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
    bool good = mongo_change(r->m->client, r->collection, filter, &update, false, &matched, r->e);
    if (good && matched)
        r->what->done(r->what->context, r->m->reports[r->report].name, p->what.span, p->what.start_ms,
                      top_period_series(&p->tops));
    else if (good)
        wait_anew(r, &p->what);
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
    const struct mongo_top_look *first = &r->periods[0].what, *last = &r->periods[r->count - 1].what;
    return (struct scan){.report = r->report,
                         .resolution = first->span,
                         .from_ms = first->start_ms,
                         .to_ms = span_next(last->span, last->start_ms),
                         .series = {.kind = SERIES_ALL},
                         .rows_max = UINT64_MAX};
}

/* Reads all series of the periods: once, and once for each sketch. */
static bool read_periods(struct ranking *r)
{
    const struct report *report = &r->m->reports[r->report];
    struct scan_stats stats = {0};
    struct scan scan = scan_of(r);
    bool good = true;
    scan.measures = ranked_measures(report);
    r->of_sketch = false;
    if (scan.measures != 0)
        good = mongo_scan_keys(r->m, &scan, see_bucket, r, &stats, r->e);
    r->of_sketch = true;
    for (r->sketch = 0; good && !r->was_cut && r->sketch < report->sketch_count; r->sketch++)
        good = mongo_scan_sketch_keys(r->m, r->sketch, &scan, see_bucket, r, &stats, r->e);
    return good;
}

static bool rank_periods(struct ranking *r)
{
    bool good = read_periods(r);
    if (r->was_cut)
        return !r->goes_on;
    for (size_t i = 0; good && i < r->count; i++)
        good = set_ranking(r, &r->periods[i]);
    return good;
}

/* Are both periods in the same documents? */
static bool is_together(const struct ranking *r, const struct mongo_top_look *a,
                        const struct mongo_top_look *b)
{
    enum span whole = mongo_kind_for(&r->m->reports[r->report], a->span)->span;
    return a->span == b->span && span_floor(whole, a->start_ms) == span_floor(whole, b->start_ms);
}

/* Ranks the newest periods first: of a long history they are queried most. Damage of some keeps no others
 * from being ranked: *r->e says the first. */
static bool rank_due(struct ranking *r, const struct looks *due)
{
    const struct report *report = &r->m->reports[r->report];
    const size_t lists = top_period_lists(report);
    size_t end = due->count;
    bool all_good = true;
    struct err damage;
    while (end > 0 && keep_on(r)) {
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
        if (!good && r->e->code != EX_DATAERR)
            return false;
        if (!good && all_good)
            damage = *r->e;
        all_good = all_good && good;
        end = store_roll_has_time(&r->m->store, r->what) ? first : 0;
    }
    if (end > 0 && r->goes_on)
        return false; /* keep_on() says why */
    if (!all_good)
        *r->e = damage;
    return all_good;
}

/* ---- one report */

static bool take_lease(struct ranking *r, char owner[MONGO_OWNER_BYTES], bool *taken)
{
    bson_t after;
    bson_t *update = BCON_NEW("$setOnInsert", "{", "fence", BCON_INT64(0), "}");
    owner[0] = '\0';
    *taken = false;
    bool good =
        mongo_change(r->m->client, MONGO_JOBS, BCON_NEW("_id", BCON_UTF8(r->id)), update, true, NULL, r->e);
    if (good) {
        r->kept_ms = clock_mono_ms(r->m->store.clock);
        good = mongo_lease_take(r->m, r->id, 0, taken, &after, r->e);
        r->fence = good && *taken ? mongo_number_at(&after, "fence", 0) : 0;
        bson_destroy(&after);
    }
    if (good && !*taken) {
        good = mongo_read_document(r->m->client, MONGO_JOBS, r->id, &after, r->e);
        mongo_lease_owner(&after, owner);
        bson_destroy(&after);
    }
    return good;
}

/* Nobody should wait for the lease of a job that has ended. */
static bool give_lease(struct ranking *r, bool good)
{
    struct err ignored;
    if (good)
        return mongo_lease_give(r->m, r->id, r->fence, r->e);
    if (r->e->code != EX_UNAVAILABLE)
        (void)!mongo_lease_give(r->m, r->id, r->fence, &ignored);
    return false;
}

static bool rank_with_lease(struct ranking *r)
{
    char owner[MONGO_OWNER_BYTES];
    struct looks due = {0};
    bool taken;
    if (!take_lease(r, owner, &taken))
        return false;
    if (!taken && r->what->held != NULL)
        r->what->held(r->what->context, r->m->reports[r->report].name, owner);
    if (!taken)
        return true;
    bool good = find_due(r, &due);
    good = good && (due.count == 0 || mongo_wait_for_open(r->m, keep_on, r, r->e) || !r->goes_on);
    good = good && rank_due(r, &due);
    free(due.list);
    return give_lease(r, good);
}

static void begin(struct ranking *r)
{
    snprintf(r->id, sizeof r->id, "top/%s", r->m->more[r->report].key);
    mongo_collection(r->m, r->report, MONGO_TOP, r->collection);
}

static bool rank_report(struct ranking *r)
{
    const struct store_roll *what = r->what;
    struct looks due = {0};
    begin(r);
    bool good = (what->from_ms < 0 || mongo_top_again(r->m, r->report, what->from_ms, what->to_ms, r->e)) &&
                find_due(r, &due);
    for (size_t i = 0; good && what->dry && i < due.count; i++)
        what->done(what->context, r->m->reports[r->report].name, due.list[i].span, due.list[i].start_ms, 0);
    if (good && !what->dry && due.count > 0)
        good = rank_with_lease(r);
    free(due.list);
    return good;
}

/* If one report fails, the others are still ranked. */
bool mongo_rank(struct store *st, const struct store_roll *what, struct err *e)
{
    bool all_good = true, goes_on = true;
    struct ranking *r = xcalloc(1, sizeof *r);
    for (size_t report = 0; goes_on && report < st->report_count; report++) {
        struct err own = {0};
        if (!mongo_top_is_cached(&st->reports[report]))
            continue;
        *r = (struct ranking){.m = mongo_of(st), .what = what, .report = report, .goes_on = true, .e = &own};
        bool good = rank_report(r);
        sketch_work_fini(&r->work);
        if (!good && all_good)
            *e = own;
        all_good = all_good && good;
        goes_on = (good || !own.retryable) && !(what->is_stopped != NULL && what->is_stopped(what->context));
    }
    free(r);
    return all_good;
}

bool mongo_rank_job(struct mongo_store *m, size_t report, job_fn *fn, void *context, struct err *e)
{
    struct store_job job = {.name = "top", .report = m->reports[report].name, .owner = ""};
    struct ranking r = {.m = m, .report = report};
    struct watermarks watermarks;
    char owner[MONGO_OWNER_BYTES];
    struct looks looks = {0};
    bson_t lease = BSON_INITIALIZER;
    if (!mongo_top_is_cached(&m->reports[report]))
        return true;
    begin(&r);
    bool good = mongo_watermarks(&m->store, report, &watermarks, e) && read_waiting(m, report, &looks, e) &&
                mongo_read_document(m->client, MONGO_JOBS, r.id, &lease, e);
    for (size_t i = 0; i < looks.count; i++)
        job.waiting += is_over(m, &looks.list[i]) && !is_gone(&looks.list[i], &watermarks);
    job.last_run_ms = mongo_lease_last_run(&lease);
    mongo_lease_owner(&lease, owner);
    if (mongo_lease_until(&lease) > clock_wall_ms(m->store.clock))
        job.owner = owner;
    if (good)
        fn(context, &job);
    bson_destroy(&lease);
    free(looks.list);
    return good;
}
