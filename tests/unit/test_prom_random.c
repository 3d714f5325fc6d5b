/* Any expression over any events: the answer equals what a judge finds by looking at every event. */
#include "base/mem.h"
#include "prom/eval.h"
#include "prom/fetch.h"
#include "store/backend/backend.h"
#include "store/writer.h"
#include "tests/support/batcher.h"
#include "tests/support/dice.h"
#include "tests/support/fixture.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define HOSTS     3
#define METHODS   2
#define SERIES    (HOSTS * METHODS)
#define EVENTS    400
#define QUESTIONS 1500
#define STEPS_MAX 12
#define ABSENT    NAN /* nothing that is asked comes to NaN */
#define NEAR      1e-6

static const char *const hosts[] = {"a", "b b", "::1"};
static const char *const methods[] = {"GET", "-"};
static const char *const measures[] = {"hits", "sum", "least", "most", "mean", "last"};
static const char *const expressions[] = {"count",      "sum(bytes)",  "min(bytes)",
                                          "max(bytes)", "mean(bytes)", "last(bytes)"};

struct event_of {
    size_t series;
    int64_t at_ms, bytes;
};

/* A question, piece by piece; its text is made of these. */
struct question {
    size_t measure;
    int host, method; /* a matcher's value; -1: none */
    bool not_method;  /* != rather than = */
    int function;     /* of `functions`; -1: the selector alone */
    int aggregate;    /* of `aggregates`; -1: none */
    bool by_host, by_method;
    int64_t range_ms, offset_ms, at_ms, step_ms;
    size_t step_count;
    char text[256];
};

struct game {
    struct dice dice;
    struct report report;
    struct store *store;
    struct event_of events[EVENTS];
    int64_t cell_ms;
    struct question q;
};

static const char *const functions[] = {
    "rate",          "increase",      "sum_over_time",   "avg_over_time",
    "min_over_time", "max_over_time", "count_over_time", "last_over_time"};
enum { RATE, INCREASE, SUM, AVG, MIN, MAX, COUNT, LAST };
static const char *const aggregates[] = {"sum", "avg", "min", "max", "count"};

/* ---- the judge */

static bool is_total(const struct game *g)
{
    return g->q.measure < 2;
}

static double whole(const struct game *g, size_t series, int64_t from_ms, int64_t to_ms)
{
    double count = 0, sum = 0, least = INFINITY, most = -INFINITY, last = 0;
    int64_t last_ms = -1;
    for (size_t i = 0; i < EVENTS; i++) {
        const struct event_of *ev = &g->events[i];
        if (ev->series != series || ev->at_ms < from_ms || ev->at_ms >= to_ms)
            continue;
        double bytes = (double)ev->bytes;
        count++;
        sum += bytes;
        least = bytes < least ? bytes : least;
        most = bytes > most ? bytes : most;
        if (ev->at_ms >= last_ms) {
            last_ms = ev->at_ms;
            last = bytes;
        }
    }
    const double values[] = {count, sum, least, most, sum / count, last};
    return count == 0 && !is_total(g) ? ABSENT : values[g->q.measure];
}

static double by_cells(const struct game *g, size_t series, int64_t from_ms, int64_t to_ms)
{
    double count = 0, sum = 0, least = INFINITY, most = -INFINITY, last = ABSENT;
    for (int64_t at_ms = from_ms; at_ms < to_ms; at_ms += g->cell_ms) {
        double value = whole(g, series, at_ms, at_ms + g->cell_ms);
        if (isnan(value))
            continue;
        count++;
        sum += value;
        least = value < least ? value : least;
        most = value > most ? value : most;
        last = value;
    }
    const double values[] = {0, 0, sum, sum / count, least, most, count, last};
    return count == 0 ? ABSENT : values[g->q.function];
}

static int64_t whole_cell(const struct game *g, int64_t ms)
{
    return ms / g->cell_ms * g->cell_ms;
}

static double window_value(const struct game *g, size_t series, int64_t from_ms, int64_t to_ms)
{
    static const char *const exact[] = {[AVG] = "mean", [MIN] = "least", [MAX] = "most"};
    const struct question *q = &g->q;
    if (q->function == RATE)
        return whole(g, series, from_ms, to_ms) * 1000 / (double)(to_ms - from_ms);
    if (q->function < 0 || q->function == INCREASE)
        return whole(g, series, from_ms, to_ms);
    const char *kind = q->function >= AVG && q->function <= MAX ? exact[q->function] : "";
    if (strcmp(measures[q->measure], kind) == 0)
        return whole(g, series, from_ms, to_ms);
    return by_cells(g, series, from_ms, to_ms);
}

/* Absent where a total has no events in the window, unless it is named by all its labels. */
static double judge(const struct game *g, size_t series, size_t step, bool is_named)
{
    const struct question *q = &g->q;
    int64_t at_ms = q->at_ms - q->offset_ms + (int64_t)step * q->step_ms, length_ms = q->range_ms;
    bool has_events = false, looks_back = q->function < 0 && !is_total(g);
    if (q->function < 0)
        length_ms = looks_back ? FETCH_LOOKBACK_MS : g->cell_ms;
    if (length_ms < g->cell_ms)
        length_ms = g->cell_ms;
    int64_t from_ms = whole_cell(g, at_ms - length_ms), to_ms = whole_cell(g, at_ms);
    for (size_t i = 0; i < EVENTS; i++)
        has_events |=
            g->events[i].series == series && g->events[i].at_ms >= from_ms && g->events[i].at_ms < to_ms;
    if (!has_events && !(is_named && is_total(g)))
        return ABSENT;
    while (looks_back && isnan(whole(g, series, to_ms - g->cell_ms, to_ms)))
        to_ms -= g->cell_ms;
    return window_value(g, series, looks_back ? to_ms - g->cell_ms : from_ms, to_ms);
}

static bool is_asked_for(const struct question *q, size_t series)
{
    bool host = q->host < 0 || (size_t)q->host == series / METHODS;
    bool method = q->method < 0 || ((size_t)q->method == series % METHODS) != q->not_method;
    return host && method;
}

static double combine(int aggregate, const double *values, size_t count)
{
    double sum = 0, least = INFINITY, most = -INFINITY;
    for (size_t i = 0; i < count; i++) {
        sum += values[i];
        least = values[i] < least ? values[i] : least;
        most = values[i] > most ? values[i] : most;
    }
    const double all[] = {sum, sum / (double)count, least, most, (double)count};
    return count == 0 ? ABSENT : all[aggregate];
}

/* ---- questions */

#define PICK(g, ...) \
    ((const int64_t[]){__VA_ARGS__})[dice_roll(&(g)->dice, COUNT_OF(((const int64_t[]){__VA_ARGS__})))]

static void roll(struct game *g)
{
    struct question *q = &g->q;
    *q = (struct question){.measure = (size_t)dice_roll(&g->dice, COUNT_OF(measures)),
                           .host = (int)dice_roll(&g->dice, HOSTS + 2) - 2,
                           .method = (int)dice_roll(&g->dice, METHODS + 2) - 2,
                           .not_method = dice_roll(&g->dice, 2),
                           .function = (int)dice_roll(&g->dice, COUNT_OF(functions) + 3) - 3,
                           .aggregate = (int)dice_roll(&g->dice, COUNT_OF(aggregates) + 3) - 3,
                           .by_host = dice_roll(&g->dice, 2),
                           .by_method = dice_roll(&g->dice, 2),
                           .offset_ms = PICK(g, 0, 0, 1000, 90000, -60000, 3600000),
                           .step_ms = PICK(g, 0, 15000, 60000, 90000, 420000, 3600000, 86400000),
                           .step_count = 1};
    if (!is_total(g) && (q->function == RATE || q->function == INCREASE))
        q->function = -1;
    bool is_long = q->function == RATE || q->function == INCREASE;
    q->range_ms = PICK(g, 1000, 60000, 90000, 300000, g->cell_ms * 60);
    if (is_long && dice_roll(&g->dice, 2) == 0)
        q->range_ms = PICK(g, 10800000, 86400000, 40LL * 86400000);
    if (q->step_ms > 0)
        q->step_count += (size_t)dice_roll(&g->dice, STEPS_MAX);
    q->at_ms = g->events[dice_roll(&g->dice, EVENTS)].at_ms + dice_roll(&g->dice, 600000);
    if (dice_roll(&g->dice, 2) == 0) /* as charts ask: at whole steps */
        q->at_ms -= q->step_ms > 0 ? q->at_ms % q->step_ms : q->at_ms % 3600000;
}

static void write_question(struct game *g)
{
    struct question *q = &g->q;
    char matchers[80] = "", inner[160], range[64] = "", offset[32] = "";
    size_t len = 0;
    if (q->host >= 0)
        len = (size_t)snprintf(matchers, sizeof matchers, "host=%s\"%s\",", q->by_host ? "~" : "",
                               hosts[q->host]);
    if (q->method >= 0)
        snprintf(matchers + len, sizeof matchers - len, "method%s\"%s\"", q->not_method ? "!=" : "=",
                 methods[q->method]);
    if (q->function >= 0)
        snprintf(range, sizeof range, "[%lldms]", (long long)q->range_ms);
    if (q->offset_ms != 0)
        snprintf(offset, sizeof offset, " offset %s%lldms", q->offset_ms < 0 ? "-" : "",
                 (long long)llabs(q->offset_ms));
    snprintf(inner, sizeof inner, "%s(r:%s{%s}%s%s)", q->function >= 0 ? functions[q->function] : "",
             measures[q->measure], matchers, range, offset);
    if (q->aggregate < 0)
        snprintf(q->text, sizeof q->text, "%s", inner);
    else
        snprintf(q->text, sizeof q->text, "%s by (%s%s) (%s)", aggregates[q->aggregate],
                 q->by_host ? "host," : "", q->by_method ? "method" : "", inner);
}

/* ---- the comparison */

static bool is_near(double a, double b)
{
    return fabs(a - b) <= NEAR * (1 + fabs(a));
}

static struct slice value_of(const struct labels *l, const char *name)
{
    for (size_t i = 0; i < l->count; i++) {
        if (slice_is(l->list[i].name, name))
            return l->list[i].value;
    }
    return slice_of("", 0);
}

/* NULL: no such series. Empty texts are for labels that are not there. */
static const double *find_row(const struct eval_answer *a, const char *host, const char *method)
{
    for (size_t i = 0; i < a->vector.series_count; i++) {
        const struct labels *l = &a->vector.series[i];
        if (slice_is(value_of(l, "host"), host) && slice_is(value_of(l, "method"), method))
            return vector_row(&a->vector, i);
    }
    return NULL;
}

static bool same(const struct game *g, const double *found, const double *expected)
{
    for (size_t step = 0; step < g->q.step_count; step++) {
        bool is_absent = found == NULL || vector_is_absent(found[step]);
        if (is_absent != isnan(expected[step]) || (!is_absent && !is_near(found[step], expected[step]))) {
            printf("%s at %lld, step %lld of %lld: found %g, expected %g\n", g->q.text, (long long)g->q.at_ms,
                   (long long)step, (long long)g->q.step_ms, is_absent ? ABSENT : found[step],
                   expected[step]);
            return false;
        }
    }
    return true;
}

static void judge_all(const struct game *g, double values[SERIES][STEPS_MAX])
{
    bool is_named = g->q.host >= 0 && g->q.method >= 0 && !g->q.by_host && !g->q.not_method;
    for (size_t series = 0; series < SERIES; series++) {
        for (size_t step = 0; step < g->q.step_count; step++)
            values[series][step] = is_asked_for(&g->q, series) ? judge(g, series, step, is_named) : ABSENT;
    }
}

static void check_series(const struct game *g, const struct eval_answer *a, double values[SERIES][STEPS_MAX])
{
    for (size_t series = 0; series < SERIES; series++)
        assert_true(same(g, find_row(a, hosts[series / METHODS], methods[series % METHODS]), values[series]));
}

static void check_groups(const struct game *g, const struct eval_answer *a, double values[SERIES][STEPS_MAX])
{
    size_t host_count = g->q.by_host ? HOSTS : 1, method_count = g->q.by_method ? METHODS : 1;
    for (size_t group = 0; group < host_count * method_count; group++) {
        double expected[STEPS_MAX], members[SERIES];
        for (size_t step = 0; step < g->q.step_count; step++) {
            size_t count = 0;
            for (size_t i = 0; i < SERIES; i++) {
                bool host = !g->q.by_host || i / METHODS == group / method_count;
                bool method = !g->q.by_method || i % METHODS == group % method_count;
                if (host && method && !isnan(values[i][step]))
                    members[count++] = values[i][step];
            }
            expected[step] = combine(g->q.aggregate, members, count);
        }
        assert_true(same(g,
                         find_row(a, g->q.by_host ? hosts[group / method_count] : "",
                                  g->q.by_method ? methods[group % method_count] : ""),
                         expected));
    }
}

static void run(const struct game *g, const char *text, struct eval_answer *a)
{
    const struct query_limits limits = {.rows_max = UINT64_MAX, .points_max = 1000, .series_max = 1000};
    struct eval_question question = {.text = slice_text(text),
                                     .from_ms = g->q.at_ms,
                                     .to_ms = g->q.at_ms + (int64_t)(g->q.step_count - 1) * g->q.step_ms,
                                     .step_ms = g->q.step_ms,
                                     .limits = limits};
    struct err e;
    struct quota quota;
    quota_init(&quota, (uint64_t)1 << 30);
    struct share memory = {.quota = &quota}; /* parts give back only what they have taken */
    g->store->memory = &memory;
    if (!eval_run(g->store, &question, a, &e))
        fail_msg("%s: %s", text, e.text);
    g->store->memory = NULL;
}

/* Series in the order of their labels: is `a` before `b` at the step, as topk or bottomk (-1) ranks them? */
static bool is_before(double values[SERIES][STEPS_MAX], size_t a, size_t b, size_t step, double sign)
{
    static const size_t order[HOSTS] = {1, 2, 0}; /* ::1, a, b b */
    double left = sign * values[a][step], right = sign * values[b][step];
    size_t left_host = order[a / METHODS], right_host = order[b / METHODS];
    if (left > right || left < right)
        return left > right;
    return left_host < right_host || (left_host == right_host && a % METHODS > b % METHODS); /* -, GET */
}

/* Values of the judge that are not among the k first of their group become absent. */
static void judge_first(const struct game *g, double values[SERIES][STEPS_MAX], size_t k, double sign)
{
    double all[SERIES][STEPS_MAX];
    memcpy(all, values, sizeof all);
    for (size_t step = 0; step < g->q.step_count; step++) {
        for (size_t i = 0; i < SERIES; i++) {
            size_t before = 0;
            for (size_t j = 0; j < SERIES; j++) {
                bool is_other = j == i || isnan(all[j][step]) || (g->q.by_host && i / METHODS != j / METHODS);
                before += !is_other && is_before(all, j, i, step, sign);
            }
            values[i][step] = before < k ? all[i][step] : ABSENT;
        }
    }
}

/* The same through topk and bottomk. */
static void check_first(struct game *g, double values[SERIES][STEPS_MAX])
{
    struct eval_answer a;
    char text[sizeof g->q.text + 64];
    size_t k = (size_t)dice_roll(&g->dice, SERIES + 2);
    bool bottom = dice_roll(&g->dice, 2);
    snprintf(text, sizeof text, "%s%s(%zu, %s)", bottom ? "bottomk" : "topk",
             g->q.by_host ? " by (host) " : "", k, g->q.text);
    run(g, text, &a);
    judge_first(g, values, k, bottom ? -1 : 1);
    check_series(g, &a, values);
    eval_fini(&a);
}

static void check(struct game *g)
{
    struct eval_answer a;
    double values[SERIES][STEPS_MAX];
    run(g, g->q.text, &a);
    judge_all(g, values);
    if (g->q.aggregate >= 0)
        check_groups(g, &a, values);
    else
        check_series(g, &a, values);
    eval_fini(&a);
    if (g->q.aggregate < 0)
        check_first(g, values);
}

/* ---- the events */

/* Two busy hours, and some in three months. */
static void fill(struct game *g)
{
    struct batcher *b = batcher_new(&g->report, 1, 1);
    struct err e;
    for (size_t i = 0; i < EVENTS; i++) {
        struct event_of *of = &g->events[i];
        int64_t busy_ms = fixture_ms("2016-01-30T22:59"), from_ms = fixture_ms("2015-12-20");
        *of = (struct event_of){.series = (size_t)dice_roll(&g->dice, SERIES),
                                .at_ms = i % 4 > 0 ? busy_ms + dice_roll(&g->dice, 7200000)
                                                   : from_ms + dice_roll(&g->dice, 75LL * 86400000),
                                .bytes = dice_roll(&g->dice, 1000)};
        char key[32];
        int64_t columns[REPORT_COLUMNS_MAX] = {0};
        struct event ev = {.at_ms = of->at_ms, .order = (int64_t)i, .present = (uint64_t)1 << FIELD_BYTES};
        ev.number[FIELD_BYTES] = of->bytes;
        for (size_t m = 0; m < g->report.measure_count; m++)
            measure_add(&g->report.measures[m], &columns[g->report.measures[m].column], &ev);
        snprintf(key, sizeof key, "%s\t%s", hosts[of->series / METHODS], methods[of->series % METHODS]);
        batcher_add(b, 0, 0, key, of->at_ms, columns);
    }
    assert_true(store_apply(g->store, batcher_seal(b, "access", 0, 1), &e));
    batcher_clear(b);
    batcher_free(b);
}

static void play(const char *name, enum report_layout layout)
{
    struct game g = {.dice = dice_new(name)};
    struct err e;
    assert_true(report_init(&g.report, slice_text("r"), 1, &e));
    assert_true(report_add_dimension(&g.report, slice_text("host"), &e));
    assert_true(report_add_dimension(&g.report, slice_text("method"), &e));
    for (size_t i = 0; i < COUNT_OF(measures); i++)
        assert_true(report_add_measure(&g.report, slice_text(measures[i]), slice_text(expressions[i]), &e));
    g.report.layout = layout;
    assert_true(report_finish(&g.report, &e));
    g.cell_ms = report_cell_ms(&g.report);
    g.store = store_open("mem:", STORE_WRITE, &g.report, 1, &e);
    assert_non_null(g.store);
    fill(&g);
    for (int i = 0; i < QUESTIONS; i++) {
        roll(&g);
        write_question(&g);
        check(&g);
    }
    store_close(g.store);
    report_fini(&g.report);
}

static void test_answers_equal_the_judges_by_minutes(void **state)
{
    (void)state;
    play("minutes", LAYOUT_DAY);
}

static void test_answers_equal_the_judges_by_seconds(void **state)
{
    (void)state;
    play("seconds", LAYOUT_MINUTE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_answers_equal_the_judges_by_minutes),
        cmocka_unit_test(test_answers_equal_the_judges_by_seconds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
