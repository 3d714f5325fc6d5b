/* Reads time buckets by reader.h and fills a store by fill.h.
 *
 * Buckets : each time bucket is read at the shortest resolution that is still kept for its time. It becomes a
 *           cell at the start of the bucket. The target adds cells up to all longer resolutions, and leaves
 *           out shorter ones, since these have expired by the watermarks.
 *
 *               months         days          hours         minutes
 *           |-------------|-------------|-------------|------------->
 *           watermark of  watermark of  watermark of  watermark of
 *           months        days          hours         minutes
 *
 * Windows : months with counts are found first, and in each its days with counts. Minutes are then read day
 *           by day, so that a target gets its rows and documents in order.
 */
#include "store/backend/copier.h"

#include "aggregate/part.h"
#include "base/mem.h"
#include "store/backup.h"
#include "store/fill.h"

#include <stdlib.h>
#include <string.h>

#define COPY_CELLS        200000
#define COPY_SERIES       10000
#define COPY_SKETCH_BYTES ((size_t)32 << 20)
#define KEYS_BYTES        ((size_t)256 << 10)

static bool goes_on(struct copier *k, const char *what, uint64_t done, uint64_t total)
{
    text_clear(&k->what);
    text_printf(&k->what, "%s: %s", k->from->reports[k->report].name, what);
    return k->goes_on(k->context, k->what.ptr, done, total) || backup_stopped("the copy", k->e);
}

/* ---- the part: series and cells on their way */

void copier_init(struct copier *k, const struct report *reports, size_t count)
{
    k->good = true;
    part_init(&k->part, 0, reports, count);
    arena_init(&k->keys, KEYS_BYTES);
}

void copier_fini(struct copier *k)
{
    part_fini(&k->part);
    arena_fini(&k->keys);
    text_fini(&k->what);
    free(k->numbers);
    free(k->months.list);
    free(k->days.list);
}

/* Hands series and cells to the target, and empties the part. */
static bool part_send(struct copier *k)
{
    struct part_report *pr = &k->part.reports[k->into];
    struct part *parts[] = {&k->part};
    const struct batch batch = {.parts = parts, .part_count = 1, .of_newest = k->of_newest};
    if (k->good && k->to != NULL && pr->added_count + pr->cells.count > 0)
        k->good = store_fill(k->to, &batch, k->e);
    k->cells += pr->cells.count;
    k->cell = NULL;
    pr->first_added += (uint32_t)pr->added_count;
    part_clear(&k->part);
    arena_reset(&k->keys);
    return k->good;
}

/* `key`: NULL: the series `other`. */
static void add_series(struct copier *k, uint32_t number, const struct slice *key)
{
    struct part_report *pr = &k->part.reports[k->into];
    size_t len = key != NULL ? key->len : 0;
    struct series *s = arena_add(&k->keys, sizeof *s + len);
    *s = (struct series){.number = k->added, .key_len = key != NULL ? (uint32_t)len : SERIES_OTHER_LEN};
    if (len > 0)
        memcpy(s->key, key->ptr, len);
    pr->added = xgrow(pr->added, &pr->added_capacity, pr->added_count + 1, sizeof(struct series *));
    pr->added[pr->added_count++] = s;
    size_t before = k->number_count;
    if (number >= before) {
        k->numbers = xgrow(k->numbers, &k->number_capacity, (size_t)number + 1, sizeof *k->numbers);
        k->number_count = (size_t)number + 1;
        memset(k->numbers + before, 0, (k->number_count - before) * sizeof *k->numbers);
    }
    k->numbers[number] = ++k->added;
}

static bool take_series(void *context, uint32_t series, struct slice key)
{
    struct copier *k = context;
    add_series(k, series, &key);
    k->series++;
    if (k->part.reports[k->into].added_count < COPY_SERIES)
        return true;
    k->good = k->good && goes_on(k, "series", k->series, 0);
    return part_send(k);
}

/* Begins a cell of zeros. False: the copy has failed. */
static bool begin_cell(struct copier *k, uint32_t series, int64_t at_ms)
{
    const struct report *r = &k->from->reports[k->report];
    struct cells *cells = &k->part.reports[k->into].cells;
    if (!k->good)
        return false;
    if (series >= k->number_count || k->numbers[series] == 0) {
        k->good = err_set(k->e, EX_DATAERR,
                          "report \"%s\" has counts of a series without a name: check the store by `tallyd "
                          "verify --store-only`",
                          r->name);
        return false;
    }
    if (cells->count == COPY_CELLS || arena_bytes(&k->part.sketch_memory) > COPY_SKETCH_BYTES)
        (void)part_send(k);
    if ((cells->count + 1) * cells->stride > cells->capacity)
        cells->data = xgrow(cells->data, &cells->capacity, (cells->count + 1) * cells->stride, 1);
    k->cell = cells_at(cells, cells->count++);
    memset(k->cell, 0, cells->stride);
    k->cell->series = k->numbers[series] - 1;
    k->cell->time = (uint32_t)(at_ms / report_cell_ms(r));
    return true;
}

static void take_cell(void *context, uint32_t series, int64_t bucket_ms, const int64_t *values)
{
    struct copier *k = context;
    const struct report *r = &k->from->reports[k->report];
    if (!begin_cell(k, series, bucket_ms))
        return;
    memcpy(k->cell->value, values, r->column_count * sizeof *values);
    int64_t events = copier_events(r, values);
    k->events = value_add(k->events, events);
    k->other = value_add(k->other, series == STORE_SERIES_OTHER ? events : 0);
}

/* Takes a sketch of the last cell. */
static bool take_sketch(void *context, uint32_t series, int64_t bucket_ms, size_t sketch, struct slice packed,
                        struct err *e)
{
    struct copier *k = context;
    const struct report *r = &k->from->reports[k->report];
    (void)series, (void)bucket_ms;
    if (k->cell == NULL) /* the copy has failed */
        return true;
    union sketch *to = report_sketch(r, k->cell, sketch);
    return measure_merge_sketch(report_sketched(r, sketch), k->resolution, to, &k->part.sketch_memory,
                                packed) ||
           err_set(
               e, EX_DATAERR,
               "a histogram, distinct count or newest event of report \"%s\" is damaged: check the store by "
               "`tallyd verify --store-only`",
               r->name);
}

/* ---- counts */

static void take_start(void *context, uint32_t series, int64_t bucket_ms, const int64_t *values)
{
    struct copier *k = context;
    struct copier_starts *s = k->found;
    size_t at = s->count;
    (void)series, (void)values;
    while (at > 0 && s->list[at - 1] > bucket_ms)
        at--;
    if (at > 0 && s->list[at - 1] == bucket_ms)
        return;
    s->list = xgrow(s->list, &s->capacity, s->count + 1, sizeof *s->list);
    memmove(&s->list[at + 1], &s->list[at], (s->count++ - at) * sizeof *s->list);
    s->list[at] = bucket_ms;
}

static bool scan(struct copier *k, enum span resolution, int64_t from_ms, int64_t to_ms, scan_fn *fn)
{
    const struct scan all = {.report = k->report,
                             .resolution = resolution,
                             .from_ms = from_ms,
                             .to_ms = to_ms,
                             .series = {.kind = SERIES_ALL},
                             .rows_max = UINT64_MAX,
                             .sketch = fn == take_cell ? take_sketch : NULL};
    struct scan_stats stats = {0};
    k->resolution = resolution;
    return from_ms >= to_ms || (store_scan(k->from, &all, fn, k, &stats, k->e) && k->good);
}

static bool find_starts(struct copier *k, enum span resolution, int64_t from_ms, int64_t to_ms,
                        struct copier_starts *found)
{
    k->found = found;
    found->count = 0;
    return scan(k, resolution, from_ms, to_ms, take_start);
}

static int64_t max_ms(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static int64_t min_ms(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Copies the buckets of one resolution between two times of a month. If these are kept, days are, too. */
static bool copy_buckets(struct copier *k, enum span resolution, int64_t from_ms, int64_t to_ms)
{
    if (from_ms >= to_ms || resolution >= SPAN_HOUR)
        return scan(k, resolution, from_ms, to_ms, take_cell);
    if (!find_starts(k, SPAN_DAY, span_floor(SPAN_DAY, from_ms),
                     span_next(SPAN_MONTH, span_floor(SPAN_MONTH, from_ms)), &k->days))
        return false;
    for (size_t i = 0; i < k->days.count; i++) {
        int64_t day_ms = k->days.list[i];
        if (!scan(k, resolution, max_ms(from_ms, day_ms), min_ms(to_ms, span_next(SPAN_DAY, day_ms)),
                  take_cell))
            return false;
    }
    return true;
}

static bool copy_month(struct copier *k, int64_t start_ms)
{
    const struct watermarks *w = k->watermarks;
    const enum span cell = report_cell(&k->from->reports[k->report]);
    int64_t end_ms = min_ms(span_next(SPAN_MONTH, start_ms), k->end_ms);
    for (enum span s = SPAN_MONTH;; s--) {
        int64_t from_ms = max_ms(max_ms(start_ms, k->begin_ms), w->before_ms[s]);
        int64_t to_ms = s == cell ? end_ms : min_ms(end_ms, w->before_ms[s - 1]);
        if (!copy_buckets(k, s, from_ms, to_ms))
            return false;
        if (s == cell)
            return part_send(k);
    }
}

/* Takes the newest events of a series and day. */
static bool take_newest(void *context, uint32_t series, int64_t day_ms, size_t sketch, struct slice packed,
                        struct err *e)
{
    struct copier *k = context;
    return begin_cell(k, series, day_ms) && take_sketch(k, series, day_ms, sketch, packed, e);
}

/* Copies the newest events, in batches of their own. */
static bool copy_newest(struct copier *k)
{
    const struct scan all = {.report = k->report,
                             .resolution = SPAN_DAY,
                             .from_ms = k->watermarks->before_ms[SPAN_DAY],
                             .to_ms = span_floor(SPAN_DAY, CIVIL_END_MS),
                             .series = {.kind = SERIES_ALL},
                             .rows_max = UINT64_MAX,
                             .sketch = take_newest};
    struct scan_stats stats = {0};
    if (k->from->reports[k->report].newest == 0 || k->to == NULL)
        return true;
    k->of_newest = true;
    bool good = store_recent(k->from, &all, k, &stats, k->e) && k->good && part_send(k);
    k->of_newest = false;
    return good;
}

static bool find_months(struct copier *k)
{
    struct newest newest;
    k->months.count = 0;
    if (!store_newest(k->from, k->report, CIVIL_END_MS, &newest, k->e))
        return false;
    if (newest.start_ms < 0)
        return true;
    return find_starts(k, SPAN_MONTH, k->watermarks->before_ms[SPAN_MONTH],
                       span_next(SPAN_MONTH, span_floor(SPAN_MONTH, newest.start_ms)), &k->months);
}

bool copier_report(struct copier *k, size_t report, size_t into)
{
    struct part_report *pr = &k->part.reports[into];
    k->report = report;
    k->into = into;
    k->number_count = k->added = 0;
    pr->first_added = 0;
    k->part.epoch++;
    add_series(k, STORE_SERIES_OTHER, NULL);
    if (!store_series_each(k->from, report, take_series, k, k->e) || !part_send(k) || !find_months(k))
        return false;
    for (size_t i = 0; i < k->months.count; i++) {
        if (!goes_on(k, "months", i, k->months.count) || (k->to != NULL && !copy_month(k, k->months.list[i])))
            return false;
    }
    return copy_newest(k);
}
