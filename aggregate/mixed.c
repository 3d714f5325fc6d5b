#include "aggregate/mixed.h"

#include "aggregate/exponential.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

/* The text that measure_told() finds; that of one field as it is, without a call. */
static inline bool text_of(const struct mixed *mx, const struct measure *m, const struct event *ev,
                           struct slice *text)
{
    const enum field f = m->dimensions[0].field;
    if (m->is_of_field && dimension_is_plain(ev, f, mx->dimension_bytes_max)) {
        *text = ev->field[f];
        return true;
    }
    return measure_told(m, ev, mx->dimension_bytes_max, mx->scratch, text);
}

static inline void add_sketches(const struct mixed *mx, const struct report *r, const struct event *ev,
                                struct cell *c)
{
    for (size_t i = 0; i < r->sketch_count; i++) {
        const struct measure *m = report_sketched(r, i);
        union sketch *s = report_sketch(r, c, i);
        struct slice text;
        if (m->kind == MEASURE_DISTINCT) {
            if (text_of(mx, m, ev, &text))
                distinct_add(&s->distinct, mx->memory, XXH3_64bits(text.ptr, text.len));
        } else if (event_has_number(ev, m->field)) {
            const struct distribution *d = event_distribution(ev, m->field);
            if (UNLIKELY(d != NULL))
                exponential_add(&s->histogram, mx->memory, m->layout, d);
            else
                histogram_add(&s->histogram, mx->memory, histogram_slot(m->layout, ev->number[m->field]), 1);
        }
    }
}

/* Does what measure_add() does, without a merge for the usual kinds. */
static inline void add_measure(const struct measure *m, const struct event *ev, int64_t *value)
{
    const bool is_mean = m->kind == MEASURE_MEAN || m->kind == MEASURE_HISTOGRAM;
    if (m->kind == MEASURE_COUNT) {
        value[0]++;
    } else if (m->kind == MEASURE_DISTINCT) {
        value[0] += event_has_all(ev, m->fields);
    } else if (!m->is_fraction && (m->kind == MEASURE_SUM || is_mean)) {
        if (LIKELY(event_has_number(ev, m->field))) {
            value[0] = value_add(value[0], ev->number[m->field]);
            if (is_mean)
                value[1]++;
        }
    } else {
        measure_add(m, value, ev);
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

void mixed_add(const struct mixed *mx, const struct report *r, const struct event *ev, struct cell *c)
{
    if (r->one_in > 1) {
        add_drawn(r, ev, c);
        return;
    }
    const struct measure *m = r->measures, *end = m + r->measure_count;
    if (r->begins_usual) {
        c->value[0]++;
        if (event_has(ev, m[1].field))
            c->value[1] = value_add(c->value[1], ev->number[m[1].field]);
        m += 2;
    }
    for (; m < end; m++)
        add_measure(m, ev, c->value + m->column);
    if (r->sketch_count > 0)
        add_sketches(mx, r, ev, c);
}
