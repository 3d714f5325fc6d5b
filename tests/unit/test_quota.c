/* Memory that questions share: what one takes, the others lack; what it gives back is whole again. */
#include "base/quota.h"
#include "prom/eval.h"
#include "prom/list.h"
#include "query/ranking.h"
#include "tests/support/dice.h"
#include "tests/support/world.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#define MIB    ((uint64_t)1 << 20)
#define STEP   ((uint64_t)SHARE_STEP_BYTES)
#define SERIES 600
#define NOON   "2015-05-17T12:00"

static int64_t left_of(struct quota *q)
{
    return atomic_load(&q->left);
}

static void check_refused(const struct share *s, int code, bool retryable)
{
    struct err e;
    assert_false(share_fail(s, &e));
    assert_int_equal(e.code, code);
    assert_int_equal(e.retryable, retryable);
    assert_non_null(strstr(e.text, "(query.memory_max)"));
}

static void test_quota_says_who_has_taken_it(void **state)
{
    (void)state;
    struct quota q;
    quota_init(&q, MIB);
    struct share a = {.quota = &q}, b = {.quota = &q};
    assert_true(share_take(&a, 1));
    assert_int_equal(left_of(&q), MIB - STEP);
    assert_true(share_take(&a, STEP - 1));
    assert_int_equal(left_of(&q), MIB - STEP);
    assert_false(share_take(&a, MIB));
    check_refused(&a, EX_UNAVAILABLE, false);
    assert_false(share_take(&a, UINT64_MAX));
    check_refused(&a, EX_UNAVAILABLE, false);
    assert_false(share_take(&b, MIB - STEP + 1));
    assert_true(share_take(&b, MIB - 2 * STEP));
    assert_false(share_take(&a, 1 + STEP));
    check_refused(&a, EX_TEMPFAIL, true);
    share_give(&b, MIB - 3 * STEP);
    assert_true(share_take(&a, 1 + STEP));
    share_end(&a);
    share_end(&b);
    assert_int_equal(left_of(&q), MIB);
    assert_true(share_take(NULL, UINT64_MAX)); /* a handle without a share has no limit */
}

static void test_quota_may_be_lowered_while_it_is_in_use(void **state)
{
    (void)state;
    struct quota q;
    quota_init(&q, MIB);
    struct share a = {.quota = &q}, b = {.quota = &q};
    assert_true(share_take(&a, MIB / 2));
    quota_set_max(&q, MIB / 4);
    assert_false(share_take(&b, 1));
    check_refused(&b, EX_TEMPFAIL, true);
    assert_false(share_take(&a, STEP));
    check_refused(&a, EX_UNAVAILABLE, false);
    share_end(&a);
    assert_true(share_take(&b, MIB / 4));
    share_end(&b);
    assert_int_equal(left_of(&q), MIB / 4);
}

static void test_quota_counts_what_grows_once(void **state)
{
    (void)state;
    struct quota q;
    quota_init(&q, MIB);
    struct share s = {.quota = &q};
    uint64_t counted = 0;
    assert_true(share_fit(&s, &counted, 100) && share_fit(&s, &counted, 50) && share_fit(&s, &counted, 120));
    assert_int_equal(s.used, 120);
    assert_false(share_fit(&s, &counted, 2 * MIB));
    assert_int_equal(counted, 120);
    share_end(&s);
    assert_int_equal(left_of(&q), MIB);
}

#define THREADS 4

struct taker {
    struct quota *quota;
    struct dice dice;
    uint64_t refused;
};

static void *take_and_give(void *context)
{
    struct taker *t = context;
    for (size_t i = 0; i < 2000; i++) {
        struct share s = {.quota = t->quota};
        for (size_t k = 0; k < 20; k++) {
            if (!share_take(&s, (uint64_t)dice_roll(&t->dice, (int64_t)MIB / 2)))
                t->refused++;
            share_give(&s, s.used > 0 ? (uint64_t)dice_roll(&t->dice, (int64_t)s.used) : 0);
            if (left_of(t->quota) < 0)
                return NULL;
        }
        share_end(&s);
    }
    return t;
}

static void test_quota_is_whole_after_all_threads(void **state)
{
    (void)state;
    struct quota q;
    struct taker takers[THREADS];
    pthread_t threads[THREADS];
    uint64_t refused = 0;
    const struct dice dice = dice_new("quota");
    quota_init(&q, MIB);
    for (size_t i = 0; i < THREADS; i++) {
        takers[i] = (struct taker){.quota = &q, .dice = {dice.state + i}};
        assert_int_equal(pthread_create(&threads[i], NULL, take_and_give, &takers[i]), 0);
    }
    for (size_t i = 0; i < THREADS; i++) {
        void *taker;
        pthread_join(threads[i], &taker);
        assert_ptr_equal(taker, &takers[i]); /* more was never taken than there was */
        refused += takers[i].refused;
    }
    assert_true(refused > 0);
    assert_int_equal(left_of(&q), MIB);
}

/* ---- questions */

static int setup(void **state)
{
    world_setup(state);
    for (int i = 0; i < SERIES; i++) {
        char path[32];
        snprintf(path, sizeof path, "/%d", i);
        world_hit(*state, FIXTURE_PAGES, path, "2015-05-17T11:59", i);
    }
    world_apply(*state, 1);
    return 0;
}

static bool ask_prom(struct world *w, struct err *e)
{
    struct eval_answer a;
    struct eval_question q = {.text = slice_text("sum without (x) (increase(pages:hits[2h]))"),
                              .from_ms = fixture_ms(NOON),
                              .to_ms = fixture_ms("2015-05-17T13:00"),
                              .step_ms = MINUTE_MS,
                              .limits = {.rows_max = 1000000, .points_max = 100, .series_max = SERIES + 1}};
    if (!eval_run(w->store, &q, &a, e))
        return false;
    eval_fini(&a);
    return true;
}

static bool ask_query(struct world *w, const char *const (*words)[2], struct err *e,
                      bool (*run)(struct store *, const struct query *, struct text *, struct err *))
{
    static const struct query_limits limits = {
        .rows_max = 1000000, .points_max = 100000, .series_max = SERIES + 1};
    struct query q;
    struct text out = {0};
    query_init(&q, fixture_ms(NOON), &limits);
    for (size_t i = 0; words[i][0] != NULL; i++)
        assert_true(query_set(&q, slice_text(words[i][0]), slice_text(words[i][1]), e));
    bool good = run(w->store, &q, &out, e);
    text_fini(&out);
    return good;
}

static bool run_query(struct store *st, const struct query *q, struct text *out, struct err *e)
{
    struct query_stats stats;
    return query_run(st, q, out, &stats, e);
}

static const char *const top_words[][2] = {
    {"report", "pages"}, {"from", "2015-05-17"}, {"top", "600"}, {NULL, NULL}};

static bool ask_top(struct world *w, struct err *e)
{
    return ask_query(w, top_words, e, run_query);
}

static bool ask_ranking(struct world *w, struct err *e)
{
    return ask_query(w, top_words, e, ranking_run);
}

static bool ask_steps(struct world *w, struct err *e)
{
    static const char *const words[][2] = {
        {"report", "pages"}, {"from", "2015-05-01"}, {"step", "minute"}, {NULL, NULL}};
    return ask_query(w, words, e, run_query);
}

static bool ask_list(struct world *w, struct err *e)
{
    const struct list_ask ask = {.max = SERIES + 1, .rows_max = 1000000};
    struct text out = {0};
    bool is_cut, good = list_series(w->store, &ask, &out, &is_cut, e);
    text_fini(&out);
    return good;
}

static const struct {
    const char *name;
    bool (*ask)(struct world *w, struct err *e);
    uint64_t least; /* bytes that its parts take for certain */
} questions[] = {
    {"PromQL", ask_prom, SERIES * 61 * sizeof(double)},
    {"top", ask_top, SERIES * 2 * sizeof(int64_t)},
    {"ranking", ask_ranking, SERIES * 2 * sizeof(int64_t)},
    {"steps", ask_steps, (uint64_t)16 * 24 * 60 * sizeof(int64_t)},
    {"list", ask_list, SERIES * 2 * sizeof(struct label)},
};

/* Each question is answered with what it takes, refused with less, and gives back all. */
static void test_quota_bounds_each_kind_of_question(void **state)
{
    struct world *w = *state;
    for (size_t i = 0; i < COUNT_OF(questions); i++) {
        struct err e = {0};
        struct quota q;
        quota_init(&q, 1024 * MIB);
        struct share enough = {.quota = &q};
        w->store->memory = &enough;
        if (!questions[i].ask(w, &e))
            fail_msg("%s: %s", questions[i].name, e.text);
        if (enough.most < questions[i].least)
            fail_msg("%s has taken %llu bytes", questions[i].name, (unsigned long long)enough.most);
        for (uint64_t max = 0; max + STEP < enough.most; max += STEP) {
            quota_init(&q, max);
            struct share small = {.quota = &q};
            w->store->memory = &small;
            if (questions[i].ask(w, &e) || e.code != EX_UNAVAILABLE || strstr(e.text, "memory") == NULL)
                fail_msg("%s with %llu bytes: %s", questions[i].name, (unsigned long long)max, e.text);
            share_end(&small);
            assert_int_equal(left_of(&q), max);
        }
        w->store->memory = NULL;
    }
}

/* The same question is answered later: it was not too large. */
static void test_quota_of_others_is_no_fault_of_a_question(void **state)
{
    struct world *w = *state;
    struct quota q;
    quota_init(&q, 64 * MIB);
    struct share other = {.quota = &q}, own = {.quota = &q};
    w->store->memory = &own;
    assert_true(share_take(&other, 64 * MIB));
    for (size_t i = 0; i < COUNT_OF(questions); i++) {
        struct err e;
        assert_false(questions[i].ask(w, &e));
        assert_int_equal(e.code, EX_TEMPFAIL);
        assert_true(e.retryable);
    }
    share_end(&other);
    for (size_t i = 0; i < COUNT_OF(questions); i++) {
        struct err e;
        assert_true(questions[i].ask(w, &e));
    }
    share_end(&own);
    w->store->memory = NULL;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_quota_says_who_has_taken_it),
        cmocka_unit_test(test_quota_may_be_lowered_while_it_is_in_use),
        cmocka_unit_test(test_quota_counts_what_grows_once),
        cmocka_unit_test(test_quota_is_whole_after_all_threads),
        cmocka_unit_test_setup_teardown(test_quota_bounds_each_kind_of_question, setup, world_teardown),
        cmocka_unit_test_setup_teardown(test_quota_of_others_is_no_fault_of_a_question, setup,
                                        world_teardown),
    };
    world_kind = &world_kinds[0];
    return cmocka_run_group_tests(tests, NULL, NULL);
}
