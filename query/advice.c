#include "query/advice.h"

const char *advice_step(const struct answer *a, int64_t longer_than_ms, uint64_t rows_max)
{
    static const char *const names[] = {"minute", "5m", "15m", "hour", "6h", "day", "week", "month", "year"};
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        struct step step;
        ASSERT(step_parse(slice_text(names[i]), &step));
        uint64_t rows =
            (uint64_t)((a->to_ms - a->from_ms) / step_ms(&step)) + 2; /* with parts at both ends */
        if (step_ms(&step) > longer_than_ms && rows <= rows_max)
            return names[i];
    }
    return NULL;
}

static bool has_conditions(const struct report *r, const struct report *of)
{
    struct text texts[2] = {{0}};
    if (r->condition_count != of->condition_count)
        return false;
    for (size_t i = 0; i < r->condition_count; i++) { /* they are sorted */
        condition_print(&r->conditions[i], &texts[0]);
        condition_print(&of->conditions[i], &texts[1]);
        text_putc(&texts[0], '\n');
        text_putc(&texts[1], '\n');
    }
    bool is_same = slice_equal(text_slice(&texts[0]), text_slice(&texts[1]));
    text_fini(&texts[0]);
    text_fini(&texts[1]);
    return is_same;
}

static bool has_measures(const struct report *r, const struct answer *a)
{
    for (size_t i = 0; i < a->measure_count; i++) {
        const struct measure *wanted = &a->report->measures[a->measures[i]];
        int m = report_find_measure(r, slice_text(wanted->name));
        if (m < 0 || strcmp(r->measures[m].expression, wanted->expression) != 0)
            return false;
    }
    return true;
}

static bool has_dimensions(const struct report *r, const struct answer *a, const struct slice *values)
{
    for (size_t d = 0; d < a->report->dimension_count; d++) {
        if (values[d].ptr != NULL && report_find_dimension(r, slice_text(a->report->dimensions[d].name)) < 0)
            return false;
    }
    return true;
}

const char *advice_report(const struct store *st, const struct answer *a, const struct slice *values)
{
    const struct report *best = a->report;
    for (size_t i = 0; i < st->report_count; i++) {
        const struct report *r = &st->reports[i];
        if (r->dimension_count < best->dimension_count && report_cell(r) <= report_cell(a->report) &&
            has_conditions(r, a->report) && has_measures(r, a) && has_dimensions(r, a, values))
            best = r;
    }
    return best != a->report ? best->name : NULL;
}
