/* remote_histogram.h - a native histogram of Prometheus' remote write becomes a distribution. remote_write.c
 * calls it.
 *
 *   spans   (offset -2, length 2), (offset 3, length 1)        where buckets are; gaps are empty
 *   deltas  5, -2, 0                                           of the counts 5, 3, 3: buckets -2, -1, 3
 *
 * Bucket  : index i of Prometheus has the numbers above base^(i - 1) and up to base^i: those of i - 1 in a
 *           distribution.
 * Refused : spans that do not fit the counts, a count that is not that of the buckets, and a schema that is
 *           neither -4 to 8 nor REMOTE_SCHEMA_CUSTOM are broken (`remote_write`). A number or count that is
 *           too large is none (`number`). A count of a part of an observation, as a recording rule makes
 *           them, is `inexact`.
 * Bounded : memory is that of the buckets that have numbers, however wide the gaps between them.
 * Zeros   : the numbers up to the histogram's zero threshold count as zero.
 * Source  : https://github.com/prometheus/prometheus/blob/main/prompb/io/prometheus/write/v2/types.proto and
 *           https://prometheus.io/docs/specs/native_histograms/
 */
#pragma once

#include "base/arena.h"
#include "base/text.h"
#include "ingest/distribution.h"
#include "ingest/reject.h"

#define REMOTE_SCHEMA_MIN    (-4)
#define REMOTE_SCHEMA_MAX    8
#define REMOTE_SCHEMA_CUSTOM (-53) /* buckets with bounds of their own */

/* A histogram says by its hint whether it goes on with the one before it. */
enum remote_hint { REMOTE_HINT_NONE, REMOTE_HINT_RESET, REMOTE_HINT_NO_RESET, REMOTE_HINT_GAUGE };

/* A message Histogram. */
struct remote_histogram {
    struct slice bytes;
    uint64_t count, zeros;
    uint64_t sum_bits; /* of a double */
    int64_t schema;
    int64_t at_ms;
    uint64_t hint;   /* enum remote_hint */
    bool has_floats; /* counts are doubles */
};

/* Reads a histogram but for its buckets. Returns the reason why not; REJECT_COUNT: it is read. */
enum reject_reason remote_histogram_read(struct slice bytes, struct remote_histogram *h);
/* Sets *d; its counts are in `memory`. `scratch` is any text, and overwritten. Pre: the schema is not
 * REMOTE_SCHEMA_CUSTOM. Returns the reason why not; REJECT_COUNT: it is set. */
enum reject_reason remote_histogram_buckets(const struct remote_histogram *h, struct text *scratch,
                                            struct arena *memory, struct distribution *d);
