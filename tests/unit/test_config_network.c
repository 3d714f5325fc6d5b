#include "base/text.h"
#include "config/network.h"
#include "tests/support/fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

/* A network_fn: "KEY=HOST " of each. */
static void add_found(void *context, const char *key, struct slice host)
{
    text_printf(context, "%s=%.*s ", key, (int)host.len, host.ptr);
}

static void expect_found(const char *yaml, const char *store_url, const char *listen, const char *wanted)
{
    struct text found = {0};
    struct config *c = fixture_config(yaml);
    network_each_elsewhere(c, store_url, listen, add_found, &found);
    assert_string_equal(wanted, found.ptr != NULL ? found.ptr : "");
    text_fini(&found);
    config_free(c);
}

static void test_config_here(void **state)
{
    static const char *const stores[] = {"sqlite:/a/b.db",
                                         "mongodb://localhost/a",
                                         "mongodb://127.0.0.1:1/a",
                                         "mongodb://u:p%40@[::1]:27017,localhost/?a=b",
                                         "mongodb://%2Ftmp%2Fx.sock",
                                         "mem:"};
    (void)state;
    for (size_t i = 0; i < COUNT_OF(stores); i++)
        expect_found("{}", stores[i], NULL, "");
    expect_found("{}", NULL, "[::1]:8080", "");
    expect_found("{}", NULL, "localhost:0", "");
    expect_found("http: {listen: '0.0.0.0:80', enabled: false}", NULL, NULL, "");
    expect_found("sources: {t: {type: kafka}}\nkafka: {brokers: '127.0.0.1:9092,localhost:9093'}", NULL, NULL,
                 "");
}

static void test_config_elsewhere(void **state)
{
    (void)state;
    expect_found("store: {url: 'mongodb://u:p@127.0.0.1:1,db1.example.org:27017,db2/x'}", NULL, NULL,
                 "store.url=db1.example.org ");
    expect_found("{}", "mongodb+srv://u:p@db.example.org", NULL, "store.url=db.example.org ");
    expect_found("store: {url: 'mongodb://db1/x'}", "sqlite:x.db", NULL, "");
    expect_found("{}", NULL, "0.0.0.0:8080", "http.listen=0.0.0.0 ");
    expect_found("http: {listen: '[::]:8080'}", NULL, NULL, "http.listen=:: ");
    expect_found("sources: {t: {type: kafka}}\nkafka: {brokers: 'localhost:9092,kafka1:9092,kafka2:9092'}",
                 NULL, NULL, "kafka.brokers=kafka1 ");
    expect_found("registry: {url: 'https://registry.example.org:8081/a'}", NULL, NULL,
                 "registry.url=registry.example.org ");
}

int main(void)
{
    static const struct CMUnitTest tests[] = {cmocka_unit_test(test_config_here),
                                              cmocka_unit_test(test_config_elsewhere)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
