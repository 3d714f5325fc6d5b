/* A histogram in a document of MongoDB: as a whole, and by the paths of an update. */
#include "aggregate/sketch.h"
#include "store/mongo/doc/sketch.h"
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

static void test_slots_are_members_by_their_sign(void **state)
{
    static const struct {
        int32_t slot;
        const char *path;
    } slots[] = {
        {-ONE - 17, "daily.negative.17"},
        {-1, "daily.negative.-318"},
        {0, "daily.zero"},
        {1, "daily.buckets.-318"},
        {ONE, "daily.buckets.0"},
        {ONE + 40, "daily.buckets.40"},
        {HISTOGRAM_SLOTS - 1, "daily.buckets.1008"},
    };
    struct arena arena;
    bson_iter_t at;
    (void)state;
    arena_init(&arena, ARENA_BYTES);
    for (size_t from = 0; from < COUNT_OF(slots); from++) {
        for (size_t to = from; to < COUNT_OF(slots); to++) {
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

static void test_keys_of_no_slot_are_damage(void **state)
{
    static const char *const damaged[] = {
        "{\"buckets\": {\"-319\": 1}}",
        "{\"buckets\": {\"1009\": 1}}",
        "{\"negative\": {\"1009\": 1}}",
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_slots_are_members_by_their_sign),
        cmocka_unit_test(test_keys_of_no_slot_are_damage),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
