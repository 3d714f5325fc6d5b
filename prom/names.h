/* names.h - the metrics of a report: the names that its measures and dimensions have in Prometheus. Used by
 * select.c, fetch.c, list.c and remote_read.c; cannot fail.
 *
 *   report pages by [path], measure hits     pages:hits{path="/index.html"}
 *   report r by ["path:2"]                   r:hits{path_2="/a/b"}
 *   measure latency: histogram(duration)     pages:latency, a native histogram
 *                                            pages:latency_bucket{path="/index.html",le="0.5"}
 *                                            pages:latency_count, pages:latency_sum
 *   the only measure of report r             r, too
 *
 * Metric : the report, a colon, the measure. The name is legal and unambiguous; by Prometheus' convention a
 *          colon marks values that were aggregated beforehand. If another measure has the name of a part of a
 *          histogram, the name is that measure's, and the histogram lacks the part.
 * Alias  : a report that has one measure, without a sketch, also answers to its own name: so a report can
 *          have the name that the metric has in Prometheus. select_metric() takes it if a selector gives it
 *          by `=`.
 * Label  : the dimension. A byte that is illegal in labels becomes `_`. If two labels would be equal, the
 *          later one gets one more `_` at its end. So does a dimension named `le`, if the report has a
 *          histogram.
 */
#pragma once

#include "aggregate/report.h"

#define NAMES_METRIC_BYTES (REPORT_NAME_BYTES + MEASURE_NAME_BYTES + sizeof "_bucket")
#define NAMES_LABEL_BYTES  (sizeof((struct dimension *)0)->name + REPORT_DIMENSIONS_MAX + 1)

#define BUCKET_LABEL "le"

enum metric_kind {
    METRIC_TOTAL,    /* a count or a sum, also of a histogram's events */
    METRIC_GAUGE,    /* min, max, last or mean */
    METRIC_DISTINCT, /* the number of different texts */
    METRIC_NATIVE,   /* a histogram as a whole; `value` is its sum */
    METRIC_BUCKET    /* how many numbers of a histogram are at most `le` */
};

struct metric {
    enum metric_kind kind;
    size_t measure;       /* index in the report */
    struct measure value; /* the measure to read; for a sketch, the count of its events */
    bool has_presence;    /* it is a sum, and `presence` is valid */
    size_t presence;      /* the measure whose last column counts this sum's events: it tells 0 from none */
    char name[NAMES_METRIC_BYTES];
};

/* Sets the i-th metric of a report. False: there are no more. */
bool names_metric(const struct report *r, size_t i, struct metric *m);

/* Has the only metric of the report its name as an alias? */
bool names_has_alias(const struct report *r);

struct names {
    char labels[REPORT_DIMENSIONS_MAX][NAMES_LABEL_BYTES]; /* by dimension */
};

void names_of(const struct report *r, struct names *n);
/* -1: no dimension has this label. */
int names_find(const struct report *r, const struct names *n, struct slice label);
