/* A lane's records: what a chain holds for its events is bounded, whatever messages come. */
#include "base/snappy.h"
#include "base/varint.h"
#include "daemon/count/lane.h"
#include "daemon/setup.h"
#include "ingest/decode/remote_write.h"
#include "tests/support/fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#define LINE_MAX ((size_t)1 << 20)
#define METADATA (384 << 10)

/* A sample at 1 ms. */
#define SAMPLE        "\x12\x0b\x09\x00\x00\x00\x00\x00\x00\xf0\x3f\x10\x01"
#define LABEL         "\x0a\x0d\x0a\x08__name__\x12\x01m"
#define BYTES_OF(lit) (lit), sizeof(lit) - 1

static void add_field(struct text *message, char tag, size_t len)
{
    uint8_t length[VARINT_BYTES_MAX];
    text_putc(message, tag);
    text_add(message, (const char *)length, (size_t)(varint_put(length, len) - length));
}

/* A series of so many samples, behind so many bytes of metadata; packed. */
static struct text make_message(size_t samples, size_t metadata)
{
    struct text message = {0};
    struct err e;
    if (metadata > 0)
        add_field(&message, 0x1a, metadata);
    for (size_t i = 0; i < metadata; i++)
        text_putc(&message, 'x');
    if (samples > 0) {
        add_field(&message, 0x0a, sizeof LABEL - 1 + samples * (sizeof SAMPLE - 1));
        text_add(&message, BYTES_OF(LABEL));
    }
    for (size_t i = 0; i < samples; i++)
        text_add(&message, BYTES_OF(SAMPLE));
    assert_true(snappy_pack(&message, &e));
    return message;
}

static void fail_on_reject(void *context, const struct record *r, struct slice bytes, struct reject why)
{
    (void)context, (void)r, (void)bytes;
    fail_msg("reject %d", (int)why.reason);
}

static struct chain *make_chain(struct decode *d)
{
    struct err e;
    assert_true(snappy_load(&e));
    decode_init(d);
    assert_true(decode_add_step(d, slice_text("remote_write"), &e) && decode_finish(d, &e));
    return chain_new(d, LINE_MAX);
}

static void test_messages_with_few_events_hold_little(void **state)
{
    static struct lane lane;
    struct config *c = fixture_config("reports: {r: {}}\n");
    const struct shard_limits limits = setup_pipeline(c, 1).shard;
    struct decode d;
    struct chain *chain = make_chain(&d);
    (void)state;
    lane.shard = shard_new(0, c->reports, c->report_count, &limits);
    lane.reject = fail_on_reject;
    lane.latest_ms = 60000;
    for (size_t later = 0; later < 2; later++) { /* events in the messages behind the first */
        struct text first = make_message(1, 0), others = make_message(later, METADATA);
        struct record r = {.timestamp_ms = -1, .value = text_slice(&first)};
        lane_record(&lane, chain, &r);
        r.value = text_slice(&others);
        for (r.offset = 1; r.offset < 10; r.offset++) {
            lane_record(&lane, chain, &r);
            assert_false(chain_holds_much(chain));
            assert_true(later > 0 || lane.event_count == 0);
        }
        text_fini(&first);
        text_fini(&others);
    }
    chain_free(chain);
    shard_free(lane.shard);
    config_free(c);
}

/* Events beyond would share their places (record_order()). */
static void test_a_message_has_as_many_values_as_places(void **state)
{
    struct decode d;
    struct chain *chain = make_chain(&d);
    (void)state;
    for (size_t more = 0; more < 3; more++) {
        struct text message = make_message(REMOTE_WRITE_VALUES_MAX + more, 0);
        const struct record r = {.timestamp_ms = -1, .value = text_slice(&message)};
        size_t events = 0, rejects = 0;
        enum chain_result what;
        struct event ev;
        struct reject why;
        struct slice bytes;
        chain_start(chain, &r);
        while ((what = chain_next(chain, &ev, &why, &bytes)) != CHAIN_END) {
            events += what == CHAIN_EVENT;
            rejects += what == CHAIN_REJECT && why.reason == REJECT_TOO_LONG;
        }
        chain_flush(chain);
        assert_int_equal(events, REMOTE_WRITE_VALUES_MAX);
        assert_int_equal(rejects, more > 0);
        text_fini(&message);
    }
    chain_free(chain);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_messages_with_few_events_hold_little),
        cmocka_unit_test(test_a_message_has_as_many_values_as_places),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
