/* Encodings that clients accept, tags that they have, and sites that may ask. */
#include "base/mem.h"
#include "tests/support/dice.h"
#include "web/encode.h"
#include "web/guard.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <zlib.h>

#include <cmocka.h>

static void test_gzip_only_for_who_takes_it(void **state)
{
    static const char *const good[] = {"gzip",       "GZIP",        "br, gzip", "deflate,gzip;q=0.5 , br",
                                       "gzip ; q=1", "gzip;q=0.001"};
    static const char *const bad[] = {"",        "br",     "gzip;q=0", "gzip;q=0.000",
                                      "gzipped", "x-gzip", "*;q=0",    ",,,"};
    (void)state;
    for (size_t i = 0; i < COUNT_OF(good); i++)
        assert_true(encode_accepts_gzip(good[i]));
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        if (encode_accepts_gzip(bad[i]))
            fail_msg("%s was taken", bad[i]);
    }
    assert_false(encode_accepts_gzip(NULL));
}

static void test_gzip_unpacks_to_the_same(void **state)
{
    struct text body = {0}, packed = {0};
    char unpacked[60000];
    (void)state;
    for (int i = 0; i < 3000; i++)
        text_printf(&body, "[\"%d\",%d],", i, i * 7);
    assert_true(encode_gzip(text_slice(&body), ENCODE_QUICK, &packed));
    assert_true(packed.len < body.len / 2);
    z_stream z = {.next_in = (unsigned char *)packed.ptr, .avail_in = (unsigned)packed.len};
    z.next_out = (unsigned char *)unpacked;
    z.avail_out = sizeof unpacked;
    assert_int_equal(inflateInit2(&z, 15 + 16), Z_OK);
    assert_int_equal(inflate(&z, Z_FINISH), Z_STREAM_END);
    assert_true(slice_equal(slice_of(unpacked, z.total_out), text_slice(&body)));
    inflateEnd(&z);
    text_fini(&body);
    text_fini(&packed);
}

static void test_what_does_not_get_shorter_stays(void **state)
{
    struct dice dice = dice_new("encode");
    struct text body = {0}, packed = {0};
    (void)state;
    for (int i = 0; i < 2000; i++)
        text_putc(&body, (char)dice_roll(&dice, 256));
    assert_false(encode_gzip(text_slice(&body), ENCODE_QUICK, &packed));
    assert_int_equal(packed.len, 0);
    text_fini(&body);
    text_fini(&packed);
}

static void test_tags_are_of_the_bytes(void **state)
{
    char a[ENCODE_TAG_BYTES], b[ENCODE_TAG_BYTES], known[128];
    (void)state;
    encode_tag(slice_text("one"), a);
    encode_tag(slice_text("two"), b);
    assert_string_not_equal(a, b);
    assert_true(encode_tag_is_known(a, a));
    assert_true(encode_tag_is_known("*", a));
    snprintf(known, sizeof known, "%s, W/%s", b, a);
    assert_true(encode_tag_is_known(known, a));
    assert_false(encode_tag_is_known(b, a));
    assert_false(encode_tag_is_known("", a));
    assert_false(encode_tag_is_known("W/", a));
    assert_false(encode_tag_is_known(NULL, a));
}

#define TOKEN "0123456789abcdef"

static void test_the_token_and_nothing_else_is_let_in(void **state)
{
    static const char *const good[] = {"Bearer " TOKEN, "bearer  " TOKEN,
                                       "Basic OjAxMjM0NTY3ODlhYmNkZWY=", /* :TOKEN */
                                       "Basic bWU6MDEyMzQ1Njc4OWFiY2RlZg==" /* me:TOKEN */};
    static const char *const bad[] = {"",
                                      "Bearer",
                                      "Bearer ",
                                      "Bearer 0123456789abcde",
                                      "Bearer " TOKEN "0",
                                      TOKEN,
                                      "Bearer " TOKEN TOKEN,
                                      "Basic " TOKEN,
                                      "Basic ",
                                      "Basic !!!",
                                      "Digest " TOKEN,
                                      "Basic MDEyMzQ1Njc4OWFiY2RlZg==", /* TOKEN */
                                      "Basic MDEyMzQ1Njc4OWFiY2RlZjo=" /* TOKEN: */};
    (void)state;
    for (size_t i = 0; i < COUNT_OF(good); i++) {
        if (!guard_allows(good[i], TOKEN))
            fail_msg("%s was refused", good[i]);
    }
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        if (guard_allows(bad[i], TOKEN))
            fail_msg("%s was let in", bad[i]);
    }
    assert_false(guard_allows(NULL, TOKEN));
    assert_true(guard_is_open("/healthz"));
    assert_true(guard_is_open("/readyz"));
    assert_false(guard_is_open("/metrics"));
    assert_false(guard_is_open("/healthz/"));
}

static void test_long_credentials_do_no_harm(void **state)
{
    struct text header = {0};
    (void)state;
    text_puts(&header, "Basic ");
    for (int i = 0; i < 16000; i++)
        text_putc(&header, 'A');
    assert_false(guard_allows(header.ptr, TOKEN));
    text_fini(&header);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gzip_only_for_who_takes_it),
        cmocka_unit_test(test_gzip_unpacks_to_the_same),
        cmocka_unit_test(test_what_does_not_get_shorter_stays),
        cmocka_unit_test(test_tags_are_of_the_bytes),
        cmocka_unit_test(test_the_token_and_nothing_else_is_let_in),
        cmocka_unit_test(test_long_credentials_do_no_harm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
