#include "store/mongo/live/hints.h"

#include "base/clock.h"
#include "base/mem.h"
#include "store/mongo/doc/document.h"
#include "store/mongo/doc/series.h"
#include "store/mongo/doc/top.h"
#include "store/mongo/wire/command.h"
#include "store/mongo/wire/field.h"

#include <stdio.h>

#define ASK_AGAIN_MS MINUTE_MS

/* Adds a series to its group, unless it is there. */
static void put_hint(const struct mongo_report *more, struct mongo_hints *h, uint32_t series)
{
    const size_t group = mongo_group(more, series);
    uint32_t i = h->first[group];
    while (i < h->end[group] && h->series[i] != series)
        i++;
    if (i == h->end[group])
        h->series[h->end[group]++] = series;
}

/* Sorts all hints by group. */
static void sort_hints(const struct mongo_report *more, struct mongo_hints *h)
{
    const size_t count = 1 + h->learned_count + h->listed_count;
    uint32_t sizes[MONGO_GROUPS] = {1}; /* `other`, in group 0 */
    h->series = xrealloc(h->series, count * sizeof *h->series);
    for (size_t i = 0; i < h->learned_count; i++)
        sizes[mongo_group(more, h->learned[i])]++;
    for (size_t i = 0; i < h->listed_count; i++)
        sizes[mongo_group(more, h->listed[i])]++;
    for (size_t g = 0, at = 0; g < MONGO_GROUPS; at += sizes[g++])
        h->first[g] = h->end[g] = (uint32_t)at;
    put_hint(more, h, STORE_SERIES_OTHER);
    for (size_t i = 0; i < h->learned_count; i++)
        put_hint(more, h, h->learned[i]);
    for (size_t i = 0; i < h->listed_count; i++)
        put_hint(more, h, h->listed[i]);
}

struct mongo_hints *mongo_hints_of(struct mongo_store *m, size_t report, size_t measure)
{
    struct mongo_hints **h = &m->more[report].hints[measure];
    if (*h == NULL) {
        *h = xcalloc(1, sizeof **h);
        sort_hints(&m->more[report], *h);
    }
    return *h;
}

void mongo_hints_learn(struct store *st, size_t report, size_t measure, const uint32_t *series, size_t count)
{
    struct mongo_store *m = mongo_of(st);
    if (!mongo_top_is_cached(&m->reports[report]) || !mongo_live_sums(&m->reports[report].measures[measure]))
        return;
    struct mongo_hints *h = mongo_hints_of(m, report, measure);
    h->learned_count = count < STORE_LEARN_MAX ? count : STORE_LEARN_MAX;
    memcpy(h->learned, series, h->learned_count * sizeof *series);
    sort_hints(&m->more[report], h);
}

/* ---- cached rankings */

struct hints_reading {
    struct mongo_store *m;
    size_t report;
    struct mongo_hints *hints;
    char path[MEASURE_NAME_BYTES + 32]; /* "measures.hits.top" */
    struct scan_stats *stats;
    struct text key;
};

static bool see_ranking(void *context, const bson_t *document)
{
    struct hints_reading *g = context;
    struct mongo_hints *h = g->hints;
    bson_iter_t entry, metadata;
    bool is_other;
    g->stats->rows++;
    g->stats->bytes += document->len;
    if (!mongo_begin_members(document, g->path, &entry))
        return true;
    while (bson_iter_next(&entry) && h->listed_count < MONGO_HINTS_MAX) {
        if (!mongo_find_in(&entry, "metadata", &metadata) ||
            !mongo_key_of(g->m, g->report, &metadata, &g->key, &is_other) || is_other)
            continue;
        const uint32_t series = mongo_name_stored(g->m, g->report, text_slice(&g->key));
        h->listed = xgrow(h->listed, &h->listed_capacity, h->listed_count + 1, sizeof *h->listed);
        h->listed[h->listed_count++] = series;
    }
    return true;
}

/* The last two hours, the last day and month, and this day, if somebody had it ranked. */
static void write_filter(const struct mongo_store *m, bson_t *filter)
{
    const int64_t now_ms = clock_wall_ms(m->store.clock);
    const int64_t hour_ms = span_floor(SPAN_HOUR, now_ms), day_ms = span_floor(SPAN_DAY, now_ms),
                  month_ms = span_floor(SPAN_MONTH, now_ms);
    char id[MONGO_TOP_ID_BYTES];
    struct mongo_ids ids;
    bson_init(filter);
    mongo_ids_begin(&ids, filter);
    mongo_ids_add(&ids, slice_text(mongo_top_id(SPAN_HOUR, hour_ms - HOUR_MS, id)));
    mongo_ids_add(&ids, slice_text(mongo_top_id(SPAN_HOUR, hour_ms - 2 * HOUR_MS, id)));
    mongo_ids_add(&ids, slice_text(mongo_top_id(SPAN_DAY, day_ms - DAY_MS, id)));
    mongo_ids_add(&ids, slice_text(mongo_top_id(SPAN_DAY, day_ms, id)));
    mongo_ids_add(&ids, slice_text(mongo_top_id(SPAN_MONTH, span_floor(SPAN_MONTH, month_ms - 1), id)));
    (void)mongo_ids_end(&ids);
}

bool mongo_hints_read(struct mongo_store *m, size_t report, size_t measure, struct scan_stats *stats,
                      bool *more, struct err *e)
{
    struct hints_reading g = {
        .m = m, .report = report, .hints = mongo_hints_of(m, report, measure), .stats = stats};
    const int64_t now_ms = clock_mono_ms(m->store.clock);
    char collection[MONGO_NAME_BYTES];
    bson_t filter;
    *more = g.hints->asked_ms == 0 || now_ms - g.hints->asked_ms >= ASK_AGAIN_MS;
    if (!*more)
        return true;
    snprintf(g.path, sizeof g.path, "measures.%s.top", m->reports[report].measures[measure].name);
    write_filter(m, &filter);
    bson_t *options = BCON_NEW("projection", "{", g.path, BCON_BOOL(true), "}");
    g.hints->listed_count = 0;
    bool good = mongo_look(m->client, mongo_collection(m, report, MONGO_TOP, collection), &filter, options,
                           see_ranking, &g, e);
    g.hints->asked_ms = good ? now_ms : 0;
    sort_hints(&m->more[report], g.hints);
    text_fini(&g.key);
    return good;
}
