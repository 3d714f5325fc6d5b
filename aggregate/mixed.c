#include "aggregate/mixed.h"

#include "aggregate/exponential.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

/* A measure, and the events of a call that it runs over. */
struct run {
    const struct mixed *mx;
    const struct measure *measure;
    size_t sketch; /* the index of its sketch's first value in a cell, if it has one */
    const struct passage *passages, *end;
};

static inline union sketch *sketch_of(const struct passage *p, size_t sketch)
{
    return (union sketch *)(void *)&p->cell->value[sketch];
}

static APART void add_counts(const struct run *run)
{
    const size_t column = run->measure->column;
    for (const struct passage *p = run->passages; p < run->end; p++)
        p->cell->value[column]++;
}

/* Adds a number in units of 1/EVENT_SCALE to the two columns of a sum, as measure_merge() does. */
static inline void add_fraction(int64_t *value, int64_t number)
{
    const int64_t whole = number / EVENT_SCALE - (number % EVENT_SCALE < 0);
    value[0] = value_add(value[0], whole);
    value[1] += number - whole * EVENT_SCALE;
    if (value[1] >= EVENT_SCALE) {
        value[0] = value_add(value[0], 1);
        value[1] -= EVENT_SCALE;
    }
}

/* Adds a value that stands for many numbers. */
static APART void add_many(const struct run *run, const struct passage *p)
{
    const struct measure *m = run->measure;
    measure_add(m, &p->cell->value[m->column], p->ev);
    if (m->kind == MEASURE_HISTOGRAM)
        exponential_add(&sketch_of(p, run->sketch)->histogram, run->mx->memory, m->layout,
                        event_distribution(p->ev, m->field));
}

/* Adds sums, means and histograms. The kind is a constant, so that each has a loop of its own. */
static inline void add_numbers(const struct run *run, enum measure_kind kind)
{
    const struct measure *m = run->measure;
    const enum field field = m->field;
    const bool is_fraction = m->is_fraction;
    const size_t column = m->column, sketch = run->sketch;
    for (const struct passage *p = run->passages; p < run->end; p++) {
        if (UNLIKELY(!event_has_number(p->ev, field)))
            continue;
        if (UNLIKELY(event_distribution(p->ev, field) != NULL)) {
            add_many(run, p);
            continue;
        }
        const int64_t number = p->ev->number[field];
        int64_t *value = &p->cell->value[column];
        if (is_fraction)
            add_fraction(value++, number);
        else
            value[0] = value_add(value[0], number);
        if (kind != MEASURE_SUM)
            value[1] = value_add(value[1], 1);
        if (kind == MEASURE_HISTOGRAM)
            histogram_add(&sketch_of(p, sketch)->histogram, run->mx->memory,
                          histogram_slot(m->layout, number), 1);
    }
}

static APART void add_sums(const struct run *run)
{
    add_numbers(run, MEASURE_SUM);
}

static APART void add_means(const struct run *run)
{
    add_numbers(run, MEASURE_MEAN);
}

static APART void add_histograms(const struct run *run)
{
    add_numbers(run, MEASURE_HISTOGRAM);
}

/* Adds a text that may not be used as it is. */
static APART void add_told(const struct run *run, const struct passage *p)
{
    struct slice text;
    if (!measure_told(run->measure, p->ev, run->mx->dimension_bytes_max, run->mx->scratch, &text))
        return;
    p->cell->value[run->measure->column]++;
    distinct_add(&sketch_of(p, run->sketch)->distinct, run->mx->memory, XXH3_64bits(text.ptr, text.len));
}

static APART void add_texts(const struct run *run)
{
    for (const struct passage *p = run->passages; p < run->end; p++)
        add_told(run, p);
}

/* Adds the texts of one field. */
static APART void add_texts_of_field(const struct run *run)
{
    const struct measure *m = run->measure;
    struct arena *memory = run->mx->memory;
    const enum field field = m->dimensions[0].field;
    const size_t column = m->column, sketch = run->sketch, max_bytes = run->mx->dimension_bytes_max;
    for (const struct passage *p = run->passages, *end = run->end; p < end; p++) {
        if (UNLIKELY(!dimension_is_plain(p->ev, field, max_bytes))) {
            add_told(run, p);
            continue;
        }
        const struct slice text = p->ev->field[field];
        p->cell->value[column]++;
        distinct_add(&sketch_of(p, sketch)->distinct, memory, XXH3_64bits(text.ptr, text.len));
    }
}

static APART void add_others(const struct run *run)
{
    const struct measure *m = run->measure;
    for (const struct passage *p = run->passages; p < run->end; p++)
        measure_add(m, p->cell->value + m->column, p->ev);
}

static void run_over(const struct run *run)
{
    switch (run->measure->kind) {
    case MEASURE_COUNT:
        add_counts(run);
        break;
    case MEASURE_SUM:
        add_sums(run);
        break;
    case MEASURE_MEAN:
        add_means(run);
        break;
    case MEASURE_HISTOGRAM:
        add_histograms(run);
        break;
    case MEASURE_DISTINCT:
        if (run->measure->is_of_field)
            add_texts_of_field(run);
        else
            add_texts(run);
        break;
    default:
        add_others(run);
        break;
    }
}

/* Counts an event that was drawn, for all that were not. */
static void add_drawn(const struct report *r, const struct event *ev, struct cell *c)
{
    for (const struct measure *m = r->measures; m < r->measures + r->measure_count; m++) {
        int64_t columns[MEASURE_COLUMNS_MAX] = {0};
        measure_add(m, columns, ev);
        measure_scale(m, columns, r->one_in);
        measure_merge(m, c->value + m->column, columns);
    }
}

static APART void add_newest(const struct mixed *mx, const struct report *r, const struct passage *passages,
                             size_t count)
{
    const size_t at = r->column_count + r->sketch_count * SKETCH_VALUES;
    for (const struct passage *p = passages; p < passages + count; p++) {
        struct recent *newest = &sketch_of(p, at)->recent;
        if (!recent_wants(newest, r->newest, p->ev->at_ms))
            continue;
        recent_add(newest, mx->memory, r->newest,
                   recent_document(mx->room, r->newest_fields, r->newest_field_count, mx->place, p->ev));
    }
}

void mixed_add(const struct mixed *mx, const struct report *r, const struct passage *passages, size_t count)
{
    if (r->newest > 0)
        add_newest(mx, r, passages, count);
    for (size_t i = 0; r->one_in > 1 && i < count; i++)
        add_drawn(r, passages[i].ev, passages[i].cell);
    if (r->one_in > 1)
        return;
    struct run run = {mx, r->measures, r->column_count, passages, passages + count};
    run.measure += r->begins_usual ? MIXED_USUAL : 0;
    for (const struct measure *end = r->measures + r->measure_count; run.measure < end; run.measure++) {
        run_over(&run);
        run.sketch += measure_has_sketch(run.measure) ? SKETCH_VALUES : 0;
    }
}
