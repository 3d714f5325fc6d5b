/* When the next period's document is made: coverage, evenness, and who gets none. */
#include "base/civil.h"
#include "store/prealloc.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/dice.h"

#include <cmocka.h>

#define SERIES  20000
#define MINUTES 1440

static const struct prealloc_options automatic = {.when = PREALLOC_AUTO};

static struct prealloc_period day_of(int number)
{
    const int64_t day_ms = DAY_MS;
    return (struct prealloc_period){(20000 + number) * day_ms, (20001 + number) * day_ms};
}

static void test_hits_are_kept_about(void **state)
{
    (void)state;
    struct dice d = dice_new("prealloc");
    struct prealloc p;
    prealloc_init(&p, &automatic, 0, 1);
    for (int code = 1; code <= UINT8_MAX; code++)
        assert_true(prealloc_hits((uint8_t)code) > prealloc_hits((uint8_t)(code - 1)));
    for (int64_t n = 1, most = 100000; n < most; n *= 3) {
        double sum = 0;
        for (int round = 0; round < 100; round++) {
            struct prealloc_state s = {0};
            for (int64_t left = n, more; left > 0; left -= more) {
                more = 1 + dice_roll(&d, left < 100 ? left : 100);
                prealloc_count(&p, &s, more);
            }
            sum += (double)prealloc_hits(s.now);
        }
        assert_true(sum / 100 > (double)n * 0.93 && sum / 100 < (double)n * 1.07);
    }
    struct prealloc_state s = {0};
    prealloc_count(&p, &s, INT64_MAX);
    prealloc_count(&p, &s, 1);
    assert_int_equal(s.now, UINT8_MAX);
}

/* ---- days of many series */

struct days {
    struct prealloc p;
    struct dice dice;
    struct prealloc_state states[SERIES];
    int made_at[MINUTES];   /* of the last day */
    int made, hit, covered; /* of the day before, and what of it was hit on the last */
    bool was_made[SERIES], is_hit[SERIES];
};

/* `hits` of each series, on average, from minute `from` to `to`. */
static void run_day(struct days *t, int number, int hits, int from, int to)
{
    struct prealloc_period day = day_of(number), before = day_of(number - 1);
    t->made = t->hit = t->covered = 0;
    for (int m = 0; m < MINUTES; m++)
        t->made_at[m] = 0;
    for (size_t i = 0; i < SERIES; i++) {
        t->was_made[i] = prealloc_turn(&t->p, &t->states[i], &before, true);
        t->made += t->was_made[i];
        t->is_hit[i] = false;
    }
    int64_t all = (int64_t)hits * SERIES;
    for (int64_t n = 0; n < all; n++) {
        int minute = from + (int)((to - from) * n / all);
        size_t i = (size_t)dice_roll(&t->dice, SERIES);
        t->is_hit[i] = true;
        prealloc_count(&t->p, &t->states[i], 1);
        t->made_at[minute] +=
            prealloc_is_due(&t->p, &t->states[i], i, &day, day.from_ms + (int64_t)minute * MINUTE_MS, 1);
    }
    for (size_t i = 0; i < SERIES; i++) {
        t->hit += t->is_hit[i];
        t->covered += t->is_hit[i] && t->was_made[i];
    }
}

static double spike_of(const struct days *t)
{
    int most = 0, all = 0;
    for (int m = 0; m < MINUTES; m++) {
        most = t->made_at[m] > most ? t->made_at[m] : most;
        all += t->made_at[m];
    }
    return all == 0 ? 0 : (double)most * MINUTES / all;
}

static struct days *begin(const struct prealloc_options *options, int64_t since_ms)
{
    struct days *t = calloc(1, sizeof *t);
    t->dice = dice_new("prealloc");
    prealloc_init(&t->p, options, since_ms, 7);
    return t;
}

static void test_nearly_all_are_there_and_come_evenly(void **state)
{
    (void)state;
    struct days *t = begin(&automatic, 0);
    for (int day = 0; day < 4; day++) {
        run_day(t, day, 50, 0, MINUTES);
        if (day > 0) {
            assert_true(t->covered * 1000 >= t->hit * 995);
            assert_true(spike_of(t) < 4); /* of 14 a minute; of a million series it is 1.3 */
        }
    }
    /* A day of half the traffic, and those after it. */
    for (int day = 4; day < 7; day++) {
        run_day(t, day, day == 4 ? 25 : 50, 0, MINUTES);
        assert_true(t->covered * 100 >= t->hit * 99);
    }
    free(t);
}

/* By Zipf's law: those that are hit often enough have their document, the others mostly none for nothing. */
static void test_zipf(void **state)
{
    (void)state;
    static bool was_made[SERIES], is_hit[SERIES];
    static struct prealloc_state states[SERIES];
    static int at[MINUTES];
    const int64_t hits = 800000;
    const double often = (double)hits / log(SERIES) / 50; /* about so many series have 50 hits or more */
    struct dice d = {4};
    struct prealloc p;
    int busy = 0, covered = 0, made = 0, unused = 0, most = 0;
    prealloc_init(&p, &automatic, 0, 4);
    for (int number = 0; number < 3; number++) {
        struct prealloc_period day = day_of(number), before = day_of(number - 1);
        busy = covered = made = unused = 0;
        for (size_t i = 0; i < SERIES; i++)
            was_made[i] = prealloc_turn(&p, &states[i], &before, true);
        memset(is_hit, 0, sizeof is_hit);
        memset(at, 0, sizeof at);
        for (int64_t n = 0; n < hits; n++) {
            int minute = (int)(n * MINUTES / hits);
            size_t i = (size_t)pow(SERIES, (double)dice_roll(&d, 1 << 30) / (1 << 30)) - 1;
            is_hit[i] = true;
            prealloc_count(&p, &states[i], 1);
            at[minute] +=
                prealloc_is_due(&p, &states[i], i, &day, day.from_ms + (int64_t)minute * MINUTE_MS, 1);
        }
        for (size_t i = 0; i < SERIES; i++) {
            busy += i < (size_t)often && is_hit[i];
            covered += i < (size_t)often && is_hit[i] && was_made[i];
            made += was_made[i];
            unused += was_made[i] && !is_hit[i];
        }
    }
    int all = 0;
    for (int m = 0; m < MINUTES; m++) {
        most = at[m] > most ? at[m] : most;
        all += at[m];
    }
    assert_true(busy > 1000 && covered * 100 >= busy * 99);
    assert_true(made > busy && unused * 5 < made);
    assert_true((double)most * MINUTES / all < 3); /* of 8 a minute */
}

/* Traffic that is over at noon, or begins then. */
static void test_busy_for_a_part_of_the_day(void **state)
{
    (void)state;
    for (int half = 0; half < 2; half++) {
        struct days *t = begin(&automatic, 0);
        for (int day = 0; day < 4; day++) {
            run_day(t, day, 60, half * MINUTES / 2, (half + 1) * MINUTES / 2);
            if (day == 0)
                continue;
            int least = day > 1 ? 97 : 60; /* on the first day they know only the clock */
            assert_true(t->covered * 100 >= t->hit * least);
            assert_true(spike_of(t) < 12); /* at noon, those that are late by the clock: a fifth at most */
        }
        free(t);
    }
}

static void test_a_constant_chance_is_early(void **state)
{
    (void)state;
    const struct prealloc_options chance = {PREALLOC_CHANCE, 11, false}; /* for 99 of 100 at 50 hits */
    struct days *t = begin(&chance, 0);
    run_day(t, 0, 50, 0, MINUTES);
    run_day(t, 1, 50, 0, MINUTES);
    assert_true(t->covered * 100 >= t->hit * 98);
    assert_true(spike_of(t) > 4);
    free(t);
}

static void test_what_stopped_or_is_rare_gets_none(void **state)
{
    (void)state;
    struct days *t = begin(&automatic, 0);
    run_day(t, 0, 50, 0, MINUTES);
    run_day(t, 1, 0, 0, MINUTES);
    assert_true(t->made > 0);
    run_day(t, 2, 0, 0, MINUTES);
    assert_int_equal(t->made, 0);
    struct prealloc_state s = {0};
    struct prealloc_period day = day_of(0);
    for (int hit = 1; hit < PREALLOC_EVIDENCE; hit++) {
        prealloc_count(&t->p, &s, 1);
        assert_false(prealloc_is_due(&t->p, &s, 1, &day, day.to_ms - 1, 1));
    }
    prealloc_count(&t->p, &s, 1);
    assert_true(prealloc_is_due(&t->p, &s, 1, &day, day.to_ms - 1, 1));
    assert_false(prealloc_is_due(&t->p, &s, 1, &day, day.to_ms - 1, 1)); /* told once */
    assert_false(prealloc_turn(&t->p, &s, &day, false));                 /* it was of another period */
    free(t);
}

/* Begun at 18:00, all that was due before is spread over the rest of the day, and the next day is even. */
static void test_begun_within_a_day(void **state)
{
    (void)state;
    const int from = MINUTES * 3 / 4;
    struct days *t = begin(&automatic, day_of(0).from_ms + (int64_t)from * MINUTE_MS);
    run_day(t, 0, 20, from, MINUTES);
    assert_true(spike_of(t) < 4 * 3); /* of a quarter of a day, of few series */
    run_day(t, 1, 80, 0, MINUTES);
    assert_true(t->covered * 100 >= t->hit * 98);
    assert_true(spike_of(t) < 4);
    free(t);
}

static void test_off(void **state)
{
    (void)state;
    const struct prealloc_options off = {.when = PREALLOC_OFF};
    struct prealloc p;
    struct prealloc_state s = {0};
    struct prealloc_period day = day_of(0);
    prealloc_init(&p, &off, 0, 1);
    prealloc_count(&p, &s, 1000);
    assert_false(prealloc_is_due(&p, &s, 1, &day, day.to_ms - 1, 1000));
}

static void test_one_in_one_is_always(void **state)
{
    (void)state;
    const struct prealloc_options one = {PREALLOC_CHANCE, 1, false};
    struct prealloc p;
    struct prealloc_state s = {0};
    struct prealloc_period day = day_of(0);
    prealloc_init(&p, &one, 0, 1);
    assert_true(prealloc_is_due(&p, &s, 1, &day, day.from_ms, 1));
    assert_true(prealloc_turn(&p, &s, &day, true));
    assert_true(prealloc_is_due(&p, &s, 1, &day, day.from_ms, 1));
}

static void test_spike(void **state)
{
    (void)state;
    struct prealloc_pace pace = {0};
    struct prealloc_figures f = {0};
    const int64_t day_ms = DAY_MS, noon_ms = 20000 * day_ms + day_ms / 2;
    prealloc_note_made(&pace, &f, noon_ms, 4);
    prealloc_note_made(&pace, &f, noon_ms + 1, 4);
    assert_int_equal(f.spike_milli, 1000);
    prealloc_note_made(&pace, &f, noon_ms + 3 * (int64_t)MINUTE_MS, 8);
    assert_int_equal(f.spike_milli, 2000); /* 8 of 16 in one of 4 minutes */
    prealloc_note_made(&pace, &f, noon_ms + day_ms, 1);
    assert_int_equal(f.spike_milli, 721000); /* the first of its day */
    assert_int_equal(f.made, 17);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_hits_are_kept_about),
        cmocka_unit_test(test_nearly_all_are_there_and_come_evenly),
        cmocka_unit_test(test_zipf),
        cmocka_unit_test(test_busy_for_a_part_of_the_day),
        cmocka_unit_test(test_a_constant_chance_is_early),
        cmocka_unit_test(test_what_stopped_or_is_rare_gets_none),
        cmocka_unit_test(test_begun_within_a_day),
        cmocka_unit_test(test_off),
        cmocka_unit_test(test_one_in_one_is_always),
        cmocka_unit_test(test_spike),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
