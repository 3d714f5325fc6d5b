#include "store/mongo/doc/top.h"

#include "store/mongo/doc/decimal.h"
#include "store/mongo/doc/document.h"
#include "store/mongo/doc/series.h"
#include "store/mongo/doc/sketch.h"
#include "store/mongo/wire/command.h"
#include "store/mongo/wire/field.h"

#include <stdio.h>

const enum span mongo_top_spans[MONGO_TOP_SPANS] = {SPAN_HOUR, SPAN_DAY, SPAN_MONTH};

bool mongo_top_has_span(enum span span)
{
    size_t i = 0;
    while (i < MONGO_TOP_SPANS && mongo_top_spans[i] != span)
        i++;
    return i < MONGO_TOP_SPANS;
}

bool mongo_top_is_cached(const struct report *r)
{
    bool is_ranked = false;
    for (size_t i = 0; i < r->measure_count; i++)
        is_ranked = is_ranked || rank_by_is_of(RANK_BY_VALUE, &r->measures[i]) ||
                    rank_by_is_of(RANK_BY_COUNT, &r->measures[i]);
    return r->dimension_count > 0 && is_ranked;
}

const char *mongo_top_id(enum span span, int64_t ms, char buf[MONGO_TOP_ID_BYTES])
{
    char time[MONGO_TIME_BYTES];
    snprintf(buf, MONGO_TOP_ID_BYTES, "%s/%s", span_name(span), mongo_time(span, ms, time));
    return buf;
}

/* ---- reading */

struct top_reading {
    struct mongo_store *m;
    const struct store_top *what;
    top_fn *fn;
    void *context;
    struct top_total *total;
    struct scan_stats *stats;
    char measure[MEASURE_NAME_BYTES + 16];   /* "measures.hits" */
    char list[MEASURE_NAME_BYTES + 16 + 16]; /* the same; of a sketch "measures.latency.p99" */
    uint64_t valid;                          /* rankings that are up to date */
    int64_t period_ms;                       /* start of the period that is being read */
    struct text key;
};

static const struct measure *measure_of(const struct top_reading *g)
{
    return &g->m->reports[g->what->report].measures[g->what->measure];
}

static bool is_ranked(const bson_t *document)
{
    int64_t written = mongo_number_at(document, "written", -1);
    return written > 0 && written == mongo_number_at(document, "ranked", -1);
}

/* The columns and the value of an entry; false: it is damaged. */
static bool read_entry(const struct top_reading *g, const bson_iter_t *entry, int64_t *columns,
                       int128 *number)
{
    const struct measure *m = measure_of(g);
    bson_iter_t value, count;
    if (!mongo_find_in(entry, "value", &value))
        return false;
    if (!measure_has_sketch(m))
        return mongo_read_value(m, &value, columns) && measure_value(m, columns, number);
    if (!mongo_find_in(entry, "count", &count))
        return false;
    columns[measure_column_count(m) - 1] = bson_iter_as_int64(&count);
    *number = mongo_decimal(&value);
    return !mongo_is_infinite(&value);
}

/* Reads an entry of the list; false: it is damaged, so the list is not used. `tells`: hand it on. */
static bool see_entry(struct top_reading *g, const bson_iter_t *entry, bool tells)
{
    int64_t columns[REPORT_COLUMNS_MAX] = {0};
    const struct store_top *what = g->what;
    uint32_t series = STORE_SERIES_OTHER;
    bson_iter_t metadata;
    int128 value;
    bool is_other;
    if (!mongo_find_in(entry, "metadata", &metadata) ||
        !read_entry(g, entry, &columns[measure_of(g)->column], &value) ||
        !mongo_key_of(g->m, what->report, &metadata, &g->key, &is_other))
        return false;
    if (!tells)
        return true;
    if (!is_other)
        series = mongo_name_stored(g->m, what->report, text_slice(&g->key));
    g->fn(g->context, series, g->period_ms, columns, value);
    return true;
}

/* Reads as many entries as are asked for, or all series. If the list is too short, hands nothing on. */
static bool see_list(struct top_reading *g, const bson_t *document)
{
    bson_iter_t of, list, entry, count;
    if (!mongo_find_member(document, g->list, &of) || !mongo_find_in(&of, "top", &list) ||
        !BSON_ITER_HOLDS_ARRAY(&list) || !mongo_find_in(&of, "series", &count))
        return false;
    for (int tells = 0; tells <= 1; tells++) {
        uint64_t seen = 0;
        bson_iter_recurse(&list, &entry);
        for (; seen < g->what->limit && bson_iter_next(&entry); seen++) {
            if (!see_entry(g, &entry, tells != 0))
                return false;
        }
        if (seen < g->what->limit && seen != (uint64_t)bson_iter_as_int64(&count))
            return false;
    }
    return true;
}

/* Is the date of a period's document one that was asked for, and that of its `_id`? Another one is damage by
 * others. */
static bool is_wanted(const struct top_reading *g, const bson_t *document)
{
    char id[MONGO_TOP_ID_BYTES];
    const struct store_top *what = g->what;
    return g->period_ms >= what->from_ms && g->period_ms < what->to_ms &&
           strcmp(mongo_text_at(document, "_id"), mongo_top_id(what->span, g->period_ms, id)) == 0;
}

/* Merges the total of a period; false: it is damaged. */
static bool see_total(const struct top_reading *g, const bson_iter_t *total)
{
    const struct measure *m = measure_of(g);
    int64_t columns[MEASURE_COLUMNS_MAX] = {0};
    if (measure_has_sketch(m)) {
        union sketch own;
        memset(&own, 0, sizeof own);
        if (!BSON_ITER_HOLDS_DOCUMENT(total) ||
            !mongo_merge_sketch(m, mongo_bytes_of(total), &own, g->total->memory))
            return false;
        measure_unite_sketch(m, g->total->longest, &g->total->sketch, g->total->memory, &own);
    }
    if (!mongo_read_value(m, total, columns))
        return false;
    measure_merge(m, g->total->columns, columns);
    return true;
}

/* The total comes first: a list is handed on only if all of its document is good. */
static bool see_period(void *context, const bson_t *document)
{
    struct top_reading *g = context;
    char path[sizeof g->measure + 8];
    bson_iter_t total;
    g->stats->rows++;
    g->stats->bytes += document->len;
    snprintf(path, sizeof path, "%s.total", g->measure);
    if (!is_ranked(document) || !mongo_date_of(document, &g->period_ms) || !is_wanted(g, document) ||
        !mongo_find_member(document, path, &total) || !see_total(g, &total) ||
        (g->what->limit > 0 && !see_list(g, document)))
        return g->what->limit > 0; /* others may be up to date; a total needs all */
    g->valid++;
    return true;
}

static void write_options(const struct top_reading *g, bson_t *options)
{
    const struct {
        const char *of, *member;
    } paths[] = {{g->measure, "total"}, {g->list, "series"}, {g->list, "top"}};
    bson_t projection;
    bson_init(options);
    BSON_APPEND_DOCUMENT_BEGIN(options, "projection", &projection);
    BSON_APPEND_BOOL(&projection, "written", true);
    BSON_APPEND_BOOL(&projection, "ranked", true);
    BSON_APPEND_BOOL(&projection, "metadata.date", true);
    for (size_t i = 0; i < (g->what->limit > 0 ? COUNT_OF(paths) : 1); i++) {
        char path[sizeof g->list + 8];
        snprintf(path, sizeof path, "%s.%s", paths[i].of, paths[i].member);
        BSON_APPEND_BOOL(&projection, path, true);
    }
    bson_append_document_end(options, &projection);
}

/* Filters by the periods that are asked for. Returns their number. */
static uint64_t write_filter(const struct store_top *what, bson_t *filter)
{
    char id[MONGO_TOP_ID_BYTES];
    struct mongo_ids ids;
    uint64_t count = 0;
    bson_init(filter);
    if (span_next(what->span, what->from_ms) == what->to_ms) {
        BSON_APPEND_UTF8(filter, "_id", mongo_top_id(what->span, what->from_ms, id));
        return 1;
    }
    mongo_ids_begin(&ids, filter);
    for (int64_t at = what->from_ms; at < what->to_ms; at = span_next(what->span, at), count++)
        mongo_ids_add(&ids, slice_text(mongo_top_id(what->span, at, id)));
    (void)mongo_ids_end(&ids);
    return count;
}

bool mongo_top(struct store *st, const struct store_top *what, top_fn *fn, void *context,
               struct top_total *total, struct scan_stats *stats, bool *found, struct err *e)
{
    struct mongo_store *m = mongo_of(st);
    const struct report *r = &m->reports[what->report];
    const struct measure *measure = &r->measures[what->measure];
    struct top_reading g = {
        .m = m, .what = what, .fn = fn, .context = context, .total = total, .stats = stats};
    char collection[MONGO_NAME_BYTES];
    bson_t filter, options;
    *found = false;
    if (!mongo_top_has_span(what->span) || !mongo_top_is_cached(r))
        return true;
    snprintf(g.measure, sizeof g.measure, "measures.%s", measure->name);
    snprintf(g.list, sizeof g.list, "%s%s%s", g.measure, measure_has_sketch(measure) ? "." : "",
             measure_has_sketch(measure) ? rank_by_name(what->by) : "");
    uint64_t wanted = write_filter(what, &filter);
    write_options(&g, &options);
    bool good = mongo_look(m->client, mongo_collection(m, what->report, MONGO_TOP, collection), &filter,
                           &options, see_period, &g, e);
    *found = g.valid == wanted;
    text_fini(&g.key);
    return good;
}
