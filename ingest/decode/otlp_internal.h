/* otlp_internal.h - the state of a message of OTLP, for otlp.c, otlp_log.c and otlp_metric.c.
 *
 *   message ─▶ resource ─▶ scope ─▶ record of a log
 *                                 └▶ metric ─▶ data point ─▶ value
 */
#pragma once

#include "base/arena.h"
#include "ingest/decode/decode.h"
#include "ingest/decode/otlp_attributes.h"
#include "ingest/decode/otlp_buckets.h"
#include "ingest/decode/otlp_json.h"
#include "ingest/decode/otlp_result.h"
#include "ingest/record.h"

/* Own fields that are no attributes. */
enum otlp_own {
    OTLP_BODY,
    OTLP_SEVERITY,
    OTLP_SEVERITY_NUMBER,
    OTLP_EVENT_NAME,
    OTLP_TRACE_ID,
    OTLP_SPAN_ID,
    OTLP_SCOPE,
    OTLP_TYPE,
    OTLP_UNIT,
    OTLP_OWN_COUNT
};

#define OTLP_NS_PER_MS  1000000
#define OTLP_PLACES     4 /* record, body, scope, resource */
#define OTLP_VALUES_MAX 5 /* of a data point */

/* A metric, while its points are read. */
struct otlp_metric {
    struct slice name, unit, points; /* `points`: those that are left */
    const char *type;
    const struct otlp_points *layout;
    struct slice value_names[OTLP_VALUES_MAX]; /* of a histogram */
};

struct otlp {
    struct otlp_names names;
    struct arena *memory;
    size_t line_max;
    bool has_text_step;             /* another step takes the bodies */
    bool needs_no_time;             /* the time is the broker's */
    bool keeps_totals;              /* sums and histograms since a start are events, as levels are */
    enum field own[OTLP_OWN_COUNT]; /* FIELD_MAX: it is not known */
    const struct record *record;
    bool has_begun;
    bool is_json;
    struct otlp_json_parts parts; /* of JSON */
    size_t part;
    struct slice message, in_resource, in_scope; /* what is left of each */
    struct otlp_values resource, scope, body, attributes;
    struct slice scope_name;
    struct otlp_metric metric;
    struct slice point; /* whose values are events now */
    int64_t point_at_ms;
    struct slice values[OTLP_VALUES_MAX]; /* ptr NULL: there is none */
    struct otlp_buckets buckets;          /* of an exponential histogram */
    size_t next_value;                    /* OTLP_VALUES_MAX: none is left */
};

/* Writes the reject of a record at `at`, which lies in `bytes`, or not. Returns OTLP_REJECT. */
enum otlp_result otlp_refuse(const struct otlp *o, enum reject_reason reason, struct slice bytes,
                             const char *at, struct reject *why);
void otlp_put_own(const struct otlp *o, enum otlp_own own, struct slice text, struct event *ev);
/* Puts the attributes of all places, and the scope. False: one does not fit. */
bool otlp_put_fields(struct otlp *o, struct slice bytes, struct event *ev, struct reject *why);

/* Reads a record of a log. */
enum otlp_result otlp_log(struct otlp *o, struct slice bytes, struct event *ev, struct slice *text,
                          struct reject *why);
/* Begins a metric. OTLP_END: its points are next. */
enum otlp_result otlp_metric_begin(struct otlp *o, struct slice bytes, struct reject *why);
/* Begins the next point. OTLP_END: its values are next. */
enum otlp_result otlp_point_begin(struct otlp *o, struct slice bytes, struct reject *why);
enum otlp_result otlp_value(struct otlp *o, struct event *ev, struct reject *why);
/* Is a value of the point left? */
bool otlp_has_value(const struct otlp *o);
