#include "store/mongo/doc/sketch.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define ZERO     "zero"
#define BUCKETS  "buckets"
#define NEGATIVE "negative"

/* ---- histograms */

static void add_bucket(bson_t *inc, const char *path, const struct histogram_bucket *b, bool takes)
{
    char name[256];
    const int64_t count = takes ? -b->count : b->count;
    if (b->slot == 0)
        snprintf(name, sizeof name, "%s." ZERO, path);
    else if (b->slot > 0)
        snprintf(name, sizeof name, "%s." BUCKETS ".%" PRId32, path, b->slot - HISTOGRAM_SLOT_OF_ONE);
    else
        snprintf(name, sizeof name, "%s." NEGATIVE ".%" PRId32, path, -b->slot - HISTOGRAM_SLOT_OF_ONE);
    bson_append_int64(inc, name, -1, count);
}

void mongo_add_sketch(bson_t *inc, const struct measure *m, const char *path, const union sketch *sketch,
                      bool takes)
{
    ASSERT(m->kind == MEASURE_HISTOGRAM);
    struct histogram_walk w = histogram_walk(&sketch->histogram);
    struct histogram_bucket b;
    while (histogram_next(&w, &b))
        add_bucket(inc, path, &b, takes);
}

/* Adds a slot's count; false: there is no such slot, or no such count. */
static bool read_count(struct histogram *h, struct arena *arena, int64_t slot, const bson_iter_t *count)
{
    const int64_t n = bson_iter_as_int64(count);
    if (slot <= -HISTOGRAM_SLOTS || slot >= HISTOGRAM_SLOTS || n < 0)
        return false;
    if (n > 0)
        histogram_add(h, arena, (int32_t)slot, n);
    return true;
}

/* Reads `buckets`, or `negative` with sign -1. */
static bool read_buckets(struct histogram *h, struct arena *arena, int sign, const bson_iter_t *value)
{
    bson_iter_t at;
    char *end;
    if (!BSON_ITER_HOLDS_DOCUMENT(value) || !bson_iter_recurse(value, &at))
        return false;
    while (bson_iter_next(&at)) {
        const long index = strtol(bson_iter_key(&at), &end, 10);
        if (*end != '\0' || index <= -HISTOGRAM_SLOT_OF_ONE || index >= HISTOGRAM_SLOTS ||
            !read_count(h, arena, sign * (index + HISTOGRAM_SLOT_OF_ONE), &at))
            return false;
    }
    return true;
}

static bool read_histogram(struct histogram *h, struct arena *arena, bson_iter_t *at)
{
    bool good = true;
    while (good && bson_iter_next(at)) {
        const char *name = bson_iter_key(at);
        if (strcmp(name, ZERO) == 0)
            good = read_count(h, arena, 0, at);
        else if (strcmp(name, BUCKETS) == 0)
            good = read_buckets(h, arena, 1, at);
        else if (strcmp(name, NEGATIVE) == 0)
            good = read_buckets(h, arena, -1, at);
    }
    return good;
}

bool mongo_read_sketch(const struct measure *m, struct slice value, struct sketch_work *work,
                       struct text *packed)
{
    struct arena *arena = sketch_work_ready(work);
    union sketch s;
    bson_iter_t at;
    memset(&s, 0, sizeof s);
    ASSERT(m->kind == MEASURE_HISTOGRAM);
    if (!bson_iter_init_from_data(&at, (const uint8_t *)value.ptr, value.len) ||
        !read_histogram(&s.histogram, arena, &at))
        return false;
    sketch_pack(measure_sketch_kind(m), &s, packed);
    return true;
}
