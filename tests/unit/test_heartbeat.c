/* A thread is stuck if it was not at rest and made no turn for too long. If several are stuck, the one
 * without a turn for the longest time is named. */
#include "stats/heartbeat.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

static void test_heartbeats_find_the_one_that_is_stuck(void **state)
{
    static struct heartbeats heartbeats;
    struct clock clock = clock_fake(0);
    (void)state;
    clock.fake_mono_ms = 50000;
    heartbeats_init(&heartbeats, &clock);
    assert_null(heartbeats_stuck(&heartbeats, 1000));
    struct heartbeat *writer = heartbeats_add(&heartbeats, "writer"),
                     *ingest = heartbeats_add(&heartbeats, "ingest");
    clock.fake_mono_ms += 100000;
    assert_null(heartbeats_stuck(&heartbeats, 1000)); /* neither has begun */

    heartbeat_turn(ingest);
    clock.fake_mono_ms += 500;
    heartbeat_turn(writer);
    clock.fake_mono_ms += 500;
    assert_null(heartbeats_stuck(&heartbeats, 1000));
    clock.fake_mono_ms += 1;
    assert_ptr_equal(heartbeats_stuck(&heartbeats, 1000), ingest);
    clock.fake_mono_ms += 500;
    assert_ptr_equal(heartbeats_stuck(&heartbeats, 1000), ingest);

    heartbeat_rest(ingest); /* it waits for the writer, which is the one to blame */
    assert_ptr_equal(heartbeats_stuck(&heartbeats, 1000), writer);
    heartbeat_turn(writer);
    assert_null(heartbeats_stuck(&heartbeats, 1000));
    heartbeat_turn(NULL);
    heartbeat_rest(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_heartbeats_find_the_one_that_is_stuck)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
