#include "query/bound.h"

#include "base/mem.h"
#include "query/unknown.h"

#include <inttypes.h>
#include <stdlib.h>

bool bound_find_report(const struct store *st, struct slice name, size_t *report, struct err *e)
{
    int found = store_find_report(st, name);
    *report = (size_t)found;
    if (found >= 0)
        return true;
    const char **names = xcalloc(st->report_count + 1, sizeof *names);
    for (size_t i = 0; i < st->report_count; i++)
        names[i] = st->reports[i].name;
    unknown_name(e, "report", name, names);
    free(names);
    return false;
}

static bool bind_report(struct bound *b, struct err *e)
{
    if (!bound_find_report(b->store, b->query->report, &b->report, e))
        return false;
    b->answer.report = &b->store->reports[b->report];
    return true;
}

static void add_usual(struct answer *a, size_t measure)
{
    struct figure f;
    for (size_t i = 0; figure_usual(&f, a->report, measure, i); i++)
        answer_add_figure(a, &f);
}

static bool bind_measures(struct bound *b, struct err *e)
{
    const struct report *r = b->answer.report;
    struct answer *a = &b->answer;
    const struct slice name = b->query->measure;
    struct figure f = {.kind = FIGURE_VALUE};
    const bool is_all = slice_is(name, "all") && report_find_measure(r, name) < 0;
    if (!is_all && name.len > 0 && !figure_parse(&f, r, name, e))
        return false;
    for (size_t m = 0; m < r->measure_count; m++) {
        if (is_all || (f.kind == FIGURE_VALUE && m == f.measure))
            add_usual(a, m);
    }
    if (a->figure_count == 0)
        answer_add_figure(a, &f);
    a->has_names = is_all || a->figure_count > 1;
    return true;
}

/* Series are ranked by one figure. */
static bool check_ranked(const struct bound *b, struct err *e)
{
    const struct answer *a = &b->answer;
    return !a->of_series || a->figures[0].kind != FIGURE_QUANTILE || a->figure_count == 1 ||
           a->measure_count > 1 ||
           err_set(e, EX_USAGE, "measure: series are ranked by one figure: ask for one of %s, such as %s",
                   a->report->measures[a->measures[0]].name, a->figures[FIGURE_USUAL - 1].name);
}

static bool bind_filters(struct bound *b, struct err *e)
{
    const struct report *r = b->answer.report;
    for (size_t i = 0; i < b->query->filter_count; i++) {
        const struct query_filter *f = &b->query->filters[i];
        int d = report_find_dimension(r, f->dimension);
        if (d < 0)
            return unknown_dimension(e, r, f->dimension);
        if (b->wanted.values[d].ptr != NULL)
            return err_set(e, EX_USAGE, "filter: %s is given twice", r->dimensions[d].name);
        b->wanted.values[d] = f->value;
    }
    return true;
}

static bool bind_where(struct bound *b, struct err *e)
{
    const struct query *q = b->query;
    for (size_t i = 0; i < q->where_count; i++) {
        if (!where_parse(&b->wanted.where[i], b->answer.report, q->where[i], e))
            return false;
        b->wanted.where_count++;
    }
    return true;
}

static bool is_known_then(const struct zone *z, int64_t to_ms, struct err *e)
{
    return to_ms <= z->end_ms ||
           err_set(e, EX_USAGE,
                   "to: the rules of time zone %s are known until 2038: ask for an earlier end, or in UTC",
                   z->name);
}

static bool bind_range(struct bound *b, struct err *e)
{
    const struct query *q = b->query;
    struct answer *a = &b->answer;
    char from[ZONE_ISO_BYTES], to[ZONE_ISO_BYTES];
    a->zone = q->zone;
    a->has_step = q->has_step;
    a->step = q->step;
    a->to_ms = q->to_ms >= 0 ? q->to_ms : q->now_ms;
    a->from_ms = q->from_ms >= 0 ? q->from_ms : a->to_ms > HOUR_MS ? a->to_ms - HOUR_MS : 0;
    if (a->to_ms > CIVIL_END_MS || a->from_ms >= a->to_ms)
        return err_set(e, EX_USAGE, "the range is empty: from %s is not before to %s",
                       zone_iso(q->zone, a->from_ms, from), zone_iso(q->zone, a->to_ms, to));
    if (q->has_step && q->step.unit <= STEP_HOUR && step_ms(&q->step) % report_cell_ms(a->report) != 0)
        return err_set(
            e, EX_USAGE,
            "step: report %s has no seconds, as one of `layout: minute` has: ask it by whole minutes, hour, "
            "day, week, month or year",
            a->report->name);
    return is_known_then(q->zone, a->to_ms, e);
}

bool bound_fill(struct bound *b, struct err *e)
{
    const struct query *q = b->query;
    if (q->top > 0 && q->has_step)
        return err_set(e, EX_USAGE, "top ranks series over the whole range: leave out the step");
    b->answer.of_series = q->top > 0;
    return bind_report(b, e) && store_watermarks(b->store, b->report, &b->watermarks, e) &&
           bind_measures(b, e) && check_ranked(b, e) && bind_filters(b, e) && bind_where(b, e) &&
           bind_range(b, e);
}

void bound_widen(struct bound *b)
{
    struct answer *a = &b->answer;
    enum span cell = report_cell(a->report);
    a->from_ms = span_floor(cell, a->from_ms);
    a->to_ms = plan_ceil(cell, a->to_ms);
}

bool bound_check_bytes(const struct query *q, struct text *out, size_t before, struct err *e)
{
    if (q->limits.bytes_max == 0 || out->len - before <= q->limits.bytes_max)
        return true;
    text_cut(out, before);
    return err_set(e, EX_UNAVAILABLE,
                   "the answer is longer than %" PRIu64 " bytes (query.response_max): ask for a lower limit",
                   q->limits.bytes_max);
}
