#include "query/answer.h"

#include "query/match.h"

#include <inttypes.h>

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
    char iso[CIVIL_ISO_BYTES];
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
            text_printf(out, "%s%" PRId64, m == 0 && a->of_series && dimensions == 0 ? "" : ",",
                        a->values[row * a->measure_count + m]);
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
    char iso[CIVIL_ISO_BYTES];
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
            text_printf(out, "%s%" PRId64, m > 0 || !a->of_series ? "," : "",
                        a->values[row * a->measure_count + m]);
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
