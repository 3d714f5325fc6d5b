#include "query/answer.h"

#include "aggregate/dimension.h"
#include "query/estimate.h"

#include <inttypes.h>

void answer_add_figure(struct answer *a, const struct figure *figure)
{
    size_t i = 0;
    while (i < a->measure_count && a->measures[i] != figure->measure)
        i++;
    if (i == a->measure_count) {
        const struct measure *m = &a->report->measures[figure->measure];
        a->measures[i] = figure->measure;
        a->first[i] = a->column_count;
        a->column_count += measure_column_count(m);
        a->sketch_count += measure_has_sketch(m);
        a->measure_count++;
    }
    a->figures[a->figure_count] = *figure;
    a->figures[a->figure_count++].measure = i;
}

/* The index of an answered measure among the sketches of a row. */
static size_t sketch_of(const struct answer *a, size_t measure)
{
    size_t sketch = 0;
    for (size_t i = 0; i < measure; i++)
        sketch += measure_has_sketch(&a->report->measures[a->measures[i]]);
    return sketch;
}

void answer_merge(const struct answer *a, int64_t *row, const int64_t *columns)
{
    for (size_t i = 0; i < a->measure_count; i++) {
        const struct measure *m = &a->report->measures[a->measures[i]];
        measure_merge(m, row + a->first[i], columns + m->column);
    }
}

bool answer_merge_sketch(const struct answer *a, union sketch *row, struct arena *arena, size_t sketch,
                         struct slice packed, uint64_t bytes_max, struct err *e)
{
    size_t i = 0;
    while (i < a->measure_count && a->measures[i] != a->report->sketched[sketch])
        i++;
    if (i == a->measure_count)
        return true;
    const struct measure *m = &a->report->measures[a->measures[i]];
    if (!measure_merge_sketch(m, a->longest, &row[sketch_of(a, i)], arena, packed))
        return err_set(
            e, EX_DATAERR,
            "the store is damaged: %s of report %s does not decode; check it by `tallyd verify --store-only`",
            m->expression, a->report->name);
    return bytes_max == 0 || arena_bytes(arena) <= bytes_max ||
           err_set(e, EX_UNAVAILABLE,
                   "the answer adds up more than %" PRIu64
                   " bytes of histograms and distinct counts (query.sketches_max): ask for a longer step, a "
                   "filter, "
                   "or a report with fewer series",
                   bytes_max);
}

bool answer_figure(const struct answer *a, const int64_t *columns, const union sketch *sketches,
                   size_t figure, int128 *value)
{
    const struct figure *f = &a->figures[figure];
    const struct measure *m = &a->report->measures[a->measures[f->measure]];
    const union sketch *s = measure_has_sketch(m) ? &sketches[sketch_of(a, f->measure)] : NULL;
    return figure_value(f, m, a->longest, columns + a->first[f->measure], s, value);
}

bool answer_value(const struct answer *a, size_t row, size_t figure, int128 *value)
{
    const union sketch *sketches = a->sketch_count > 0 ? &a->sketches[row * a->sketch_count] : NULL;
    if (a->told != NULL) {
        ASSERT(figure == 0 && a->figure_count == 1);
        *value = a->told[row];
        return true;
    }
    return answer_figure(a, &a->columns[row * a->column_count], sketches, figure, value);
}

const char *answer_text(const struct answer *a, size_t row, size_t figure, const char *absent,
                        char buf[NUMBER_BYTES])
{
    int128 value;
    return answer_value(a, row, figure, &value) ? number_text(value, buf) : absent;
}

size_t answer_row(const struct answer *a, int64_t bucket_ms)
{
    ASSERT(bucket_ms >= a->from_ms && bucket_ms < a->to_ms);
    /* Steps have nearly the same length: the estimate is the row, or close to it. */
    size_t row =
        (size_t)((double)(bucket_ms - a->from_ms) / (double)(a->to_ms - a->from_ms) * (double)a->row_count);
    row = row < a->row_count ? row : a->row_count - 1;
    while (bucket_ms < a->starts[row])
        row--;
    while (row + 1 < a->row_count && bucket_ms >= a->starts[row + 1])
        row++;
    return row;
}

int64_t answer_time(const struct answer *a, size_t row)
{
    return a->starts[row];
}

struct slice answer_dimension(const struct answer *a, size_t row, size_t dimension)
{
    struct slice key = a->keys[row], text = key;
    if (slice_is(key, STORE_OTHER_KEY))
        return key;
    for (size_t d = 0; d <= dimension; d++)
        text = dimension_next(&key);
    return text;
}

static size_t write_csv(const struct answer *a, bool is_raw, size_t bytes_max, struct text *out)
{
    char iso[ZONE_ISO_BYTES], number[NUMBER_BYTES];
    size_t dimensions = a->report->dimension_count;
    for (size_t d = 0; a->of_series && d < dimensions; d++)
        text_printf(out, "%s%s", d > 0 ? "," : "", a->report->dimensions[d].name);
    if (!a->of_series)
        text_puts(out, "time");
    for (size_t m = 0; m < a->figure_count; m++)
        text_printf(out, "%s%s", m == 0 && a->of_series && dimensions == 0 ? "" : ",",
                    a->has_names ? a->figures[m].name : "value");
    text_putc(out, '\n');
    for (size_t row = 0; row < a->row_count; row++) {
        for (size_t d = 0; a->of_series && d < dimensions; d++) {
            if (d > 0)
                text_putc(out, ',');
            (is_raw ? text_csv : text_csv_cell)(out, answer_dimension(a, row, d));
        }
        if (!a->of_series)
            text_puts(out, zone_iso(a->zone, answer_time(a, row), iso));
        for (size_t m = 0; m < a->figure_count; m++)
            text_printf(out, "%s%s", m == 0 && a->of_series && dimensions == 0 ? "" : ",",
                        answer_text(a, row, m, "", number));
        text_putc(out, '\n');
        if (out->len > bytes_max)
            return row;
    }
    return a->row_count;
}

static void add_note(struct text *note, size_t *count, struct text *out)
{
    if (note->len == 0)
        return;
    text_puts(out, (*count)++ == 0 ? ",\"notes\":[" : ",");
    text_json(out, text_slice(note));
    text_clear(note);
}

uint32_t answer_histograms(const struct answer *a)
{
    uint32_t bits = 0;
    for (size_t i = 0; i < a->figure_count; i++) {
        const struct figure *f = &a->figures[i];
        if (f->kind == FIGURE_QUANTILE || f->kind == FIGURE_SHARE || f->kind == FIGURE_MIN ||
            f->kind == FIGURE_MAX)
            bits |= (uint32_t)1 << a->measures[f->measure];
    }
    return bits;
}

void answer_notes(const struct answer *a, struct text *out)
{
    struct text note = {0};
    size_t count = 0;
    estimate_note(a->report, &note);
    add_note(&note, &count, out);
    estimate_note_width(a->report, answer_histograms(a), a->longest, &note);
    add_note(&note, &count, out);
    missed_note(&a->missed, slice_text(a->report->name), &note);
    add_note(&note, &count, out);
    missed_note_others(&a->missed, &note);
    add_note(&note, &count, out);
    text_puts(out, count > 0 ? "]" : "");
    text_fini(&note);
}

static void write_json_head(const struct answer *a, struct text *out)
{
    char iso[ZONE_ISO_BYTES], name[STEP_NAME_BYTES];
    text_puts(out, "{\"report\":");
    text_json(out, slice_text(a->report->name));
    text_puts(out, ",\"measures\":[");
    for (size_t m = 0; m < a->figure_count; m++) {
        if (m > 0)
            text_putc(out, ',');
        text_json(out, slice_text(a->figures[m].name));
    }
    text_puts(out, "],\"step\":");
    if (a->has_step)
        text_printf(out, "\"%s\"", step_name(&a->step, name));
    else
        text_puts(out, "null");
    if (a->zone != &zone_utc)
        text_printf(out, ",\"tz\":\"%s\"", a->zone->name);
    text_printf(out, ",\"from\":\"%s\"", zone_iso(a->zone, a->from_ms, iso));
    text_printf(out, ",\"to\":\"%s\"", zone_iso(a->zone, a->to_ms, iso));
    answer_notes(a, out);
}

void answer_series(const struct answer *a, size_t row, struct text *out)
{
    text_putc(out, '{');
    for (size_t d = 0; d < a->report->dimension_count; d++) {
        if (d > 0)
            text_putc(out, ',');
        text_json(out, slice_text(a->report->dimensions[d].name));
        text_putc(out, ':');
        text_json(out, answer_dimension(a, row, d));
    }
    text_putc(out, '}');
}

static size_t write_json(const struct answer *a, size_t bytes_max, struct text *out)
{
    char iso[ZONE_ISO_BYTES], number[NUMBER_BYTES];
    write_json_head(a, out);
    text_puts(out, a->of_series ? ",\"top\":[" : ",\"values\":[");
    for (size_t row = 0; row < a->row_count; row++) {
        if (row > 0)
            text_putc(out, ',');
        if (a->of_series) {
            text_puts(out, "{\"series\":");
            answer_series(a, row, out);
            text_puts(out, ",\"values\":[");
        } else {
            text_printf(out, "[\"%s\"", zone_iso(a->zone, answer_time(a, row), iso));
        }
        for (size_t m = 0; m < a->figure_count; m++)
            text_printf(out, "%s%s", m > 0 || !a->of_series ? "," : "",
                        answer_text(a, row, m, "null", number));
        text_puts(out, a->of_series ? "]}" : "]");
        if (out->len > bytes_max)
            return row;
    }
    text_puts(out, "]}\n");
    return a->row_count;
}

size_t answer_write(const struct answer *a, enum query_format format, bool bars, size_t bytes_max,
                    struct text *out)
{
    switch (format) {
    case QUERY_TABLE:
        return answer_table(a, bars, bytes_max, out);
    case QUERY_CSV:
    case QUERY_CSV_RAW:
        return write_csv(a, format == QUERY_CSV_RAW, bytes_max, out);
    default:
        ASSERT(format == QUERY_JSON);
        return write_json(a, bytes_max, out);
    }
}
