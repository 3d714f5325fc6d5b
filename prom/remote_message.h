/* remote_message.h - the two messages of Prometheus' remote_read, in protobuf: reads a request and writes an
 * answer. Called by remote_read.c and web/remote.c.
 *
 *   ReadRequest   queries=1: start_ms=1, end_ms=2, matchers=3 (type=1, name=2, value=3),
 *                            hints=4 (func=2, start_ms=3, end_ms=4)
 *                 accepted_response_types=2: 0 SAMPLES, 1 STREAMED_XOR_CHUNKS; none: SAMPLES
 *   ReadResponse  results=1: timeseries=1: labels=1 (name=1, value=2), samples=2 (value=1, timestamp_ms=2),
 *                            histograms=4 (a native histogram of schema 4: below)
 *                 a histogram: count=1, sum=3, schema=4, zero_count=6, negative_spans=8 (offset=1, length=2),
 *                            negative_deltas=9, positive_spans=11, positive_deltas=12, reset_hint=14,
 *                            timestamp_ms=15
 *
 * Why ours: these are all the fields there are. A generated reader builds a tree of any size before anything
 *           can be counted; this one knows its limits, and copies nothing.
 * Limits  : REMOTE_QUERIES_MAX, REMOTE_MATCHERS_MAX for all queries together. Unknown fields are skipped.
 * Errors  : EX_PROTOCOL: it is no ReadRequest, exceeds a limit, or does not accept samples.
 * Source  : https://github.com/prometheus/prometheus/blob/main/prompb/remote.proto
 */
#pragma once

#include "aggregate/histogram.h"
#include "base/err.h"
#include "base/text.h"
#include "prom/ast.h"

#define REMOTE_QUERIES_MAX  16
#define REMOTE_MATCHERS_MAX 64

struct remote_query {
    int64_t from_ms, to_ms; /* both included; within the hints, if there are any */
    bool names_only;        /* the client lists series, and needs no samples */
    struct selector selector;
};

struct remote_request {
    size_t query_count, matcher_count;
    struct remote_query queries[REMOTE_QUERIES_MAX];
    struct matcher matchers[REMOTE_MATCHERS_MAX]; /* of all queries, in order */
};

/* The texts of the request are borrowed from `bytes`, the matchers from `*rq`. */
bool remote_parse(struct slice bytes, struct remote_request *rq, struct err *e) MUST_CHECK;

/* Results and series contain other fields: begin them, add these, and end them with what begin returned. */
size_t remote_begin_result(struct text *out);
size_t remote_begin_series(struct text *out);
/* False: the part is longer than a message may be. */
bool remote_end(struct text *out, size_t begun) MUST_CHECK;
void remote_add_label(struct text *out, struct slice name, struct slice value);
void remote_add_sample(struct text *out, double value, int64_t ms);

struct remote_histogram {
    const struct histogram_bucket *buckets; /* slots ascending */
    size_t bucket_count;
    const struct histogram_layout *layout;
    double sum;
    bool is_gauge; /* it is no running total */
};

/* False: the part is longer than a message may be. */
bool remote_add_histogram(struct text *out, const struct remote_histogram *h, int64_t ms) MUST_CHECK;
