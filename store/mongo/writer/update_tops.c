/* Writes the documents of rankings: the stamp of each hour, day and month that a batch has counts of, its
 * group sums if it is open, and the totals of an hour by minute (mongo/live/groups.h). */
#include "base/mem.h"
#include "base/order.h"
#include "store/mongo/doc/document.h"
#include "store/mongo/doc/top.h"
#include "store/mongo/live/groups.h"
#include "store/mongo/writer/update_internal.h"

#include <stdio.h>
#include <stdlib.h>

#define MINUTES 60

/* ---- the periods that a batch has counts of */

/* Adds the start of an hour, in any order, any number of times. */
static void periods_add(struct mongo_periods *p, int64_t ms)
{
    int64_t start_ms = span_floor(SPAN_HOUR, ms);
    int64_t *seen_ms = &p->seen_ms[(size_t)(start_ms / HOUR_MS) % MONGO_PERIODS_SEEN];
    if (*seen_ms == start_ms)
        return;
    *seen_ms = start_ms;
    p->starts = xgrow(p->starts, &p->capacity, p->count + 1, sizeof *p->starts);
    p->starts[p->count++] = start_ms;
}

/* Leaves the starts of such spans, sorted, without duplicates. The span is longer with each call. */
static void periods_floor(struct mongo_periods *p, enum span span)
{
    size_t count = 0;
    if (p->count > 0)
        qsort(p->starts, p->count, sizeof *p->starts, order_int64s);
    for (size_t i = 0; i < p->count; i++) {
        int64_t start_ms = span_floor(span, p->starts[i]);
        if (count == 0 || p->starts[count - 1] != start_ms)
            p->starts[count++] = start_ms;
    }
    p->count = count;
}

/* ---- sums */

static int64_t value_of(const struct update *u, size_t cell, size_t measure)
{
    return update_cell_at(u, cell)->value[u->m->reports[u->report].measures[measure].column];
}

/* Has the batch only counts that may be added up? A batch that takes counts out, or a negative sum, does not:
 * readers rely on values that only grow. Nor does one that fills a store: its cells may be longer than those
 * of the report, and `until` would be too early. */
static bool only_grows(const struct update *u, size_t cell_count)
{
    const struct report *r = &u->m->reports[u->report];
    bool grows = u->m->batch.taken == NULL && !u->m->batch.fills && u->m->writer.fills_from == 0;
    for (size_t s = 0; grows && s < r->measure_count; s++) {
        for (size_t i = 0; grows && mongo_live_sums(&r->measures[s]) && i < cell_count; i++)
            grows = value_of(u, i, s) >= 0;
    }
    return grows;
}

/* Adds the sums of a measure to an update, by their index. */
static void put_sums(struct update *u, const char *prefix, size_t measure, const int64_t *sums, size_t count)
{
    const char *name = u->m->reports[u->report].measures[measure].name;
    char path[MEASURE_NAME_BYTES + 48];
    for (size_t i = 0; i < count; i++) {
        if (sums[i] == 0)
            continue;
        snprintf(path, sizeof path, "%s.%s.%zu", prefix, name, i);
        bson_append_int64(&u->inc, path, -1, sums[i]);
    }
}

/* Adds the sums of an open period by group. */
static void add_groups(struct update *u, size_t cell_count, enum span span, int64_t start_ms)
{
    const struct report *r = &u->m->reports[u->report];
    const struct mongo_report *more = &u->m->more[u->report];
    const int64_t end_ms = span_next(span, start_ms);
    int64_t until_ms = start_ms;
    for (size_t s = 0; s < r->measure_count; s++) {
        int64_t sums[MONGO_GROUPS] = {0};
        if (!mongo_live_sums(&r->measures[s]))
            continue;
        for (size_t i = 0; i < cell_count; i++) {
            const int64_t at_ms = update_ms_at(u, i);
            if (at_ms < start_ms || at_ms >= end_ms)
                continue;
            int64_t *sum = &sums[mongo_group(more, update_series_at(u, i))];
            *sum = value_add(*sum, value_of(u, i, s));
            until_ms = at_ms + report_cell_ms(r) > until_ms ? at_ms + report_cell_ms(r) : until_ms;
        }
        put_sums(u, "open.sums", s, sums, MONGO_GROUPS);
    }
    BSON_APPEND_INT64(&u->inc, "open.batches", 1);
    BSON_APPEND_DATE_TIME(&u->max, "open.until", until_ms);
}

/* The totals of the batch by measure and minute, for each hour of `hours`. */
static int64_t *add_up_minutes(const struct update *u, size_t cell_count, const struct mongo_periods *hours)
{
    const struct report *r = &u->m->reports[u->report];
    int64_t *minutes = xcalloc(hours->count * r->measure_count * MINUTES + 1, sizeof *minutes);
    size_t hour = 0;
    for (size_t i = 0; i < cell_count; i++) {
        const int64_t at_ms = update_ms_at(u, i), start_ms = span_floor(SPAN_HOUR, at_ms);
        if (hours->starts[hour] != start_ms)
            hour = (size_t)((int64_t *)bsearch(&start_ms, hours->starts, hours->count, sizeof start_ms,
                                               order_int64s) -
                            hours->starts);
        for (size_t s = 0; s < r->measure_count; s++) {
            int64_t *sum =
                &minutes[(hour * r->measure_count + s) * MINUTES + (size_t)((at_ms - start_ms) / MINUTE_MS)];
            if (mongo_live_sums(&r->measures[s]))
                *sum = value_add(*sum, value_of(u, i, s));
        }
    }
    return minutes;
}

/* ---- documents */

static void end_top(struct update *u, enum span span, int64_t start_ms)
{
    char id[MONGO_TOP_ID_BYTES];
    bson_t filter = BSON_INITIALIZER, set = BSON_INITIALIZER;
    BSON_APPEND_UTF8(&filter, "_id", mongo_top_id(span, start_ms, id));
    BSON_APPEND_DATE_TIME(&filter, "metadata.date", start_ms);
    BSON_APPEND_INT64(&u->inc, "written", 1);
    BSON_APPEND_BOOL(&set, "waiting", true);
    mongo_end_update(u, &filter, &set);
    bson_destroy(&set);
    bson_destroy(&filter);
}

/* `minutes`: the totals of all hours; NULL: the batch raises no sums. */
static void write_span(struct update *u, size_t cell_count, enum span span, const int64_t *minutes)
{
    const struct report *r = &u->m->reports[u->report];
    const struct mongo_periods *p = &u->m->sorting.periods;
    for (size_t i = 0; i < p->count; i++) {
        if (p->starts[i] < u->m->more[u->report].watermarks.before_ms[span])
            continue; /* nobody reads it */
        mongo_begin_update(u);
        for (size_t s = 0; minutes != NULL && span == SPAN_HOUR && s < r->measure_count; s++)
            put_sums(u, "minutes.totals", s, &minutes[(i * r->measure_count + s) * MINUTES], MINUTES);
        if (minutes != NULL && span == SPAN_HOUR)
            BSON_APPEND_INT64(&u->inc, "minutes.batches", 1);
        if (minutes != NULL && mongo_is_open(span, p->starts[i], u->now_ms))
            add_groups(u, cell_count, span, p->starts[i]);
        end_top(u, span, p->starts[i]);
    }
}

void mongo_write_tops(struct update *u, size_t cell_count)
{
    struct mongo_store *m = u->m;
    struct mongo_periods *p = &m->sorting.periods;
    char name[MONGO_NAME_BYTES];
    if (!mongo_top_is_cached(&m->reports[u->report]))
        return;
    u->collection = mongo_collection(m, u->report, MONGO_TOP, name);
    p->count = 0;
    memset(p->seen_ms, 0xFF, sizeof p->seen_ms); /* -1: no hour */
    for (size_t i = 0; i < cell_count; i++)
        periods_add(p, update_ms_at(u, i));
    periods_floor(p, SPAN_HOUR);
    int64_t *minutes = only_grows(u, cell_count) ? add_up_minutes(u, cell_count, p) : NULL;
    for (size_t s = 0; s < MONGO_TOP_SPANS; s++) {
        periods_floor(p, mongo_top_spans[s]);
        write_span(u, cell_count, mongo_top_spans[s], minutes);
    }
    free(minutes);
}
