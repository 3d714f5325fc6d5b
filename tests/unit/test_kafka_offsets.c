/* kafka_offsets(): a record that arrives between its two requests is not passed over. The function of
 * librdkafka that asks for offsets is replaced by a partition that grows with each request. */
#include "ingest/kafka/internal.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define AT_MS 1000 /* all records of the partition are older, except those that arrive */

static int64_t end, newest; /* of the partition; the first record of AT_MS or later, -1: none */
static int requests, arrives_after;

rd_kafka_resp_err_t rd_kafka_offsets_for_times(rd_kafka_t *rk, rd_kafka_topic_partition_list_t *offsets,
                                               int timeout_ms)
{
    (void)rk, (void)timeout_ms;
    for (int i = 0; i < offsets->cnt; i++) {
        rd_kafka_topic_partition_t *p = &offsets->elems[i];
        p->offset = p->offset == KAFKA_EARLIEST ? 2 : p->offset == KAFKA_LATEST ? end : newest;
    }
    if (++requests == arrives_after) {
        newest = newest < 0 ? end : newest;
        end++;
    }
    return RD_KAFKA_RESP_ERR_NO_ERROR;
}

static int64_t ask(int64_t what, int after)
{
    struct kafka k = {0};
    struct err e;
    struct kafka_offset offset = {"t", 0, what};
    end = 7;
    newest = -1;
    requests = 0;
    arrives_after = after;
    assert_true(kafka_offsets(&k, &offset, 1, &e));
    return offset.offset;
}

static void test_record_that_arrives_between_the_requests(void **state)
{
    (void)state;
    assert_int_equal(7, ask(AT_MS, 0)); /* none has this time: the end */
    assert_int_equal(7, ask(AT_MS, 1)); /* one arrives before the second answer, */
    assert_int_equal(7, ask(AT_MS, 2)); /* or behind it */
}

static void test_ends_take_one_request(void **state)
{
    struct err e;
    (void)state;
    assert_int_equal(2, ask(KAFKA_EARLIEST, 0));
    assert_int_equal(1, requests);
    assert_int_equal(7, ask(KAFKA_LATEST, 0));
    assert_int_equal(1, requests);
    assert_true(kafka_offsets(NULL, NULL, 0, &e));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_record_that_arrives_between_the_requests),
                                       cmocka_unit_test(test_ends_take_one_request)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
