#include "aggregate/measure.h"

#include "base/suggest.h"

#include <stdio.h>

static const char *const function_names[] = {
    [MEASURE_COUNT] = "count", [MEASURE_SUM] = "sum",   [MEASURE_MIN] = "min",
    [MEASURE_MAX] = "max",     [MEASURE_LAST] = "last", [MEASURE_MEAN] = "mean"};

#define FUNCTIONS COUNT_OF(function_names)
/* Every function of every field, and count. */
#define HINTS_MAX (FUNCTIONS * FIELD_MAX)

static const char *write_expression(enum measure_kind kind, enum field f, char buf[MEASURE_EXPRESSION_BYTES])
{
    if (kind == MEASURE_COUNT)
        snprintf(buf, MEASURE_EXPRESSION_BYTES, "count");
    else
        snprintf(buf, MEASURE_EXPRESSION_BYTES, "%s(%s)", function_names[kind], field_name(f));
    return buf;
}

/* Splits "mean(value)"; false where it is not of that form. */
static bool split(struct slice expression, struct slice *function, struct slice *field)
{
    const char *open = expression.len > 0 ? memchr(expression.ptr, '(', expression.len) : NULL;
    if (open == NULL || expression.ptr[expression.len - 1] != ')')
        return false;
    *function = slice_of(expression.ptr, (size_t)(open - expression.ptr));
    *field = slice_of(open + 1, expression.len - function->len - 2);
    return true;
}

static bool parse(struct measure *m, struct slice expression)
{
    struct slice function, field;
    if (slice_is(expression, function_names[MEASURE_COUNT])) {
        m->kind = MEASURE_COUNT;
        return true;
    }
    if (!split(expression, &function, &field) || !field_parse(field, &m->field) || !field_is_number(m->field))
        return false;
    for (enum measure_kind kind = MEASURE_SUM; kind < FUNCTIONS; kind++) {
        if (slice_is(function, function_names[kind])) {
            m->kind = kind;
            return true;
        }
    }
    return false;
}

static bool refuse(struct slice expression, struct err *e)
{
    static const char expected[] = "count, or sum, min, max, last or mean of a field with numbers";
    char texts[HINTS_MAX][MEASURE_EXPRESSION_BYTES], quote[SUGGEST_QUOTE_BYTES], hint[SUGGEST_HINT_BYTES];
    const char *hints[HINTS_MAX + 1];
    size_t count = 0;
    struct slice function, field;
    enum field f;
    if (split(expression, &function, &field) && field_parse(field, &f) && !field_is_number(f))
        return err_set(e, EX_CONFIG, "found %s, but %s is a text: expected %s",
                       suggest_quote(expression, quote), field_name(f), expected);
    hints[count++] = function_names[MEASURE_COUNT];
    for (int k = 0; k < field_count(); k++) {
        for (enum measure_kind kind = MEASURE_SUM; kind < FUNCTIONS && field_is_number((enum field)k);
             kind++) {
            hints[count] = write_expression(kind, (enum field)k, texts[count]);
            count++;
        }
    }
    hints[count] = NULL;
    return err_set(e, EX_CONFIG, "found %s, expected %s%s", suggest_quote(expression, quote), expected,
                   suggest_hint(expression, hints, hint));
}

bool measure_parse(struct measure *m, struct slice expression, struct err *e)
{
    struct measure parsed = *m;
    if (!parse(&parsed, expression))
        return refuse(expression, e);
    write_expression(parsed.kind, parsed.field, parsed.expression);
    *m = parsed;
    return true;
}

size_t measure_column_count(enum measure_kind kind)
{
    return kind == MEASURE_LAST ? 3 : kind == MEASURE_MEAN ? 2 : 1;
}

bool measure_is_additive(enum measure_kind kind)
{
    return kind == MEASURE_COUNT || kind == MEASURE_SUM || kind == MEASURE_MEAN;
}

/* So that 0 is free to say "none". */
static int64_t shift(int64_t number)
{
    return number >= 0 ? number + 1 : number;
}

static int64_t unshift(int64_t column)
{
    return column > 0 ? column - 1 : column;
}

static int compare_lasts(const int64_t *a, const int64_t *b)
{
    for (size_t i = 0; i < 3; i++) {
        if (a[i] != b[i])
            return a[i] < b[i] ? -1 : 1;
    }
    return 0;
}

void measure_merge(const struct measure *m, int64_t *to, const int64_t *from)
{
    switch (m->kind) {
    case MEASURE_MEAN:
        to[1] = value_add(to[1], from[1]);
        /* fall through */
    case MEASURE_COUNT:
    case MEASURE_SUM:
        to[0] = value_add(to[0], from[0]);
        return;
    case MEASURE_MIN:
        if (from[0] != 0 && (to[0] == 0 || from[0] < to[0]))
            to[0] = from[0];
        return;
    case MEASURE_MAX:
        if (from[0] != 0 && (to[0] == 0 || from[0] > to[0]))
            to[0] = from[0];
        return;
    case MEASURE_LAST:
        if (from[0] != 0 && (to[0] == 0 || compare_lasts(from, to) > 0))
            memcpy(to, from, 3 * sizeof *to);
        return;
    }
}

void measure_add(const struct measure *m, int64_t *columns, const struct event *ev)
{
    int64_t one[MEASURE_COLUMNS_MAX] = {1, 1, 0};
    if (m->kind != MEASURE_COUNT) {
        if (!event_has_number(ev, m->field))
            return;
        int64_t number = ev->number[m->field];
        bool is_shifted = m->kind == MEASURE_MIN || m->kind == MEASURE_MAX;
        one[0] = is_shifted ? shift(number) : number;
        if (m->kind == MEASURE_LAST) {
            one[0] = ev->at_ms + 1;
            one[1] = ev->order;
            one[2] = number;
        }
    }
    measure_merge(m, columns, one);
}

bool measure_value(const struct measure *m, const int64_t *columns, int128 *value)
{
    int128 unit = m->kind == MEASURE_COUNT ? EVENT_SCALE : EVENT_SCALE / field_scale(m->field);
    bool is_there = true;
    switch (m->kind) {
    case MEASURE_COUNT:
    case MEASURE_SUM:
        *value = columns[0] * unit;
        break;
    case MEASURE_MIN:
    case MEASURE_MAX:
        is_there = columns[0] != 0;
        *value = unshift(columns[0]) * unit;
        break;
    case MEASURE_LAST:
        is_there = columns[0] != 0;
        *value = columns[2] * unit;
        break;
    case MEASURE_MEAN:
        is_there = columns[1] > 0;
        if (is_there)
            *value = number_mean(columns[0] * unit, columns[1]);
        break;
    }
    return is_there;
}
