/* A histogram in a document of MongoDB: as a whole, and by the paths of an update. */
#include "aggregate/sketch.h"
#include "store/mongo/doc/sketch.h"
#include "store/mongo/handle/kind.h"
#include "store/mongo/wire/field.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define ARENA_BYTES 4096
#define ONE         HISTOGRAM_SLOT_OF_ONE

static struct measure histogram_of_bytes(void)
{
    struct measure m = {0};
    struct err e;
    assert_true(measure_parse(&m, slice_text("histogram(bytes)"), &e));
    return m;
}

/* Writes the histogram as a whole, and reads it again: it must be the same. Returns the bucket. */
static bson_t *written(const union sketch *s, struct arena *arena)
{
    const struct measure m = histogram_of_bytes();
    const int64_t columns[MEASURE_COLUMNS_MAX] = {5, 3};
    struct text before = {0}, after = {0};
    union sketch again;
    bson_iter_t bucket;
    bson_t *document = bson_new();
    memset(&again, 0, sizeof again);
    mongo_append_bucket(document, "daily", &m, true, columns, s);
    assert_true(mongo_find_member(document, "daily", &bucket));
    assert_true(mongo_merge_sketch(&m, mongo_bytes_of(&bucket), &again, arena));
    sketch_pack(SKETCH_HISTOGRAM, s, &before);
    sketch_pack(SKETCH_HISTOGRAM, &again, &after);
    assert_true(slice_equal(text_slice(&before), text_slice(&after)));
    text_fini(&before);
    text_fini(&after);
    return document;
}

struct slot {
    int32_t slot;
    const char *path;
};

static void check_slots(const struct slot *slots, size_t count)
{
    struct arena arena;
    bson_iter_t at;
    arena_init(&arena, ARENA_BYTES);
    for (size_t from = 0; from < count; from++) {
        for (size_t to = from; to < count; to++) {
            union sketch s;
            bson_t inc = BSON_INITIALIZER;
            memset(&s, 0, sizeof s);
            for (size_t i = from; i <= to; i++)
                histogram_add(&s.histogram, &arena, slots[i].slot, 10 + (int64_t)i);
            bson_t *document = written(&s, &arena);
            mongo_add_histogram(&inc, "daily", &s.histogram, true);
            assert_int_equal(bson_count_keys(&inc), to - from + 1);
            for (size_t i = from; i <= to; i++) {
                assert_int_equal(mongo_number_at(document, slots[i].path, 0), 10 + (int64_t)i);
                assert_true(bson_iter_init_find(&at, &inc, slots[i].path));
                assert_int_equal(bson_iter_int64(&at), -10 - (int64_t)i);
            }
            bson_destroy(&inc);
            bson_destroy(document);
        }
    }
    arena_fini(&arena);
}

static void test_slots_are_members_by_their_sign(void **state)
{
    (void)state;
    static const struct slot slots[] = {
        {-ONE - 17, "daily.negative.17"},
        {-1, "daily.negative.-318"},
        {0, "daily.zero"},
        {1, "daily.buckets.-318"},
        {ONE, "daily.buckets.0"},
        {ONE + 40, "daily.buckets.40"},
        {HISTOGRAM_SLOTS - 1, "daily.buckets.1008"},
    };
    check_slots(slots, COUNT_OF(slots));
}

/* Buckets that only schema 8 has. */
static void test_fine_slots_are_members_of_their_schema(void **state)
{
    (void)state;
    static const struct slot slots[] = {
        {-HISTOGRAM_SLOT_END + 1, "daily.negative_8.16128"},
        {0, "daily.zero"},
        {HISTOGRAM_FIRST(8) + 1, "daily.buckets_8.-5118"},
        {HISTOGRAM_FIRST(8) + 5119, "daily.buckets_8.0"},
        {HISTOGRAM_FIRST(8) + 5119 + 40, "daily.buckets_8.40"},
    };
    check_slots(slots, COUNT_OF(slots));
}

static void test_keys_of_no_slot_are_damage(void **state)
{
    static const char *const damaged[] = {
        "{\"buckets\": {\"-319\": 1}}",
        "{\"buckets\": {\"1009\": 1}}",
        "{\"negative\": {\"1009\": 1}}",
        "{\"buckets_8\": {\"-5119\": 1}}",
        "{\"buckets_8\": {\"16129\": 1}}",
        "{\"negative_5\": {\"2017\": 1}}",
        "{\"buckets\": {\"1\": -1}}",
        "{\"buckets\": {\"1\": \"x\"}}",
        "{\"buckets\": {\"x\": 1}}",
        "{\"buckets\": [1]}",
        "{\"negative\": 1}",
        "{\"zero\": {}}",
    };
    const struct measure m = histogram_of_bytes();
    struct arena arena;
    (void)state;
    arena_init(&arena, ARENA_BYTES);
    for (size_t i = 0; i < COUNT_OF(damaged); i++) {
        union sketch s;
        bson_error_t error;
        bson_t *document = bson_new_from_json((const uint8_t *)damaged[i], -1, &error);
        memset(&s, 0, sizeof s);
        assert_non_null(document);
        const struct slice bytes = slice_of((const char *)bson_get_data(document), document->len);
        assert_false(mongo_merge_sketch(&m, bytes, &s, &arena));
        bson_destroy(document);
    }
    arena_fini(&arena);
}

/* The BSON of a time bucket whose histogram has every bucket that numbers of an event can have. */
static size_t fullest(const char *expression, int signs)
{
    struct measure m = {0};
    struct err e;
    struct arena arena;
    union sketch s;
    bson_t document = BSON_INITIALIZER;
    const int64_t columns[MEASURE_COLUMNS_MAX] = {INT64_MAX, 1, INT64_MAX};
    assert_true(measure_parse(&m, slice_text(expression), &e));
    memset(&s, 0, sizeof s);
    arena_init(&arena, ARENA_BYTES);
    histogram_add(&s.histogram, &arena, 0, INT64_MAX);
    for (int32_t nth = 1; nth < HISTOGRAM_NTHS(m.layout->unit); nth++) {
        const int32_t slot = histogram_slot_of_nth(nth, m.layout->unit);
        if (m.layout->last[nth] == m.layout->last[nth - 1] ||
            m.layout->last[nth - 1] >= (m.is_fraction ? EVENT_DECIMAL_MAX : EVENT_NUMBER_MAX))
            continue;
        histogram_add(&s.histogram, &arena, slot, INT64_MAX);
        if (signs == 2)
            histogram_add(&s.histogram, &arena, -slot, INT64_MAX);
    }
    mongo_append_bucket(&document, "minute", &m, true, columns, &s);
    const size_t bytes = document.len;
    bson_destroy(&document);
    arena_fini(&arena);
    return bytes;
}

#define MORE_BYTES 4096 /* of a document beside its time buckets: dimensions, and what the protocol writes */

static void test_documents_are_bounded_by_any_numbers(void **state)
{
    static const char *const fine[] = {"histogram(value, schema=8)", "histogram(value, schema=7)",
                                       "histogram(value, schema=5)", "histogram(bytes, schema=8)"};
    (void)state;
    for (size_t i = 0; i < COUNT_OF(fine); i++) {
        assert_in_range(fullest(fine[i], 2), 1 << 10, MONGO_SKETCH_BYTES_MAX - MORE_BYTES);
        assert_in_range(fullest(fine[i], 1), 1 << 10, ((size_t)256 << 10) - MORE_BYTES);
    }
    assert_in_range(60 * fullest("histogram(value)", 2), 1 << 20, MONGO_HISTOGRAM_BYTES_MAX - MORE_BYTES);
    assert_in_range(60 * fullest("histogram(bytes)", 1), 1 << 19, MONGO_HISTOGRAM_BYTES_MAX - MORE_BYTES);
    assert_in_range(RECENT_MAX * RECENT_EVENT_BYTES, 1, ((size_t)256 << 10) - MORE_BYTES);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_slots_are_members_by_their_sign),
        cmocka_unit_test(test_fine_slots_are_members_of_their_schema),
        cmocka_unit_test(test_documents_are_bounded_by_any_numbers),
        cmocka_unit_test(test_keys_of_no_slot_are_damage),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
