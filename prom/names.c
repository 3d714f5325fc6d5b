#include "prom/names.h"

#include <stdio.h>

/* The metrics of a histogram. */
static const struct histogram_part {
    const char *suffix;
    enum metric_kind kind;
    enum measure_kind columns;
} parts[] = {{"", METRIC_NATIVE, MEASURE_SUM},
             {"_bucket", METRIC_BUCKET, MEASURE_COUNT},
             {"_count", METRIC_TOTAL, MEASURE_COUNT},
             {"_sum", METRIC_TOTAL, MEASURE_SUM}};

/* Sets presence to the report's count, if it has one. */
static void find_presence(const struct report *r, struct metric *m)
{
    for (size_t i = 0; !m->has_presence && i < r->measure_count; i++) {
        m->has_presence = r->measures[i].kind == MEASURE_COUNT;
        m->presence = i;
    }
}

static void set_plain(const struct report *r, struct metric *m)
{
    snprintf(m->name, sizeof m->name, "%s:%s", r->name, m->value.name);
    switch (m->value.kind) {
    case MEASURE_SUM:
        find_presence(r, m);
        break;
    case MEASURE_COUNT:
        break;
    case MEASURE_DISTINCT:
        m->kind = METRIC_DISTINCT;
        m->value.kind = MEASURE_COUNT;
        break;
    default:
        m->kind = METRIC_GAUGE;
    }
}

/* False: another measure has the name. */
static bool set_part(const struct report *r, const struct histogram_part *part, struct metric *m)
{
    const struct measure *whole = &r->measures[m->measure];
    char measure[MEASURE_NAME_BYTES + sizeof "_bucket"];
    snprintf(measure, sizeof measure, "%s%s", whole->name, part->suffix);
    snprintf(m->name, sizeof m->name, "%s:%s", r->name, measure);
    m->kind = part->kind;
    m->value.kind = part->columns;
    m->value.is_fraction = part->columns == MEASURE_SUM && whole->is_fraction;
    if (part->columns == MEASURE_COUNT)
        m->value.column += measure_column_count(whole) - 1;
    m->has_presence = part->columns == MEASURE_SUM;
    m->presence = m->measure;
    return part->kind == METRIC_NATIVE || report_find_measure(r, slice_text(measure)) < 0;
}

bool names_metric(const struct report *r, size_t i, struct metric *m)
{
    for (size_t measure = 0; measure < r->measure_count; measure++) {
        const bool is_histogram = r->measures[measure].kind == MEASURE_HISTOGRAM;
        for (size_t p = 0; p < (is_histogram ? COUNT_OF(parts) : 1); p++) {
            *m = (struct metric){.measure = measure, .value = r->measures[measure]};
            if (!is_histogram)
                set_plain(r, m);
            else if (!set_part(r, &parts[p], m))
                continue;
            if (i-- == 0)
                return true;
        }
    }
    return false;
}

bool names_has_alias(const struct report *r)
{
    return r->measure_count == 1 && !measure_has_sketch(&r->measures[0]);
}

static bool is_legal(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

static bool has_buckets(const struct report *r)
{
    bool any = false;
    for (size_t i = 0; i < r->measure_count; i++)
        any |= r->measures[i].kind == MEASURE_HISTOGRAM;
    return any;
}

static bool is_taken(const struct report *r, const struct names *n, size_t before, const char *label)
{
    for (size_t d = 0; d < before; d++) {
        if (strcmp(n->labels[d], label) == 0)
            return true;
    }
    return strcmp(label, "__name__") == 0 || (strcmp(label, BUCKET_LABEL) == 0 && has_buckets(r));
}

void names_of(const struct report *r, struct names *n)
{
    for (size_t d = 0; d < r->dimension_count; d++) {
        const char *name = r->dimensions[d].name;
        char *label = n->labels[d];
        size_t len = 0;
        if (*name >= '0' && *name <= '9')
            label[len++] = '_';
        for (; *name != '\0'; name++)
            label[len++] = is_legal(*name) ? *name : '_';
        label[len] = '\0';
        while (is_taken(r, n, d, label)) {
            label[len++] = '_';
            label[len] = '\0';
        }
    }
}

int names_find(const struct report *r, const struct names *n, struct slice label)
{
    for (size_t d = 0; d < r->dimension_count; d++) {
        if (slice_is(label, n->labels[d]))
            return (int)d;
    }
    return -1;
}
