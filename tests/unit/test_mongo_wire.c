/* What is read of a server's replies, whatever it answers. */
#include "store/mongo/wire/command.h"
#include "store/mongo/wire/field.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static bson_t *document_of(const char *json)
{
    bson_error_t error;
    bson_t *document = bson_new_from_json((const uint8_t *)json, -1, &error);
    assert_non_null(document);
    return document;
}

struct seen {
    char names[16];
    const char *last; /* the walk ends with this one; NULL: with the list */
};

static bool see(void *context, const bson_t *document)
{
    struct seen *s = context;
    const char *name = mongo_text_at(document, "name");
    const size_t len = strlen(s->names);
    snprintf(s->names + len, sizeof s->names - len, "%s", name);
    return s->last == NULL || strcmp(s->last, name) != 0;
}

static void check_list(const char *json, const char *last, bool is_good, const char *names)
{
    struct seen s = {.last = last};
    bson_t *reply = document_of(json);
    assert_int_equal(mongo_each_document(reply, "cursor.firstBatch", see, &s), is_good);
    assert_string_equal(s.names, names);
    bson_destroy(reply);
}

static void test_a_list_has_documents_only(void **state)
{
    (void)state;
    check_list("{\"cursor\": {\"firstBatch\": [{\"name\": \"a\"}, {\"name\": \"b\"}]}}", NULL, true, "ab");
    check_list("{\"cursor\": {\"firstBatch\": [{\"name\": \"a\"}, {\"name\": \"b\"}]}}", "a", true, "a");
    check_list("{\"cursor\": {\"firstBatch\": []}}", NULL, true, "");
    check_list("{\"cursor\": {\"firstBatch\": [{\"name\": \"a\"}, \"b\"]}}", NULL, false, "a");
    check_list("{\"cursor\": {\"firstBatch\": [7, {\"name\": \"b\"}]}}", NULL, false, "");
    check_list("{\"cursor\": {\"firstBatch\": \"a\"}}", NULL, false, "");
    check_list("{\"cursor\": {}}", NULL, false, "");
    check_list("{\"cursor\": 7}", NULL, false, "");
}

static void test_members_of_what_has_none(void **state)
{
    (void)state;
    bson_t *document = document_of("{\"of\": {\"a\": 7, \"list\": [{\"a\": 8}]}, \"a\": 9}");
    bson_iter_t of, found;
    assert_true(mongo_find_member(document, "of", &of));
    assert_true(mongo_find_in(&of, "a", &found));
    assert_int_equal(bson_iter_as_int64(&found), 7);
    assert_false(mongo_find_in(&of, "b", &found));
    assert_true(mongo_find_member(document, "a", &of));
    assert_false(mongo_find_in(&of, "a", &found));
    assert_true(mongo_find_member(document, "of.list", &of));
    assert_false(mongo_find_in(&of, "0", &found)); /* a list is no document */
    assert_true(mongo_begin_members(document, "of.list", &found) && bson_iter_next(&found));
    assert_false(mongo_begin_members(document, "a", &found));
    bson_destroy(document);
}

static void test_arrays_have_numbers_for_names(void **state)
{
    char room[MONGO_KEY_BYTES];
    (void)state;
    assert_string_equal(mongo_array_key(0, room), "0");
    assert_string_equal(mongo_array_key(999, room), "999");
    assert_string_equal(mongo_array_key(1000, room), "1000");
    assert_string_equal(mongo_array_key(UINT32_MAX, room), "4294967295");
}

static void test_members_are_appended_as_they_are(void **state)
{
    (void)state;
    bson_t *document =
        document_of("{\"of\": {\"a\": 7, \"b\": \"x\"}, \"wanted\": {\"a\": 7, \"b\": \"x\"}}");
    bson_t to = BSON_INITIALIZER, wanted;
    bson_iter_t of;
    assert_true(mongo_find_member(document, "of", &of) && mongo_find_document(document, "wanted", &wanted));
    mongo_append_members(&to, &of);
    assert_true(bson_equal(&to, &wanted));
    bson_destroy(&to);
    bson_destroy(document);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_list_has_documents_only),
        cmocka_unit_test(test_members_of_what_has_none),
        cmocka_unit_test(test_arrays_have_numbers_for_names),
        cmocka_unit_test(test_members_are_appended_as_they_are),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
