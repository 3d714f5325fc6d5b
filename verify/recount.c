#include "verify/recount.h"

#include "aggregate/batch.h"
#include "aggregate/dimension.h"
#include "aggregate/sample.h"
#include "base/check.h"
#include "base/mem.h"

#include <stdlib.h>

#define PLACES_MIN 1024

/* FNV-1a: a different hash than the counting path uses. */
static uint64_t hash_bytes(const void *bytes, size_t len)
{
    const unsigned char *p = bytes;
    uint64_t h = 0xcbf29ce484222325u;
    for (size_t i = 0; i < len; i++)
        h = (h ^ p[i]) * 0x100000001b3u;
    return h ^ h >> 32;
}

static uint64_t hash_cell(uint32_t salt, uint32_t series, int64_t bucket_ms)
{
    uint64_t both[2] = {(uint64_t)salt << 32 | series, (uint64_t)bucket_ms};
    return hash_bytes(both, sizeof both);
}

static size_t stride_of(const struct recount_cells *t)
{
    return sizeof(struct recount_cell) + t->column_count * sizeof(int64_t);
}

struct recount_cell *recount_cells_at(const struct recount_cells *t, size_t i)
{
    return (struct recount_cell *)(void *)(t->data + i * stride_of(t));
}

static void make_places(struct recount_cells *t, size_t count)
{
    t->mask = count - 1;
    t->data = xmalloc(count * stride_of(t));
    for (size_t i = 0; i < count; i++)
        recount_cells_at(t, i)->bucket_ms = -1;
}

void recount_cells_init(struct recount_cells *t, uint32_t salt, size_t column_count)
{
    *t = (struct recount_cells){.salt = salt, .column_count = column_count};
    make_places(t, PLACES_MIN);
}

void recount_cells_fini(struct recount_cells *t)
{
    free(t->data);
    *t = (struct recount_cells){0};
}

static struct recount_cell *place_of(const struct recount_cells *t, uint32_t series, int64_t bucket_ms)
{
    for (size_t at = hash_cell(t->salt, series, bucket_ms);; at++) {
        struct recount_cell *c = recount_cells_at(t, at & t->mask);
        if (c->bucket_ms < 0 || (c->series == series && c->bucket_ms == bucket_ms))
            return c;
    }
}

static void grow_cells(struct recount_cells *t)
{
    struct recount_cells bigger = *t;
    make_places(&bigger, (t->mask + 1) * 2);
    for (size_t i = 0; i <= t->mask; i++) {
        const struct recount_cell *c = recount_cells_at(t, i);
        if (c->bucket_ms >= 0)
            memcpy(place_of(&bigger, c->series, c->bucket_ms), c, stride_of(t));
    }
    free(t->data);
    *t = bigger;
}

struct recount_cell *recount_cells_get(struct recount_cells *t, uint32_t series, int64_t bucket_ms)
{
    ASSERT(bucket_ms >= 0);
    if ((t->count + 1) * 4 > (t->mask + 1) * 3)
        grow_cells(t);
    struct recount_cell *c = place_of(t, series, bucket_ms);
    if (c->bucket_ms < 0) {
        memset(c, 0, stride_of(t));
        c->series = series;
        c->bucket_ms = bucket_ms;
        t->count++;
    }
    return c;
}

const struct recount_cell *recount_cells_find(const struct recount_cells *t, uint32_t series,
                                              int64_t bucket_ms)
{
    const struct recount_cell *c = place_of(t, series, bucket_ms);
    return c->bucket_ms < 0 ? NULL : c;
}

void recount_init(struct recount *rc, const struct report *report, size_t dimension_bytes_max)
{
    *rc = (struct recount){.report = report, .dimension_bytes_max = dimension_bytes_max};
    rc->scratch = xmalloc(DIMENSION_KEY_BYTES(dimension_bytes_max));
    arena_init(&rc->arena, (size_t)64 << 10);
    recount_cells_init(&rc->cells, 1, report->column_count);
}

void recount_fini(struct recount *rc)
{
    index_fini(&rc->by_key);
    free(rc->key_of);
    free(rc->scratch);
    arena_fini(&rc->arena);
    recount_cells_fini(&rc->cells);
    recent_list_fini(&rc->recent);
    for (size_t i = 0; i < rc->report->sketch_count; i++)
        observations_fini(&rc->observations[i]);
}

uint32_t recount_series(const struct recount *rc, struct slice key)
{
    uint64_t hash = hash_bytes(key.ptr, key.len);
    uint32_t number;
    size_t at = hash;
    while ((number = index_next(&rc->by_key, hash, &at)) != 0 && !slice_equal(rc->key_of[number - 1], key))
        ;
    return number != 0 ? number - 1 : UINT32_MAX;
}

static uint32_t series_of(struct recount *rc, struct slice key)
{
    uint32_t series = recount_series(rc, key);
    if (series != UINT32_MAX)
        return series;
    rc->key_of = xgrow(rc->key_of, &rc->key_capacity, rc->series_count + 1, sizeof *rc->key_of);
    rc->key_of[rc->series_count++] = arena_copy(&rc->arena, key);
    return index_add(&rc->by_key, hash_bytes(key.ptr, key.len)) - 1;
}

/* Add to two columns: whole units, rounded down, and the remainder. */
static void add_decimal(int64_t *columns, int128 number)
{
    columns[1] += (int64_t)(number % EVENT_SCALE);
    columns[0] = value_add(columns[0], (int64_t)(number / EVENT_SCALE));
    while (columns[1] < 0 || columns[1] >= EVENT_SCALE) {
        int64_t carry = columns[1] < 0 ? -1 : 1;
        columns[0] = value_add(columns[0], carry);
        columns[1] -= carry * EVENT_SCALE;
    }
}

/* Add a number, or the sum of `count` numbers, as the measures are defined; sums and counts `times` over. The
 * recount does not use the code that it judges. */
static void add_number(const struct measure *m, int64_t *columns, const struct event *ev, int64_t number,
                       int64_t count, int64_t times)
{
    int64_t shifted = number >= 0 ? number + 1 : number, at = ev->at_ms + 1;
    bool is_decimal = field_scale(m->field) != 1;
    switch (m->kind) {
    case MEASURE_COUNT:
    case MEASURE_DISTINCT:
    case MEASURE_NEWEST:
        break;
    case MEASURE_MEAN:
    case MEASURE_HISTOGRAM:
        columns[is_decimal ? 2 : 1] = value_add(columns[is_decimal ? 2 : 1], count * times);
        /* fall through */
    case MEASURE_SUM:
        if (is_decimal)
            add_decimal(columns, (int128)number * times);
        else
            columns[0] = value_add(columns[0], number * times);
        break;
    case MEASURE_MIN:
        columns[0] = columns[0] == 0 || shifted < columns[0] ? shifted : columns[0];
        break;
    case MEASURE_MAX:
        columns[0] = columns[0] == 0 || shifted > columns[0] ? shifted : columns[0];
        break;
    case MEASURE_LAST:
        if (at < columns[0] || (at == columns[0] && ev->order < columns[1]) ||
            (at == columns[0] && ev->order == columns[1] && number < columns[2]))
            break;
        columns[0] = at;
        columns[1] = ev->order;
        columns[2] = number;
        break;
    }
}

/* Add the numbers of a distribution: their sum and count, and its limits. */
static void add_many(const struct measure *m, int64_t *columns, const struct event *ev,
                     const struct distribution *d, int64_t times)
{
    if (m->kind == MEASURE_SUM || m->kind == MEASURE_MEAN || m->kind == MEASURE_HISTOGRAM)
        add_number(m, columns, ev, ev->number[m->field], d->count, times);
    else if (m->kind == MEASURE_MIN && d->has_min)
        add_number(m, columns, ev, d->min, 1, times);
    else if (m->kind == MEASURE_MAX && d->has_max)
        add_number(m, columns, ev, d->max, 1, times);
}

/* Has it all fields of a distinct count? */
static bool has_dimensions(const struct measure *m, const struct event *ev)
{
    size_t i = 0;
    while (i < m->dimension_count && event_has(ev, m->dimensions[i].field))
        i++;
    return i == m->dimension_count;
}

/* Keep the numbers and texts of which the report has sketches. */
static void add_observations(struct recount *rc, const struct event *ev, uint32_t series)
{
    const struct report *r = rc->report;
    struct observation observation = {.series = series, .time = (uint32_t)(ev->at_ms / report_cell_ms(r))};
    for (size_t i = 0; i < r->sketch_count; i++) {
        const struct measure *m = report_sketched(r, i);
        bool has_it;
        observation.count = 1;
        if (m->kind == MEASURE_HISTOGRAM) {
            has_it = event_has_number(ev, m->field);
            const struct distribution *many = has_it ? event_distribution(ev, m->field) : NULL;
            if (many != NULL) {
                observations_add_many(&rc->observations[i], observation, m, many);
                continue;
            }
            observation.value = (uint64_t)ev->number[m->field];
        } else {
            has_it = has_dimensions(m, ev);
            observation.value = observation_of_text(
                dimension_key(m->dimensions, m->dimension_count, ev, rc->dimension_bytes_max, rc->scratch));
        }
        if (has_it)
            observations_add(&rc->observations[i], observation);
    }
}

bool recount_add(struct recount *rc, const struct event *ev, const struct recount_origin *of)
{
    const struct report *r = rc->report;
    for (size_t i = 0; i < r->condition_count; i++) {
        if (!condition_holds(&r->conditions[i], ev))
            return false;
    }
    if (r->one_in > 1 && !sample_draws(of->salt, ev->order, r->one_in))
        return false;
    uint32_t series = series_of(
        rc, dimension_key(r->dimensions, r->dimension_count, ev, rc->dimension_bytes_max, rc->scratch));
    if (r->newest > 0)
        recent_list_add(&rc->recent, r, series, ev, of);
    struct recount_cell *c = recount_cells_get(&rc->cells, series, span_floor(report_cell(r), ev->at_ms));
    for (size_t i = 0; i < r->measure_count; i++) {
        const struct measure *m = &r->measures[i];
        if (m->kind == MEASURE_COUNT)
            c->columns[m->column] = value_add(c->columns[m->column], r->one_in);
        else if (m->kind == MEASURE_DISTINCT)
            c->columns[m->column] += has_dimensions(m, ev);
        else if (event_has_number(ev, m->field) && event_distribution(ev, m->field) != NULL)
            add_many(m, c->columns + m->column, ev, event_distribution(ev, m->field), r->one_in);
        else if (event_has_number(ev, m->field))
            add_number(m, c->columns + m->column, ev, ev->number[m->field], 1, r->one_in);
    }
    add_observations(rc, ev, series);
    return true;
}

void recount_sum(const struct recount *rc, enum span resolution, int64_t from_ms, struct recount_cells *into)
{
    for (size_t i = 0; i <= rc->cells.mask; i++) {
        const struct recount_cell *from = recount_cells_at(&rc->cells, i);
        if (from->bucket_ms < 0 || from->bucket_ms < from_ms)
            continue;
        struct recount_cell *to =
            recount_cells_get(into, from->series, span_floor(resolution, from->bucket_ms));
        report_merge(rc->report, to->columns, from->columns);
    }
}
