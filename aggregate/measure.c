#include "aggregate/measure.h"

#include "base/suggest.h"
#include "ingest/decimal.h"
#include "ingest/distribution.h"

#include <stdio.h>

static const char *const function_names[] = {[MEASURE_COUNT] = "count",
                                             [MEASURE_SUM] = "sum",
                                             [MEASURE_MIN] = "min",
                                             [MEASURE_MAX] = "max",
                                             [MEASURE_LAST] = "last",
                                             [MEASURE_MEAN] = "mean",
                                             [MEASURE_HISTOGRAM] = "histogram",
                                             [MEASURE_DISTINCT] = "distinct"};

#define FUNCTIONS  COUNT_OF(function_names)
/* Suggestions: every function of every field, and count. */
#define HINTS_MAX  (FUNCTIONS * FIELD_MAX)
#define HINT_BYTES (FIELD_NAME_BYTES + 12)
#define ZERO       "zero="

/* The options that say how wide buckets are, and from which resolution on. */
static const struct schema_option {
    const char *prefix;
    enum span from;
} schema_options[] = {
    {"schema=", SPAN_SECOND}, {"hour=", SPAN_HOUR}, {"day=", SPAN_DAY}, {"month=", SPAN_MONTH}};

#define SCHEMAS COUNT_OF(schema_options)

/* Each schema that is not as the one before it. */
static void write_schemas(const struct measure *m, struct text *out)
{
    int before = HISTOGRAM_SCHEMA;
    for (size_t i = 0; i < SCHEMAS; i++) {
        const int schema = m->layouts[schema_options[i].from]->schema;
        if (schema != before)
            text_printf(out, ", %s%d", schema_options[i].prefix, schema);
        before = schema;
    }
}

static void write_expression(struct measure *m)
{
    struct text out = {0};
    char zero[NUMBER_BYTES];
    text_puts(&out, function_names[m->kind]);
    for (size_t i = 0; m->kind == MEASURE_DISTINCT && i < m->dimension_count; i++)
        text_printf(&out, "%s%s", i == 0 ? "(" : ", ", m->dimensions[i].name);
    if (m->kind != MEASURE_COUNT && m->kind != MEASURE_DISTINCT)
        text_printf(&out, "(%s", field_name(m->field));
    if (m->kind == MEASURE_HISTOGRAM)
        write_schemas(m, &out);
    if (m->kind == MEASURE_HISTOGRAM && m->layout->zero > 0)
        text_printf(&out, ", " ZERO "%s",
                    number_text((int128)m->layout->zero * (EVENT_SCALE / m->layout->scale), zero));
    text_puts(&out, m->kind == MEASURE_COUNT ? "" : ")");
    snprintf(m->expression, sizeof m->expression, "%.*s", SLICE_ARGS(text_slice(&out)));
    text_fini(&out);
}

/* Splits "mean(value)"; false: it has another form. */
static bool split(struct slice expression, struct slice *function, struct slice *field)
{
    const char *open = expression.len > 0 ? memchr(expression.ptr, '(', expression.len) : NULL;
    if (open == NULL || expression.ptr[expression.len - 1] != ')')
        return false;
    *function = slice_of(expression.ptr, (size_t)(open - expression.ptr));
    *field = slice_of(open + 1, expression.len - function->len - 2);
    return true;
}

/* The kind of a function's name; MEASURE_COUNT: there is none. */
static enum measure_kind kind_of(struct slice function)
{
    for (enum measure_kind kind = MEASURE_SUM; kind < FUNCTIONS; kind++) {
        if (slice_is(function, function_names[kind]))
            return kind;
    }
    return MEASURE_COUNT;
}

/* Takes the text before the next comma off a list, without spaces around it. False: it is the last. */
static bool take_item(struct slice *list, struct slice *item)
{
    const size_t len = list->len;
    struct slice before = slice_cut(list, ',');
    *item = slice_trim(before);
    return before.len < len;
}

/* Reads "path:2, host" in order of the names. False: *item is wrong, comes twice, or is one too many. */
static bool parse_dimensions(struct measure *m, struct slice list, struct slice *item)
{
    bool has_more = true;
    m->dimension_count = 0;
    m->fields = 0;
    while (has_more) {
        struct dimension d;
        size_t to = m->dimension_count;
        has_more = take_item(&list, item);
        if (to == MEASURE_DIMENSIONS_MAX || !dimension_parse(&d, *item))
            return false;
        for (; to > 0 && strcmp(d.name, m->dimensions[to - 1].name) < 0; to--)
            m->dimensions[to] = m->dimensions[to - 1];
        if (to > 0 && strcmp(d.name, m->dimensions[to - 1].name) == 0)
            return false;
        m->dimensions[to] = d;
        m->dimension_count++;
        m->fields |= (uint64_t)1 << d.field;
    }
    m->is_of_field = m->dimension_count == 1 && m->dimensions[0].kind == DIMENSION_FIELD;
    return true;
}

/* Cuts the prefix of an option off. */
static bool take_option(struct slice *item, const char *prefix)
{
    if (!slice_begins(*item, slice_text(prefix)))
        return false;
    *item = slice_of(item->ptr + strlen(prefix), item->len - strlen(prefix));
    return true;
}

/* From HISTOGRAM_SCHEMA_MIN to HISTOGRAM_SCHEMA_MAX. */
static bool parse_schema(struct slice text, int *schema)
{
    int64_t number;
    if (decimal_parse(text, &number) != DECIMAL_OK || number % EVENT_SCALE != 0)
        return false;
    number /= EVENT_SCALE;
    *schema = (int)number;
    return number >= HISTOGRAM_SCHEMA_MIN && number <= HISTOGRAM_SCHEMA_MAX;
}

/* The options of a histogram. */
struct buckets {
    bool has_schema[SCHEMAS], has_zero;
    int schemas[SCHEMAS]; /* each is that of the one before, unless it is set */
    int64_t zero;         /* in units of 1/EVENT_SCALE */
    size_t finer;         /* the first option with narrower buckets than the one before; SCHEMAS: none */
};

/* Reads one option. False: it is wrong, or comes twice. */
static bool parse_option(struct buckets *b, struct slice item, int64_t scale)
{
    struct slice value = item;
    for (size_t i = 0; i < SCHEMAS; i++) {
        if (!b->has_schema[i] && take_option(&value, schema_options[i].prefix)) {
            b->has_schema[i] = true;
            return parse_schema(value, &b->schemas[i]);
        }
    }
    if (b->has_zero || !take_option(&value, ZERO))
        return false;
    b->has_zero = true;
    return decimal_parse(value, &b->zero) == DECIMAL_OK && b->zero >= 0 &&
           b->zero % (EVENT_SCALE / scale) == 0;
}

/* Gives each schema that is not set that of the one before. */
static void settle_schemas(struct buckets *b)
{
    int before = HISTOGRAM_SCHEMA;
    b->finer = SCHEMAS;
    for (size_t i = 0; i < SCHEMAS; i++) {
        if (!b->has_schema[i])
            b->schemas[i] = before;
        else if (i > 0 && b->schemas[i] > before && b->finer == SCHEMAS)
            b->finer = i;
        before = b->schemas[i];
    }
}

/* Reads "schema=3, day=2, zero=0.001", or what there is of it, in any order. False: *item is wrong, or comes
 * twice; or a longer time bucket would have narrower buckets. */
static bool parse_buckets(struct measure *m, struct slice list, struct slice *item, struct buckets *b)
{
    const int64_t scale = field_scale(m->field);
    bool has_more = list.len > 0;
    *b = (struct buckets){.finer = SCHEMAS};
    while (has_more) {
        has_more = take_item(&list, item);
        if (!parse_option(b, *item, scale))
            return false;
    }
    settle_schemas(b);
    if (b->finer < SCHEMAS)
        return false;
    for (size_t i = 0; i < SCHEMAS; i++) {
        for (enum span span = schema_options[i].from; span < SPAN_COUNT; span++)
            m->layouts[span] = histogram_layout(scale, b->schemas[i], b->zero / (EVENT_SCALE / scale));
    }
    m->layout = m->layouts[SPAN_SECOND];
    return true;
}

static bool parse(struct measure *m, struct slice expression)
{
    struct slice function, of, field, item;
    struct buckets buckets;
    m->kind = MEASURE_COUNT;
    if (slice_is(expression, function_names[MEASURE_COUNT]))
        return true;
    if (!split(expression, &function, &of) || (m->kind = kind_of(function)) == MEASURE_COUNT)
        return false;
    if (m->kind == MEASURE_DISTINCT)
        return parse_dimensions(m, of, &item);
    field = of;
    if (m->kind == MEASURE_HISTOGRAM)
        (void)take_item(&of, &field);
    return field_parse(field, &m->field) && field_is_number(m->field) &&
           (m->kind != MEASURE_HISTOGRAM || parse_buckets(m, of, &item, &buckets));
}

/* `list`: what a distinct count is of, with a comma. */
static bool refuse_dimensions(struct slice expression, struct slice list, struct err *e)
{
    char quote[SUGGEST_QUOTE_BYTES], item_quote[SUGGEST_QUOTE_BYTES];
    struct measure m;
    struct dimension d;
    struct slice item;
    (void)parse_dimensions(&m, list, &item);
    suggest_quote(expression, quote);
    suggest_quote(item, item_quote);
    if (m.dimension_count == MEASURE_DIMENSIONS_MAX)
        return err_set(e, EX_CONFIG, "found %s, expected at most %d dimensions", quote,
                       MEASURE_DIMENSIONS_MAX);
    if (dimension_parse(&d, item))
        return err_set(e, EX_CONFIG, "found %s with %s twice, expected each once", quote, item_quote);
    return err_set(e, EX_CONFIG,
                   "found %s, but %s is no dimension: expected dimensions such as host and path:2", quote,
                   item_quote);
}

/* `list`: the options of a histogram. */
static bool refuse_buckets(struct slice expression, struct measure *m, struct slice list, struct err *e)
{
    char quote[SUGGEST_QUOTE_BYTES], item_quote[SUGGEST_QUOTE_BYTES];
    struct slice item;
    struct buckets b;
    (void)parse_buckets(m, list, &item, &b);
    suggest_quote(expression, quote);
    suggest_quote(item, item_quote);
    if (b.finer < SCHEMAS) {
        const struct schema_option *option = &schema_options[b.finer];
        return err_set(
            e, EX_CONFIG,
            "found %s, where %s%d has narrower buckets than shorter time buckets have, expected at "
            "most %s%d: numbers that were counted in wide buckets cannot be told apart again",
            quote, option->prefix, b.schemas[b.finer], option->prefix, b.schemas[b.finer - 1]);
    }
    return err_set(e, EX_CONFIG,
                   "found %s with %s, expected schema=N, hour=N, day=N and month=N, from %d to %d, and " ZERO
                   "N, a number of the field, each once",
                   quote, item_quote, HISTOGRAM_SCHEMA_MIN, HISTOGRAM_SCHEMA_MAX);
}

/* Has YAML ended it at its first comma? */
static bool is_cut(struct slice expression)
{
    const bool may_have_commas = slice_begins(expression, slice_text("distinct(")) ||
                                 slice_begins(expression, slice_text("histogram("));
    return may_have_commas && expression.ptr[expression.len - 1] != ')' &&
           expression.ptr[expression.len - 1] != '(';
}

/* Is it p99, or another figure of a histogram? */
static bool is_figure(struct slice function)
{
    return slice_is(function, "quantile") || slice_is(function, "share") ||
           (function.len > 1 && function.ptr[0] == 'p' && function.ptr[1] >= '0' && function.ptr[1] <= '9');
}

bool measure_has_function(struct slice expression)
{
    struct slice function, of;
    return !split(expression, &function, &of) || kind_of(function) != MEASURE_COUNT;
}

static bool refuse(struct slice expression, struct err *e)
{
    static const char expected[] =
        "count; sum, min, max, last, mean or histogram of a field with numbers; or "
        "distinct of dimensions";
    char texts[HINTS_MAX][HINT_BYTES], quote[SUGGEST_QUOTE_BYTES], hint[SUGGEST_HINT_BYTES];
    const char *hints[HINTS_MAX + 1];
    size_t count = 0;
    struct slice function, field, list;
    struct measure m;
    enum field f;
    if (split(expression, &function, &field) && kind_of(function) == MEASURE_DISTINCT &&
        memchr(field.ptr, ',', field.len) != NULL)
        return refuse_dimensions(expression, field, e);
    if (split(expression, &function, &list) && kind_of(function) == MEASURE_HISTOGRAM &&
        take_item(&list, &field) && field_parse(field, &m.field) && field_is_number(m.field))
        return refuse_buckets(expression, &m, list, e);
    if (split(expression, &function, &field) && field_parse(field, &f) &&
        kind_of(function) != MEASURE_COUNT && (!field_is_number(f) || kind_of(function) == MEASURE_DISTINCT))
        return err_set(e, EX_CONFIG, "found %s, but %s is a %s: expected %s",
                       suggest_quote(expression, quote), field_name(f),
                       field_is_number(f) ? "number" : "text", expected);
    if (is_cut(expression))
        return err_set(e, EX_CONFIG,
                       "found %s, expected quotes, since a comma within {} ends a text: \"%.*s, …)\"",
                       suggest_quote(expression, quote), SLICE_ARGS(expression));
    if (split(expression, &function, &field) && is_figure(function))
        return err_set(e, EX_CONFIG, "found %s, expected histogram(%.*s): a query asks it for %.*s",
                       suggest_quote(expression, quote), SLICE_ARGS(field), SLICE_ARGS(function));
    hints[count++] = function_names[MEASURE_COUNT];
    for (int k = 0; k < field_count(); k++) {
        for (enum measure_kind kind = MEASURE_SUM; kind < FUNCTIONS; kind++) {
            struct dimension d;
            if (kind == MEASURE_DISTINCT ? !dimension_parse(&d, slice_text(field_name((enum field)k)))
                                         : !field_is_number((enum field)k))
                continue;
            snprintf(texts[count], HINT_BYTES, "%s(%s)", function_names[kind], field_name((enum field)k));
            hints[count] = texts[count];
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
    parsed.is_fraction =
        parsed.kind != MEASURE_COUNT && parsed.kind != MEASURE_DISTINCT && field_scale(parsed.field) != 1;
    write_expression(&parsed);
    *m = parsed;
    return true;
}

bool measure_is_sum(const struct measure *m)
{
    return measure_is_scalable(m) || measure_has_sketch(m);
}

bool measure_is_additive(const struct measure *m)
{
    return measure_is_sum(m) && !m->is_fraction;
}

bool measure_is_scalable(const struct measure *m)
{
    return m->kind == MEASURE_COUNT || m->kind == MEASURE_SUM || m->kind == MEASURE_MEAN;
}

size_t measure_column_count(const struct measure *m)
{
    size_t sum_columns = m->is_fraction ? 2 : 1;
    switch (m->kind) {
    case MEASURE_SUM:
        return sum_columns;
    case MEASURE_MEAN:
    case MEASURE_HISTOGRAM:
        return sum_columns + 1;
    case MEASURE_LAST:
        return 3;
    case MEASURE_NEWEST:
        return 0;
    default:
        return 1;
    }
}

static int compare_lasts(const int64_t *a, const int64_t *b)
{
    for (size_t i = 0; i < 3; i++) {
        if (a[i] != b[i])
            return a[i] < b[i] ? -1 : 1;
    }
    return 0;
}

/* Returns the number of the sum's columns. */
static size_t merge_sums(const struct measure *m, int64_t *to, const int64_t *from)
{
    to[0] = value_add(to[0], from[0]);
    if (!m->is_fraction)
        return 1;
    to[1] = value_add(to[1], from[1]);
    if (to[1] >= EVENT_SCALE) {
        to[0] = value_add(to[0], 1);
        to[1] -= EVENT_SCALE;
    }
    return 2;
}

void measure_merge(const struct measure *m, int64_t *to, const int64_t *from)
{
    size_t n;
    switch (m->kind) {
    case MEASURE_COUNT:
    case MEASURE_SUM:
    case MEASURE_DISTINCT:
        (void)merge_sums(m, to, from);
        return;
    case MEASURE_MEAN:
    case MEASURE_HISTOGRAM:
        n = merge_sums(m, to, from);
        to[n] = value_add(to[n], from[n]);
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
    case MEASURE_NEWEST:
        return;
    }
}

void measure_scale(const struct measure *m, int64_t *columns, int64_t times)
{
    const size_t count = measure_column_count(m);
    ASSERT(measure_is_scalable(m));
    for (size_t i = 0; i < count; i++)
        columns[i] *= times;
    if (m->is_fraction) {
        columns[0] += columns[1] / EVENT_SCALE;
        columns[1] %= EVENT_SCALE;
    }
}

static bool take_sum(int64_t *to, int64_t from)
{
    return *to != INT64_MAX && *to != INT64_MIN && !__builtin_sub_overflow(*to, from, to);
}

static bool take_count(int64_t *to, int64_t from)
{
    return take_sum(to, from) && *to >= 0;
}

/* *n is the number of the sum's columns. */
static bool take_sums(const struct measure *m, int64_t *to, const int64_t *from, size_t *n)
{
    *n = m->is_fraction ? 2 : 1;
    if (!take_sum(&to[0], from[0]))
        return false;
    if (*n == 1)
        return true;
    to[1] -= from[1];
    if (to[1] >= 0)
        return true;
    to[1] += EVENT_SCALE;
    return take_sum(&to[0], 1);
}

bool measure_take(const struct measure *m, int64_t *to, const int64_t *from)
{
    size_t n;
    switch (m->kind) {
    case MEASURE_COUNT:
        return take_count(to, from[0]);
    case MEASURE_SUM:
        return take_sums(m, to, from, &n);
    case MEASURE_MEAN:
    case MEASURE_HISTOGRAM:
        return take_sums(m, to, from, &n) && take_count(&to[n], from[n]) &&
               (to[n] > 0 || (to[0] == 0 && to[n - 1] == 0));
    default:
        return from[0] == 0; /* then the event had no number */
    }
}

bool measure_told(const struct measure *m, const struct event *ev, size_t max_bytes, char *scratch,
                  struct slice *text)
{
    if (!event_has_all(ev, m->fields))
        return false;
    *text = dimension_key(m->dimensions, m->dimension_count, ev, max_bytes, scratch);
    return true;
}

/* The smallest or greatest of many numbers. False: it is not known, or a last one is asked for. */
static bool limit_of(const struct measure *m, const struct distribution *d, int64_t *number)
{
    const bool is_min = m->kind == MEASURE_MIN;
    *number = is_min ? d->min : d->max;
    return is_min ? d->has_min : d->has_max && m->kind == MEASURE_MAX;
}

void measure_add(const struct measure *m, int64_t *columns, const struct event *ev)
{
    int64_t one[MEASURE_COLUMNS_MAX] = {1};
    if (m->kind == MEASURE_COUNT) {
        measure_merge(m, columns, one);
        return;
    }
    if (m->kind == MEASURE_DISTINCT) {
        columns[0] = value_add(columns[0], event_has_all(ev, m->fields));
        return;
    }
    if (!event_has_number(ev, m->field))
        return;
    int64_t number = ev->number[m->field];
    const struct distribution *d = event_distribution(ev, m->field);
    if (d != NULL && !measure_is_sum(m) && !limit_of(m, d, &number))
        return;
    if (m->kind == MEASURE_LAST) {
        one[0] = ev->at_ms + 1;
        one[1] = ev->order;
        one[2] = number;
    } else if (!measure_is_sum(m)) {
        one[0] = measure_shift(number);
    } else if (!m->is_fraction) {
        one[0] = number;
        one[1] = 1;
    } else {
        one[0] = number / EVENT_SCALE - (number % EVENT_SCALE < 0);
        one[1] = number - one[0] * EVENT_SCALE;
        one[2] = d != NULL ? d->count : 1;
    }
    measure_merge(m, columns, one);
}

static int128 sum_of(const struct measure *m, const int64_t *columns)
{
    return (int128)columns[0] * EVENT_SCALE + (m->is_fraction ? columns[1] : 0);
}

bool measure_value(const struct measure *m, const int64_t *columns, int128 *value)
{
    const bool is_mean = m->kind == MEASURE_MEAN || m->kind == MEASURE_HISTOGRAM;
    const int64_t count = is_mean ? columns[measure_column_count(m) - 1] : 0;
    const int128 unit = m->is_fraction ? 1 : EVENT_SCALE;
    bool is_there = true;
    switch (m->kind) {
    case MEASURE_COUNT:
    case MEASURE_SUM:
    case MEASURE_DISTINCT:
        *value = sum_of(m, columns);
        break;
    case MEASURE_MIN:
    case MEASURE_MAX:
        is_there = columns[0] != 0;
        *value = measure_unshift(columns[0]) * unit;
        break;
    case MEASURE_LAST:
        is_there = columns[0] != 0;
        *value = columns[2] * unit;
        break;
    case MEASURE_MEAN:
    case MEASURE_HISTOGRAM:
        is_there = count > 0;
        if (is_there)
            *value = number_mean(sum_of(m, columns), count);
        break;
    case MEASURE_NEWEST:
        is_there = false;
        break;
    }
    return is_there;
}

const char *measure_text(const struct measure *m, const int64_t *columns, char buf[NUMBER_BYTES])
{
    int128 value;
    return measure_value(m, columns, &value) ? number_text(value, buf) : "nothing";
}
