/* Reads charts from documents: each resolution from the kind that holds its buckets in the fewest
 * documents. */
#include "store/mongo/doc/read.h"

#include "store/mongo/doc/document.h"
#include "store/mongo/doc/series.h"
#include "store/mongo/doc/sketch.h"
#include "store/mongo/wire/field.h"

#include <inttypes.h>
#include <stdio.h>

/* Up to this many documents of one series are asked for by `_id`; more by time. */
#define BY_ID_MAX  400 /* a year of days, or two weeks of hours */
/* The same limit for several series, in requests of BY_ID_MAX; beyond it all series are read. */
#define BY_IDS_MAX 4000
/* Up to this many keys of a level are asked for one by one. */
#define KEYS_MAX   4

struct reading {
    struct mongo_store *m;
    const struct scan *scan;
    const struct mongo_kind *kind;
    scan_fn *fn;
    mongo_key_fn *key_fn; /* called instead of `fn` if it is not NULL */
    void *context;
    struct scan_stats *stats;
    uint32_t measures; /* measures to read, a bit each */
    size_t sketch;     /* kind->of_sketch: its index among the report's sketches */
    /* kind->of_sketch: the values of the rows, which are documents; empty: another type */
    struct slice sketches[MONGO_SKETCH_ROWS_MAX];
    char collection[MONGO_NAME_BYTES];
    bson_t options; /* projection of the query */
    struct text key;
    bool is_too_much, has_failed;
    const struct measure *damaged; /* of a document: a value of it does not decode; NULL: none */
    struct err *e;
};

/* The end of the measures that documents may have: the newest events are behind those of the report. */
static size_t measures_end(const struct report *r)
{
    return r->measure_count + (r->newest > 0);
}

static bool is_of_newest(const struct reading *g)
{
    return g->kind->of_sketch && g->sketch == g->m->reports[g->scan->report].sketch_count;
}

/* ---- documents */

static void take_row(struct reading *g, size_t measure, size_t row, const bson_iter_t *value)
{
    struct mongo_store *m = g->m;
    const struct report *r = &m->reports[g->scan->report];
    int64_t *columns = &m->reader.rows[row * r->column_count];
    if (!m->reader.row_is_there[row]) {
        memset(columns, 0, r->column_count * sizeof *columns);
        m->reader.row_is_there[row] = 1;
    }
    if (!mongo_read_value(&r->measures[measure], value, &columns[r->measures[measure].column]))
        g->damaged = &r->measures[measure];
    if (g->kind->of_sketch)
        g->sketches[row] = mongo_bytes_of(value);
}

/* Reads the time buckets below a bucket's row. The depth is limited by the resolutions. */
static void take_rows(struct reading *g, size_t measure, enum span span, size_t row, const bson_iter_t *value)
{
    bson_iter_t at;
    if (span == g->scan->resolution) {
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

/* Reads all time buckets of a document into m->reader.rows. */
static void read_buckets(struct reading *g, const bson_t *document)
{
    const struct scan *scan = g->scan;
    const struct report *r = &g->m->reports[scan->report];
    const struct mongo_report *more = &g->m->more[scan->report];
    g->damaged = NULL;
    memset(g->m->reader.row_is_there, 0, mongo_row_count(g->kind, scan->resolution));
    for (size_t i = 0; i < measures_end(r); i++) {
        char path[MEASURE_NAME_BYTES + MONGO_PATH_BYTES];
        bson_iter_t value;
        if ((g->measures >> i & 1) == 0)
            continue;
        snprintf(path, sizeof path, "%s%s", g->kind->of_sketch ? "" : more->fields[i],
                 mongo_member(scan->resolution));
        if (mongo_find_member(document, path, &value))
            take_rows(g, i, g->kind->span, 0, &value);
    }
}

/* The first row of a document that may be in the range. */
static size_t first_row(const struct reading *g, int64_t date_ms)
{
    int64_t ahead_ms = g->scan->from_ms - date_ms;
    return g->scan->resolution == g->kind->span || ahead_ms < 0
               ? 0
               : (size_t)(ahead_ms / span_next(g->scan->resolution, 0));
}

/* A bucket of zeros in a preallocated document, or whose events were taken out: the report has a count, and
 * it is 0. Documents of a sketch do not have that count. */
static bool is_made_ahead(const struct reading *g, const int64_t *columns)
{
    const struct mongo_report *more = &g->m->more[g->scan->report];
    if (is_of_newest(g)) /* they have no columns, and are never made ahead */
        return false;
    if (g->kind->of_sketch)
        return more->has_zeros && report_is_zero(&g->m->reports[g->scan->report], columns);
    return more->has_zeros && columns[g->m->reports[g->scan->report].measures[more->plain].column] == 0;
}

/* Is the document of a wanted series? Sets its number, or its key in g->key. */
static bool find_series(struct reading *g, const bson_t *document, uint32_t *series)
{
    bool is_other;
    if (g->key_fn == NULL)
        return mongo_take_name(g->m, g->scan->report, document, &g->key, series) &&
               series_set_has(&g->scan->series, *series);
    if (!mongo_key_in_document(g->m, g->scan->report, document, &g->key, &is_other))
        return false;
    *series = is_other ? STORE_SERIES_OTHER : STORE_SERIES_OTHER + 1;
    return true;
}

static bool fail_damaged(struct reading *g, const struct measure *m, int64_t at_ms)
{
    char iso[CIVIL_ISO_BYTES];
    g->has_failed = true;
    return err_set(g->e, EX_DATAERR, "%s: %s has a damaged %s at %s: restore it from a backup",
                   mongo_client_name(g->m->client), g->collection, m->expression, civil_iso(at_ms, iso));
}

/* Passes the sketch of a row on. False: the caller wants no more, or it is damaged. */
static bool tell_sketch(struct reading *g, uint32_t series, int64_t at_ms, size_t row)
{
    const struct report *r = &g->m->reports[g->scan->report];
    struct mongo_reader *reader = &g->m->reader;
    text_clear(&reader->packed);
    if (!mongo_read_sketch(report_sketched(r, g->sketch), g->sketches[row], &reader->sketches,
                           &reader->packed))
        return fail_damaged(g, report_sketched(r, g->sketch), at_ms);
    const struct slice packed = text_slice(&reader->packed);
    g->has_failed = packed.len > 0 && !g->scan->sketch(g->context, series, at_ms, g->sketch, packed, g->e);
    return !g->has_failed;
}

static bool tell_bucket(struct reading *g, uint32_t series, int64_t at_ms, size_t row)
{
    const int64_t *columns = &g->m->reader.rows[row * g->m->reports[g->scan->report].column_count];
    const struct slice key = text_slice(&g->key);
    if (g->key_fn != NULL)
        return g->key_fn(g->context, series == STORE_SERIES_OTHER ? NULL : &key, at_ms, columns,
                         g->kind->of_sketch ? g->sketches[row] : slice_of(NULL, 0));
    g->fn(g->context, series, at_ms, columns);
    return !g->kind->of_sketch || g->scan->sketch == NULL || tell_sketch(g, series, at_ms, row);
}

static bool see_document(void *context, const bson_t *document)
{
    struct reading *g = context;
    const struct scan *scan = g->scan;
    size_t columns = g->m->reports[scan->report].column_count;
    uint32_t series;
    int64_t date_ms;
    if (deadline_is_over(g->m->store.deadline))
        return false;
    if (g->stats->rows == scan->rows_max) {
        g->is_too_much = true;
        return false;
    }
    g->stats->rows++;
    g->stats->bytes += document->len;
    if (!mongo_date_of(document, &date_ms) || !find_series(g, document, &series))
        return true;
    read_buckets(g, document);
    if (g->damaged != NULL)
        return fail_damaged(g, g->damaged, date_ms);
    for (size_t row = first_row(g, date_ms); row < mongo_row_count(g->kind, scan->resolution); row++) {
        if (!g->m->reader.row_is_there[row] || is_made_ahead(g, &g->m->reader.rows[row * columns]))
            continue;
        int64_t at_ms = mongo_row_ms(scan->resolution, date_ms, row);
        if (at_ms >= scan->to_ms)
            break;
        if (at_ms >= scan->from_ms && !tell_bucket(g, series, at_ms, row))
            return false;
    }
    return true;
}

/* ---- what is asked for */

/* If the range is a part of one document, only the keys that it touches are asked for; keys of single
 * buckets only up to KEYS_MAX. */
static bool takes_keys(const struct reading *g)
{
    const struct scan *scan = g->scan;
    enum span whole = g->kind->span, below = (enum span)(whole - 1);
    if (scan->resolution == whole || span_floor(whole, scan->from_ms) != span_floor(whole, scan->to_ms - 1) ||
        scan->to_ms == span_next(whole, scan->from_ms))
        return false;
    return scan->resolution < below || scan->to_ms <= scan->from_ms + KEYS_MAX * span_next(below, 0);
}

typedef void path_fn(bson_t *to, const char *path);

/* Adds the paths of a measure's buckets. */
static void add_paths(const struct reading *g, size_t measure, path_fn *add, bson_t *to)
{
    const struct scan *scan = g->scan;
    enum span below = (enum span)(g->kind->span - 1);
    char path[128];
    int len = snprintf(path, sizeof path, "%s%s",
                       g->kind->of_sketch ? "" : g->m->more[scan->report].fields[measure],
                       mongo_member(scan->resolution));
    if (!takes_keys(g)) {
        add(to, path);
        return;
    }
    for (int64_t at = span_floor(below, scan->from_ms); at < scan->to_ms; at = span_next(below, at)) {
        snprintf(path + len, sizeof path - (size_t)len, ".%d", mongo_key_in(below, at));
        add(to, path);
    }
}

static void project(bson_t *to, const char *path)
{
    BSON_APPEND_BOOL(to, path, true);
}

/* Projects only members that the answer needs. */
static void write_options(struct reading *g)
{
    bson_t projection;
    bson_init(&g->options);
    BSON_APPEND_DOCUMENT_BEGIN(&g->options, "projection", &projection);
    BSON_APPEND_BOOL(&projection, "_id", false);
    BSON_APPEND_BOOL(&projection, "metadata", true);
    for (size_t i = 0; i < measures_end(&g->m->reports[g->scan->report]); i++) {
        if (g->measures >> i & 1)
            add_paths(g, i, project, &projection);
    }
    bson_append_document_end(&g->options, &projection);
}

static void require(bson_t *to, const char *path)
{
    char index[16];
    snprintf(index, sizeof index, "%u", bson_count_keys(to));
    BCON_APPEND(to, index, "{", path, "{", "$exists", BCON_BOOL(true), "}", "}");
}

/* If single keys are asked for, requires one of them. It looks at a sum or count, which every event has. */
static void require_keys(const struct reading *g, bson_t *filter)
{
    const struct report *r = &g->m->reports[g->scan->report];
    bson_t any;
    size_t i = 0;
    while (i < r->measure_count && ((g->measures >> i & 1) == 0 || !measure_is_sum(&r->measures[i])))
        i++;
    if (!takes_keys(g) || i == r->measure_count)
        return;
    BSON_APPEND_ARRAY_BEGIN(filter, "$or", &any);
    add_paths(g, i, require, &any);
    bson_append_array_end(filter, &any);
}

/* Filters by `_id`, which begins with the time. For one series also by metadata, which may have an index. */
static void filter_by_time(const struct reading *g, bson_t *filter)
{
    struct mongo_store *m = g->m;
    const struct scan *scan = g->scan;
    enum span bucket = g->kind->span;
    int64_t first_ms = span_floor(bucket, scan->from_ms), last_ms = span_floor(bucket, scan->to_ms - 1);
    char time[MONGO_TIME_BYTES];
    bson_init(filter);
    text_clear(&m->id);
    /* sorts behind everything that continues with "/" */
    text_printf(&m->id, "%s0", mongo_time(bucket, last_ms, time));
    BCON_APPEND(filter, "_id", "{", "$gte", BCON_UTF8(mongo_time(bucket, first_ms, time)), "$lt",
                BCON_UTF8(m->id.ptr), "}");
    require_keys(g, filter);
    if (scan->series.kind != SERIES_ONE)
        return;
    mongo_add_metadata(filter, m, scan->report, mongo_key(&m->more[scan->report], scan->series.one));
    BCON_APPEND(filter, "metadata.date", "{", "$gte", BCON_DATE_TIME(first_ms), "$lte",
                BCON_DATE_TIME(last_ms), "}");
}

/* The measures to read: the wanted ones without a sketch. If one of them is not a sum, all are read: a bucket
 * in which it is absent shows only in the others. */
static uint32_t measures_of(const struct report *r, uint32_t wanted)
{
    const uint32_t all = mongo_plain_measures(r);
    wanted &= all;
    for (size_t i = 0; i < r->measure_count; i++) {
        if ((wanted >> i & 1) && !measure_is_sum(&r->measures[i]))
            return all;
    }
    return wanted != 0 ? wanted : all;
}

static bool ask(struct reading *g, const bson_t *filter, struct err *e)
{
    g->e = e;
    if (!mongo_find(g->m->client, g->collection, filter, &g->options, see_document, g, e) || g->has_failed ||
        !deadline_check(g->m->store.deadline, e))
        return false;
    return !g->is_too_much || err_set(e, EX_UNAVAILABLE, "too many rows: more than %" PRIu64 " would be read",
                                      g->scan->rows_max);
}

/* ---- documents by their names */

static uint64_t count_buckets(const struct reading *g)
{
    uint64_t count = 0;
    int64_t at = span_floor(g->kind->span, g->scan->from_ms);
    for (; at < g->scan->to_ms && count <= BY_IDS_MAX; at = span_next(g->kind->span, at))
        count++;
    return count;
}

/* The set has no series from this number on. */
static uint32_t series_end(const struct reading *g)
{
    const struct series_set *set = &g->scan->series;
    uint64_t known = g->m->more[g->scan->report].names.count + 1;
    uint64_t end = set->kind == SERIES_ONE ? (uint64_t)set->one + 1 : set->bits_max;
    return (uint32_t)(end < known ? end : known);
}

static bool is_few(const struct reading *g)
{
    const struct series_set *set = &g->scan->series;
    uint64_t count = 0, most = set->kind == SERIES_ONE ? BY_ID_MAX : BY_IDS_MAX;
    for (uint32_t series = 0; set->kind == SERIES_SET && count <= most && series < series_end(g); series++)
        count += series_set_has(set, series);
    return set->kind != SERIES_ALL && (set->kind == SERIES_ONE ? 1 : count) * count_buckets(g) <= most;
}

struct asking {
    struct reading *g;
    struct mongo_ids ids;
};

static bool ask_for_ids(struct asking *a, struct err *e)
{
    bson_t *filter = mongo_ids_end(&a->ids);
    bool good = a->ids.count == 0 || ask(a->g, filter, e);
    bson_destroy(filter);
    return good;
}

/* Asks for all documents of one series in the range. */
static bool add_ids(struct asking *a, uint32_t series, struct err *e)
{
    const struct scan *scan = a->g->scan;
    struct mongo_store *m = a->g->m;
    enum span bucket = a->g->kind->span;
    char time[MONGO_TIME_BYTES];
    for (int64_t at = span_floor(bucket, scan->from_ms); at < scan->to_ms; at = span_next(bucket, at)) {
        /* Looks the key up each time, since reading may add names. */
        mongo_id(&m->id, m, scan->report, mongo_time(bucket, at, time),
                 mongo_key(&m->more[scan->report], series));
        mongo_ids_add(&a->ids, slice_of(m->id.ptr, m->id.len));
        if (a->ids.count < BY_ID_MAX)
            continue;
        bool good = ask_for_ids(a, e);
        mongo_ids_begin(&a->ids, bson_new());
        if (!good)
            return false;
    }
    return true;
}

static bool scan_by_id(struct reading *g, struct err *e)
{
    const struct series_set *set = &g->scan->series;
    struct asking a = {.g = g};
    bool good = true;
    mongo_ids_begin(&a.ids, bson_new());
    for (uint32_t series = set->kind == SERIES_ONE ? set->one : 0; good && series < series_end(g); series++)
        good = !series_set_has(set, series) || add_ids(&a, series, e);
    if (good)
        return ask_for_ids(&a, e);
    bson_destroy(mongo_ids_end(&a.ids));
    return false;
}

static bool scan_by_time(struct reading *g, struct err *e)
{
    bson_t filter;
    filter_by_time(g, &filter);
    bool good = ask(g, &filter, e);
    bson_destroy(&filter);
    return good;
}

/* Sets the measures to read, and their collection. */
static void name_measures(struct reading *g)
{
    const struct scan *scan = g->scan;
    const struct report *r = &g->m->reports[scan->report];
    const struct mongo_report *more = &g->m->more[scan->report];
    const char *kind = span_name(g->kind->span);
    if (g->kind->of_sketch) {
        g->measures = (uint32_t)1 << r->sketched[g->sketch];
        mongo_sketch_collection(g->m, scan->report, g->sketch, kind, g->collection);
        return;
    }
    g->measures = measures_of(r, scan->measures);
    if (more->has_zeros)
        g->measures |= (uint32_t)1 << more->plain;
    mongo_collection(g->m, scan->report, kind, g->collection);
}

static bool scan_documents(struct reading *g, struct scan_stats *stats, struct err *e)
{
    const struct scan *scan = g->scan;
    const struct mongo_report *more = &g->m->more[scan->report];
    struct scan_stats own = {0};
    bool is_unknown = scan->series.kind == SERIES_ONE && scan->series.one > more->names.count;
    if (scan->from_ms == scan->to_ms || is_unknown)
        return true;
    g->stats = &own;
    name_measures(g);
    write_options(g);
    bool good = is_few(g) ? scan_by_id(g, e) : scan_by_time(g, e);
    stats->rows += own.rows;
    stats->bytes += own.bytes;
    text_fini(&g->key);
    bson_destroy(&g->options);
    return good;
}

struct mongo_from mongo_from_sketch(const struct report *r, size_t sketch, enum span resolution)
{
    return (struct mongo_from){mongo_sketch_kind_for(r, sketch, resolution), sketch};
}

bool mongo_scan_from(struct mongo_store *m, struct mongo_from from, const struct scan *scan, scan_fn *fn,
                     void *context, struct scan_stats *stats, struct err *e)
{
    struct reading g = {
        .m = m, .scan = scan, .kind = from.kind, .sketch = from.sketch, .fn = fn, .context = context};
    return scan_documents(&g, stats, e);
}

bool mongo_read_keys(struct mongo_store *m, struct mongo_from from, const struct scan *scan, mongo_key_fn *fn,
                     void *context, struct scan_stats *stats, struct err *e)
{
    struct reading g = {
        .m = m, .scan = scan, .kind = from.kind, .sketch = from.sketch, .key_fn = fn, .context = context};
    return scan_documents(&g, stats, e);
}
