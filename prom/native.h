/* native.h - native histograms: samples that are a whole histogram. A vector holds one as a NaN that names
 * its place in the table of the question, so whatever moves values moves histograms, too. Used by all parts
 * that evaluate; native_slide.h makes them from sketches.
 *
 *   value of a vector  0x7FFC…, place 3      natives.list[3]  count 7, sum 2.5, buckets (-2: 1) (335: 6)
 *
 * Buckets: those of aggregate/histogram.h, of any schema. Their slots ascend, and no count is 0. The sum of
 *          two has the wider buckets. Those with other limits of zero do not add up.
 * Numbers: arithmetic with such a NaN yields nonsense. A part that calculates calls native_refuse() first, or
 *          handles histograms.
 * Owner  : the histograms live as long as the table.
 * Limits : query.sketches_max bytes for those of a question, with the sketches that are being read.
 * Errors : EX_UNAVAILABLE: the limit is exceeded, or the budget is spent.
 */
#pragma once

#include "aggregate/histogram.h"
#include "prom/fetch_room.h"

struct native_bucket {
    int32_t slot;
    double count;
};

struct native {
    double count, sum;
    int schema;
    double zero; /* the greatest number that counts as zero */
    size_t bucket_count;
    struct native_bucket *buckets;
};

struct natives {
    struct arena arena;
    struct native *list; /* owned */
    size_t count, capacity;
    uint64_t bytes_max;   /* 0: no limit */
    size_t reading_bytes; /* of sketches that are being read */
    uint64_t held;        /* bytes of the budget: the arena and the list */
};

void natives_init(struct natives *all, uint64_t bytes_max);
void natives_fini(struct natives *all);

bool native_is(double value);
/* Pre: native_is(value). Valid until the next one is made. */
const struct native *native_of(const struct natives *all, double value);
/* Has the vector a histogram at any step? */
bool native_any(const struct natives *all, const struct vector *v);
/* False, with EX_USAGE, if the vector has a histogram: `what`, such as "abs()", takes numbers only. */
bool native_refuse(const struct natives *all, const struct vector *v, const char *what,
                   struct err *e) MUST_CHECK;

/* The sketches that are being read take so many bytes. */
bool native_reading(struct natives *all, size_t bytes, const char *metric, struct err *e) MUST_CHECK;
/* Copies a histogram without its empty buckets into the table. */
bool native_add(struct fetch *fe, const struct native *h, double *value, struct err *e) MUST_CHECK;
/* Each number of a histogram multiplied by `factor`, or divided. */
bool native_scale(struct fetch *fe, double value, double factor, bool divides, double *result,
                  struct err *e) MUST_CHECK;
/* a + b, or a - b. */
bool native_join(struct fetch *fe, double a, double b, bool subtracts, double *result,
                 struct err *e) MUST_CHECK;
/* Sets the sum of each group that has histograms at a step, or their mean. EX_USAGE: a group has numbers,
 * too. */
bool native_sum_groups(struct fetch *fe, const struct vector *in, const struct groups *g, size_t step,
                       bool averages, const struct vector *out, struct err *e) MUST_CHECK;

/* The ends of a bucket, the lower one first. */
struct native_ends {
    double low, high;
};

/* Those of bucket `i`, as in Prometheus: a bucket that begins below the limit of zero begins there. The zero
 * bucket ends at 0 where the histogram has no numbers, but has some on the other side. */
struct native_ends native_ends(const struct native *h, size_t i);
/* "count", "sum" and "buckets" as in Prometheus' API. */
void native_write(const struct native *h, struct text *out);
