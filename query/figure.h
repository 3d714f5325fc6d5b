/* figure.h - what can be asked of a measure, by name. Answers have a column per figure.
 *
 *   hits                               any measure: its value; of a distinct count, how many texts there were
 *   p50(latency) p99.9(latency)        a histogram: the number that this share of the events does not exceed;
 *   quantile(0.99, latency)            at most 2.2 % off (aggregate/histogram.h)
 *   share(latency <= 0.3)              a histogram: the share of the numbers within a limit, 0 to 1
 *   min(latency) max(latency)          a histogram: at most 2.2 % off
 *   mean(latency) count(latency)       a histogram: exact, of the events with the field
 *   count(visitors)                    a distinct count: the events with the field
 *   error(hits)                        a count of a report with `sample`: the standard error of the estimate
 *
 * The bare name of a histogram stands for FIGURE_USUAL of them, that of a count of a sample for its value and
 * error. Without an event, figures of a histogram are
 * absent, but for its count.
 */
#pragma once

#include "aggregate/report.h"
#include "base/err.h"

#define FIGURE_NAME_BYTES (MEASURE_NAME_BYTES + 40)
#define FIGURE_USUAL      4 /* p50, p90, p95 and p99 */

enum figure_kind {
    FIGURE_VALUE,
    FIGURE_COUNT,
    FIGURE_MEAN,
    FIGURE_MIN,
    FIGURE_MAX,
    FIGURE_QUANTILE,
    FIGURE_SHARE,
    FIGURE_ERROR
};

struct figure {
    enum figure_kind kind;
    size_t measure; /* index in the report */
    int64_t at; /* the quantile or the limit of a share, in units of 1/EVENT_SCALE; for an error: one_in */
    char name[FIGURE_NAME_BYTES];
};

/* Reads a figure of a report. False: EX_USAGE, with what there is. */
bool figure_parse(struct figure *f, const struct report *r, struct slice text, struct err *e) MUST_CHECK;
/* One of the figures that the name of a measure stands for; false: there are no more. */
bool figure_usual(struct figure *f, const struct report *r, size_t measure, size_t i);
/* `columns`: those of the measure. `s`: its sketch, if it has one, in the buckets of time buckets of `span`.
 * The value is in units of 1/EVENT_SCALE. False: it is absent. */
bool figure_value(const struct figure *f, const struct measure *m, enum span span, const int64_t *columns,
                  const union sketch *s, int128 *value);
/* Is it a count or a sum, so that a series with 0 has nothing to show? */
bool figure_is_amount(const struct figure *f, const struct measure *m);
