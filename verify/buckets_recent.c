/* Compares the newest events of every series and day with the recount. */
#include "base/mem.h"
#include "base/show.h"
#include "verify/buckets.h"

#include <inttypes.h>
#include <stdlib.h>

/* A series and a day; the series by its number in the recount. */
struct place {
    uint32_t series;
    int64_t day_ms;
};

/* A report's newest events. Differences are told once a scan is whole: one that fails is repeated. */
struct comparison {
    struct verify *v;
    const struct recount *recount;
    const uint32_t *number_of;
    uint32_t number_count;
    const struct kept_times *kept;
    bool may_hold_more;  /* records are gone: the store may have newer events than the recount */
    int64_t *other_days; /* in which `other` has events */
    size_t other_count, other_capacity;
    size_t found;      /* events of the recount that were compared */
    uint64_t unjudged; /* series and days beside events of `other` */
    uint64_t compared;
    struct place *differ; /* series and days whose events are not those of the recount */
    size_t differ_count, differ_capacity;
    int64_t from_ms;
};

static bool has_other(const struct comparison *c, int64_t day_ms)
{
    size_t i = 0;
    while (i < c->other_count && c->other_days[i] != day_ms)
        i++;
    return i < c->other_count;
}

static bool note_other(void *context, uint32_t series, int64_t day_ms, size_t sketch, struct slice packed,
                       struct err *e)
{
    struct comparison *c = context;
    (void)series, (void)sketch, (void)packed, (void)e;
    c->other_days = xgrow(c->other_days, &c->other_capacity, c->other_count + 1, sizeof *c->other_days);
    c->other_days[c->other_count++] = day_ms;
    return true;
}

static void say_differences(const struct comparison *c)
{
    char iso[CIVIL_ISO_BYTES], shown[SHOW_BYTES];
    for (size_t i = 0; i < c->differ_count; i++) {
        const struct place *p = &c->differ[i];
        show_into(shown, sizeof shown,
                  p->series < c->recount->series_count ? c->recount->key_of[p->series]
                                                       : slice_text("(unknown)"));
        if (verify_differs(c->v))
            fprintf(c->v->out,
                    "%s \"%s\" newest events of %s: stored ones are not those that were recounted\n",
                    c->recount->report->name, shown, civil_iso(p->day_ms, iso));
    }
}

/* Are the packed events those of the recount, or newer ones beside them if some may be gone? */
static bool are_equal(const struct comparison *c, struct slice packed, const struct recent_seen *seen,
                      size_t count)
{
    struct slice document, last = {NULL, 0};
    const uint32_t limit = recent_begin(&packed);
    size_t i = 0, stored = 0;
    bool good = limit == c->recount->report->newest;
    for (; good && recent_next(&packed, &document); stored++) {
        good = stored < limit && (last.ptr == NULL || recent_compare(document, last) < 0);
        if (good && i < count && slice_equal(document, seen[i].document))
            i++;
        else
            good = good && c->may_hold_more && (i == count || recent_compare(document, seen[i].document) > 0);
        last = document;
    }
    return good && packed.len == 0 && (i == count || stored == limit);
}

static bool compare_day(void *context, uint32_t series, int64_t day_ms, size_t sketch, struct slice packed,
                        struct err *e)
{
    struct comparison *c = context;
    const uint32_t number = series < c->number_count ? c->number_of[series] : UINT32_MAX;
    size_t count;
    (void)sketch, (void)e;
    const struct recent_seen *seen = recent_list_find(&c->recount->recent, number, day_ms, &count);
    if (kept_has(c->kept, SPAN_DAY, day_ms))
        return true;
    c->compared++;
    if (has_other(c, day_ms)) {
        c->unjudged++;
        return true;
    }
    c->found += count;
    if (are_equal(c, packed, seen, count))
        return true;
    c->differ = xgrow(c->differ, &c->differ_capacity, c->differ_count + 1, sizeof *c->differ);
    c->differ[c->differ_count++] = (struct place){number, day_ms};
    return true;
}

/* Days of the recount that the store does not have. */
static void find_missing(struct comparison *c)
{
    const struct recent_list *l = &c->recount->recent;
    size_t wanted = 0;
    for (size_t i = 0; i < l->count; i++) {
        const int64_t day_ms = span_floor(SPAN_DAY, l->list[i].at_ms);
        if (day_ms >= c->from_ms && !has_other(c, day_ms) && !kept_has(c->kept, SPAN_DAY, day_ms))
            wanted++;
    }
    if (c->found < wanted && verify_differs(c->v))
        fprintf(c->v->out, "%s: newest events of some series and days are missing: %zu of %zu\n",
                c->recount->report->name, wanted - c->found, wanted);
}

bool verify_recent(struct verify *v, size_t report, const struct kept_times *kept, const uint32_t *number_of,
                   uint32_t number_count, struct err *e)
{
    struct comparison c = {.v = v,
                           .recount = &v->recounts[report],
                           .number_of = number_of,
                           .number_count = number_count,
                           .kept = kept,
                           .may_hold_more = v->missing[report].events > 0};
    struct scan_stats stats = {0};
    struct watermarks watermarks;
    if (v->store->reports[report].newest == 0)
        return true;
    recent_list_cut(&v->recounts[report].recent, v->store->reports[report].newest);
    if (!store_watermarks(v->store, report, &watermarks, e))
        return false;
    c.from_ms = watermarks.before_ms[SPAN_DAY];
    struct scan scan = {.report = report,
                        .resolution = SPAN_DAY,
                        .from_ms = c.from_ms,
                        .to_ms = span_floor(SPAN_DAY, CIVIL_END_MS),
                        .series = {.kind = SERIES_ONE, .one = STORE_SERIES_OTHER},
                        .rows_max = UINT64_MAX,
                        .sketch = note_other};
    bool good = store_recent(v->store, &scan, &c, &stats, e);
    scan.series = (struct series_set){.kind = SERIES_ALL};
    scan.sketch = compare_day;
    good = good && store_recent(v->store, &scan, &c, &stats, e);
    if (good) {
        v->compared += c.compared;
        say_differences(&c);
        find_missing(&c);
    }
    if (good && c.unjudged > 0)
        fprintf(v->out,
                "%s: not judged: newest events of %" PRIu64 " series and days beside some of " STORE_OTHER_KEY
                "\n",
                c.recount->report->name, c.unjudged);
    free(c.other_days);
    free(c.differ);
    return good;
}
