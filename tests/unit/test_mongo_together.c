/* Which updates of a chunk go together, and as what. */
#include "store/mongo/send/together.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

struct given {
    struct mongo_chunk chunk;
    bson_t command;
    struct mongo_together together;
};

/* Appends an update of a document of its own. */
static void add(struct given *g, const char *change)
{
    static char ids[MONGO_CHUNK_UPDATES][32];
    bson_error_t error;
    struct mongo_chunk *c = &g->chunk;
    bson_t *u = bson_new_from_json((const uint8_t *)change, -1, &error);
    assert_non_null(u);
    snprintf(ids[c->count], sizeof ids[0], "20101010/%zu", c->count);
    bson_t *update =
        BCON_NEW("c", "pages.day", "f", "{", "_id", ids[c->count], "metadata.path", "x", "applied.w0", "{",
                 "$not", "{", "$gte", BCON_INT64(7), "}", "}", "}", "u", BCON_DOCUMENT(u));
    c->ids[c->count] = ids[c->count];
    c->at[c->count++] = c->raw.len;
    text_add(&c->raw, (const char *)bson_get_data(update), update->len);
    bson_destroy(update);
    bson_destroy(u);
}

/* Appends an update that adds hits at `path`. */
static void add_hits(struct given *g, const char *path, int64_t hits)
{
    char change[256];
    snprintf(change, sizeof change,
             "{\"$inc\": {\"%s\": {\"$numberLong\": \"%lld\"}, \"daily\": {\"$numberLong\": \"%lld\"}},"
             " \"$set\": {\"applied.w0\": {\"$numberLong\": \"7\"}}, \"$setOnInsert\": {\"v\": 5}}",
             path, (long long)hits, (long long)hits);
    add(g, change);
}

static void check(struct given *g, bool pipelines, size_t count, size_t many, size_t of_pipelines)
{
    mongo_together_write(&g->chunk, pipelines, &g->command, &g->together);
    assert_int_equal(g->together.count, count);
    assert_int_equal(g->together.many, many);
    assert_int_equal(g->together.pipelines, of_pipelines);
    size_t marked = 0;
    for (size_t i = 0; i < count; i++)
        marked += g->together.is_pipeline[i];
    assert_int_equal(marked, of_pipelines);
    bson_destroy(&g->command);
}

static void end(struct given *g)
{
    text_fini(&g->chunk.raw);
}

static void test_alike_ones_are_one(void **state)
{
    (void)state;
    struct given g = {.together = {0}};
    for (int i = 0; i < TOGETHER_ALIKE_MIN; i++)
        add_hits(&g, "hourly.3", 1);
    add_hits(&g, "hourly.3", 2);
    check(&g, true, 2, 1, 0);
    end(&g);
}

static void test_differing_ones_are_pipelines_of_about_one_size(void **state)
{
    (void)state;
    struct given g = {.together = {0}};
    for (int i = 0; i < TOGETHER_DIFFER_MAX + 1; i++)
        add_hits(&g, "hourly.3", i);
    check(&g, true, 2, 2, 2);
    check(&g, false, TOGETHER_DIFFER_MAX + 1, 0, 0);
    for (int i = 0; i < TOGETHER_DIFFER_MIN - 1; i++)
        add_hits(&g, "hourly.4", i); /* too few at other paths */
    check(&g, true, 2 + TOGETHER_DIFFER_MIN - 1, 2, 2);
    end(&g);
}

static void test_others_go_one_by_one(void **state)
{
    static const char *const forms[] = {
        "{\"$inc\": {\"daily\": {\"$numberLong\": \"-%d\"}}}",
        "{\"$inc\": {\"daily\": {\"$numberLong\": \"46116860184273879%02d\"}}}",
        "{\"$inc\": {\"daily\": {\"$numberDecimal\": \"%d\"}}}",
        "{\"$inc\": {\"daily\": {\"$numberInt\": \"%d\"}}}",
        "{\"$inc\": {\"daily\": {\"$numberLong\": \"%d\"}}, \"$set\": {\"name\": \"$daily\"}}",
        "{\"$inc\": {\"daily\": {\"$numberLong\": \"%d\"}}, \"$max\": {\"high\": {\"$numberLong\": \"1\"}}}",
        "{\"$max\": {\"daily\": {\"$numberLong\": \"%d\"}}}",
    };
    (void)state;
    for (size_t f = 0; f < sizeof forms / sizeof *forms; f++) {
        struct given g = {.together = {0}};
        for (int i = 1; i <= 2 * TOGETHER_DIFFER_MIN; i++) {
            char change[256];
            snprintf(change, sizeof change, forms[f], i + 9);
            add(&g, change);
        }
        check(&g, true, g.chunk.count, 0, 0);
        end(&g);
    }
}

/* Paths with equal numbers share a column: the row of a document has 9 once. */
static void test_the_numbers_of_a_pipeline(void **state)
{
    (void)state;
    struct given g = {.together = {0}};
    bson_iter_t it, found;
    for (int i = 0; i < TOGETHER_DIFFER_MIN; i++)
        add_hits(&g, "hourly.3", i);
    mongo_together_write(&g.chunk, true, &g.command, &g.together);
    assert_true(bson_iter_init(&it, &g.command));
    assert_true(bson_iter_find_descendant(&it, "updates.0.u.0.$set._row.$arrayElemAt.0.9", &found));
    assert_true(bson_iter_recurse(&found, &it) && bson_iter_next(&it));
    int64_t number = bson_iter_int64(&it);
    assert_false(bson_iter_next(&it));
    char path[128];
    assert_true(bson_iter_init(&it, &g.command));
    snprintf(path, sizeof path, "updates.0.u.0.$set._row.$arrayElemAt.1.$indexOfArray.0.$literal.9");
    assert_true(bson_iter_find_descendant(&it, path, &found));
    snprintf(path, sizeof path, "20101010/%lld", (long long)number); /* as its update has it */
    assert_string_equal(bson_iter_utf8(&found, NULL), path);
    bson_destroy(&g.command);
    end(&g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_alike_ones_are_one),
        cmocka_unit_test(test_differing_ones_are_pipelines_of_about_one_size),
        cmocka_unit_test(test_others_go_one_by_one),
        cmocka_unit_test(test_the_numbers_of_a_pipeline),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
