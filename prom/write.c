#include "prom/write.h"

#include "prom/number.h"

#include <inttypes.h>

static void write_time(int64_t ms, struct text *out)
{
    text_printf(out, "%" PRId64, ms / 1000);
    if (ms % 1000 != 0)
        text_printf(out, ".%03" PRId64, ms % 1000);
}

/* A number, or a histogram. */
static void write_point(const struct natives *all, int64_t ms, double value, struct text *out)
{
    text_putc(out, '[');
    write_time(ms, out);
    text_putc(out, ',');
    if (native_is(value)) {
        native_write(native_of(all, value), out);
    } else {
        text_putc(out, '"');
        number_write(value, out);
        text_putc(out, '"');
    }
    text_putc(out, ']');
}

void write_labels(const struct labels *l, struct text *out)
{
    text_putc(out, '{');
    for (size_t i = 0; i < l->count; i++) {
        text_puts(out, i > 0 ? "," : "");
        text_json(out, l->list[i].name);
        text_putc(out, ':');
        text_json(out, l->list[i].value);
    }
    text_putc(out, '}');
}

/* Those of a row that are histograms, or those that are numbers. Writes nothing if there are none. */
static void write_points(const struct eval_answer *a, const double *row, bool natives, struct text *out)
{
    const char *before = natives ? ",\"histograms\":[" : ",\"values\":[";
    bool is_any = false;
    for (size_t i = 0; i < a->vector.step_count; i++) {
        if (vector_is_absent(row[i]) || native_is(row[i]) != natives)
            continue;
        text_puts(out, is_any ? "," : before);
        write_point(&a->natives, a->from_ms + (int64_t)i * a->step_ms, row[i], out);
        is_any = true;
    }
    text_puts(out, is_any ? "]" : "");
}

static void write_series(const struct eval_answer *a, size_t series, struct text *out)
{
    const double *row = vector_row(&a->vector, series);
    text_puts(out, "{\"metric\":");
    write_labels(&a->vector.series[series], out);
    if (a->step_ms > 0) {
        write_points(a, row, false, out);
        write_points(a, row, true, out);
    } else {
        text_puts(out, native_is(row[0]) ? ",\"histogram\":" : ",\"value\":");
        write_point(&a->natives, a->from_ms, row[0], out);
    }
    text_putc(out, '}');
}

bool write_answer(const struct eval_answer *a, uint64_t bytes_max, struct text *out)
{
    const struct vector *v = &a->vector;
    size_t before = out->len;
    bool is_range = a->step_ms > 0, is_scalar = a->type == TYPE_SCALAR && !is_range;
    text_printf(out, "{\"resultType\":\"%s\",\"result\":",
                is_range    ? "matrix"
                : is_scalar ? "scalar"
                            : "vector");
    if (is_scalar)
        write_point(&a->natives, a->from_ms, v->values[0], out);
    else
        text_putc(out, '[');
    for (size_t i = 0; !is_scalar && i < v->series_count; i++) {
        text_puts(out, i > 0 ? "," : "");
        write_series(a, i, out);
        if (bytes_max > 0 && out->len - before > bytes_max)
            return false;
    }
    text_puts(out, is_scalar ? "}" : "]}");
    return true;
}
