/* Compares the newest events of each series and day with the count of that day. */
#include "aggregate/bson_text.h"
#include "verify/audit.h"
#include "verify/recount.h"

#include <inttypes.h>
#include <stdlib.h>

/* Days of a month, of one report; or one day, if the month has too many cells. */
struct days {
    struct audit *a;
    size_t report;
    bool is_one, is_too_much;   /* is it one day? else, are there more than cells_max cells? */
    int count;                  /* the report's measure that is a count; -1: there is none */
    struct recount_cells cells; /* the report's columns, by day */
    struct recount_cells kept;  /* one column: the newest events that are stored */
};

static void take_day(void *context, uint32_t series, int64_t day_ms, const int64_t *values)
{
    struct days *d = context;
    d->is_too_much = !d->is_one && d->cells.count >= d->a->cells_max;
    if (d->is_too_much)
        return;
    report_merge(&d->a->store->reports[d->report], recount_cells_get(&d->cells, series, day_ms)->columns,
                 values);
}

static void tell(struct days *d, uint32_t series, int64_t day_ms, const char *what, uint64_t has,
                 uint64_t wants)
{
    char iso[CIVIL_ISO_BYTES];
    struct text *said = audit_find(d->a), key = {0};
    struct err ignored;
    if (said == NULL)
        return;
    if (!store_series_key(d->a->store, d->report, series, &key, &ignored))
        text_printf(&key, "(unknown series %" PRIu32 ")", series);
    text_printf(said, "%s \"%.*s\" %s: %" PRIu64 " newest events, %s %" PRIu64 "\n",
                d->a->store->reports[d->report].name, (int)key.len, key.ptr != NULL ? key.ptr : "",
                civil_iso(day_ms, iso), has, what, wants);
    text_fini(&key);
}

/* Reads the events, whose order and number the store's reader or this function checks. */
static bool take_events(void *context, uint32_t series, int64_t day_ms, size_t sketch, struct slice packed,
                        struct err *e)
{
    struct days *d = context;
    struct slice document, place, before = {NULL, 0};
    const uint32_t limit = recent_begin(&packed);
    uint64_t count = 0, wrong = limit != d->a->store->reports[d->report].newest;
    int64_t at_ms = 0;
    (void)sketch, (void)e;
    for (; recent_next(&packed, &document); before = document, count++) {
        wrong += !recent_key(document, &at_ms, &place) || span_floor(SPAN_DAY, at_ms) != day_ms ||
                 !bson_is_whole(document) || (before.ptr != NULL && recent_compare(document, before) >= 0);
    }
    d->a->compared++;
    if (wrong > 0 || packed.len > 0 || count > limit)
        tell(d, series, day_ms, "out of order, of other days or damaged:", count, wrong + (packed.len > 0));
    if (d->count >= 0)
        recount_cells_get(&d->kept, series, day_ms)->columns[0] = (int64_t)count;
    return true;
}

/* A series has as many newest events as it counts on the day, up to the limit; and none on other days. */
static void compare_counts(struct days *d)
{
    const struct report *r = &d->a->store->reports[d->report];
    for (size_t i = 0; i <= d->kept.mask; i++) {
        const struct recount_cell *kept = recount_cells_at(&d->kept, i);
        if (kept->bucket_ms >= 0 && recount_cells_find(&d->cells, kept->series, kept->bucket_ms) == NULL)
            tell(d, kept->series, kept->bucket_ms, "but by its count", (uint64_t)kept->columns[0], 0);
    }
    for (size_t i = 0; i <= d->cells.mask; i++) {
        const struct recount_cell *c = recount_cells_at(&d->cells, i);
        if (c->bucket_ms < 0)
            continue;
        const struct recount_cell *kept = recount_cells_find(&d->kept, c->series, c->bucket_ms);
        const int64_t events = c->columns[r->measures[d->count].column] / r->one_in;
        const int64_t wants = events < r->newest ? events : r->newest,
                      has = kept != NULL ? kept->columns[0] : 0;
        d->a->compared++;
        if (has != wants)
            tell(d, c->series, c->bucket_ms, "but by its count", (uint64_t)has, (uint64_t)wants);
    }
}

/* d->is_too_much: nothing was compared, since there are too many cells. */
static bool compare_days(struct days *d, int64_t from_ms, int64_t to_ms, struct err *e)
{
    const struct report *r = &d->a->store->reports[d->report];
    struct scan_stats stats = {0};
    struct scan scan = {.report = d->report,
                        .resolution = SPAN_DAY,
                        .from_ms = from_ms,
                        .to_ms = to_ms,
                        .series = {.kind = SERIES_ALL},
                        .rows_max = UINT64_MAX,
                        .measures = d->count >= 0 ? (uint32_t)1 << d->count : 0};
    const bool has_count = d->count >= 0; /* else the events are looked at by themselves */
    recount_cells_init(&d->cells, 1, r->column_count);
    recount_cells_init(&d->kept, 2, 1);
    d->is_one = to_ms - from_ms <= DAY_MS;
    d->is_too_much = false;
    bool good = !has_count || store_scan(d->a->store, &scan, take_day, d, &stats, e);
    scan.sketch = take_events;
    if (good && !d->is_too_much)
        good = store_recent(d->a->store, &scan, d, &stats, e);
    if (good && has_count && !d->is_too_much)
        compare_counts(d);
    recount_cells_fini(&d->cells);
    recount_cells_fini(&d->kept);
    return good;
}

static bool compare_month(struct days *d, int64_t from_ms, int64_t to_ms, struct err *e)
{
    bool good = compare_days(d, from_ms, to_ms, e);
    const bool by_day = good && d->is_too_much;
    for (int64_t day_ms = from_ms; good && by_day && day_ms < to_ms; day_ms += DAY_MS)
        good = compare_days(d, day_ms, day_ms + DAY_MS, e);
    return good;
}

bool audit_recent(struct audit *a, size_t report, struct err *e)
{
    struct days d = {.a = a, .report = report, .count = audit_count(&a->store->reports[report])};
    struct newest newest;
    struct watermarks watermarks;
    if (a->store->reports[report].newest == 0)
        return true;
    if (!store_watermarks(a->store, report, &watermarks, e))
        return false;
    const int64_t first_ms = watermarks.before_ms[SPAN_DAY];
    for (int64_t end_ms = CIVIL_END_MS; end_ms > first_ms;) {
        if (!store_newest(a->store, report, end_ms, &newest, e))
            return false;
        if (newest.start_ms < 0 || span_next(newest.span, newest.start_ms) <= first_ms)
            break;
        const int64_t month_ms = span_floor(SPAN_MONTH, newest.start_ms);
        const int64_t from_ms = month_ms > first_ms ? month_ms : first_ms;
        if (!compare_month(&d, from_ms, span_next(SPAN_MONTH, month_ms), e))
            return false;
        end_ms = from_ms;
    }
    return true;
}
