#include "ingest/file/identity.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static char bytes[3 * IDENTITY_PREFIX_BYTES_MAX];

static int fill(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (char)(i * 2654435761u >> 13);
    return 0;
}

static void test_identity_of_known_bytes_is_stable(void **state)
{
    (void)state;
    char buf[IDENTITY_TEXT_BYTES];
    /* XXH3-64 of "a", so that a store written by one build is understood by the next */
    assert_string_equal(identity_print(identity_of(slice_text("a")), buf), "file:1:e6c632b61e964e1f");
    assert_int_equal(identity_of(slice_of(bytes, sizeof bytes)).len, IDENTITY_PREFIX_BYTES_MAX);
}

static void test_identity_parse_reads_what_print_writes(void **state)
{
    (void)state;
    char buf[IDENTITY_TEXT_BYTES];
    for (size_t len = 1; len <= IDENTITY_PREFIX_BYTES_MAX; len += 97) {
        struct identity id = identity_of(slice_of(bytes, len)), read;
        assert_true(identity_parse(slice_text(identity_print(id, buf)), &read));
        assert_true(read.len == id.len && read.hash == id.hash);
    }
}

static void test_identity_parse_refuses_other_spellings(void **state)
{
    (void)state;
    static const char *const wrong[] = {"",
                                        "file:",
                                        "file:1:",
                                        "file:0:e6c632b61e964e1f",
                                        "file:4097:e6c632b61e964e1f",
                                        "file:01:e6c632b61e964e1f",
                                        "file:-1:e6c632b61e964e1f",
                                        "file: 1:e6c632b61e964e1f",
                                        "file:1:E6C632B61E964E1F",
                                        "file:1:e6c632b61e964e1",
                                        "file:1:e6c632b61e964e1f0",
                                        "file:1:e6c632b61e964e1f ",
                                        "file:1:0xc632b61e964e1f1",
                                        "kafka:access",
                                        "file:1:e6c632b61e964e1f and much more text than fits"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct identity id = {7, 7};
        assert_false(identity_parse(slice_text(wrong[i]), &id));
        assert_int_equal(id.len, 7);
    }
    struct identity id;
    assert_false(identity_parse(slice_of("file:1:e6c632b61e964e1f\0", 24), &id));
}

static void test_identity_matches_the_grown_file_and_no_other(void **state)
{
    (void)state;
    struct identity young = identity_of(slice_of(bytes, 100));
    assert_true(identity_matches(young, slice_of(bytes, 100)));
    assert_true(identity_matches(young, slice_of(bytes, sizeof bytes)));
    assert_false(identity_matches(young, slice_of(bytes, 99)));
    assert_false(identity_matches(young, slice_of(bytes + 1, 100)));
    assert_false(identity_matches(young, slice_of(bytes, 0)));
}

static void test_identity_tail_is_of_the_last_bytes_only(void **state)
{
    (void)state;
    uint32_t len, same_len;
    uint64_t hash = identity_tail(slice_of(bytes, 9000), &len);
    assert_int_equal(len, IDENTITY_TAIL_BYTES_MAX);
    assert_true(hash == identity_tail(slice_of(bytes + 9000 - 4096, 4096), &same_len));
    assert_true(hash != identity_tail(slice_of(bytes, 8999), &len));
    identity_tail(slice_of(bytes, 10), &len);
    assert_int_equal(len, 10);
    uint64_t empty = identity_tail(slice_of(NULL, 0), &len);
    assert_int_equal(len, 0);
    assert_true(empty == identity_tail(slice_text(""), &len));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_identity_of_known_bytes_is_stable),
        cmocka_unit_test(test_identity_parse_reads_what_print_writes),
        cmocka_unit_test(test_identity_parse_refuses_other_spellings),
        cmocka_unit_test(test_identity_matches_the_grown_file_and_no_other),
        cmocka_unit_test(test_identity_tail_is_of_the_last_bytes_only),
    };
    return cmocka_run_group_tests(tests, fill, NULL);
}
