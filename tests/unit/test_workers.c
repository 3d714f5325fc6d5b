/* Questions are answered by a few threads, the others wait; and all end when the workers do. */
#include "web/workers.h"

#include "base/civil.h"
#include "base/mem.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#define JOBS 50

struct work {
    struct job job; /* first */
    atomic_bool is_done;
};

static atomic_int running, most, finished;

/* Runs until it is cancelled. */
static void run_for_ever(struct job *job)
{
    int now = atomic_fetch_add(&running, 1) + 1, before = atomic_load(&most);
    while (now > before && !atomic_compare_exchange_weak(&most, &before, now))
        ;
    while (!deadline_is_over(&job->deadline))
        usleep(1000);
    atomic_fetch_sub(&running, 1);
}

static void note(struct job *job)
{
    atomic_store(&((struct work *)job)->is_done, true);
    atomic_fetch_add(&finished, 1);
}

static struct work *add(struct workers *w, void (*run)(struct job *job), int64_t for_ms)
{
    struct work *work = xcalloc(1, sizeof *work);
    work->job.run = run;
    work->job.done = note;
    deadline_init(&work->job.deadline, &clock_system, for_ms);
    assert_true(workers_add(w, &work->job));
    return work;
}

static void wait_for(atomic_int *what, int count)
{
    for (int i = 0; i < 5000 && atomic_load(what) < count; i++)
        usleep(1000);
    assert_int_equal(atomic_load(what), count);
}

static void test_a_few_run_and_all_end_at_once(void **state)
{
    struct workers *w = workers_start();
    struct work *works[JOBS];
    struct job late = {.run = run_for_ever};
    (void)state;
    atomic_store(&finished, 0);
    assert_non_null(w);
    for (size_t i = 0; i < JOBS; i++)
        works[i] = add(w, run_for_ever, HOUR_MS);
    wait_for(&running, WORKERS_COUNT);
    assert_int_equal(atomic_load(&finished), 0);
    int64_t before_ms = clock_mono_ms(&clock_system);
    workers_end(w);
    assert_true(clock_mono_ms(&clock_system) - before_ms < SECOND_MS);
    assert_int_equal(atomic_load(&most), WORKERS_COUNT);
    for (size_t i = 0; i < JOBS; i++) {
        assert_true(atomic_load(&works[i]->is_done));
        assert_int_equal(works[i]->job.deadline.end, DEADLINE_CANCELLED);
        free(works[i]);
    }
    assert_false(workers_add(w, &late));
    workers_free(w);
}

/* A deadline counts the time of waiting, too. */
static void test_each_ends_with_its_time(void **state)
{
    struct workers *w = workers_start();
    struct work *works[2 * WORKERS_COUNT];
    (void)state;
    atomic_store(&finished, 0);
    assert_non_null(w);
    for (size_t i = 0; i < COUNT_OF(works); i++)
        works[i] = add(w, run_for_ever, 100);
    wait_for(&finished, COUNT_OF(works));
    workers_end(w);
    workers_free(w);
    for (size_t i = 0; i < COUNT_OF(works); i++) {
        assert_int_equal(works[i]->job.deadline.end, DEADLINE_PASSED);
        free(works[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_few_run_and_all_end_at_once),
        cmocka_unit_test(test_each_ends_with_its_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
