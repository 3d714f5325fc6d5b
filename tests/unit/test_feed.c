/* When a feed seals its batch, and when it waits for the writer. */
#include "daemon/count/feed.h"

#include "tests/support/fixture.h"
#include "tests/support/turning.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#define FLUSH_MS 1000
#define GROW_MAX 4

struct world {
    struct turning time;
    struct report reports[FIXTURE_COUNT];
    struct feeds feeds;
    struct feed feed;
    atomic_bool abandon;
};

static void ignore_reject(void *context, const struct record *r, struct slice bytes, struct reject why)
{
    (void)context, (void)r, (void)bytes, (void)why;
}

static int begin(void **state)
{
    struct world *w = *state = calloc(1, sizeof *w);
    fixture_reports(w->reports);
    turning_init(&w->time, 0);
    lanes_init(&w->feeds.lanes, &w->time.clock);
    w->feeds.reports = w->reports;
    w->feeds.report_count = FIXTURE_COUNT;
    w->feeds.shard = (struct shard_limits){
        .cells_max = 1000, .series_max = 1000, .key_bytes_max = 1 << 20, .dimension_bytes_max = 64};
    w->feeds.flush_ms = FLUSH_MS;
    feed_init(&w->feed, &w->feeds, 0, &w->abandon, NULL, ignore_reject, NULL, NULL);
    return 0;
}

static int end(void **state)
{
    struct world *w = *state;
    feed_fini(&w->feed);
    lanes_fini(&w->feeds.lanes);
    for (size_t i = 0; i < FIXTURE_COUNT; i++)
        report_fini(&w->reports[i]);
    free(w);
    return 0;
}

static void begin_batch(struct world *w, int64_t now_ms)
{
    const struct range range = {.source = "file:1", .from = now_ms, .to = now_ms + 1};
    feed_begin(&w->feed, now_ms);
    assert_int_equal(feed_add_range(&w->feed, &range, NULL), 0);
}

static void test_a_batch_is_sealed_when_it_is_over(void **state)
{
    struct world *w = *state;
    begin_batch(w, 0);
    assert_true(feed_seal_if_due(&w->feed, FLUSH_MS - 1));
    assert_null(w->feed.lane.part);
    assert_true(feed_seal_if_due(&w->feed, FLUSH_MS));
    assert_non_null(w->feed.lane.part);
    assert_int_equal(w->feed.sealed.range_count, 1);
    assert_int_equal(w->feed.open.range_count, 0);
}

/* Without a limit a batch grows as long as the writer is busy; with one the feed waits for the writer then.
 * A writer that has failed ends the wait. */
static void test_a_batch_grows_while_the_writer_is_busy(void **state)
{
    struct world *w = *state;
    begin_batch(w, 0);
    assert_true(feed_seal_if_due(&w->feed, FLUSH_MS));
    begin_batch(w, FLUSH_MS);
    atomic_store(&w->abandon, true);
    assert_true(feed_seal_if_due(&w->feed, 100 * FLUSH_MS));
    w->feed.grow_max = GROW_MAX;
    assert_true(feed_seal_if_due(&w->feed, GROW_MAX * FLUSH_MS));
    assert_false(feed_seal_if_due(&w->feed, (1 + GROW_MAX) * FLUSH_MS));
    assert_int_equal(w->feed.open.range_count, 1);
}

static void test_a_delivery_that_was_applied_makes_room(void **state)
{
    struct world *w = *state;
    struct part *part;
    begin_batch(w, 0);
    assert_true(feed_seal_if_due(&w->feed, FLUSH_MS));
    struct batch batch = feed_batch(&w->feed, &part);
    assert_int_equal(batch.range_count, 1);
    assert_int_equal(batch.ranges[0].from, 0);
    begin_batch(w, FLUSH_MS);
    assert_true(feed_seal_if_due(&w->feed, 2 * FLUSH_MS));
    assert_int_equal(w->feed.sealed.ranges[0].from, 0); /* it is busy */
    pthread_mutex_lock(&w->feeds.lanes.lock);
    lane_note_applied(&w->feed.lane);
    pthread_mutex_unlock(&w->feeds.lanes.lock);
    assert_true(feed_seal_if_due(&w->feed, 2 * FLUSH_MS));
    assert_int_equal(w->feed.sealed.ranges[0].from, FLUSH_MS);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_a_batch_is_sealed_when_it_is_over),
        TEST(test_a_batch_grows_while_the_writer_is_busy),
        TEST(test_a_delivery_that_was_applied_makes_room),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
