/* exponential.h - adds the numbers of a distribution (ingest/distribution.h) to a histogram. Shards call it.
 *
 * Finer  : buckets as wide as those of the histogram, or narrower, are added whole: exactly.
 * Coarser: the numbers of a wider bucket are spread over the buckets of which it consists: the k-th of n,
 *          from 0, lies at (k + 1/2) / n of the bucket, by the logarithm. So figures are as exact as it is.
 * Small  : values are whole multiples of 1/EVENT_SCALE. The numbers of a bucket without any are rounded.
 */
#pragma once

#include "aggregate/histogram.h"
#include "ingest/distribution.h"

void exponential_add(struct histogram *h, struct arena *arena, const struct histogram_layout *l,
                     const struct distribution *d);
