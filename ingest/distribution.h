/* distribution.h - the numbers of a metric's value that stands for many, counted by size: an exponential
 * histogram of OpenTelemetry, or a native one of Prometheus. Decoders make it, measures and the judge add it
 * up.
 *
 *   counts[i] of a side: the numbers above base^(offset + i) and up to base^(offset + i + 1),
 *   where base = 2^(2^-scale); those below zero by their size. With gaps: each count has the number of empty
 *   buckets that are left out before it in front of it
 *
 * Owner  : counts are slices of the message, or of its chain's memory, and live as long as its event.
 * Limits : a decoder lets none through that has other counts than it says, more than DISTRIBUTION_COUNT_MAX
 *          numbers, or numbers that are no value (EVENT_DECIMAL_MAX).
 * Source : https://opentelemetry.io/docs/specs/otel/metrics/data-model/#exponentialhistogram
 */
#pragma once

#include "base/slice.h"
#include "base/varint.h"

#define DISTRIBUTION_SCALE_MIN (-10) /* a bucket then is as wide as the range of a double */
#define DISTRIBUTION_SCALE_MAX 20
#define DISTRIBUTION_COUNT_MAX ((int64_t)1000000000000)

enum distribution_sign { DISTRIBUTION_ABOVE_0, DISTRIBUTION_BELOW_0, DISTRIBUTION_SIDES };

struct distribution_side {
    int32_t offset;
    struct slice counts; /* as varints */
    bool has_gaps;
};

struct distribution {
    int64_t count, zeros; /* how many numbers there are, and how many count as zero */
    int64_t min, max;     /* in units of 1/EVENT_SCALE */
    bool has_min, has_max;
    int scale;
    struct distribution_side sides[DISTRIBUTION_SIDES];
};

/* A walk over the buckets of a side that have numbers, by index. */
struct distribution_walk {
    const uint8_t *p, *end;
    int64_t next;
    bool has_gaps;
};

static inline struct distribution_walk distribution_walk(const struct distribution_side *s)
{
    const uint8_t *p = (const uint8_t *)s->counts.ptr;
    return (struct distribution_walk){p, s->counts.len > 0 ? p + s->counts.len : p, s->offset, s->has_gaps};
}

/* The next bucket. False: there are no more; or `p` is not at the end, and the counts are broken. */
static inline bool distribution_next(struct distribution_walk *w, int64_t *index, uint64_t *count)
{
    for (*count = 0; w->p < w->end && *count == 0; w->next++) {
        uint64_t gap = 0;
        const uint8_t *behind = w->has_gaps ? varint_get(w->p, w->end, &gap) : w->p;
        if (behind == NULL || (behind = varint_get(behind, w->end, count)) == NULL)
            return false;
        w->p = behind;
        *index = w->next += (int64_t)gap;
    }
    return *count > 0;
}

/* No number is above 2^DISTRIBUTION_LAST_EXPONENT: EVENT_DECIMAL_MAX is 10^12. */
#define DISTRIBUTION_LAST_EXPONENT 40

/* Is the number at which a bucket begins above all values? */
static inline bool distribution_is_too_large(int64_t index, int scale)
{
    return (scale >= 0 ? index >> scale : index * ((int64_t)1 << -scale)) >= DISTRIBUTION_LAST_EXPONENT;
}
