/* Any question over any counts, by any step of any time zone, on every store: the answer equals a naive
 * recount. */
#include "aggregate/dimension.h"
#include "query/plan.h"
#include "query/query.h"
#include "tests/support/dice.h"
#include "tests/support/model.h"
#include "tests/support/wall.h"
#include "tests/support/world.h"

#include <fnmatch.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define KEYS_MAX            (5 * 3 * 4)
#define QUESTIONS           60
#define QUESTIONS_OF_SERVER 16 /* of which each takes a hundred times as long */

static const char *const hosts[] = {"::1", "h", "-", "a b", "h2"};
static const char *const methods[] = {"GET", "POST", "-"};
static const char *const statuses[] = {"200", "404", "500", "-"};

/* Conditions as they are asked; for the judge a dimension, patterns of fnmatch(3), and the least number. */
static const struct asked {
    const char *text;
    int dimension;
    bool is_negative;
    const char *patterns[3];
    int least;
} conditions[] = {
    {"host=h*", 0, false, {"h*"}, 0},
    {"host!=*1|a b", 0, true, {"*1", "a b"}, 0},
    {"host=*", 0, false, {"*"}, 0},
    {"host=-", 0, false, {"-"}, 0},
    {"method=P*T|GET", 1, false, {"P*T", "GET"}, 0},
    {"method!=*S*", 1, true, {"*S*"}, 0},
    {"status=2*|*4", 2, false, {"2*", "*4"}, 0},
    {"status>=404", 2, false, {NULL}, 404},
    {"status>403.5", 2, false, {NULL}, 404},
};

struct game {
    struct dice dice;
    struct model model;
    char keys[KEYS_MAX][32];
    struct query query;
    const struct asked *where[2]; /* conditions of the query, in turn */
    int64_t from_ms;              /* of the first count */
};

static void fill(struct game *g, struct world *w)
{
    /* a new year and a leap day; clocks put forward, and back */
    static const char *const begins[] = {"2015-12-20", "2015-02-20", "2015-09-15"};
    int64_t from_ms = fixture_ms(begins[dice_roll(&g->dice, 3)]), length_ms = 75LL * DAY_MS;
    struct err e;
    g->from_ms = from_ms;
    for (size_t i = 0; i < KEYS_MAX; i++)
        snprintf(g->keys[i], sizeof g->keys[i], "%s\t%s\t%s", hosts[i % 5], methods[i / 5 % 3],
                 statuses[i / 15]);
    for (int batch = 0; batch < 10; batch++) {
        for (int i = 0; i < 100; i++) {
            const char *key = g->keys[dice_roll(&g->dice, dice_roll(&g->dice, KEYS_MAX) + 1)];
            int64_t at_ms = from_ms + dice_roll(&g->dice, length_ms);
            int64_t values[] = {1 + dice_roll(&g->dice, 2), dice_roll(&g->dice, 10000)};
            batcher_add(w->batcher, 0, FIXTURE_CLIENTS, key, at_ms, values);
            model_add(&g->model, FIXTURE_CLIENTS, key, at_ms, values);
        }
        world_apply(w, 1);
        if (batch == 5)
            assert_true(store_housekeep(w->store, true, &e));
    }
}

static void roll_question(struct game *g)
{
    static const struct query_limits limits = {
        .rows_max = UINT64_MAX, .points_max = 1000000, .series_max = 1000};
    struct query *q = &g->query;
    query_init(q, 0, &limits);
    q->report = slice_text("clients");
    q->measure = slice_text(dice_roll(&g->dice, 2) == 0 ? "hits" : "bytes");
    q->format = QUERY_CSV;
    q->from_ms = g->from_ms - 5LL * DAY_MS + dice_roll(&g->dice, 80LL * DAY_MS);
    q->to_ms = q->from_ms + 1 + dice_roll(&g->dice, dice_roll(&g->dice, 2) == 0 ? DAY_MS : 80LL * DAY_MS);
    if (dice_roll(&g->dice, 2) == 0)
        q->filters[q->filter_count++] =
            (struct query_filter){slice_text("status"), slice_text(statuses[dice_roll(&g->dice, 4)])};
    if (dice_roll(&g->dice, 2) == 0)
        q->filters[q->filter_count++] =
            (struct query_filter){slice_text("host"), slice_text(hosts[dice_roll(&g->dice, 5)])};
    if (dice_roll(&g->dice, 3) == 0)
        q->filters[q->filter_count++] =
            (struct query_filter){slice_text("method"), slice_text(methods[dice_roll(&g->dice, 3)])};
    for (int64_t i = dice_roll(&g->dice, 3); i > 0; i--) {
        struct err e;
        const struct asked *asked = &conditions[dice_roll(&g->dice, COUNT_OF(conditions))];
        g->where[q->where_count] = asked;
        assert_true(query_set(q, slice_text("where"), slice_text(asked->text), &e));
    }
}

static bool judge(const struct asked *asked, struct slice of)
{
    char text[32];
    snprintf(text, sizeof text, "%.*s", SLICE_ARGS(of));
    if (asked->least > 0)
        return atoi(text) >= asked->least;
    bool found = false;
    for (size_t i = 0; i < 3 && asked->patterns[i] != NULL; i++)
        found |= fnmatch(asked->patterns[i], text, 0) == 0;
    return found != asked->is_negative;
}

/* A model_fn: does the key have what the question asks for? */
static bool is_asked_for(void *context, struct slice key)
{
    static const char *const names[] = {"host", "method", "status"};
    const struct game *g = context;
    const struct query *q = &g->query;
    for (size_t d = 0; d < 3; d++) {
        struct slice text = dimension_next(&key);
        for (size_t i = 0; i < q->filter_count; i++) {
            if (slice_is(q->filters[i].dimension, names[d]) && !slice_equal(q->filters[i].value, text))
                return false;
        }
        for (size_t i = 0; i < q->where_count; i++) {
            if (g->where[i]->dimension == (int)d && !judge(g->where[i], text))
                return false;
        }
    }
    return true;
}

static int64_t recount(struct game *g, model_fn *wants, void *context, int64_t from_ms, int64_t to_ms)
{
    return model_sum(&g->model, FIXTURE_CLIENTS, wants, context, from_ms, to_ms,
                     slice_is(g->query.measure, "bytes"));
}

static void answer(struct game *g, struct world *w, struct text *out)
{
    struct query_stats stats;
    struct err e;
    text_clear(out);
    if (!query_run(w->store, &g->query, out, &stats, &e))
        fail_msg("%s", e.text);
}

static void roll_step(struct game *g)
{
    static const char *const steps[] = {"hour", "day", "month", "week", "year", "15m", "30m",
                                        "90m",  "6h",  "7h",    "2d",   "3mo",  "7m",  "minute"};
    struct query *q = &g->query;
    struct err e;
    bool is_short = q->to_ms - q->from_ms < 2LL * DAY_MS;
    q->has_step = dice_roll(&g->dice, 8) > 0;
    assert_true(step_parse(slice_text(steps[dice_roll(&g->dice, is_short ? 14 : 12)]), &q->step));
    q->step.week_start = (enum weekday)dice_roll(&g->dice, 7);
    if (dice_roll(&g->dice, 4) > 0)
        q->zone = zone_find(slice_text(wall_any(dice_roll(&g->dice, 100))), &e);
    assert_non_null(q->zone);
}

static void check_steps(struct game *g, struct world *w)
{
    struct query *q = &g->query;
    struct text out = {0}, expected = {0};
    char iso[ZONE_ISO_BYTES];
    roll_step(g);
    answer(g, w, &out);
    text_puts(&expected, "time,value\n");
    enum span cell = report_cell(&w->reports[FIXTURE_CLIENTS]);
    int64_t end_ms = q->has_step ? q->to_ms : plan_ceil(cell, q->to_ms);
    int64_t at_ms = q->has_step ? step_floor(&q->step, q->zone, q->from_ms) : span_floor(cell, q->from_ms);
    while (at_ms < end_ms) {
        int64_t next_ms = q->has_step ? step_next(&q->step, q->zone, at_ms) : end_ms;
        text_printf(&expected, "%s,%" PRId64 "\n", zone_iso(q->zone, at_ms, iso),
                    recount(g, is_asked_for, g, at_ms, next_ms));
        at_ms = next_ms;
    }
    assert_string_equal(out.ptr, expected.ptr);
    text_fini(&out);
    text_fini(&expected);
}

/* Selection, one rank after the other, by looking at every key each time. */
static void check_top(struct game *g, struct world *w)
{
    struct query *q = &g->query;
    struct text out = {0}, expected = {0};
    bool taken[KEYS_MAX] = {false};
    q->top = (uint64_t)(1 + dice_roll(&g->dice, 20));
    answer(g, w, &out);
    text_puts(&expected, "host,method,status,value\n");
    enum span unit = report_cell(&w->reports[FIXTURE_CLIENTS]);
    int64_t from_ms = span_floor(unit, q->from_ms), to_ms = plan_ceil(unit, q->to_ms);
    for (uint64_t rank = 0; rank < q->top; rank++) {
        size_t best = KEYS_MAX;
        int64_t most = 0;
        for (size_t i = 0; i < KEYS_MAX; i++) {
            if (taken[i] || !is_asked_for(g, slice_text(g->keys[i])))
                continue;
            int64_t value = recount(g, model_is, g->keys[i], from_ms, to_ms);
            if (value > most || (value == most && best < KEYS_MAX && strcmp(g->keys[i], g->keys[best]) < 0)) {
                best = i;
                most = value;
            }
        }
        if (best == KEYS_MAX)
            break;
        taken[best] = true;
        struct slice key = slice_text(g->keys[best]);
        for (int d = 0; d < 3; d++) {
            struct slice text = dimension_next(&key);
            text_printf(&expected, "%.*s,", SLICE_ARGS(text));
        }
        text_printf(&expected, "%" PRId64 "\n", most);
    }
    assert_string_equal(out.ptr, expected.ptr);
    text_fini(&out);
    text_fini(&expected);
}

static void test_any_answer_equals_a_naive_recount(void **state)
{
    struct world *w = *state;
    struct game g = {.dice = dice_new(world_kind->name)};
    fill(&g, w);
    for (int i = 0; i < (world_is_in_server() ? QUESTIONS_OF_SERVER : QUESTIONS); i++) {
        roll_question(&g);
        if (i % 2 == 0)
            check_steps(&g, w);
        else
            check_top(&g, w);
    }
    model_free(&g.model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_any_answer_equals_a_naive_recount, world_setup, world_teardown),
    };
    int failed = 0;
    for (size_t i = 0; i < world_kind_count(); i++) {
        world_kind = &world_kinds[i];
        failed += cmocka_run_group_tests_name(world_kind->name, tests, NULL, NULL);
    }
    return failed;
}
