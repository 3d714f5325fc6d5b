#include "config/secret.h"

#include "base/check.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

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
        cmocka_unit_test(test_secret_properties_are_known),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
