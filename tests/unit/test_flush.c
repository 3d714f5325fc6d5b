/* How long is gathered follows what the store can take, within limits; and the writer is who tells. */
#include "daemon/count/writer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define MIN_MS 1000
#define MAX_MS 5000

/* The interval after each of these batches. */
static void follow(struct flush *f, const int64_t (*steps)[2], size_t count)
{
    for (size_t i = 0; i < count; i++) {
        flush_note(f, steps[i][0]);
        if (f->interval_ms != steps[i][1])
            fail_msg("step %zu: %lld instead of %lld", i, (long long)f->interval_ms, (long long)steps[i][1]);
    }
}

static void test_flush_is_twice_what_a_batch_takes(void **state)
{
    struct flush f;
    const int64_t steps[][2] = {{0, 1000},   {30, 1000},  {500, 1000}, {501, 1002},
                                {700, 1400}, {900, 1800}, {600, 1200}, {500, 1000}};
    (void)state;
    flush_init(&f, MIN_MS, MAX_MS, 1);
    assert_int_equal(f.interval_ms, MIN_MS);
    follow(&f, steps, COUNT_OF(steps));
}

static void test_flush_goes_by_half_and_double_at_most(void **state)
{
    struct flush f;
    const int64_t steps[][2] = {{60000, 2000}, {60000, 4000}, {60000, 5000}, {60000, 5000},
                                {0, 2500},     {0, 1250},     {0, 1000},     {0, 1000}};
    (void)state;
    flush_init(&f, MIN_MS, MAX_MS, 1);
    follow(&f, steps, COUNT_OF(steps));
}

static void test_flush_counts_the_batches_of_all_threads(void **state)
{
    struct flush f;
    const int64_t steps[][2] = {{100, 1000}, {125, 1000}, {200, 1600}};
    (void)state;
    flush_init(&f, MIN_MS, MAX_MS, 4);
    follow(&f, steps, COUNT_OF(steps));
}

static void test_flush_takes_other_limits(void **state)
{
    struct flush f;
    const int64_t slow[][2] = {{60000, 2000}, {60000, 4000}}, still[][2] = {{60000, 700}, {0, 700}};
    (void)state;
    flush_init(&f, MIN_MS, MAX_MS, 1);
    follow(&f, slow, COUNT_OF(slow));
    flush_limit(&f, 100, 3000);
    assert_int_equal(f.interval_ms, 3000);
    flush_limit(&f, 3500, 10000);
    assert_int_equal(f.interval_ms, 3500);
    flush_limit(&f, 700, 100); /* nothing adapts */
    assert_int_equal(f.interval_ms, 700);
    follow(&f, still, COUNT_OF(still));
}

/* ---- the writer tells it */

struct slow {
    struct store store;
    struct clock clock;
    int64_t apply_ms, failures;
};

static bool apply(struct store *st, const struct batch *batch, struct err *e)
{
    struct slow *s = (struct slow *)st;
    (void)batch;
    s->clock.fake_mono_ms += s->apply_ms;
    return s->failures-- <= 0 || err_set_retryable(e, EX_UNAVAILABLE, "the server is away");
}

static void test_writer_tells_of_what_was_applied(void **state)
{
    static const struct store_writer_ops ops = {.apply = apply};
    struct slow s = {.store = {.writer = &ops}, .clock = clock_fake(0), .apply_ms = 800};
    struct flush f;
    struct writer w = {.store = &s.store, .clock = &s.clock, .flush = &f};
    struct batch batch = {0};
    struct err e;
    (void)state;
    flush_init(&f, MIN_MS, MAX_MS, 1);
    assert_true(writer_apply(&w, &batch, NULL, NULL, &e));
    assert_int_equal(f.interval_ms, 1600);
    s.apply_ms = 60000; /* a server that is away is not a slow one */
    s.failures = 1;
    assert_false(writer_apply(&w, &batch, NULL, NULL, &e));
    assert_int_equal(f.interval_ms, 1600);
    w.flush = NULL; /* an import has none */
    assert_true(writer_apply(&w, &batch, NULL, NULL, &e));
    assert_int_equal(f.interval_ms, 1600);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_flush_is_twice_what_a_batch_takes),
        cmocka_unit_test(test_flush_goes_by_half_and_double_at_most),
        cmocka_unit_test(test_flush_counts_the_batches_of_all_threads),
        cmocka_unit_test(test_flush_takes_other_limits),
        cmocka_unit_test(test_writer_tells_of_what_was_applied),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
