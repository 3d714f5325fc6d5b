/* Charts from documents: of each span, from the kind that has its slots in the fewest. */
#include "base/check.h"
#include "base/mem.h"
#include "store/mongo_internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* So few documents of one series are asked for by their names, more by their dates. */
#define BY_ID_MAX 400 /* days of a year, or hours of two weeks */

struct reading {
    struct mongo_store *m;
    const struct scan *scan;
    const struct mongo_kind *kind;
    scan_fn *fn;
    void *context;
    struct scan_stats *stats;
    struct text key;
    bool is_too_much;
};

/* ---- names */

static bool take_name(struct mongo_store *m, size_t report, const bson_t *document, struct text *key,
                      uint32_t *series)
{
    bson_iter_t metadata;
    bool is_other;
    if (!bson_iter_init_find(&metadata, document, "metadata") && m->reports[report].dimension_count > 0)
        return false;
    if (m->reports[report].dimension_count == 0) {
        text_clear(key);
        is_other = false;
    } else if (!mongo_key_of(m, report, &metadata, key, &is_other)) {
        return false;
    }
    *series =
        is_other ? STORE_SERIES_OTHER : mongo_names_add(&m->more[report].names, slice_of(key->ptr, key->len));
    if (!is_other)
        mongo_names_at(&m->more[report].names, *series)->is_stored = true;
    return true;
}

struct names_reading {
    struct mongo_store *m;
    size_t report;
    struct text key;
    series_fn *fn;
    void *context;
};

static bool see_series(void *context, const bson_t *document)
{
    struct names_reading *n = context;
    uint32_t series;
    return !take_name(n->m, n->report, document, &n->key, &series) || series == STORE_SERIES_OTHER ||
           n->fn == NULL || n->fn(n->context, series, n->m->more[n->report].names.names[series - 1].key);
}

static bool read_series(struct mongo_store *m, size_t report, const bson_t *filter, series_fn *fn,
                        void *context, struct err *e)
{
    struct names_reading n = {m, report, {0}, fn, context};
    char collection[MONGO_NAME_BYTES];
    bool good = mongo_find(m->client, mongo_collection(m, report, "series", collection), filter, NULL,
                           see_series, &n, e);
    text_fini(&n.key);
    return good;
}

bool mongo_series_each(struct store *st, size_t report, series_fn *fn, void *context, struct err *e)
{
    bson_t all = BSON_INITIALIZER;
    return read_series(mongo_of(st), report, &all, fn, context, e);
}

bool mongo_read_names(struct mongo_store *m, size_t report, struct err *e)
{
    bson_t all = BSON_INITIALIZER;
    m->more[report].has_all_names = read_series(m, report, &all, NULL, NULL, e);
    return m->more[report].has_all_names;
}

bool mongo_series_find(struct store *st, size_t report, struct slice key, uint32_t *series, bool *found,
                       struct err *e)
{
    struct mongo_store *m = mongo_of(st);
    struct mongo_names *names = &m->more[report].names;
    bson_t filter = BSON_INITIALIZER;
    *series = mongo_names_find(names, key);
    bool good = true;
    if (*series == 0 || !mongo_names_at(names, *series)->is_stored) {
        mongo_id(&m->id, m, report, NULL, &key);
        bson_append_utf8(&filter, "_id", -1, m->id.ptr != NULL ? m->id.ptr : "", (int)m->id.len);
        good = read_series(m, report, &filter, NULL, NULL, e);
        bson_destroy(&filter);
        *series = mongo_names_find(names, key);
    }
    *found = *series != 0 && mongo_names_at(names, *series)->is_stored;
    return good;
}

bool mongo_series_key(struct store *st, size_t report, uint32_t series, struct text *key, struct err *e)
{
    const struct mongo_names *names = &mongo_of(st)->more[report].names;
    if (series > names->count)
        return err_set(e, EX_DATAERR, "report %s has no series %" PRIu32, st->reports[report].name, series);
    if (series == STORE_SERIES_OTHER) {
        text_puts(key, STORE_OTHER_KEY);
    } else {
        struct slice name = mongo_names_at(names, series)->key;
        text_add(key, name.len > 0 ? name.ptr : "", name.len);
    }
    return true;
}

/* ---- documents */

static void take_row(const struct reading *g, size_t measure, size_t row, const bson_iter_t *value)
{
    struct mongo_store *m = g->m;
    const struct report *r = &m->reports[g->scan->report];
    int64_t *columns = &m->rows[row * r->column_count];
    if (!m->row_is_there[row]) {
        memset(columns, 0, r->column_count * sizeof *columns);
        m->row_is_there[row] = 1;
    }
    mongo_read_value(&r->measures[measure], value, &columns[r->measures[measure].column]);
}

/* What is below a bucket's row, down to the slots; no deeper than spans are. */
static void take_rows(const struct reading *g, size_t measure, enum span span, size_t row,
                      const bson_iter_t *value)
{
    bson_iter_t at;
    if (span == g->scan->slot) {
        take_row(g, measure, row, value);
        return;
    }
    if (!BSON_ITER_HOLDS_DOCUMENT(value) || !bson_iter_recurse(value, &at))
        return;
    enum span below = (enum span)(span - 1);
    while (bson_iter_next(&at)) {
        size_t inner = row;
        if (mongo_row_below(below, bson_iter_key(&at), &inner))
            take_rows(g, measure, below, inner, &at);
    }
}

static bool date_of(const bson_t *document, int64_t *date_ms)
{
    bson_iter_t it, date;
    if (!bson_iter_init(&it, document) || !bson_iter_find_descendant(&it, "metadata.date", &date) ||
        !BSON_ITER_HOLDS_DATE_TIME(&date))
        return false;
    *date_ms = bson_iter_date_time(&date);
    return true;
}

/* All slots of one document into m->rows. */
static void read_slots(const struct reading *g, const bson_t *document)
{
    const struct scan *scan = g->scan;
    const struct report *r = &g->m->reports[scan->report];
    const struct mongo_report *more = &g->m->more[scan->report];
    memset(g->m->row_is_there, 0, mongo_row_count(g->kind, scan->slot));
    for (size_t i = 0; i < r->measure_count; i++) {
        char path[MEASURE_NAME_BYTES + MONGO_PATH_BYTES];
        bson_iter_t it, value;
        snprintf(path, sizeof path, "%s%s", more->fields[i], mongo_member(scan->slot));
        if (bson_iter_init(&it, document) && bson_iter_find_descendant(&it, path, &value))
            take_rows(g, i, g->kind->span, 0, &value);
    }
}

static bool see_document(void *context, const bson_t *document)
{
    struct reading *g = context;
    const struct scan *scan = g->scan;
    size_t columns = g->m->reports[scan->report].column_count;
    uint32_t series;
    int64_t date_ms;
    if (g->stats->rows == scan->rows_max) {
        g->is_too_much = true;
        return false;
    }
    g->stats->rows++;
    g->stats->bytes += document->len;
    if (!date_of(document, &date_ms) || !take_name(g->m, scan->report, document, &g->key, &series) ||
        !series_set_has(&scan->series, series))
        return true;
    read_slots(g, document);
    for (size_t row = 0; row < mongo_row_count(g->kind, scan->slot); row++) {
        int64_t at_ms = mongo_row_ms(scan->slot, date_ms, row);
        if (g->m->row_is_there[row] && at_ms >= scan->from_ms && at_ms < scan->to_ms)
            g->fn(g->context, series, at_ms, &g->m->rows[row * columns]);
    }
    return true;
}

/* A few documents of one series, by their names; false: there are too many. */
static bool filter_by_id(struct mongo_store *m, const struct scan *scan, enum span bucket, bson_t *filter)
{
    const struct slice *key = mongo_key(&m->more[scan->report], scan->series.one);
    int64_t at = span_floor(bucket, scan->from_ms);
    struct mongo_ids ids;
    bson_init(filter);
    mongo_ids_begin(&ids, filter);
    for (; at < scan->to_ms && ids.count < BY_ID_MAX; at = span_next(bucket, at)) {
        char time[MONGO_TIME_BYTES];
        mongo_id(&m->id, m, scan->report, mongo_time(bucket, at, time), key);
        mongo_ids_add(&ids, slice_of(m->id.ptr, m->id.len));
    }
    mongo_ids_end(&ids, filter);
    if (at < scan->to_ms)
        bson_destroy(filter);
    return at >= scan->to_ms;
}

/* By `_id`, which begins with the time; of one series also by its metadata, for which there may be an
 * index. */
static void filter_by_time(struct mongo_store *m, const struct scan *scan, enum span bucket, bson_t *filter)
{
    int64_t first_ms = span_floor(bucket, scan->from_ms), last_ms = span_floor(bucket, scan->to_ms - 1);
    char time[MONGO_TIME_BYTES];
    bson_t of;
    bson_init(filter);
    BSON_APPEND_DOCUMENT_BEGIN(filter, "_id", &of);
    BSON_APPEND_UTF8(&of, "$gte", mongo_time(bucket, first_ms, time));
    text_clear(&m->id);
    text_printf(&m->id, "%s0", mongo_time(bucket, last_ms, time)); /* after all that goes on with "/" */
    BSON_APPEND_UTF8(&of, "$lt", m->id.ptr);
    bson_append_document_end(filter, &of);
    if (scan->series.kind != SERIES_ONE)
        return;
    mongo_add_metadata(filter, m, scan->report, mongo_key(&m->more[scan->report], scan->series.one));
    BSON_APPEND_DOCUMENT_BEGIN(filter, "metadata.date", &of);
    BSON_APPEND_DATE_TIME(&of, "$gte", first_ms);
    BSON_APPEND_DATE_TIME(&of, "$lte", last_ms);
    bson_append_document_end(filter, &of);
}

/* Of a range within one document, only what it touches, where slots have a level of keys above them. */
static void project_slots(const struct reading *g, const char *stem, bson_t *to)
{
    const struct scan *scan = g->scan;
    enum span whole = g->kind->span, below = (enum span)(whole - 1);
    char path[128];
    bool is_part =
        scan->slot < below && span_floor(whole, scan->from_ms) == span_floor(whole, scan->to_ms - 1);
    snprintf(path, sizeof path, "%s%s", stem, mongo_member(scan->slot));
    if (!is_part) {
        BSON_APPEND_BOOL(to, path, true);
        return;
    }
    size_t len = strlen(path);
    for (int64_t at = span_floor(below, scan->from_ms); at < scan->to_ms; at = span_next(below, at)) {
        snprintf(path + len, sizeof path - len, ".%d", mongo_key_in(below, at));
        BSON_APPEND_BOOL(to, path, true);
    }
}

/* Only what the answer is made of. */
static void write_projection(const struct reading *g, bson_t *options)
{
    bson_t projection;
    bson_init(options);
    BSON_APPEND_DOCUMENT_BEGIN(options, "projection", &projection);
    BSON_APPEND_BOOL(&projection, "_id", false);
    BSON_APPEND_BOOL(&projection, "metadata", true);
    for (size_t i = 0; i < g->m->reports[g->scan->report].measure_count; i++)
        project_slots(g, g->m->more[g->scan->report].fields[i], &projection);
    bson_append_document_end(options, &projection);
}

bool mongo_scan(struct store *st, const struct scan *scan, scan_fn *fn, void *context,
                struct scan_stats *stats, struct err *e)
{
    struct mongo_store *m = mongo_of(st);
    struct scan_stats own = {0};
    const struct mongo_kind *kind = mongo_kind_for(&m->reports[scan->report], scan->slot);
    struct reading g = {m, scan, kind, fn, context, &own, {0}, false};
    char collection[MONGO_NAME_BYTES];
    bson_t filter, options;
    bool is_unknown = scan->series.kind == SERIES_ONE && scan->series.one > m->more[scan->report].names.count;
    if (scan->from_ms == scan->to_ms || is_unknown)
        return true;
    if (scan->series.kind != SERIES_ONE || !filter_by_id(m, scan, kind->span, &filter))
        filter_by_time(m, scan, kind->span, &filter);
    write_projection(&g, &options);
    mongo_collection(m, scan->report, span_name(kind->span), collection);
    bool good = mongo_find(m->client, collection, &filter, &options, see_document, &g, e);
    if (good && g.is_too_much)
        good =
            err_set(e, EX_UNAVAILABLE, "too many rows: more than %" PRIu64 " would be read", scan->rows_max);
    stats->rows += own.rows;
    stats->bytes += own.bytes;
    text_fini(&g.key);
    bson_destroy(&filter);
    bson_destroy(&options);
    return good;
}

/* ---- from when to when */

struct ends {
    int64_t first_ms, last_ms;
};

static bool see_date(void *context, const bson_t *document)
{
    (void)date_of(document, context);
    return false;
}

static void see_minute(void *context, uint32_t series, int64_t slot_ms, const int64_t *values)
{
    struct ends *ends = context;
    (void)series, (void)values;
    ends->first_ms = ends->first_ms < 0 || slot_ms < ends->first_ms ? slot_ms : ends->first_ms;
    ends->last_ms = slot_ms > ends->last_ms ? slot_ms : ends->last_ms;
}

static bool read_end(struct mongo_store *m, size_t report, int direction, struct ends *ends, struct err *e)
{
    enum span of_minutes = mongo_kind_for(&m->reports[report], SPAN_MINUTE)->span;
    char collection[MONGO_NAME_BYTES];
    bson_t all = BSON_INITIALIZER;
    int64_t date_ms = -1;
    bson_t *options = BCON_NEW("sort", "{", "_id", BCON_INT32(direction), "}", "limit", BCON_INT64(1),
                               "projection", "{", "metadata", BCON_BOOL(true), "}");
    mongo_collection(m, report, span_name(of_minutes), collection);
    bool good = mongo_find(m->client, collection, &all, options, see_date, &date_ms, e);
    bson_destroy(options);
    if (!good || date_ms < 0)
        return good;
    struct scan_stats stats = {0};
    struct scan scan = {.report = report,
                        .slot = SPAN_MINUTE,
                        .from_ms = date_ms,
                        .to_ms = span_next(of_minutes, date_ms),
                        .series = {.kind = SERIES_ALL},
                        .rows_max = UINT64_MAX};
    return mongo_scan(&m->store, &scan, see_minute, ends, &stats, e);
}

bool mongo_first_last(struct store *st, size_t report, int64_t *first_ms, int64_t *last_ms, struct err *e)
{
    struct ends first = {-1, -1}, last = {-1, -1};
    bool good = read_end(mongo_of(st), report, 1, &first, e) && read_end(mongo_of(st), report, -1, &last, e);
    *first_ms = first.first_ms;
    *last_ms = last.last_ms;
    return good;
}

/* ---- books */

struct books_reading {
    const struct mongo_store *m;
    book_fn *fn;
    void *context;
    char source[RANGE_SOURCE_BYTES], partition[RANGE_PARTITION_BYTES];
};

static void read_member(const bson_t *document, const char *name, char *buf, size_t bytes)
{
    bson_iter_t it;
    bool found = bson_iter_init_find(&it, document, name) && BSON_ITER_HOLDS_UTF8(&it);
    snprintf(buf, bytes, "%s", found ? bson_iter_utf8(&it, NULL) : "");
}

/* Entries as "rejected.time", whatever document they are in. */
static bool see_entries(const struct books_reading *g, const char *report, const char *stem,
                        const bson_iter_t *of)
{
    bson_iter_t at;
    char name[STORE_ENTRY_BYTES];
    if (!BSON_ITER_HOLDS_DOCUMENT(of) || !bson_iter_recurse(of, &at))
        return true;
    while (bson_iter_next(&at)) {
        snprintf(name, sizeof name, "%s%s%s", stem, stem[0] != '\0' ? "." : "", bson_iter_key(&at));
        if (BSON_ITER_HOLDS_DOCUMENT(&at)
                ? !see_entries(g, report, name, &at)
                : !g->fn(g->context, g->source, g->partition, report, name, bson_iter_as_int64(&at)))
            return false;
    }
    return true;
}

static bool see_book(void *context, const bson_t *document)
{
    struct books_reading *g = context;
    bson_iter_t it, report;
    read_member(document, "source", g->source, sizeof g->source);
    read_member(document, "partition", g->partition, sizeof g->partition);
    if (bson_iter_init_find(&it, document, "entries") && !see_entries(g, "", "", &it))
        return false;
    for (size_t r = 0; r < g->m->store.report_count; r++) {
        char path[MONGO_NAME_BYTES + 16];
        snprintf(path, sizeof path, "reports.%s", g->m->more[r].key);
        if (bson_iter_init(&it, document) && bson_iter_find_descendant(&it, path, &report) &&
            !see_entries(g, g->m->reports[r].name, "", &report))
            return false;
    }
    return true;
}

bool mongo_books(struct store *st, book_fn *fn, void *context, struct err *e)
{
    struct books_reading g = {.m = mongo_of(st), .fn = fn, .context = context};
    bson_t all = BSON_INITIALIZER;
    return mongo_find(mongo_of(st)->client, MONGO_BOOKS, &all, NULL, see_book, &g, e);
}
