#include "store/mongo/doc/sketch.h"

#include "store/mongo/doc/document.h"
#include "store/mongo/doc/nest.h"
#include "store/mongo/wire/field.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* A member that is a document of numbers. Its keys are numbers to this base; `take` takes one of them, or
 * returns false: there is no such key, or no such number. */
struct members {
    const char *name;
    enum measure_kind kind;
    int base;
    bool (*take)(union sketch *to, struct arena *arena, const struct members *of, int64_t key,
                 int64_t number);
    int schema; /* of buckets */
};

/* ---- histograms */

const char *mongo_buckets_name(const char *member, int schema, char buf[MONGO_FINE_BYTES])
{
    if (schema <= HISTOGRAM_SCHEMA)
        return member;
    snprintf(buf, MONGO_FINE_BYTES, "%s_%d", member, schema);
    return buf;
}

/* The bucket of zero is a number itself. */
static void add_bucket(bson_t *inc, const char *path, const struct histogram_bucket *b, bool takes)
{
    char name[256], fine[MONGO_FINE_BYTES];
    const int unit = histogram_unit(b->slot);
    if (b->slot == 0)
        snprintf(name, sizeof name, "%s." MONGO_ZERO, path);
    else
        snprintf(name, sizeof name, "%s.%s.%" PRId32, path,
                 mongo_buckets_name(b->slot > 0 ? MONGO_BUCKETS : MONGO_NEGATIVE, unit, fine),
                 histogram_index(b->slot, unit));
    bson_append_int64(inc, name, -1, takes ? -b->count : b->count);
}

void mongo_add_histogram(bson_t *inc, const char *path, const struct histogram *h, bool takes)
{
    struct histogram_walk w = histogram_walk(h);
    struct histogram_bucket b;
    while (histogram_next(&w, &b))
        add_bucket(inc, path, &b, takes);
}

/* Adds the count of a slot. */
static bool take_count(struct histogram *h, struct arena *arena, int32_t slot, int64_t n)
{
    if (n > 0)
        histogram_add(h, arena, slot, n);
    return n >= 0;
}

/* The slot of a key among positive numbers; 0: there is none. */
static int32_t slot_of(int64_t key, int schema)
{
    const int64_t nth = key + histogram_nth_of_one(schema);
    return nth > 0 && nth < HISTOGRAM_NTHS(schema) ? histogram_slot_of_nth((int32_t)nth, schema) : 0;
}

static bool take_positive(union sketch *to, struct arena *arena, const struct members *of, int64_t key,
                          int64_t n)
{
    const int32_t slot = slot_of(key, of->schema);
    return slot != 0 && take_count(&to->histogram, arena, slot, n);
}

static bool take_negative(union sketch *to, struct arena *arena, const struct members *of, int64_t key,
                          int64_t n)
{
    const int32_t slot = slot_of(key, of->schema);
    return slot != 0 && take_count(&to->histogram, arena, -slot, n);
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

static bool take_entry(union sketch *to, struct arena *arena, const struct members *of, int64_t bits,
                       int64_t rank)
{
    (void)of;
    if (bits < 0 || bits >> DISTINCT_ENTRY_BITS != 0 || rank < 0 || rank > 63 ||
        !distinct_entry_is_valid((uint64_t)(bits << 6 | rank)))
        return false;
    distinct_add_entry(&to->distinct, arena, (uint32_t)(bits << 6 | rank));
    return true;
}

static bool take_register(union sketch *to, struct arena *arena, const struct members *of, int64_t number,
                          int64_t rank)
{
    (void)of;
    return distinct_add_register(&to->distinct, arena, number, rank);
}

/* ---- a bucket as a whole */

/* Even a count of no text has the member by which others tell it from a number. */
static void append_no_entries(bson_t *flat, const char *name)
{
    char path[256];
    snprintf(path, sizeof path, "%s." MONGO_ENTRIES, name);
    BCON_APPEND(flat, path, "{", "}");
}

void mongo_append_bucket(bson_t *to, const char *name, const struct measure *m, bool as_decimal,
                         const int64_t *columns, const union sketch *s)
{
    bson_t flat = BSON_INITIALIZER;
    mongo_add_value(&flat, &flat, &flat, m, as_decimal, name, columns);
    if (m->kind == MEASURE_HISTOGRAM)
        mongo_add_histogram(&flat, name, &s->histogram, false);
    else if (s->distinct.count > 0 || s->distinct.mask == DISTINCT_MANY)
        mongo_add_distinct(&flat, name, &s->distinct, false);
    else
        append_no_entries(&flat, name);
    mongo_append_nested(to, name, &flat);
    bson_destroy(&flat);
}

/* ---- newest events */

static void add_events(bson_t *to, struct slice packed)
{
    struct slice document;
    bson_t events, event;
    uint32_t count = 0;
    BSON_APPEND_ARRAY_BEGIN(to, "$each", &events);
    while (recent_next(&packed, &document)) {
        char room[MONGO_KEY_BYTES];
        ASSERT(bson_init_static(&event, (const uint8_t *)document.ptr, document.len));
        bson_append_document(&events, mongo_array_key(count++, room), -1, &event);
    }
    bson_append_array_end(to, &events);
}

void mongo_add_newest(bson_t *push, const char *path, const struct recent *newest)
{
    char name[256];
    struct text packed = {0};
    bson_t of;
    recent_pack(newest, &packed);
    struct slice rest = text_slice(&packed);
    const uint32_t limit = recent_begin(&rest);
    ASSERT(limit > 0);
    snprintf(name, sizeof name, "%s." MONGO_EVENTS, path);
    bson_append_document_begin(push, name, -1, &of);
    add_events(&of, rest);
    BCON_APPEND(&of, "$sort", "{", "time", BCON_INT32(-1), "at", BCON_INT32(-1), "}", "$slice",
                BCON_INT32((int32_t)limit));
    bson_append_document_end(push, &of);
    text_fini(&packed);
}

/* Reads the events, which must be in order, each once, and no more than are kept. */
static bool read_events(const struct measure *m, const bson_iter_t *value, struct recent *to,
                        struct arena *arena)
{
    struct slice before = {NULL, 0}, place;
    bson_iter_t at;
    uint32_t count = 0;
    if (!BSON_ITER_HOLDS_ARRAY(value) || !bson_iter_recurse(value, &at))
        return false;
    while (bson_iter_next(&at)) {
        const uint8_t *bytes;
        uint32_t len;
        int64_t at_ms;
        if (!BSON_ITER_HOLDS_DOCUMENT(&at))
            return false;
        bson_iter_document(&at, &len, &bytes);
        const struct slice event = slice_of((const char *)bytes, len);
        if (++count > m->newest || !recent_key(event, &at_ms, &place) ||
            (before.ptr != NULL && recent_compare(event, before) >= 0))
            return false;
        recent_add(to, arena, m->newest, event);
        before = event;
    }
    return true;
}

/* ---- any */

static const struct members all_members[] = {{MONGO_BUCKETS, MEASURE_HISTOGRAM, 10, take_positive, 4},
                                             {MONGO_BUCKETS "_5", MEASURE_HISTOGRAM, 10, take_positive, 5},
                                             {MONGO_BUCKETS "_6", MEASURE_HISTOGRAM, 10, take_positive, 6},
                                             {MONGO_BUCKETS "_7", MEASURE_HISTOGRAM, 10, take_positive, 7},
                                             {MONGO_BUCKETS "_8", MEASURE_HISTOGRAM, 10, take_positive, 8},
                                             {MONGO_NEGATIVE, MEASURE_HISTOGRAM, 10, take_negative, 4},
                                             {MONGO_NEGATIVE "_5", MEASURE_HISTOGRAM, 10, take_negative, 5},
                                             {MONGO_NEGATIVE "_6", MEASURE_HISTOGRAM, 10, take_negative, 6},
                                             {MONGO_NEGATIVE "_7", MEASURE_HISTOGRAM, 10, take_negative, 7},
                                             {MONGO_NEGATIVE "_8", MEASURE_HISTOGRAM, 10, take_negative, 8},
                                             {MONGO_ENTRIES, MEASURE_DISTINCT, 16, take_entry, 0},
                                             {MONGO_REGISTERS, MEASURE_DISTINCT, 10, take_register, 0}};

static bool read_members(const struct members *of, const bson_iter_t *value, union sketch *to,
                         struct arena *arena)
{
    bson_iter_t at;
    char *end;
    if (!BSON_ITER_HOLDS_DOCUMENT(value) || !bson_iter_recurse(value, &at))
        return false;
    while (bson_iter_next(&at)) {
        const char *name = bson_iter_key(&at);
        const int64_t key = strtoll(name, &end, of->base);
        if (end == name || *end != '\0' || !BSON_ITER_HOLDS_NUMBER(&at) ||
            !of->take(to, arena, of, key, bson_iter_as_int64(&at)))
            return false;
    }
    return true;
}

bool mongo_merge_sketch(const struct measure *m, struct slice value, union sketch *to, struct arena *arena)
{
    bson_iter_t at;
    bool good = bson_iter_init_from_data(&at, (const uint8_t *)value.ptr, value.len);
    while (good && bson_iter_next(&at)) {
        const char *name = bson_iter_key(&at);
        if (m->kind == MEASURE_HISTOGRAM && strcmp(name, MONGO_ZERO) == 0)
            good =
                BSON_ITER_HOLDS_NUMBER(&at) && take_count(&to->histogram, arena, 0, bson_iter_as_int64(&at));
        if (m->kind == MEASURE_NEWEST && strcmp(name, MONGO_EVENTS) == 0)
            good = read_events(m, &at, &to->recent, arena);
        for (size_t i = 0; good && i < COUNT_OF(all_members); i++) {
            if (m->kind == all_members[i].kind && strcmp(name, all_members[i].name) == 0)
                good = read_members(&all_members[i], &at, to, arena);
        }
    }
    return good;
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
