/* The registry: schemas come by a thread, and whoever asks never waits. A server in this process plays it. */
#include "ingest/schema/registry.h"

#include "base/mem.h"
#include "ingest/decode/chain.h"

#include <arpa/inet.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#define PATIENCE_MS 20000

static struct {
    const char *path;
    _Atomic(const char *) answer; /* NULL: 404 */
    atomic_int asked;
} answers[] = {
    {"/schemas/ids/1", "{\"schema\":\"\\\"long\\\"\"}", 0},
    {"/schemas/ids/2", NULL, 0},
    {"/schemas/ids/3", "{\"schema\":\"syntax\",\"schemaType\":\"JSON\"}", 0},
    {"/schemas/ids/4",
     "{\"schema\":\"{\\\"type\\\":\\\"array\\\",\\\"items\\\":\\\"E\\\"}\",\"references\":[{\"name\":"
     "\"E\",\"subject\":\"a b/c\",\"version\":5}]}",
     0},
    {"/subjects/a b/c/versions/5",
     "{\"schema\":\"{\\\"type\\\":\\\"enum\\\",\\\"name\\\":\\\"E\\\",\\\"symbols\\\":[\\\"X\\\"]}\"}", 0},
    {"/schemas/ids/5",
     "{\"schema\":\"\\\"int\\\"\",\"references\":[{\"name\":\"E\",\"subject\":\"round\",\"version\":1}]}", 0},
    {"/subjects/round/versions/1",
     "{\"schema\":\"\\\"int\\\"\",\"references\":[{\"name\":\"E\",\"subject\":\"round\",\"version\":1}]}", 0},
    {"/schemas/ids/6", "{\"schema\":\"\\\"none\\\"\"}", 0}};

static enum MHD_Result answer(void *context, struct MHD_Connection *connection, const char *url,
                              const char *method, const char *version, const char *data, size_t *size,
                              void **state)
{
    const char *text = NULL;
    (void)context, (void)method, (void)version, (void)data, (void)size, (void)state;
    for (size_t i = 0; i < COUNT_OF(answers); i++) {
        if (strcmp(answers[i].path, url) != 0)
            continue;
        answers[i].asked++;
        text = answers[i].answer;
    }
    unsigned status = text != NULL ? 200 : 404;
    if (text == NULL)
        text = "{\"error_code\":40403,\"message\":\"Schema not found\"}";
    struct MHD_Response *response =
        MHD_create_response_from_buffer(strlen(text), (void *)(uintptr_t)text, MHD_RESPMEM_PERSISTENT);
    enum MHD_Result result = MHD_queue_response(connection, status, response);
    MHD_destroy_response(response);
    return result;
}

static struct MHD_Daemon *start(uint16_t *port)
{
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons(*port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct MHD_Daemon *d =
        MHD_start_daemon(MHD_USE_INTERNAL_POLLING_THREAD, 0, NULL, NULL, answer, NULL, MHD_OPTION_SOCK_ADDR,
                         &address, MHD_OPTION_LISTENING_ADDRESS_REUSE, 1u, MHD_OPTION_END);
    assert_non_null(d);
    *port = MHD_get_daemon_info(d, MHD_DAEMON_INFO_BIND_PORT)->port;
    return d;
}

static void open_registry(struct registry *r, uint16_t port, int64_t timeout_ms)
{
    char url[64];
    struct err e;
    snprintf(url, sizeof url, "http://127.0.0.1:%d/", port);
    *r = (struct registry){.server = {.url = xstrdup(url), .timeout_ms = timeout_ms}, .retry_max_ms = 20};
    assert_true(registry_ask(r, SCHEMA_AVRO, "", &e) && registry_check(r, &e) &&
                registry_open(r, &clock_system, &e));
}

static const struct message_schema *find(struct registry *r, uint32_t id)
{
    const struct record record = {.topic = {"t", 1}, .partition = 3, .offset = 7};
    return registry_find(r, SCHEMA_AVRO, id, &record);
}

static const struct message_schema *wait_for(struct registry *r, uint32_t id)
{
    const struct message_schema *s = NULL;
    for (int ms = 0; (s = find(r, id)) == NULL; ms++) {
        assert_true(ms < PATIENCE_MS);
        usleep(1000);
    }
    return s;
}

static void wait_for_failure(struct registry *r, const char *why)
{
    struct registry_figures f = {0};
    for (int ms = 0; strstr(f.why, why) == NULL; ms++) {
        if (ms == PATIENCE_MS)
            fail_msg("found %s, expected %s", f.why, why);
        usleep(1000);
        registry_note(r, &f);
    }
    assert_int_equal(f.waiting, 1);
    assert_true(f.failures > 0);
}

static void test_registry_schemas_come_once(void **state)
{
    (void)state;
    struct registry r;
    struct registry_figures f;
    uint16_t port = 0;
    struct MHD_Daemon *d = start(&port);
    open_registry(&r, port, 5000);
    assert_null(find(&r, 1));
    const struct message_schema *one = wait_for(&r, 1);
    assert_int_equal(one->kind, SCHEMA_AVRO);
    assert_ptr_equal(one, find(&r, 1));
    assert_int_equal(answers[0].asked, 1);
    assert_int_equal(wait_for(&r, 3)->kind, SCHEMA_OTHER);
    assert_int_equal(wait_for(&r, 4)->avro->nodes[wait_for(&r, 4)->avro->root].kind, AVRO_ARRAY);
    registry_note(&r, &f);
    assert_true(f.waiting == 0 && f.failures == 0 && f.why[0] == '\0');
    registry_fini(&r);
    MHD_stop_daemon(d);
}

static void test_registry_unknown_ids_wait(void **state)
{
    (void)state;
    struct registry r;
    uint16_t port = 0;
    struct MHD_Daemon *d = start(&port);
    open_registry(&r, port, 5000);
    assert_null(find(&r, 2));
    wait_for_failure(&r, "schema 2 (topic=t partition=3 offset=7): ");
    wait_for_failure(&r, "status 404: Schema not found");
    assert_non_null(wait_for(&r, 1)); /* others do not wait for it */
    answers[1].answer = "{\"schema\":1}";
    wait_for_failure(&r, "answers without a schema");
    answers[1].answer = "<html>";
    wait_for_failure(&r, "not with JSON");
    answers[1].answer = "{\"schema\":\"\\\"int\\\"\"}";
    assert_int_equal(wait_for(&r, 2)->kind, SCHEMA_AVRO);
    answers[1].answer = NULL;
    registry_fini(&r);
    open_registry(&r, port, 5000);
    assert_null(find(&r, 6));
    wait_for_failure(&r, "which is not defined: none");
    registry_fini(&r);
    open_registry(&r, port, 5000);
    assert_null(find(&r, 5));
    wait_for_failure(&r, "its references are deeper than 16");
    registry_fini(&r);
    MHD_stop_daemon(d);
}

static void test_registry_may_be_away(void **state)
{
    (void)state;
    struct registry r;
    struct err e;
    uint16_t port = 0;
    struct MHD_Daemon *d = start(&port);
    open_registry(&r, port, 5000);
    assert_true(registry_probe(&r, &e));
    MHD_stop_daemon(d);
    assert_false(registry_probe(&r, &e));
    assert_null(find(&r, 1));
    wait_for_failure(&r, "does not answer");
    d = start(&port);
    assert_int_equal(wait_for(&r, 1)->kind, SCHEMA_AVRO);
    registry_fini(&r);
    MHD_stop_daemon(d);
}

/* It accepts, and says nothing. */
static void test_registry_a_stop_does_not_wait_for_an_answer(void **state)
{
    (void)state;
    struct registry r;
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof address;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0 && bind(fd, (struct sockaddr *)&address, len) == 0 && listen(fd, 1) == 0 &&
                getsockname(fd, (struct sockaddr *)&address, &len) == 0);
    open_registry(&r, ntohs(address.sin_port), 60000);
    assert_null(find(&r, 1));
    close(accept(fd, NULL, NULL)); /* a first request was made */
    assert_null(find(&r, 1));
    int second = accept(fd, NULL, NULL);
    int64_t begun_ms = clock_mono_ms(&clock_system);
    registry_fini(&r);
    assert_true(clock_mono_ms(&clock_system) - begun_ms < 10000);
    close(second);
    close(fd);
}

static void expect_reject(struct chain *c, struct slice value, enum reject_reason reason, size_t column)
{
    struct record r = {.value = value, .timestamp_ms = 1286720242000};
    struct event ev;
    struct reject why;
    struct slice bytes;
    assert_true(chain_knows_schema(c, &r));
    chain_start(c, &r);
    assert_int_equal(chain_next(c, &ev, &why, &bytes), CHAIN_REJECT);
    assert_int_equal(why.reason, reason);
    assert_int_equal(why.column, column);
    assert_int_equal(chain_next(c, &ev, &why, &bytes), CHAIN_END);
    chain_flush(c);
}

static void test_registry_messages_without_an_id_are_rejects(void **state)
{
    (void)state;
    struct registry r;
    struct decode d;
    struct err e;
    uint16_t port = 0;
    struct MHD_Daemon *daemon = start(&port);
    open_registry(&r, port, 5000);
    decode_init(&d);
    d.registry = &r;
    assert_true(decode_add_step(&d, slice_text("avro"), &e) && decode_add_step(&d, slice_text("json"), &e) &&
                decode_finish(&d, &e));
    struct chain *c = chain_new(&d, 1000);
    expect_reject(c, slice_text("{\"a\":1}"), REJECT_SCHEMA, 1);
    expect_reject(c, slice_of("\0\0\0\0", 4), REJECT_SCHEMA, 1);
    expect_reject(c, slice_of("", 0), REJECT_EMPTY, 1);
    struct record unknown = {.value = {"\0\0\0\0\2\0", 6}, .topic = {"t", 1}};
    assert_false(chain_knows_schema(c, &unknown));
    wait_for(&r, 1);
    wait_for(&r, 3);
    expect_reject(c, slice_of("\0\0\0\0\3\0", 6), REJECT_SCHEMA_KIND, 1);
    expect_reject(c, slice_of("\0\0\0\0\1\0", 6), REJECT_TYPE, 1); /* a number is no event */
    expect_reject(c, slice_of("\0\0\0\0\1\0\0", 7), REJECT_AVRO, 7);
    chain_free(c);
    registry_fini(&r);
    MHD_stop_daemon(daemon);
}

static const struct {
    struct registry_server server;
    const char *why; /* NULL: it is good */
} settings[] = {
    {{.url = "http://a:8081"}, NULL},
    {{.url = "https://a/apis/ccompat/v7", .user = "u", .password = "p", .tls_cert = "c", .tls_key = "k"},
     NULL},
    {{.url = NULL}, "expected registry.url"},
    {{.url = "a:8081"}, "found registry.url without its scheme"},
    {{.url = "ftp://a"}, "found registry.url without its scheme"},
    {{.url = "http://"}, "found registry.url without its scheme"},
    {{.url = "http://u:p@a"}, "found credentials in registry.url"},
    {{.url = "http://a/@b"}, NULL},
    {{.url = "http://a?b"}, "found a query"},
    {{.url = "http://a", .user = "u"}, "one of registry.user and password"},
    {{.url = "http://a", .user = "u", .password = "p", .token = "t"}, "found registry.user and token"},
    {{.url = "http://a", .tls_cert = "c"}, "one of registry.tls_cert and tls_key"},
};

static void test_registry_settings_must_fit(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(settings); i++) {
        struct err e = {0};
        const struct registry r = {.server = settings[i].server, .is_asked = true};
        bool is_good = registry_check(&r, &e);
        if (is_good != (settings[i].why == NULL) || (!is_good && strstr(e.text, settings[i].why) == NULL))
            fail_msg("row %zu: %s", i, e.text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_registry_schemas_come_once),
        cmocka_unit_test(test_registry_unknown_ids_wait),
        cmocka_unit_test(test_registry_may_be_away),
        cmocka_unit_test(test_registry_a_stop_does_not_wait_for_an_answer),
        cmocka_unit_test(test_registry_messages_without_an_id_are_rejects),
        cmocka_unit_test(test_registry_settings_must_fit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
