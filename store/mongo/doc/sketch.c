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

void mongo_add_histogram(bson_t *inc, const char *path, const struct histogram *h, bool takes)
{
    struct histogram_walk w = histogram_walk(h);
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

/* ---- distinct counts */

void mongo_add_distinct(bson_t *max, const char *path, const struct distinct *d, bool as_registers)
{
    char name[256];
    uint8_t ranks[DISTINCT_REGISTERS];
    uint32_t places;
    if (!as_registers && d->mask != DISTINCT_MANY) {
        const uint32_t *entries = distinct_entries(d, &places);
        for (uint32_t i = 0; i < places; i++) {
            snprintf(name, sizeof name, "%s." MONGO_ENTRIES ".%07" PRIx32, path, entries[i] >> 6);
            if (entries[i] != 0)
                bson_append_int32(max, name, -1, (int32_t)(entries[i] & 63));
        }
        return;
    }
    distinct_ranks(d, ranks);
    for (uint32_t i = 0; i < DISTINCT_REGISTERS; i++) {
        snprintf(name, sizeof name, "%s." MONGO_REGISTERS ".%" PRIu32, path, i);
        if (ranks[i] > 0)
            bson_append_int32(max, name, -1, ranks[i]);
    }
}

static bool read_entries(struct distinct *d, struct arena *arena, const bson_iter_t *value)
{
    bson_iter_t at;
    char *end;
    if (!BSON_ITER_HOLDS_DOCUMENT(value) || !bson_iter_recurse(value, &at))
        return false;
    while (bson_iter_next(&at)) {
        const uint64_t bits = strtoull(bson_iter_key(&at), &end, 16),
                       rank = (uint64_t)bson_iter_as_int64(&at);
        if (*end != '\0' || bits >> DISTINCT_ENTRY_BITS != 0 || rank > 63 ||
            !distinct_entry_is_valid(bits << 6 | rank))
            return false;
        distinct_add_entry(d, arena, (uint32_t)(bits << 6 | rank));
    }
    return true;
}

static bool read_registers(struct distinct *d, struct arena *arena, const bson_iter_t *value)
{
    bson_iter_t at;
    char *end;
    if (!BSON_ITER_HOLDS_DOCUMENT(value) || !bson_iter_recurse(value, &at))
        return false;
    while (bson_iter_next(&at)) {
        const long number = strtol(bson_iter_key(&at), &end, 10);
        if (*end != '\0' || !distinct_add_register(d, arena, number, bson_iter_as_int64(&at)))
            return false;
    }
    return true;
}

static bool read_distinct(struct distinct *d, struct arena *arena, bson_iter_t *at)
{
    bool good = true;
    while (good && bson_iter_next(at)) {
        const char *name = bson_iter_key(at);
        if (strcmp(name, MONGO_ENTRIES) == 0)
            good = read_entries(d, arena, at);
        else if (strcmp(name, MONGO_REGISTERS) == 0)
            good = read_registers(d, arena, at);
    }
    return good;
}

/* ---- either */

bool mongo_merge_sketch(const struct measure *m, struct slice value, union sketch *to, struct arena *arena)
{
    bson_iter_t at;
    return bson_iter_init_from_data(&at, (const uint8_t *)value.ptr, value.len) &&
           (m->kind == MEASURE_HISTOGRAM ? read_histogram(&to->histogram, arena, &at)
                                         : read_distinct(&to->distinct, arena, &at));
}

bool mongo_read_sketch(const struct measure *m, struct slice value, struct sketch_work *work,
                       struct text *packed)
{
    union sketch s;
    memset(&s, 0, sizeof s);
    if (!mongo_merge_sketch(m, value, &s, sketch_work_ready(work)))
        return false;
    sketch_pack(measure_sketch_kind(m), &s, packed);
    return true;
}
