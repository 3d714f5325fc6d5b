/* remote_read.h - answers Prometheus' remote_read: raw samples, from which another Prometheus evaluates any
 * PromQL. Called by web/remote.c.
 *
 *   pages:hits              count, sum: counts all events before the sample's time, at each whole minute
 *   pages:hits:increase1m   count, sum: the events of one minute, at its last millisecond
 *   pages:latency_count, pages:latency_sum   histogram: as two counters
 *   pages:latency, pages:latency:increase1m  histogram: native histograms, as a counter and of one minute
 *   pages:slowest           min, max, last, mean: of the events of one minute, at its last millisecond
 *
 *   values          |   2   |   0   |   5   |        minutes with 2, 0 and 5 hits; 7 hits before them
 *   pages:hits      7       9       9       14
 *   …:increase1m           2       0       5
 *
 * In a report of `layout: minute` it is seconds, and increase1s.
 *
 * Exact   : the difference of two samples of a counter is what was counted between them, also if they are
 *           from two requests. A counter begins with the first month that has not expired.
 * Series  : those with events in the range; a count or sum whose labels are all given by `=`, or whose report
 *           has no dimensions, is there without events, too. Not sorted.
 * Time    : no sample is later than `now_ms`. A minute may grow until its last event has arrived.
 * Limits  : the budget, for all queries of a request together; `bytes_max` of the answer.
 * Errors  : as remote_message.h and select.h; EX_USAGE: the selector names buckets or a distinct count, which
 *           have no samples; EX_UNAVAILABLE: a limit is exceeded, or minutes in the range
 *           have expired; the store's.
 */
#pragma once

#include "base/err.h"
#include "base/text.h"
#include "store/store.h"

struct remote_limits {
    uint64_t rows_max;     /* query.rows_max, which sets the budget */
    uint64_t bytes_max;    /* bytes of the answer */
    uint64_t sketches_max; /* bytes of histograms that one metric may take in memory; 0: no limit */
    int64_t now_ms;
};

/* `request`: a ReadRequest. Adds a ReadResponse to `out`; after false `out` has a part of it. */
bool remote_read(struct store *st, struct slice request, const struct remote_limits *limits, struct text *out,
                 struct err *e) MUST_CHECK;
