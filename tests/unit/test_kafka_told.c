/* Reports of librdkafka: texts without guesses, and the figures of its statistics. */
#include "ingest/kafka/internal.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static const char guess[] =
    "[thrd:127.0.0.1:9092/1]: 127.0.0.1:9092/1: Disconnected while requesting ApiVersion: might be caused by "
    "incorrect security.protocol configuration (connecting to a SSL listener?) or broker version is < 0.10 "
    "(see "
    "api.version.request) (after 3ms in state APIVERSION_QUERY)";

static void test_guess_at_tls_is_left_out(void **state)
{
    char told[KAFKA_TOLD_BYTES];
    const char *text;
    (void)state;
    text = kafka_reword(guess, told);
    assert_null(strstr(text, "connecting to a SSL"));
    assert_non_null(
        strstr(text, "127.0.0.1:9092/1: the broker closed the connection before it said anything: it is "
                     "starting or stopping, or this listener wants TLS or SASL"));
    assert_non_null(strstr(text, "(after 3ms"));
    assert_string_equal("Connection refused", kafka_reword("Connection refused", told));
    kafka_note_answer(); /* so what is configured is right */
    text = kafka_reword(guess, told);
    assert_null(strstr(text, "TLS"));
    assert_non_null(strstr(text, "it is starting or stopping (after 3ms"));
}

struct seen {
    struct kafka_stand stands[8];
    size_t count;
};

static void see(void *context, const struct kafka_stand *s)
{
    struct seen *seen = context;
    assert_in_range(seen->count, 0, 7);
    seen->stands[seen->count++] = *s;
}

static void check(const struct kafka_stand *s, const char *topic, int32_t partition, int64_t next,
                  int64_t stable, int64_t end)
{
    assert_true(slice_is(s->topic, topic));
    assert_int_equal(partition, s->partition);
    assert_int_equal(next, s->next);
    assert_int_equal(stable, s->stable);
    assert_int_equal(end, s->end);
}

/* As the library writes them: the partitions of brokers first, then those of topics. */
static void test_statistics_of_partitions(void **state)
{
    static const char json[] =
        "{\"brokers\":{\"b\":{\"toppars\":{ \"one-0\": { \"topic\":\"one\", \"partition\":0} } }},\n"
        "\"topics\":{ \"one\": { \"topic\":\"one\", \"age\":5, \"partitions\":{ "
        "\"0\": { \"partition\":0, \"fetchq_cnt\":2, \"fetchq_size\":40, \"next_offset\":7, \"lo_offset\":0, "
        "\"hi_offset\":20, \"ls_offset\":7, \"consumer_lag\":0} ,"
        "\"1\": { \"partition\":1, \"fetchq_size\":2, \"next_offset\":-1001, \"hi_offset\":-1001, "
        "\"ls_offset\":-1001} ,"
        "\"-1\": { \"partition\":-1, \"fetchq_size\":0, \"next_offset\":0, \"hi_offset\":0, \"ls_offset\":0} "
        "} } ,"
        "\"two\": { \"topic\":\"two\", \"partitions\":{ \"3\": { \"partition\":3, \"fetchq_size\":100, "
        "\"next_offset\":9, \"hi_offset\":9, \"ls_offset\":9} } } }}";
    struct seen seen = {0};
    int64_t bytes = -1;
    (void)state;
    kafka_read_statistics(json, &bytes, see, &seen);
    assert_int_equal(142, bytes);
    assert_int_equal(2, seen.count);
    check(&seen.stands[0], "one", 0, 7, 7, 20);
    check(&seen.stands[1], "two", 3, 9, 9, 9);
    kafka_read_statistics("{}", &bytes, see, &seen);
    assert_int_equal(0, bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_guess_at_tls_is_left_out),
                                       cmocka_unit_test(test_statistics_of_partitions)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
