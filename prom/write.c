#include "prom/write.h"

#include "prom/number.h"

#include <inttypes.h>

static void write_time(int64_t ms, struct text *out)
{
    text_printf(out, "%" PRId64, ms / 1000);
    if (ms % 1000 != 0)
        text_printf(out, ".%03" PRId64, ms % 1000);
}

static void write_point(int64_t ms, double value, struct text *out)
{
    text_putc(out, '[');
    write_time(ms, out);
    text_puts(out, ",\"");
    number_write(value, out);
    text_puts(out, "\"]");
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

static void write_points(const struct eval_answer *a, const double *row, struct text *out)
{
    bool is_first = true;
    text_putc(out, '[');
    for (size_t i = 0; i < a->vector.step_count; i++) {
        if (vector_is_absent(row[i]))
            continue;
        text_puts(out, is_first ? "" : ",");
        write_point(a->from_ms + (int64_t)i * a->step_ms, row[i], out);
        is_first = false;
    }
    text_putc(out, ']');
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
        write_point(a->from_ms, v->values[0], out);
    else
        text_putc(out, '[');
    for (size_t i = 0; !is_scalar && i < v->series_count; i++) {
        text_puts(out, i > 0 ? ",{\"metric\":" : "{\"metric\":");
        write_labels(&v->series[i], out);
        text_puts(out, is_range ? ",\"values\":" : ",\"value\":");
        if (is_range)
            write_points(a, vector_row(v, i), out);
        else
            write_point(a->from_ms, vector_row(v, i)[0], out);
        text_putc(out, '}');
        if (bytes_max > 0 && out->len - before > bytes_max)
            return false;
    }
    text_puts(out, is_scalar ? "}" : "]}");
    return true;
}
