#include "config/secret.h"

#include "base/check.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void test_password_of_a_url_is_hidden(void **state)
{
    static const struct {
        const char *url, *shown;
    } cases[] = {
        {"mongodb://bob:geheim@h/x", "mongodb://bob:…@h/x"},
        {"mongodb://bob:a:b@c@h:27017,i:27018/x?a=b@c:d", "mongodb://bob:…@h:27017,i:27018/x?a=b@c:d"},
        {"mongodb+srv://:geheim@h", "mongodb+srv://:…@h"},
        {"mongodb://bob@h:27017", "mongodb://bob@h:27017"},
        {"mongodb://h:27017/?x=a:b@c", "mongodb://h:27017/?x=a:b@c"},
        {"sqlite:/var/lib/a:b@c.db", "sqlite:/var/lib/a:b@c.db"},
        {"", ""},
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct text out = {0};
        text_puts(&out, "");
        secret_hide_password(slice_text(cases[i].url), &out);
        assert_string_equal(cases[i].shown, out.ptr);
        text_fini(&out);
    }
}

static void test_secret_properties_are_known(void **state)
{
    static const char *const secret[] = {"sasl.password", "ssl.key.password", "ssl.keystore.password",
                                         "ssl.key.pem", "sasl.oauthbearer.client.secret"};
    static const char *const open[] = {"client.id", "ssl.ca.location", "ssl.certificate.pem",
                                       "sasl.username"};
    (void)state;
    for (size_t i = 0; i < COUNT_OF(secret); i++)
        assert_true(secret_is_property(secret[i]));
    for (size_t i = 0; i < COUNT_OF(open); i++)
        assert_false(secret_is_property(open[i]));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_password_of_a_url_is_hidden),
        cmocka_unit_test(test_secret_properties_are_known),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
