#include "query/figure.h"

#include "aggregate/sample.h"
#include "base/suggest.h"
#include "ingest/decimal.h"
#include "query/unknown.h"

#include <stdio.h>

#define PERCENT_DIGITS 6 /* of "99.999" */

static const char *const usual_names[FIGURE_USUAL] = {"p50", "p90", "p95", "p99"};
static const int64_t usual_quantiles[FIGURE_USUAL] = {500000, 900000, 950000, 990000};

static struct slice trim(struct slice s)
{
    while (s.len > 0 && s.ptr[0] == ' ')
        s = slice_of(s.ptr + 1, s.len - 1);
    while (s.len > 0 && s.ptr[s.len - 1] == ' ')
        s.len--;
    return s;
}

/* Splits `text` at the first `mark`; false: there is none. */
static bool cut(struct slice text, const char *mark, struct slice *before, struct slice *behind)
{
    const size_t len = strlen(mark);
    const char *at = text.len >= len ? memmem(text.ptr, text.len, mark, len) : NULL;
    if (at == NULL)
        return false;
    *before = trim(slice_of(text.ptr, (size_t)(at - text.ptr)));
    *behind = trim(slice_of(at + len, text.len - (size_t)(at - text.ptr) - len));
    return true;
}

static bool has_error(const struct report *r, size_t measure)
{
    return r->one_in > 1 && r->measures[measure].kind == MEASURE_COUNT;
}

static bool find_measure(struct figure *f, const struct report *r, struct slice name)
{
    int found = report_find_measure(r, name);
    f->measure = (size_t)found;
    return found >= 0;
}

/* "99.9" is 999000 millionths. */
static bool parse_percent(struct slice text, int64_t *quantile)
{
    int64_t percent;
    if (text.len == 0 || text.len > PERCENT_DIGITS || decimal_parse(text, &percent) != DECIMAL_OK ||
        percent < 0 || percent > 100 * EVENT_SCALE || percent % 100 != 0)
        return false;
    *quantile = percent / 100;
    return true;
}

/* Reads "NAME(INSIDE)". */
static bool parse_call(struct figure *f, const struct report *r, struct slice name, struct slice inside)
{
    static const char *const plain[] = {"count", "mean", "min", "max", NULL};
    struct slice of = inside, number;
    int i = slice_find(name, plain);
    if (i >= 0) {
        f->kind = FIGURE_COUNT + (enum figure_kind)i;
    } else if (slice_is(name, "quantile")) {
        f->kind = FIGURE_QUANTILE;
        if (!cut(inside, ",", &number, &of) || decimal_parse(number, &f->at) != DECIMAL_OK || f->at < 0 ||
            f->at > EVENT_SCALE)
            return false;
    } else if (slice_is(name, "share")) {
        f->kind = FIGURE_SHARE;
        if (!cut(inside, "<=", &of, &number) || decimal_parse(number, &f->at) != DECIMAL_OK)
            return false;
    } else if (slice_is(name, "error")) {
        f->kind = FIGURE_ERROR;
        f->at = r->one_in;
        return find_measure(f, r, of) && has_error(r, f->measure);
    } else {
        f->kind = FIGURE_QUANTILE;
        if (name.len < 2 || name.ptr[0] != 'p' ||
            !parse_percent(slice_of(name.ptr + 1, name.len - 1), &f->at))
            return false;
    }
    if (!find_measure(f, r, of))
        return false;
    const enum measure_kind kind = r->measures[f->measure].kind;
    return kind == MEASURE_HISTOGRAM || (kind == MEASURE_DISTINCT && f->kind == FIGURE_COUNT);
}

/* Says why a measure has no such figure. False: none is named between the parentheses. */
static bool has_no_figure(const struct report *r, struct slice text, struct err *e)
{
    char quoted[SUGGEST_QUOTE_BYTES];
    struct slice name, inside;
    struct figure f;
    if (text.len == 0 || text.ptr[text.len - 1] != ')' ||
        !cut(slice_of(text.ptr, text.len - 1), "(", &name, &inside) || !find_measure(&f, r, inside) ||
        r->measures[f.measure].kind == MEASURE_HISTOGRAM)
        return false;
    const struct measure *m = &r->measures[f.measure];
    err_set(
        e, EX_USAGE,
        "unknown measure %s: %s is %s, and figures are those of a histogram: `%s: histogram(FIELD)` among "
        "the report's measures",
        suggest_quote(text, quoted), m->name, m->expression, m->name);
    return true;
}

/* Says that a quantile or percentile is out of its range. False: it is none, or within. */
static bool is_out_of_range(struct slice text, struct err *e)
{
    char quoted[SUGGEST_QUOTE_BYTES];
    struct slice name, inside, number, of;
    int64_t at;
    if (text.len == 0 || text.ptr[text.len - 1] != ')' ||
        !cut(slice_of(text.ptr, text.len - 1), "(", &name, &inside))
        return false;
    bool is_quantile = slice_is(name, "quantile") && cut(inside, ",", &number, &of);
    bool is_percentile = !is_quantile && name.len > 1 && name.ptr[0] == 'p';
    if (is_percentile)
        number = slice_of(name.ptr + 1, name.len - 1);
    if ((!is_quantile && !is_percentile) || decimal_parse(number, &at) != DECIMAL_OK ||
        (at >= 0 && at <= (is_quantile ? 1 : 100) * (int64_t)EVENT_SCALE))
        return false;
    err_set(e, EX_USAGE, "found %s: a %s", suggest_quote(text, quoted),
            is_quantile ? "quantile is from 0 to 1" : "percentile is from 0 to 100");
    return true;
}

/* Names every measure, and the figures of a histogram by three examples. */
static bool refuse(const struct report *r, struct slice text, struct err *e)
{
    static const char *const formats[] = {"p99(%s)", "quantile(0.999, %s)", "share(%s <= 0.3)", "mean(%s)"};
    const char *names[REPORT_MEASURES_MAX + COUNT_OF(formats) + 2] = {0}, *histogram = NULL;
    char examples[COUNT_OF(formats)][FIGURE_NAME_BYTES];
    size_t count = 0;
    if (is_out_of_range(text, e) || has_no_figure(r, text, e))
        return false;
    for (size_t m = 0; m < r->measure_count; m++) {
        names[count++] = r->measures[m].name;
        if (r->measures[m].kind == MEASURE_HISTOGRAM)
            histogram = r->measures[m].name;
    }
    for (size_t i = 0; histogram != NULL && i < COUNT_OF(formats); i++) {
        snprintf(examples[i], sizeof examples[i], formats[i], histogram);
        names[count++] = examples[i];
    }
    names[count] = "all";
    return unknown_name(e, "measure", text, names);
}

bool figure_parse(struct figure *f, const struct report *r, struct slice text, struct err *e)
{
    struct slice name, inside;
    *f = (struct figure){.kind = FIGURE_VALUE};
    bool good = find_measure(f, r, text);
    if (!good && text.len > 0 && text.len < FIGURE_NAME_BYTES && text.ptr[text.len - 1] == ')')
        good = cut(slice_of(text.ptr, text.len - 1), "(", &name, &inside) && parse_call(f, r, name, inside);
    if (!good)
        return refuse(r, text, e);
    snprintf(f->name, sizeof f->name, "%.*s", SLICE_ARGS(text));
    return true;
}

bool figure_usual(struct figure *f, const struct report *r, size_t measure, size_t i)
{
    const struct measure *m = &r->measures[measure];
    const bool is_histogram = m->kind == MEASURE_HISTOGRAM;
    if (i >= (is_histogram ? FIGURE_USUAL : has_error(r, measure) ? 2 : 1))
        return false;
    if (!is_histogram && i == 1) {
        *f = (struct figure){.kind = FIGURE_ERROR, .measure = measure, .at = r->one_in};
        snprintf(f->name, sizeof f->name, "error(%s)", m->name);
        return true;
    }
    *f = (struct figure){.kind = is_histogram ? FIGURE_QUANTILE : FIGURE_VALUE, .measure = measure};
    if (is_histogram) {
        f->at = usual_quantiles[i];
        snprintf(f->name, sizeof f->name, "%s(%s)", usual_names[i], m->name);
    } else {
        snprintf(f->name, sizeof f->name, "%s", m->name);
    }
    return true;
}

static bool histogram_figure(const struct figure *f, const struct histogram_layout *l,
                             const struct histogram *h, int128 *value)
{
    const int64_t count = histogram_count(h);
    switch (f->kind) {
    case FIGURE_COUNT:
        *value = (int128)count * EVENT_SCALE;
        return true;
    case FIGURE_SHARE:
        if (count > 0)
            *value = (int128)histogram_within(h, l, f->at) * EVENT_SCALE / count;
        return count > 0;
    case FIGURE_MIN:
    case FIGURE_MAX:
        return histogram_quantile(h, l, f->kind == FIGURE_MIN ? 0 : EVENT_SCALE, value);
    default:
        return histogram_quantile(h, l, f->at, value);
    }
}

bool figure_value(const struct figure *f, const struct measure *m, enum span span, const int64_t *columns,
                  const union sketch *s, int128 *value)
{
    if (f->kind == FIGURE_ERROR) {
        *value = (int128)sample_error(columns[0], (uint32_t)f->at) * EVENT_SCALE;
        return true;
    }
    if (m->kind == MEASURE_HISTOGRAM && f->kind != FIGURE_VALUE && f->kind != FIGURE_MEAN)
        return histogram_figure(f, m->layouts[span], &s->histogram, value);
    if (m->kind != MEASURE_DISTINCT || f->kind == FIGURE_COUNT)
        return measure_value(m, columns, value);
    *value = (int128)distinct_count(&s->distinct) * EVENT_SCALE;
    return true;
}

bool figure_is_amount(const struct figure *f, const struct measure *m)
{
    return f->kind == FIGURE_COUNT || f->kind == FIGURE_ERROR ||
           (f->kind == FIGURE_VALUE &&
            (m->kind == MEASURE_COUNT || m->kind == MEASURE_SUM || m->kind == MEASURE_DISTINCT));
}
