/* names.h - the names that measures and dimensions have in Prometheus. Used by select.c, fetch.c and list.c;
 * cannot fail.
 *
 *   report pages by [path], measure hits     pages:hits{path="/index.html"}
 *   report r by ["path:2"]                   r:hits{path_2="/a/b"}
 *
 * Metric : the report, a colon, the measure. The name is legal and unambiguous; by Prometheus' convention a
 *          colon marks values that were aggregated beforehand.
 * Label  : the dimension. A byte that is illegal in labels becomes `_`. If two labels would be equal, the
 *          later one gets one more `_` at its end.
 */
#pragma once

#include "aggregate/report.h"

#define NAMES_METRIC_BYTES (REPORT_NAME_BYTES + MEASURE_NAME_BYTES)
#define NAMES_LABEL_BYTES  (sizeof((struct dimension *)0)->name + REPORT_DIMENSIONS_MAX + 1)

const char *names_metric(const struct report *r, size_t measure, char buf[NAMES_METRIC_BYTES]);

struct names {
    char labels[REPORT_DIMENSIONS_MAX][NAMES_LABEL_BYTES]; /* by dimension */
};

void names_of(const struct report *r, struct names *n);
/* -1: no dimension has this label. */
int names_find(const struct report *r, const struct names *n, struct slice label);
