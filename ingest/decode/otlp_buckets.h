/* otlp_buckets.h - the buckets of a point of an exponential histogram in OTLP become a distribution.
 * otlp_metric.c calls it.
 *
 * Refused: a count that is not that of the buckets, or a scale outside of DISTRIBUTION_SCALE_MIN and _MAX, is
 *          broken (`otlp`). A number or count that is too large is none (`number`).
 * Zeros  : the numbers up to the point's zero threshold count as zero.
 * Source : https://github.com/open-telemetry/opentelemetry-proto, ExponentialHistogramDataPoint
 */
#pragma once

#include "base/arena.h"
#include "ingest/distribution.h"
#include "ingest/reject.h"

/* The fields of a point, as they are in the message. */
struct otlp_buckets {
    uint64_t count, zeros, scale; /* `scale`: zigzag */
    struct slice sides[DISTRIBUTION_SIDES];
};

/* Sets count, zeros, scale and sides of *d; counts may be in `memory`. Returns the reason why not;
 * REJECT_COUNT: it is set. */
enum reject_reason otlp_buckets_read(const struct otlp_buckets *b, struct arena *memory,
                                     struct distribution *d);
