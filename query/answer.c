#include "query/answer.h"

#include "query/match.h"

void answer_add_measure(struct answer *a, size_t measure)
{
    a->measures[a->measure_count] = measure;
    a->first[a->measure_count++] = a->column_count;
    a->column_count += measure_column_count(&a->report->measures[measure]);
}

void answer_merge(const struct answer *a, int64_t *row, const int64_t *columns)
{
    for (size_t i = 0; i < a->measure_count; i++) {
        const struct measure *m = &a->report->measures[a->measures[i]];
        measure_merge(m, row + a->first[i], columns + m->column);
    }
}

bool answer_value(const struct answer *a, size_t row, size_t measure, int128 *value)
{
    const int64_t *columns = &a->columns[row * a->column_count + a->first[measure]];
    return measure_value(&a->report->measures[a->measures[measure]], columns, value);
}

const char *answer_text(const struct answer *a, size_t row, size_t measure, const char *absent,
                        char buf[NUMBER_BYTES])
{
    int128 value;
    return answer_value(a, row, measure, &value) ? number_text(value, buf) : absent;
}

size_t answer_row(const struct answer *a, int64_t slot_ms)
{
    ASSERT(slot_ms >= a->from_ms && slot_ms < a->to_ms);
    if (!a->has_step)
        return 0;
    if (a->step == SPAN_MONTH)
        return (size_t)(civil_month_index(slot_ms) - civil_month_index(a->from_ms));
    return (size_t)((slot_ms - a->from_ms) / span_next(a->step, 0));
}

int64_t answer_time(const struct answer *a, size_t row)
{
    if (!a->has_step)
        return a->from_ms;
    if (a->step == SPAN_MONTH)
        return civil_month_start(civil_month_index(a->from_ms) + (int64_t)row);
    return a->from_ms + (int64_t)row * span_next(a->step, 0);
}

struct slice answer_dimension(const struct answer *a, size_t row, size_t dimension)
{
    struct slice key = a->keys[row], text = key;
    if (slice_is(key, STORE_OTHER_KEY))
        return key;
    for (size_t d = 0; d <= dimension; d++)
        text = match_next(&key);
    return text;
}

static void write_csv(const struct answer *a, struct text *out)
{
    char iso[CIVIL_ISO_BYTES], number[NUMBER_BYTES];
    size_t dimensions = a->report->dimension_count;
    for (size_t d = 0; a->of_series && d < dimensions; d++)
        text_printf(out, "%s%s", d > 0 ? "," : "", a->report->dimensions[d].name);
    if (!a->of_series)
        text_puts(out, "time");
    for (size_t m = 0; m < a->measure_count; m++)
        text_printf(out, "%s%s", m == 0 && a->of_series && dimensions == 0 ? "" : ",",
                    a->every_measure ? a->report->measures[a->measures[m]].name : "value");
    text_putc(out, '\n');
    for (size_t row = 0; row < a->row_count; row++) {
        for (size_t d = 0; a->of_series && d < dimensions; d++) {
            if (d > 0)
                text_putc(out, ',');
            text_csv(out, answer_dimension(a, row, d));
        }
        if (!a->of_series)
            text_puts(out, civil_iso(answer_time(a, row), iso));
        for (size_t m = 0; m < a->measure_count; m++)
            text_printf(out, "%s%s", m == 0 && a->of_series && dimensions == 0 ? "" : ",",
                        answer_text(a, row, m, "", number));
        text_putc(out, '\n');
    }
}

static void write_json_head(const struct answer *a, struct text *out)
{
    char iso[CIVIL_ISO_BYTES];
    text_puts(out, "{\"report\":");
    text_json(out, slice_text(a->report->name));
    text_puts(out, ",\"measures\":[");
    for (size_t m = 0; m < a->measure_count; m++) {
        if (m > 0)
            text_putc(out, ',');
        text_json(out, slice_text(a->report->measures[a->measures[m]].name));
    }
    text_puts(out, "],\"step\":");
    if (a->has_step)
        text_printf(out, "\"%s\"", span_name(a->step));
    else
        text_puts(out, "null");
    text_printf(out, ",\"from\":\"%s\"", civil_iso(a->from_ms, iso));
    text_printf(out, ",\"to\":\"%s\"", civil_iso(a->to_ms, iso));
}

static void write_json_series(const struct answer *a, size_t row, struct text *out)
{
    text_puts(out, "{\"series\":{");
    for (size_t d = 0; d < a->report->dimension_count; d++) {
        if (d > 0)
            text_putc(out, ',');
        text_json(out, slice_text(a->report->dimensions[d].name));
        text_putc(out, ':');
        text_json(out, answer_dimension(a, row, d));
    }
    text_puts(out, "},\"values\":[");
}

static void write_json(const struct answer *a, struct text *out)
{
    char iso[CIVIL_ISO_BYTES], number[NUMBER_BYTES];
    write_json_head(a, out);
    text_puts(out, a->of_series ? ",\"top\":[" : ",\"values\":[");
    for (size_t row = 0; row < a->row_count; row++) {
        if (row > 0)
            text_putc(out, ',');
        if (a->of_series)
            write_json_series(a, row, out);
        else
            text_printf(out, "[\"%s\"", civil_iso(answer_time(a, row), iso));
        for (size_t m = 0; m < a->measure_count; m++)
            text_printf(out, "%s%s", m > 0 || !a->of_series ? "," : "",
                        answer_text(a, row, m, "null", number));
        text_puts(out, a->of_series ? "]}" : "]");
    }
    text_puts(out, "]}\n");
}

void answer_write(const struct answer *a, enum query_format format, bool bars, struct text *out)
{
    switch (format) {
    case QUERY_TABLE:
        answer_table(a, bars, out);
        return;
    case QUERY_CSV:
        write_csv(a, out);
        return;
    default:
        ASSERT(format == QUERY_JSON);
        write_json(a, out);
    }
}
