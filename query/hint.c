#include "query/hint.h"

#include "query/tiles.h"

static const char *const names[] = {"minute", "5m", "15m", "hour", "6h", "day", "week", "month", "year"};

const char *hint_step(const struct answer *a, int64_t longer_than_ms, uint64_t rows_max)
{
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

/* Can the store answer all rows of the step, without expired time buckets? */
static bool is_kept(const struct answer *a, const struct zone *zone, const struct step *step,
                    const struct watermarks *watermarks, uint64_t rows_max)
{
    struct tiles tiles = {0};
    int64_t cell_ms = report_cell_ms(a->report), at_ms = step_floor(step, zone, a->from_ms);
    bool good = true;
    for (uint64_t rows = 0; good && at_ms < a->to_ms && at_ms < CIVIL_END_MS; rows++) {
        int64_t next_ms = step_next(step, zone, at_ms);
        next_ms = next_ms < CIVIL_END_MS ? next_ms : CIVIL_END_MS;
        good = rows < rows_max && at_ms % cell_ms == 0 && next_ms % cell_ms == 0;
        if (good)
            tiles_add(&tiles, report_cell(a->report), at_ms, next_ms);
        at_ms = next_ms;
    }
    good = good && tiles_find_gone(&tiles, watermarks->before_ms) == NULL;
    tiles_fini(&tiles);
    return good;
}

const char *hint_kept_step(const struct answer *a, const struct watermarks *watermarks, uint64_t rows_max)
{
    for (size_t i = 0; a->has_step && i < COUNT_OF(names); i++) {
        struct step step;
        ASSERT(step_parse(slice_text(names[i]), &step));
        step.week_start = a->step.week_start;
        if (step_ms(&step) > step_ms(&a->step) && is_kept(a, a->zone, &step, watermarks, rows_max))
            return names[i];
    }
    return NULL;
}

bool hint_is_kept_in_utc(const struct answer *a, const struct watermarks *watermarks, uint64_t rows_max)
{
    return a->has_step && a->zone != &zone_utc && is_kept(a, &zone_utc, &a->step, watermarks, rows_max);
}

enum span hint_kept_span(const struct report *r, const struct watermarks *watermarks, int64_t from_ms)
{
    int span = (int)report_cell(r);
    while (span < SPAN_COUNT && from_ms < watermarks->before_ms[span])
        span++;
    return (enum span)span;
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

static bool has_dimension(const struct report *r, const struct answer *a, size_t dimension)
{
    return report_find_dimension(r, slice_text(a->report->dimensions[dimension].name)) >= 0;
}

static bool has_dimensions(const struct report *r, const struct answer *a, const struct series_wanted *wanted)
{
    for (size_t d = 0; d < a->report->dimension_count; d++) {
        if (wanted->values[d].ptr != NULL && !has_dimension(r, a, d))
            return false;
    }
    for (size_t i = 0; i < wanted->where_count; i++) {
        if (!has_dimension(r, a, wanted->where[i].dimension))
            return false;
    }
    return true;
}

const char *hint_report(const struct store *st, const struct answer *a, const struct series_wanted *wanted)
{
    const struct report *best = a->report;
    for (size_t i = 0; i < st->report_count; i++) {
        const struct report *r = &st->reports[i];
        if (r->dimension_count < best->dimension_count && report_cell(r) <= report_cell(a->report) &&
            has_conditions(r, a->report) && has_measures(r, a) && has_dimensions(r, a, wanted))
            best = r;
    }
    return best != a->report ? best->name : NULL;
}
