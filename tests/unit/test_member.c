/* Requests of an intake to the writer when its group gives it partitions: the thread that has a request
 * answers it. */
#include "daemon/topic/member.h"

#include "base/mem.h"
#include "ingest/kafka/internal.h"
#include "tests/support/turning.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* One intake with one partition of one topic, which the group has just given it, and nobody to answer at a
 * broker. */
struct world {
    struct turning time;
    struct feeds feeds;
    struct intake_shared shared;
    struct topic topic;
    struct partition partition;
    struct intake intake;
    atomic_bool has_returned;
    bool granted;
};

static int begin(void **state)
{
    struct world *w = *state = xcalloc(1, sizeof *w);
    struct kafka_options options = {
        .brokers = "127.0.0.1:1", .group = "test", .queue_bytes = (int64_t)1 << 20};
    struct err e = {0};
    turning_init(&w->time, 0);
    lanes_init(&w->feeds.lanes, &w->time.clock);
    w->shared.feeds = &w->feeds;
    w->shared.is_group = true;
    w->partition = (struct partition){.topic = &w->topic, .next = 7};
    w->topic = (struct topic){.name = "access", .partitions = &w->partition, .count = 1};
    w->intake = (struct intake){
        .feed.lane.lanes = &w->feeds.lanes, .shared = &w->shared, .topics = &w->topic, .topic_count = 1};
    struct kafka *k = w->intake.kafka = kafka_open(&options, &e);
    assert_non_null(k);
    k->has_rebalance = true;
    k->rebalance = (struct kafka_rebalance){KAFKA_GIVEN, xcalloc(1, sizeof(struct kafka_partition)), 1};
    k->rebalance.partitions[0] = (struct kafka_partition){xstrdup("access"), 0};
    return 0;
}

static int end(void **state)
{
    struct world *w = *state;
    kafka_close(w->intake.kafka);
    free(w->intake.given);
    lanes_fini(&w->feeds.lanes);
    free(w);
    return 0;
}

static void *run_turn(void *context)
{
    struct world *w = context;
    w->granted = member_turn(&w->intake);
    atomic_store(&w->has_returned, true);
    return NULL;
}

static enum intake_need take_need(struct world *w)
{
    pthread_mutex_lock(&w->feeds.lanes.lock);
    enum intake_need need = intake_take_need(&w->intake, clock_mono_ms(w->feeds.lanes.clock));
    pthread_mutex_unlock(&w->feeds.lanes.lock);
    return need;
}

static void end_session(struct world *w)
{
    pthread_mutex_lock(&w->feeds.lanes.lock);
    atomic_store(&w->shared.end, true);
    pthread_cond_broadcast(&w->feeds.lanes.applied);
    pthread_mutex_unlock(&w->feeds.lanes.lock);
}

static void answer(struct world *w)
{
    pthread_mutex_lock(&w->feeds.lanes.lock);
    w->intake.request = REQUEST_GRANTED;
    pthread_cond_broadcast(&w->feeds.lanes.applied);
    pthread_mutex_unlock(&w->feeds.lanes.lock);
}

/* The writer found it, the session ends, and only then it is served. */
static void test_request_in_hand_is_not_taken_back(void **state)
{
    struct world *w = *state;
    pthread_t thread;
    enum intake_need need;
    assert_int_equal(0, pthread_create(&thread, NULL, run_turn, w));
    while ((need = take_need(w)) == INTAKE_NEEDS_NOTHING) {
    }
    assert_int_equal(INTAKE_NEEDS_BEGINNING, need);
    end_session(w);
    turning_settle(&w->time);
    assert_false(atomic_load(&w->has_returned));
    assert_int_equal(INTAKE_NEEDS_NOTHING, take_need(w)); /* it is served once */
    answer(w);
    pthread_join(thread, NULL);
    assert_true(w->granted);
}

static void test_request_that_nobody_has_in_hand_is_taken_back(void **state)
{
    struct world *w = *state;
    pthread_t thread;
    assert_int_equal(0, pthread_create(&thread, NULL, run_turn, w));
    turning_settle(&w->time); /* it has asked */
    end_session(w);
    pthread_join(thread, NULL);
    assert_false(w->granted);
    assert_true(atomic_load(&w->intake.has_failed));
    assert_int_equal(INTAKE_NEEDS_NOTHING, take_need(w));
}

/* A writer that fails for good says so by `abandon`. */
static void test_writer_that_failed_leaves_nobody_waiting(void **state)
{
    struct world *w = *state;
    pthread_t thread;
    assert_int_equal(0, pthread_create(&thread, NULL, run_turn, w));
    while (take_need(w) == INTAKE_NEEDS_NOTHING) {
    }
    atomic_store(&w->shared.abandon, true);
    end_session(w);
    pthread_join(thread, NULL);
    assert_false(w->granted);
}

/* A part that was applied once is not applied again. */
static void test_delivery_is_applied_once(void **state)
{
    struct world *w = *state;
    struct part *part = (struct part *)w; /* never looked into */
    w->intake.feed.lane.part = part;
    assert_int_equal(INTAKE_NEEDS_APPLYING, take_need(w));
    w->intake.feed.lane.is_applied = true;
    assert_int_equal(INTAKE_NEEDS_NOTHING, take_need(w));
    w->intake.feed.lane.part = NULL;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_request_in_hand_is_not_taken_back, begin, end),
        cmocka_unit_test_setup_teardown(test_request_that_nobody_has_in_hand_is_taken_back, begin, end),
        cmocka_unit_test_setup_teardown(test_writer_that_failed_leaves_nobody_waiting, begin, end),
        cmocka_unit_test_setup_teardown(test_delivery_is_applied_once, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
