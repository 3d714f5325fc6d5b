/* Who is stuck: a thread that was not at rest and made no turn for too long; of several the longest. */
#include "stats/beat.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

static void test_beats_find_the_one_that_is_stuck(void **state)
{
    static struct beats beats;
    struct clock clock = clock_fake(0);
    (void)state;
    clock.fake_mono_ms = 50000;
    beats_init(&beats, &clock);
    assert_null(beats_stuck(&beats, 1000));
    struct beat *writer = beats_add(&beats, "writer"), *ingest = beats_add(&beats, "ingest");
    clock.fake_mono_ms += 100000;
    assert_null(beats_stuck(&beats, 1000)); /* neither has begun */

    beat_turn(ingest);
    clock.fake_mono_ms += 500;
    beat_turn(writer);
    clock.fake_mono_ms += 500;
    assert_null(beats_stuck(&beats, 1000));
    clock.fake_mono_ms += 1;
    assert_ptr_equal(beats_stuck(&beats, 1000), ingest);
    clock.fake_mono_ms += 500;
    assert_ptr_equal(beats_stuck(&beats, 1000), ingest);

    beat_rest(ingest); /* it waits for the writer, which is the one to blame */
    assert_ptr_equal(beats_stuck(&beats, 1000), writer);
    beat_turn(writer);
    assert_null(beats_stuck(&beats, 1000));
    beat_turn(NULL);
    beat_rest(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_beats_find_the_one_that_is_stuck)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
