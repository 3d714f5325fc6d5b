/* The log of a batch, as a recovery gets it from the database: as it was written, or refused. */
#include "store/mongo/handle/log.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define UPDATES 500

static void write_log(struct mongo_log *log, const bson_t *other)
{
    mongo_log_begin(log);
    for (int i = 0; i < UPDATES; i++) {
        bson_t *update =
            BCON_NEW("c", "pages.day", "f", "{", "_id", "20101010/a", "applied.w0", "{", "$not", "{", "$gte",
                     BCON_INT64(7), "}", "}", "}", "u", "{", "$inc", "{", "daily", BCON_INT64(i), "}", "}");
        mongo_log_add(log, update);
        bson_destroy(update);
    }
    if (other != NULL)
        mongo_log_add(log, other);
    mongo_log_end(log);
}

static void test_whole(void **state)
{
    struct mongo_log log = {0};
    struct err e;
    (void)state;
    write_log(&log, NULL);
    assert_true(mongo_log_check(text_slice(&log.packed), &e));
    mongo_log_fini(&log);
}

/* All updates, one behind the other. */
static void unpack(const struct mongo_log *log, struct text *all)
{
    struct mongo_log_reader r;
    const bson_t *update;
    struct err e;
    text_clear(all);
    mongo_log_open(&r, text_slice(&log->packed));
    while (mongo_log_next(&r, &update, &e) && update != NULL)
        text_add(all, (const char *)bson_get_data(update), update->len);
    mongo_log_close(&r);
}

/* Some bits have no meaning: then all is as it was. */
static void test_any_bit_flipped(void **state)
{
    struct mongo_log log = {0};
    struct text was = {0}, is = {0};
    size_t refused = 0;
    (void)state;
    write_log(&log, NULL);
    unpack(&log, &was);
    for (size_t i = 0; i < log.packed.len * 8; i++) {
        struct err e;
        log.packed.ptr[i / 8] ^= (char)(1 << i % 8);
        if (mongo_log_check(text_slice(&log.packed), &e)) {
            unpack(&log, &is);
            assert_true(slice_equal(text_slice(&was), text_slice(&is)));
        } else {
            assert_int_equal(e.code, EX_DATAERR);
            refused++;
        }
        log.packed.ptr[i / 8] ^= (char)(1 << i % 8);
    }
    assert_true(refused > log.packed.len * 7);
    text_fini(&was);
    text_fini(&is);
    mongo_log_fini(&log);
}

static void test_cut_anywhere(void **state)
{
    struct mongo_log log = {0};
    (void)state;
    write_log(&log, NULL);
    for (size_t len = 0; len < log.packed.len; len++) {
        struct err e;
        assert_false(mongo_log_check(slice_of(log.packed.ptr, len), &e));
        assert_int_equal(e.code, EX_DATAERR);
    }
    mongo_log_fini(&log);
}

/* Well packed, and not what a version of tallyd writes. */
static void test_another_shape(void **state)
{
    static const char *const shapes[] = {"{}",
                                         "{\"c\": 1, \"f\": {\"_id\": \"a\"}, \"u\": {}}",
                                         "{\"c\": \"a\", \"f\": {\"_id\": 1}, \"u\": {}}",
                                         "{\"c\": \"a\", \"f\": {}, \"u\": {}}",
                                         "{\"c\": \"a\", \"f\": 1, \"u\": {}}",
                                         "{\"c\": \"a\", \"f\": {\"_id\": \"a\"}}",
                                         "{\"c\": \"a\", \"f\": {\"_id\": \"a\"}, \"u\": []}",
                                         "{\"c\": \"a\", \"f\": {\"_id\": \"a\"}, \"u\": {\"$inc\": 1}}"};
    (void)state;
    for (size_t i = 0; i < COUNT_OF(shapes); i++) {
        struct mongo_log log = {0};
        struct err e;
        bson_t *other = bson_new_from_json((const uint8_t *)shapes[i], -1, NULL);
        write_log(&log, other);
        assert_false(mongo_log_check(text_slice(&log.packed), &e));
        assert_int_equal(e.code, EX_DATAERR);
        bson_destroy(other);
        mongo_log_fini(&log);
    }
}

/* More than a server takes is damage, however much the log has of it. */
static void test_long_updates(void **state)
{
    static const struct {
        size_t bytes;
        bool good;
    } rows[] = {{1, true},         {1000, true},     {3 << 20, true}, {(32 << 20) - 100, true},
                {40 << 20, false}, {70 << 20, false}};
    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct mongo_log log = {0};
        struct err e;
        char *id = malloc(rows[i].bytes + 1);
        memset(id, 'x', rows[i].bytes);
        id[rows[i].bytes] = '\0';
        bson_t *other = BCON_NEW("c", "pages.day", "f", "{", "_id", BCON_UTF8(id), "}", "u", "{", "}");
        write_log(&log, other);
        assert_int_equal(mongo_log_check(text_slice(&log.packed), &e), rows[i].good);
        bson_destroy(other);
        mongo_log_fini(&log);
        free(id);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_whole),        cmocka_unit_test(test_any_bit_flipped),
        cmocka_unit_test(test_cut_anywhere), cmocka_unit_test(test_another_shape),
        cmocka_unit_test(test_long_updates),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
