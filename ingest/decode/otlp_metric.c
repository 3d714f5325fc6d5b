/* The metrics of OTLP: data points become values. */
#include "base/check.h"
#include "base/civil.h"
#include "base/protobuf.h"
#include "ingest/decimal.h"
#include "ingest/decode/chain_field.h"
#include "ingest/decode/otlp_internal.h"
#include "ingest/float_text.h"

#include <inttypes.h>
#include <stdio.h>

enum { METRIC_NAME_FIELD = 1, METRIC_UNIT = 3, METRIC_KNOWN_LAST = 12 };
enum { METRIC_GAUGE = 5, METRIC_SUM = 7, METRIC_HISTOGRAM = 9, METRIC_EXPONENTIAL = 10, METRIC_SUMMARY = 11 };
enum { DATA_TEMPORALITY = 2, DATA_IS_MONOTONIC = 3 };
enum { TEMPORALITY_DELTA = 1, TEMPORALITY_CUMULATIVE = 2 };
enum { POINT_TIME = 3, POINT_DOUBLE = 4, POINT_INT = 6, POINT_COUNT = 4, POINT_SUM = 5 };
enum { POINT_SCALE = 6, POINT_ZEROS = 7, POINT_POSITIVE = 8, POINT_NEGATIVE = 9 };

#define FLAG_NO_VALUE  1
#define INT_TEXT_BYTES 24

/* Numbers of the fields that differ between points. */
struct otlp_points {
    unsigned attributes, flags;
    bool is_histogram, is_exponential;
    unsigned min, max;
};

static const struct otlp_points number_points = {.attributes = 7, .flags = 8};
static const struct otlp_points histogram_points = {
    .attributes = 9, .flags = 10, .is_histogram = true, .min = 11, .max = 12};
static const struct otlp_points exponential_points = {
    .attributes = 1, .flags = 10, .is_histogram = true, .is_exponential = true, .min = 12, .max = 13};

enum { VALUE_COUNT, VALUE_SUM, VALUE_MIN, VALUE_MAX, VALUE_WHOLE };
static const char *const value_suffixes[OTLP_VALUES_MAX] = {".count", ".sum", ".min", ".max", ""};

/* ---- the metric */

/* Notes what the points are, if the field has them. */
static void note_data(struct otlp_metric *m, const struct protobuf_field *f, uint64_t *kind)
{
    static const struct {
        uint64_t number;
        const char *type;
        const struct otlp_points *layout;
    } kinds[] = {{METRIC_GAUGE, "gauge", &number_points},
                 {METRIC_SUM, "sum", &number_points},
                 {METRIC_HISTOGRAM, "histogram", &histogram_points},
                 {METRIC_EXPONENTIAL, "exponential_histogram", &exponential_points},
                 {METRIC_SUMMARY, "summary", NULL}};
    for (size_t i = 0; i < COUNT_OF(kinds); i++) {
        if (f->number != kinds[i].number)
            continue;
        m->points = f->bytes;
        m->type = kinds[i].type;
        m->layout = kinds[i].layout;
        *kind = f->number;
    }
}

/* May the values of such points be added up, or are they levels, or totals that are kept? False: they are
 * totals. */
static bool is_countable(struct otlp_metric *m, uint64_t kind, bool keeps_totals)
{
    uint64_t temporality = 0, is_monotonic = 0;
    struct slice rest = m->points;
    struct protobuf_field f;
    if (kind == METRIC_GAUGE)
        return true;
    while (rest.len > 0 && protobuf_take(&rest, &f)) { /* a broken part is found again with its points */
        if (protobuf_is(&f, DATA_TEMPORALITY, PROTOBUF_VARINT))
            temporality = f.varint;
        if (protobuf_is(&f, DATA_IS_MONOTONIC, PROTOBUF_VARINT))
            is_monotonic = f.varint;
    }
    if (kind == METRIC_SUM && temporality == TEMPORALITY_CUMULATIVE && is_monotonic == 0) {
        m->type = "gauge";
        return true;
    }
    if (temporality == TEMPORALITY_CUMULATIVE)
        return keeps_totals && (kind == METRIC_SUM || kind == METRIC_HISTOGRAM);
    return kind != METRIC_SUMMARY && temporality == TEMPORALITY_DELTA;
}

/* Writes the names of a histogram's values, once for all its points. */
static void name_values(struct otlp *o)
{
    struct otlp_metric *m = &o->metric;
    for (size_t i = 0; i < OTLP_VALUES_MAX; i++)
        m->value_names[i] = arena_join(o->memory, m->name, "", slice_text(value_suffixes[i]));
}

enum otlp_result otlp_metric_begin(struct otlp *o, struct slice bytes, struct reject *why)
{
    struct otlp_metric *m = &o->metric;
    struct slice rest = bytes;
    struct protobuf_field f;
    uint64_t kind = 0;
    *m = (struct otlp_metric){.name = {"", 0}};
    while (rest.len > 0) {
        const char *at = rest.ptr;
        bool good = protobuf_take(&rest, &f) && (f.number > METRIC_KNOWN_LAST || f.wire == PROTOBUF_BYTES);
        if (good && f.number == METRIC_NAME_FIELD)
            m->name = f.bytes;
        else if (good && f.number == METRIC_UNIT)
            m->unit = f.bytes;
        else if (good)
            note_data(m, &f, &kind);
        if (good)
            continue;
        m->points = slice_of(NULL, 0);
        return otlp_refuse(o, REJECT_OTLP, bytes, at, why);
    }
    enum reject_reason reason = m->name.len == 0 || kind == 0 || o->has_text_step ? REJECT_MEMBER
                                : !is_countable(m, kind, o->keeps_totals)         ? REJECT_CUMULATIVE
                                                                                  : REJECT_COUNT;
    if (reason != REJECT_COUNT) {
        m->points = slice_of(NULL, 0);
        return otlp_refuse(o, reason, bytes, bytes.ptr, why);
    }
    if (m->layout->is_histogram)
        name_values(o);
    return OTLP_END;
}

/* ---- a point */

static struct slice print_whole(struct otlp *o, uint64_t value, bool is_signed)
{
    char *out = arena_add(o->memory, INT_TEXT_BYTES);
    int len = is_signed ? snprintf(out, INT_TEXT_BYTES, "%" PRId64, (int64_t)value)
                        : snprintf(out, INT_TEXT_BYTES, "%" PRIu64, value);
    return slice_of(out, (size_t)len);
}

struct point {
    uint64_t time_ns, flags;
};

/* Notes a field of the buckets, if it is one. False: it is of another type. */
static bool note_buckets(struct otlp_buckets *b, const struct protobuf_field *f)
{
    switch (f->number) {
    case POINT_SCALE:
        b->scale = f->varint;
        return f->wire == PROTOBUF_VARINT;
    case POINT_ZEROS:
        b->zeros = protobuf_fixed(f);
        return f->wire == PROTOBUF_64_BITS;
    case POINT_POSITIVE:
    case POINT_NEGATIVE:
        b->sides[f->number == POINT_POSITIVE ? DISTRIBUTION_ABOVE_0 : DISTRIBUTION_BELOW_0] = f->bytes;
        return f->wire == PROTOBUF_BYTES;
    default:
        return true;
    }
}

/* Notes a number of the point. False: it is of another type. */
static bool note_number(struct otlp *o, struct point *point, const struct protobuf_field *f)
{
    const struct otlp_points *layout = o->metric.layout;
    const enum protobuf_wire wire = f->number == layout->flags ? PROTOBUF_VARINT : PROTOBUF_64_BITS;
    struct slice *values = o->values;
    bool is_known = f->number == POINT_TIME || f->number == layout->flags ||
                    (!layout->is_histogram ? f->number == POINT_DOUBLE || f->number == POINT_INT
                                           : f->number == POINT_COUNT || f->number == POINT_SUM ||
                                                 f->number == layout->min || f->number == layout->max);
    if (!is_known)
        return !layout->is_exponential || note_buckets(&o->buckets, f);
    if (f->wire != wire)
        return false;
    if (f->number == POINT_TIME)
        point->time_ns = protobuf_fixed(f);
    else if (f->number == layout->flags)
        point->flags = f->varint;
    else if (!layout->is_histogram)
        values[0] = f->number == POINT_INT ? print_whole(o, protobuf_fixed(f), true)
                                           : float_text_of(o->memory, protobuf_fixed(f));
    else if (f->number == POINT_COUNT)
        values[VALUE_COUNT] = print_whole(o, o->buckets.count = protobuf_fixed(f), false);
    else
        values[f->number == POINT_SUM     ? VALUE_SUM
               : f->number == layout->min ? VALUE_MIN
                                          : VALUE_MAX] = float_text_of(o->memory, protobuf_fixed(f));
    return true;
}

static void skip_values(struct otlp *o)
{
    while (o->next_value < OTLP_VALUES_MAX && o->values[o->next_value].ptr == NULL)
        o->next_value++;
}

bool otlp_has_value(const struct otlp *o)
{
    return o->next_value < OTLP_VALUES_MAX;
}

/* The time of the point, else that of the record. */
static enum reject_reason note_time(struct otlp *o, uint64_t ns)
{
    o->point_at_ms = ns != 0 ? (int64_t)(ns / OTLP_NS_PER_MS) : o->record->timestamp_ms;
    return o->point_at_ms < 0               ? REJECT_MEMBER
           : o->point_at_ms >= CIVIL_END_MS ? REJECT_TIME_RANGE
                                            : REJECT_COUNT;
}

enum otlp_result otlp_point_begin(struct otlp *o, struct slice bytes, struct reject *why)
{
    struct point point = {0};
    struct slice rest = bytes;
    struct protobuf_field f;
    otlp_values_clear(&o->attributes);
    otlp_values_clear(&o->body);
    memset(o->values, 0, sizeof o->values);
    o->buckets = (struct otlp_buckets){0};
    if (o->metric.layout->is_histogram) /* a count of 0 is not written */
        o->values[VALUE_COUNT] = slice_text("0");
    while (rest.len > 0) {
        const char *at = rest.ptr;
        bool good = protobuf_take(&rest, &f);
        if (good && f.number == o->metric.layout->attributes)
            good = f.wire == PROTOBUF_BYTES &&
                   otlp_take_attribute(&o->names, f.bytes, OTLP_OF_METRIC, o->memory, &o->attributes);
        else if (good)
            good = note_number(o, &point, &f);
        if (!good)
            return otlp_refuse(o, REJECT_OTLP, bytes, at, why);
    }
    enum reject_reason reason = note_time(o, point.time_ns);
    if (reason != REJECT_COUNT)
        return otlp_refuse(o, reason, bytes, bytes.ptr, why);
    if (o->metric.layout->is_exponential)
        o->values[VALUE_WHOLE] = o->values[VALUE_SUM].ptr != NULL
                                     ? o->values[VALUE_SUM]
                                     : slice_text(o->buckets.count > 0 ? "" : "0");
    o->next_value = 0;
    skip_values(o);
    if ((point.flags & FLAG_NO_VALUE) == 0 && otlp_has_value(o))
        return OTLP_END;
    o->next_value = OTLP_VALUES_MAX;
    return otlp_refuse(o, REJECT_MEMBER, bytes, bytes.ptr, why);
}

static bool read_limit(struct slice text, int64_t *limit)
{
    return text.ptr != NULL && decimal_parse(text, limit) == DECIMAL_OK;
}

/* Makes the value, which is the point's sum, stand for all its numbers. */
static enum reject_reason put_distribution(struct otlp *o, struct event *ev)
{
    struct distribution *d = arena_add(o->memory, sizeof *d);
    *d = (struct distribution){0};
    if (!event_has(ev, FIELD_VALUE))
        return REJECT_MEMBER; /* the mean is not known */
    d->has_min = read_limit(o->values[VALUE_MIN], &d->min);
    d->has_max = read_limit(o->values[VALUE_MAX], &d->max);
    ev->distribution = d;
    ev->numeric |= (uint64_t)1 << FIELD_VALUE;
    enum reject_reason reason = otlp_buckets_read(&o->buckets, o->memory, d);
    bool is_odd = d->count == 0 && ev->number[FIELD_VALUE] != 0; /* without numbers there is no sum */
    return reason == REJECT_COUNT && is_odd ? REJECT_OTLP : reason;
}

enum otlp_result otlp_value(struct otlp *o, struct event *ev, struct reject *why)
{
    const struct otlp_metric *m = &o->metric;
    size_t i = o->next_value++;
    skip_values(o);
    ev->present = ev->odd = ev->literal = ev->numeric = ev->unfit = 0;
    ev->at_ms = o->point_at_ms;
    if (!otlp_put_fields(o, o->point, ev, why))
        return OTLP_REJECT;
    chain_field_put(ev, FIELD_NAME, m->layout->is_histogram ? m->value_names[i] : m->name, false);
    otlp_put_own(o, OTLP_TYPE, slice_text(m->type), ev);
    otlp_put_own(o, OTLP_UNIT, m->unit, ev);
    enum reject_reason reason = chain_field_put(ev, FIELD_VALUE, o->values[i], true);
    if (reason == REJECT_COUNT && i == VALUE_WHOLE)
        reason = put_distribution(o, ev);
    return reason == REJECT_COUNT ? OTLP_EVENT : otlp_refuse(o, reason, o->point, o->point.ptr, why);
}
