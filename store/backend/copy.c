/* Reads a store by reader.h and fills another by fill.h.
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
#include "store/backend/copy.h"

#include "aggregate/part.h"
#include "base/arena.h"
#include "base/mem.h"
#include "store/backend/backend.h"
#include "store/backup.h"
#include "store/fill.h"
#include "store/reader.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COPY_CELLS        200000
#define COPY_SERIES       10000
#define COPY_SKETCH_BYTES ((size_t)32 << 20)
#define KEYS_BYTES        ((size_t)256 << 10)

/* Starts of time buckets with counts, sorted. */
struct starts {
    int64_t *list;
    size_t count, capacity;
};

struct copier {
    const struct store_copying *c;
    struct store *from, *to; /* to: NULL in a dry run */
    struct watermarks *watermarks;
    size_t report; /* the report that is being copied */
    struct part part;
    struct cell *cell; /* the last one taken, which gets sketches; NULL: none */
    uint32_t *numbers; /* by series number of the source: its number in the part, plus 1; 0: not seen */
    size_t number_capacity, number_count;
    uint32_t added; /* series that the part has had so far */
    struct arena keys;
    struct starts months, days;
    struct starts *found; /* the list that a scan fills */
    struct range *positions;
    size_t position_count, position_capacity;
    struct store_book *books;
    size_t book_count, book_capacity;
    struct arena names;
    uint64_t series, cells; /* copied */
    struct text what;       /* the work under way */
    bool good;
    struct err *e;
};

static bool goes_on(struct copier *k, const char *what, uint64_t done, uint64_t total)
{
    text_clear(&k->what);
    text_printf(&k->what, "%s: %s", k->from->reports[k->report].name, what);
    return k->c->goes_on(k->c->context, k->what.ptr, done, total) || backup_stopped("the copy", k->e);
}

/* ---- the part: series and cells on their way */

/* Hands series and cells to the target, and empties the part. */
static bool part_send(struct copier *k)
{
    struct part_report *pr = &k->part.reports[k->report];
    struct part *parts[] = {&k->part};
    const struct batch batch = {.parts = parts, .part_count = 1};
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
    struct part_report *pr = &k->part.reports[k->report];
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
    if (k->part.reports[k->report].added_count < COPY_SERIES)
        return true;
    k->good = k->good && goes_on(k, "series", k->series, 0);
    return part_send(k);
}

static void take_cell(void *context, uint32_t series, int64_t bucket_ms, const int64_t *values)
{
    struct copier *k = context;
    const struct report *r = &k->from->reports[k->report];
    struct cells *cells = &k->part.reports[k->report].cells;
    if (!k->good)
        return;
    if (series >= k->number_count || k->numbers[series] == 0) {
        k->good = err_set(k->e, EX_DATAERR,
                          "report \"%s\" has counts of a series without a name: check the store by `tallyd "
                          "verify --store-only`",
                          r->name);
        return;
    }
    if (cells->count == COPY_CELLS || arena_bytes(&k->part.sketch_memory) > COPY_SKETCH_BYTES)
        (void)part_send(k);
    if ((cells->count + 1) * cells->stride > cells->capacity)
        cells->data = xgrow(cells->data, &cells->capacity, (cells->count + 1) * cells->stride, 1);
    k->cell = cells_at(cells, cells->count++);
    memset(k->cell, 0, cells->stride);
    k->cell->series = k->numbers[series] - 1;
    k->cell->time = (uint32_t)(bucket_ms / report_cell_ms(r));
    memcpy(k->cell->value, values, r->column_count * sizeof *values);
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
    return sketch_merge(measure_sketch_kind(report_sketched(r, sketch)), to, &k->part.sketch_memory,
                        packed) ||
           err_set(e, EX_DATAERR,
                   "a histogram or distinct count of report \"%s\" is damaged: check the store by "
                   "`tallyd verify --store-only`",
                   r->name);
}

/* ---- counts */

static void take_start(void *context, uint32_t series, int64_t bucket_ms, const int64_t *values)
{
    struct copier *k = context;
    struct starts *s = k->found;
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
    return from_ms >= to_ms || (store_scan(k->from, &all, fn, k, &stats, k->e) && k->good);
}

static bool find_starts(struct copier *k, enum span resolution, int64_t from_ms, int64_t to_ms,
                        struct starts *found)
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
    const struct watermarks *w = &k->watermarks[k->report];
    const enum span cell = report_cell(&k->from->reports[k->report]);
    int64_t end_ms = span_next(SPAN_MONTH, start_ms);
    for (enum span s = SPAN_MONTH;; s--) {
        int64_t from_ms = max_ms(start_ms, w->before_ms[s]);
        int64_t to_ms = s == cell ? end_ms : min_ms(end_ms, w->before_ms[s - 1]);
        if (!copy_buckets(k, s, from_ms, to_ms))
            return false;
        if (s == cell)
            return part_send(k);
    }
}

static bool find_months(struct copier *k)
{
    struct newest newest;
    k->months.count = 0;
    if (!store_newest(k->from, k->report, CIVIL_END_MS, &newest, k->e))
        return false;
    if (newest.start_ms < 0)
        return true;
    return find_starts(k, SPAN_MONTH, k->watermarks[k->report].before_ms[SPAN_MONTH],
                       span_next(SPAN_MONTH, span_floor(SPAN_MONTH, newest.start_ms)), &k->months);
}

static bool copy_report(struct copier *k, size_t report)
{
    k->report = report;
    k->number_count = k->added = 0;
    add_series(k, STORE_SERIES_OTHER, NULL);
    if (!store_series_each(k->from, report, take_series, k, k->e) || !part_send(k) || !find_months(k))
        return false;
    for (size_t i = 0; i < k->months.count; i++) {
        if (!goes_on(k, "months", i, k->months.count) || (k->to != NULL && !copy_month(k, k->months.list[i])))
            return false;
    }
    return true;
}

/* ---- positions and books */

static bool take_position(void *context, const struct position *position)
{
    struct copier *k = context;
    k->positions = xgrow(k->positions, &k->position_capacity, k->position_count + 1, sizeof *k->positions);
    struct range *r = &k->positions[k->position_count++];
    *r = position->range;
    r->from = r->to;
    return true;
}

static const char *keep_name(struct copier *k, const char *name, const char *last)
{
    return last != NULL && strcmp(name, last) == 0
               ? last
               : arena_copy(&k->names, slice_of(name, strlen(name) + 1)).ptr;
}

/* Some stores list the expiry watermarks with the books; a target is given them beside these. */
static bool take_book(void *context, const char *source, const char *partition, const char *report,
                      const char *entry, int64_t value)
{
    struct copier *k = context;
    int index = report[0] == '\0' ? -1 : store_find_report(k->from, slice_text(report));
    if (strncmp(entry, "expired.", strlen("expired.")) == 0)
        return true;
    k->books = xgrow(k->books, &k->book_capacity, k->book_count + 1, sizeof *k->books);
    const struct store_book *last = k->book_count > 0 ? &k->books[k->book_count - 1] : NULL;
    k->books[k->book_count] = (struct store_book){
        .source = keep_name(k, source, last != NULL ? last->source : NULL),
        .partition = keep_name(k, partition, last != NULL ? last->partition : NULL),
        .entry = keep_name(k, entry, NULL),
        .report = index < 0 ? STORE_NO_REPORT : (size_t)index,
        .value = value,
    };
    k->book_count++;
    return true;
}

/* By partition; the books of reports themselves, which have none, by report. */
static int compare_books(const void *a, const void *b)
{
    const struct store_book *x = a, *y = b;
    int by = strcmp(x->source, y->source);
    by = by != 0 ? by : strcmp(x->partition, y->partition);
    by = by != 0 ? by : (x->report > y->report) - (x->report < y->report);
    return by != 0 ? by : strcmp(x->entry, y->entry);
}

static bool read_content(struct copier *k)
{
    if (!store_positions(k->from, take_position, k, k->e) || !store_books(k->from, take_book, k, k->e))
        return false;
    if (k->book_count > 0)
        qsort(k->books, k->book_count, sizeof *k->books, compare_books);
    return true;
}

/* ---- all of it */

/* A target that holds something is refused in a dry run, too. */
static bool check_target(struct copier *k)
{
    struct store *there = store_open(k->c->to, STORE_READ, NULL, 0, k->e);
    if (there == NULL) /* an unfinished copy is copied again */
        return k->e->code == EX_NOINPUT || (k->e->code == EX_TEMPFAIL && !k->e->retryable);
    store_close(there);
    struct text shown = {0};
    text_url(&shown, slice_text(k->c->to));
    err_set(k->e, EX_CANTCREAT, "%s holds a store already: name an empty one", shown.ptr);
    text_fini(&shown);
    return false;
}

static bool open_target(struct copier *k)
{
    struct store_options options = *k->c->options;
    if (k->c->dry)
        return check_target(k);
    options.watermarks = k->watermarks;
    k->to = store_open_with(k->c->to, STORE_FILL, &options, k->from->reports, k->from->report_count, k->e);
    return k->to != NULL;
}

static bool check_moment(struct copier *k, const struct text *before)
{
    struct text now = {0}, ignored = {0};
    bool good = store_moment(k->from, &now, &ignored, k->e);
    if (good && !slice_equal(text_slice(before), text_slice(&now)))
        good = err_set_retryable(k->e, EX_TEMPFAIL,
                                 "a tallyd counted into the source while it was copied: stop all daemons and "
                                 "copy again");
    text_fini(&now);
    text_fini(&ignored);
    return good;
}

static bool copy_counts(struct copier *k)
{
    part_init(&k->part, 0, k->from->reports, k->from->report_count);
    k->part.epoch = 1;
    bool good = true;
    for (size_t r = 0; good && r < k->from->report_count; r++)
        good = copy_report(k, r);
    part_fini(&k->part);
    return good;
}

static bool copy_held(struct copier *k, struct text *left_out)
{
    struct text moment = {0};
    bool good = store_moment(k->from, &moment, left_out, k->e) && store_hold(k->from, k->e);
    for (size_t r = 0; good && r < k->from->report_count; r++)
        good = store_watermarks(k->from, r, &k->watermarks[r], k->e);
    good = good && open_target(k) && copy_counts(k) && read_content(k) && check_moment(k, &moment);
    if (good && k->to != NULL) {
        const struct store_content content = {k->positions, k->position_count, k->books, k->book_count};
        good = store_finish(k->to, &content, k->e);
    }
    text_fini(&moment);
    return good;
}

static void say(const struct copier *k, const struct text *left_out, struct text *said)
{
    text_puts(said, k->c->dry ? "would copy " : "");
    text_url(said, slice_text(k->c->from));
    text_puts(said, " to ");
    text_url(said, slice_text(k->c->to));
    text_printf(said, ": %zu reports with %" PRIu64 " series, positions of %zu sources or partitions",
                k->from->report_count, k->series, k->position_count);
    if (!k->c->dry)
        text_printf(said, ", %" PRIu64 " time buckets", k->cells);
    text_putc(said, '\n');
    for (size_t r = 0; r < k->from->report_count; r++) {
        const struct report *report = &k->from->reports[r];
        if (report->generation > 1)
            text_printf(said, "not copied: generations of %s before %d, which no query reads\n", report->name,
                        report->generation);
    }
    if (left_out->len > 0)
        text_add(said, left_out->ptr, left_out->len);
}

static void copier_fini(struct copier *k)
{
    store_close(k->to);
    store_close(k->from);
    arena_fini(&k->keys);
    arena_fini(&k->names);
    text_fini(&k->what);
    free(k->watermarks);
    free(k->numbers);
    free(k->months.list);
    free(k->days.list);
    free(k->positions);
    free(k->books);
}

bool store_copy_all(const struct store_copying *c, struct text *said, struct err *e)
{
    struct copier k = {.c = c, .good = true, .e = e};
    struct text left_out = {0};
    if (strcmp(c->from, c->to) == 0)
        return err_set(e, EX_USAGE, "found one store twice, expected FROM and TO to be two");
    arena_init(&k.keys, KEYS_BYTES);
    arena_init(&k.names, KEYS_BYTES);
    k.from = store_open(c->from, STORE_READ, NULL, 0, e);
    bool good = k.from != NULL;
    if (good) {
        k.watermarks = xcalloc(k.from->report_count + 1, sizeof *k.watermarks);
        good = copy_held(&k, &left_out);
    }
    if (good)
        say(&k, &left_out, said);
    text_fini(&left_out);
    copier_fini(&k);
    return good;
}
