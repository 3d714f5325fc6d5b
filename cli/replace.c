#include "cli/replace.h"

#include "base/check.h"
#include "base/civil.h"
#include "base/mem.h"
#include "base/order.h"
#include "base/units.h"
#include "cli/options.h"
#include "daemon/setup.h"
#include "store/backend/backend.h"
#include "store/backend/splice.h"
#include "store/backfill.h"
#include "store/forget.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Two reports of a store. */
struct pair {
    struct store *store;
    size_t reports[2]; /* the old one, the new one; indexes in the store */
};

static bool find(const struct pair *p, const char *name, size_t *report, struct err *e)
{
    int n = store_find_report(p->store, slice_text(name));
    *report = (size_t)n;
    return n >= 0 || err_set(e, EX_NOINPUT, "the store has no report \"%s\"", name);
}

static bool open_pair(struct pair *p, const struct config *c, const char *report, const char *old,
                      struct err *e)
{
    p->store = store_open(c->store.url, STORE_READ, NULL, 0, e);
    return p->store != NULL && find(p, old, &p->reports[0], e) && find(p, report, &p->reports[1], e) &&
           (p->reports[0] != p->reports[1] || err_set(e, EX_USAGE, "\"%s\" is the same report", old));
}

/* ---- comparing */

/* The figures of a day, of both reports. */
struct day {
    int64_t ms;
    int64_t values[2][REPORT_MEASURES_MAX * MEASURE_COLUMNS_MAX];
};

struct days {
    const struct pair *pair;
    int which; /* the report that is scanned */
    struct day *list;
    size_t count, capacity, last;
};

static struct day *find_day(struct days *d, int64_t ms)
{
    if (d->last < d->count && d->list[d->last].ms == ms)
        return &d->list[d->last];
    for (d->last = 0; d->last < d->count; d->last++) {
        if (d->list[d->last].ms == ms)
            return &d->list[d->last];
    }
    d->list = xgrow(d->list, &d->capacity, d->count + 1, sizeof *d->list);
    d->list[d->count] = (struct day){.ms = ms};
    return &d->list[d->count++];
}

static void add_cell(void *context, uint32_t series, int64_t bucket_ms, const int64_t *values)
{
    struct days *d = context;
    (void)series;
    report_merge(&d->pair->store->reports[d->pair->reports[d->which]],
                 find_day(d, bucket_ms)->values[d->which], values);
}

static int compare_times(const void *a, const void *b)
{
    return order_int64(((const struct day *)a)->ms, ((const struct day *)b)->ms);
}

/* Scan the days that neither report has expired. */
static bool scan_days(struct days *d, int64_t *from_ms, struct err *e)
{
    struct store *st = d->pair->store;
    struct scan_stats stats = {0};
    *from_ms = 0;
    for (int i = 0; i < 2; i++) {
        struct watermarks w;
        if (!store_watermarks(st, d->pair->reports[i], &w, e))
            return false;
        *from_ms = w.before_ms[SPAN_DAY] > *from_ms ? w.before_ms[SPAN_DAY] : *from_ms;
    }
    for (d->which = 0; d->which < 2; d->which++) {
        const struct scan scan = {.report = d->pair->reports[d->which],
                                  .resolution = SPAN_DAY,
                                  .from_ms = *from_ms,
                                  .to_ms = CIVIL_END_MS,
                                  .series = {.kind = SERIES_ALL},
                                  .rows_max = UINT64_MAX};
        if (!store_scan(st, &scan, add_cell, d, &stats, e))
            return false;
    }
    if (d->count > 0)
        qsort(d->list, d->count, sizeof *d->list, compare_times);
    return true;
}

/* The measure of the old report that is the same as the new report's i-th; -1: there is none. */
static int find_measure(const struct report *old, const struct measure *m)
{
    int n = report_find_measure(old, slice_text(m->name));
    return n >= 0 && strcmp(old->measures[n].expression, m->expression) == 0 ? n : -1;
}

/* Print the figures of a day that differ. Do some? */
static bool print_day(const struct report *old, const struct report *new, const struct day *d)
{
    char was[NUMBER_BYTES], is[NUMBER_BYTES], by[NUMBER_BYTES], iso[CIVIL_ISO_BYTES];
    bool differs = false;
    for (size_t i = 0; i < new->measure_count; i++) {
        const struct measure *m = &new->measures[i];
        int n = find_measure(old, m);
        int128 a = 0, b = 0;
        if (n < 0 || m->kind == MEASURE_HISTOGRAM || m->kind == MEASURE_DISTINCT)
            continue;
        bool has_a = measure_value(&old->measures[n], &d->values[0][old->measures[n].column], &a);
        bool has_b = measure_value(m, &d->values[1][m->column], &b);
        if (has_a == has_b && a == b)
            continue;
        printf("%.10s  %-20s %18s %18s %18s\n", civil_iso(d->ms, iso), m->name,
               has_a ? number_text(a, was) : "-", has_b ? number_text(b, is) : "-", number_text(b - a, by));
        differs = true;
    }
    return differs;
}

static void print_days(const struct days *d, int64_t from_ms)
{
    const struct report *old = &d->pair->store->reports[d->pair->reports[0]],
                        *new = &d->pair->store->reports[d->pair->reports[1]];
    char days[UNITS_NUMBER_BYTES], differing[UNITS_NUMBER_BYTES], iso[CIVIL_ISO_BYTES];
    int64_t count = 0;
    printf("%-10s  %-20s %18s %18s %18s\n", "day", "measure", old->name, new->name, "difference");
    for (size_t i = 0; i < d->count; i++)
        count += print_day(old, new, &d->list[i]);
    printf("%s days compared, %s of them differ", units_number((int64_t)d->count, days),
           units_number(count, differing));
    if (from_ms > 0)
        printf("; those before %.10s have expired", civil_iso(from_ms, iso));
    putchar('\n');
}

int replace_compare(const struct config *c, const char *report, const char *old)
{
    struct err e;
    int64_t from_ms;
    struct pair p = {0};
    struct days d = {.pair = &p};
    bool good = open_pair(&p, c, report, old, &e) && scan_days(&d, &from_ms, &e);
    int status = EX_OK;
    if (good)
        print_days(&d, from_ms);
    else
        status = options_complain("backfill", &e);
    free(d.list);
    store_close(p.store);
    return status;
}

/* ---- taking */

/* Does the new report lack something that the old one counted? */
static bool check_whole(const struct pair *p, struct err *e)
{
    struct backfill_plan old = {0}, new = {0};
    struct backfill_stretch lacking;
    char hint[REPORT_NAME_BYTES + 80];
    bool good = backfill_plan(&old, p->store, p->reports[0], NULL, e) &&
                backfill_plan(&new, p->store, p->reports[1], NULL, e);
    if (good && backfill_lacks(&new, &old, false, &lacking)) {
        const char *name = p->store->reports[p->reports[1]].name;
        snprintf(hint, sizeof hint,
                 "run `tallyd backfill %s` first, or give --force if they are nowhere any more", name);
        good = backfill_refuse(&new, &lacking, name, p->store->reports[p->reports[0]].name, hint, e);
    }
    backfill_plan_fini(&old);
    backfill_plan_fini(&new);
    return good;
}

/* Take the place for a range of times. The writer has the new report, so the readers' handle comes first.
 * What it reads is read later, when nothing is counted any more. */
static bool take_times(struct pair *p, const struct config *c, const struct store_options *options,
                       const struct replace_request *rq, struct store_replaced *done, struct err *e)
{
    if (!open_pair(p, c, rq->report, rq->old, e))
        return false;
    struct store_splicing s = {.from = p->store,
                               .by = p->reports[1],
                               .report = p->reports[0],
                               .times = rq->times,
                               .drops_old = rq->drops_old,
                               .forced = rq->forced};
    s.to = store_open_with(c->store.url, STORE_WRITE, options, &p->store->reports[s.by], 1, e);
    bool good = s.to != NULL && store_splice(&s, done, e);
    /* The writer goes last: SQLite leaves no log then. */
    store_close(p->store);
    p->store = NULL;
    store_close(s.to);
    return good;
}

static bool take_all(struct pair *p, const struct config *c, const struct store_options *options,
                     const struct replace_request *rq, struct store_replaced *done, struct err *e)
{
    /* The writer comes first: nothing is counted until all is done. */
    struct store *writer = store_open_with(c->store.url, STORE_WRITE, options, NULL, 0, e);
    bool good = writer != NULL && open_pair(p, c, rq->report, rq->old, e) &&
                (rq->forced || check_whole(p, e)) &&
                store_replace(writer, rq->report, rq->old, rq->drops_old, done, e);
    store_close(p->store);
    p->store = NULL;
    store_close(writer);
    return good;
}

static void say_taken(const struct replace_request *rq, const struct store_replaced *done)
{
    char from[CIVIL_ISO_BYTES], to[CIVIL_ISO_BYTES];
    printf("%s is %s~%d now", rq->report, rq->old, done->generation);
    if (!backfill_has_all(&rq->times))
        printf(", with the counts of %s~%d before %s and from %s on", rq->old, done->replaced,
               civil_iso(rq->times.from_ms, from), civil_iso(rq->times.to_ms, to));
    printf(
        "; %s~%d is %s. In the configuration, give %s this definition and `generation: %d`, and remove %s\n",
        rq->old, done->replaced, rq->drops_old ? "dropped" : "kept, until `tallyd forget` drops it", rq->old,
        done->generation, rq->report);
}

int replace_take(const struct config *c, const struct replace_request *rq)
{
    struct err e;
    struct pair p = {0};
    struct store_replaced done;
    struct store_options options = setup_store(c);
    options.raw_count = 0;
    bool good = (backfill_has_all(&rq->times) ? take_all : take_times)(&p, c, &options, rq, &done, &e);
    int status = EX_OK;
    if (good)
        say_taken(rq, &done);
    else
        status = options_complain("backfill", &e);
    store_close(p.store);
    return status;
}
