/* Which hosts a request may name. */
#include "base/check.h"
#include "web/host.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

static void test_host_allowed_takes_what_no_foreign_page_can_have(void **state)
{
    static const char *const good[] = {"localhost",      "LocalHost:8080", "127.0.0.1",  "127.0.0.1:1",
                                       "192.168.1.9:80", "[::1]",          "[::1]:8080", "[fe80::1]",
                                       "tally.lan",      "TALLY.lan:8080"};
    static const char *const bad[] = {"",
                                      ":8080",
                                      "evil.example",
                                      "localhost.evil.example",
                                      "127.0.0.1.evil.example",
                                      "127.0.0.1:80@evil",
                                      "127.1",
                                      "2130706433",
                                      "::1",
                                      "[::1",
                                      "[::1]x",
                                      "[evil.example]",
                                      "[]",
                                      "localhost ",
                                      "localhost:8o",
                                      "localhost:123456",
                                      "lan"};
    (void)state;
    for (size_t i = 0; i < COUNT_OF(good); i++)
        assert_true(host_allowed(slice_text(good[i]), slice_text("tally.lan:8080")));
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        if (host_allowed(slice_text(bad[i]), slice_text("tally.lan:8080")))
            fail_msg("%s was taken", bad[i]);
    }
    assert_false(host_allowed(slice_text("tally.lan"), slice_text("127.0.0.1:8080")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_host_allowed_takes_what_no_foreign_page_can_have),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
