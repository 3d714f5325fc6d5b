/* Any metric events, through shards into both stores, folded or not: whatever is asked of any measure equals
 * a naive recount of the events. */
#include "aggregate/shard.h"
#include "base/mem.h"
#include "base/order.h"
#include "ingest/record.h"
#include "query/match.h"
#include "query/plan.h"
#include "query/query.h"
#include "store/backend/backend.h"
#include "store/writer.h"
#include "tests/support/dice.h"
#include "tests/support/fixture.h"
#include "tests/support/scratch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define NAMES     4
#define USERS     12
#define ROUNDS    24
#define QUESTIONS 10 /* of each kind, a round */
#define SHARDS    2
#define SERIES    (NAMES * USERS)

static const char *const names[NAMES] = {"session", "load", "temperature", "-"};
static const char *const measures[][2] = {
    {"n", "count"},         {"total", "sum(value)"}, {"low", "min(value)"},    {"high", "max(value)"},
    {"now", "last(value)"}, {"avg", "mean(value)"},  {"heat", "mean(warmth)"}, {"big", "max(bytes)"}};

/* The measures of a report with sketches; then the figures that are asked of it. */
static const char *const sketches[][2] = {
    {"n", "count"}, {"size", "histogram(value)"}, {"who", "distinct(userid)"}, {"heat", "histogram(bytes)"}};
static const char *const figures[] = {
    "n",           "who",        "count(who)", "p50(size)", "quantile(0.9,size)",
    "count(size)", "mean(size)", "min(size)",  "p99(heat)", "max(heat)"};

struct sample {
    int64_t at_ms, order, value, warmth, bytes;
    int name, user;
    bool has_value, has_warmth, has_bytes;
};

struct game {
    struct dice dice;
    bool has_sketches;
    struct report report;
    enum field warmth, userid;
    char users[USERS][8];
    struct scratch scratch;
    struct shard *shards[SHARDS];
    struct store *stores[2], *reader; /* mem and sqlite; the reader is of the latter */
    struct sample *samples;
    size_t sample_count, sample_capacity;
    int64_t next;
    struct query query;
};

static int64_t roll(struct game *g, int64_t below)
{
    return dice_roll(&g->dice, below);
}

static void make_report(struct game *g)
{
    struct report *r = &g->report;
    struct err e;
    assert_true(field_intern(slice_text("warmth"), &g->warmth) &&
                field_intern(slice_text("userid"), &g->userid));
    assert_true(report_init(r, slice_text("gauges"), 1, &e));
    assert_true(report_add_dimension(r, slice_text("name"), &e));
    assert_true(report_add_dimension(r, slice_text("userid"), &e));
    assert_true(report_add_condition(r, slice_text("userid!=nobody"), &e));
    const char *const(*all)[2] = g->has_sketches ? sketches : measures;
    for (size_t i = 0; i < (g->has_sketches ? COUNT_OF(sketches) : COUNT_OF(measures)); i++)
        assert_true(report_add_measure(r, slice_text(all[i][0]), slice_text(all[i][1]), &e));
    assert_true(report_finish(r, &e));
}

static void open_all(struct game *g)
{
    static const struct shard_limits limits = {1000, 1000, 1 << 20, 64, NULL, 0, 1 << 20};
    char url[160];
    struct err e;
    make_report(g);
    scratch_make(&g->scratch);
    snprintf(url, sizeof url, "sqlite:%s", scratch_path(&g->scratch, "store.db"));
    g->stores[0] = store_open("mem:", STORE_WRITE, &g->report, 1, &e);
    g->stores[1] = store_open(url, STORE_WRITE, &g->report, 1, &e);
    assert_true(g->stores[0] != NULL && g->stores[1] != NULL);
    g->reader = store_open(url, STORE_READ, NULL, 0, &e);
    if (g->reader == NULL)
        fail_msg("%s", e.text);
    for (uint32_t i = 0; i < SHARDS; i++)
        g->shards[i] = shard_new(i, &g->report, 1, &limits);
    for (int i = 0; i < USERS; i++)
        snprintf(g->users[i], sizeof g->users[i], i == 0 ? "-" : "u%d", i);
}

static void close_all(struct game *g)
{
    for (uint32_t i = 0; i < SHARDS; i++)
        shard_free(g->shards[i]);
    store_close(g->reader);
    store_close(g->stores[0]);
    store_close(g->stores[1]);
    report_fini(&g->report);
    scratch_remove(&g->scratch);
    free(g->samples);
}

static void set_text(struct event *ev, enum field f, const char *text)
{
    if (strcmp(text, "-") == 0)
        return;
    ev->present |= (uint64_t)1 << f;
    ev->field[f] = slice_text(text);
}

static void set_number(struct event *ev, enum field f, bool is_there, int64_t number)
{
    if (is_there) {
        set_text(ev, f, "a number");
        ev->numeric |= (uint64_t)1 << f;
    }
    ev->number[f] = number;
}

static int64_t roll_value(struct game *g)
{
    int64_t kind = roll(g, 40);
    if (kind == 0)
        return roll(g, 2) == 0 ? EVENT_DECIMAL_MAX : -EVENT_DECIMAL_MAX;
    if (kind < 8)
        return (roll(g, 7) - 3) * EVENT_SCALE;
    return roll(g, 200000001) - 100000000;
}

static struct sample roll_sample(struct game *g, int64_t now_ms, bool is_wide)
{
    struct sample s = {.at_ms = now_ms - roll(g, is_wide ? 40LL * DAY_MS : 2 * MINUTE_MS)};
    if (roll(g, 2) == 0)
        s.at_ms -= s.at_ms % (roll(g, 2) == 0 ? MINUTE_MS : HOUR_MS); /* many at one instant */
    s.order = record_order((int64_t)(roll(g, 3) == 0 ? g->sample_count / 8 : g->sample_count), 0);
    s.value = roll_value(g);
    s.warmth = roll(g, 1000) - 500;
    s.bytes = roll(g, 3);
    s.name = (int)roll(g, NAMES);
    s.user = (int)roll(g, roll(g, USERS) + 1);
    s.has_value = roll(g, 5) > 0;
    s.has_warmth = roll(g, 3) == 0;
    s.has_bytes = roll(g, 10) == 0;
    return s;
}

static void count_sample(struct game *g, const struct sample *s)
{
    struct event ev = {.at_ms = s->at_ms, .order = s->order};
    set_text(&ev, FIELD_NAME, names[s->name]);
    set_text(&ev, g->userid, g->users[s->user]);
    set_number(&ev, FIELD_VALUE, s->has_value, s->value);
    set_number(&ev, g->warmth, s->has_warmth, s->warmth);
    set_number(&ev, FIELD_BYTES, s->has_bytes, s->bytes);
    if (!s->has_warmth && roll(g, 2) == 0)
        set_text(&ev, g->warmth, "hot"); /* no number */
    shard_add(g->shards[roll(g, SHARDS)], &ev, 1);
}

/* One batch, into both stores. */
static void flush(struct game *g)
{
    struct part *parts[SHARDS];
    struct range range = {.source = "kafka:metrics", .partition = "0", .from = g->next, .to = g->next + 1};
    struct books books;
    struct err e;
    books_init(&books, 1);
    for (size_t i = 0; i < SHARDS; i++) {
        parts[i] = shard_seal(g->shards[i]);
        books_add(&books, &parts[i]->books);
    }
    struct batch batch = {
        .ranges = &range, .books = &books, .range_count = 1, .parts = parts, .part_count = SHARDS};
    for (size_t i = 0; i < 2; i++) {
        if (!store_apply(g->stores[i], &batch, &e))
            fail_msg("%s", e.text);
    }
    for (size_t i = 0; i < SHARDS; i++)
        shard_give_back(g->shards[i], parts[i]);
    books_fini(&books);
    g->next++;
}

static void play_round(struct game *g, int round)
{
    int64_t now_ms = fixture_ms("2015-01-30T21:00") + round * 29LL * MINUTE_MS;
    bool is_wide = roll(g, 4) == 0;
    struct err e;
    for (int64_t n = roll(g, 60); n > 0; n--) {
        struct sample s = roll_sample(g, now_ms, is_wide);
        g->samples = xgrow(g->samples, &g->sample_capacity, g->sample_count + 1, sizeof *g->samples);
        g->samples[g->sample_count++] = s;
        count_sample(g, &s);
    }
    flush(g);
    if (roll(g, 3) == 0)
        assert_true(store_housekeep(g->stores[1], roll(g, 2) == 0, &e));
}

/* The recount: of the samples of one range that are wanted. */
struct wanted {
    int64_t from_ms, to_ms;
    int name, user; /* -1: any */
};

static bool wants(const struct wanted *w, const struct sample *s)
{
    return s->at_ms >= w->from_ms && s->at_ms < w->to_ms && (w->name < 0 || w->name == s->name) &&
           (w->user < 0 || w->user == s->user);
}

static bool is_later(const struct sample *a, const struct sample *b)
{
    if (a->at_ms != b->at_ms)
        return a->at_ms > b->at_ms;
    return a->order != b->order ? a->order > b->order : a->value > b->value;
}

/* The value of the bucket that holds the number of a rank; false: absent. */
static bool at_rank(int64_t *numbers, int64_t count, int64_t per_mille, int64_t scale, int128 *value)
{
    const struct histogram_layout *l = histogram_layout(scale, HISTOGRAM_SCHEMA, 0);
    int64_t rank = (count * per_mille + 999) / 1000;
    if (count == 0)
        return false;
    qsort(numbers, (size_t)count, sizeof *numbers, order_int64s);
    *value = histogram_value(l, histogram_slot(l, numbers[rank > 1 ? rank - 1 : 0]));
    return true;
}

/* The figures of a report with sketches. */
static bool recount_figure(const struct game *g, const struct wanted *w, size_t figure, int128 *value)
{
    int64_t n = 0, named = 0, who = 0, values = 0, sizes = 0;
    int128 sum = 0;
    bool seen[USERS] = {false};
    int64_t *value_of = malloc((g->sample_count + 1) * sizeof(int64_t));
    int64_t *size_of = malloc((g->sample_count + 1) * sizeof(int64_t));
    for (size_t i = 0; i < g->sample_count; i++) {
        const struct sample *s = &g->samples[i];
        if (!wants(w, s))
            continue;
        n++;
        named += s->user > 0;
        who += s->user > 0 && !seen[s->user];
        seen[s->user] = true;
        sum += s->has_value ? s->value : 0;
        if (s->has_value)
            value_of[values++] = s->value;
        if (s->has_bytes)
            size_of[sizes++] = s->bytes;
    }
    bool is_there = true;
    const int64_t counts[] = {n, who, named, 0, 0, values};
    *value = figure < COUNT_OF(counts) ? counts[figure] * (int128)EVENT_SCALE : 0;
    if (figure == 3 || figure == 4 || figure == 7)
        is_there = at_rank(value_of, values, figure == 3 ? 500 : figure == 4 ? 900 : 0, EVENT_SCALE, value);
    else if (figure == 8 || figure == 9)
        is_there = at_rank(size_of, sizes, figure == 8 ? 990 : 1000, 1, value);
    else if (figure == 6 && (is_there = values > 0))
        *value = number_mean(sum, values);
    free(value_of);
    free(size_of);
    return is_there;
}

/* False: absent. */
static bool recount(const struct game *g, const struct wanted *w, size_t measure, int128 *value)
{
    int128 n = 0, sum = 0, low = 0, high = 0, heat = 0, big = 0;
    int64_t values = 0, heats = 0, sizes = 0;
    const struct sample *last = NULL;
    if (g->has_sketches)
        return recount_figure(g, w, measure, value);
    for (size_t i = 0; i < g->sample_count; i++) {
        const struct sample *s = &g->samples[i];
        if (!wants(w, s))
            continue;
        n += EVENT_SCALE;
        if (s->has_value) {
            low = values == 0 || s->value < low ? s->value : low;
            high = values == 0 || s->value > high ? s->value : high;
            sum += s->value;
            last = last == NULL || is_later(s, last) ? s : last;
            values++;
        }
        heat += s->has_warmth ? s->warmth : 0;
        heats += s->has_warmth;
        big = s->has_bytes && s->bytes > big ? s->bytes : big;
        sizes += s->has_bytes;
    }
    const struct {
        bool is_there;
        int128 value;
    } all[] = {{true, n},
               {true, sum},
               {values > 0, low},
               {values > 0, high},
               {values > 0, last != NULL ? last->value : 0},
               {values > 0, values > 0 ? number_mean(sum, values) : 0},
               {heats > 0, heats > 0 ? number_mean(heat, heats) : 0},
               {sizes > 0, big * EVENT_SCALE}};
    *value = all[measure].value;
    return all[measure].is_there;
}

static void put_value(const struct game *g, const struct wanted *w, size_t measure, struct text *out)
{
    char buf[NUMBER_BYTES];
    int128 value;
    text_printf(out, ",%s", recount(g, w, measure, &value) ? number_text(value, buf) : "");
}

static void roll_question(struct game *g, struct wanted *w, size_t *measure)
{
    static const struct query_limits limits = {
        .rows_max = UINT64_MAX, .points_max = 1000000, .series_max = 1000};
    struct query *q = &g->query;
    query_init(q, 0, &limits);
    *w = (struct wanted){.name = -1, .user = -1};
    *measure = (size_t)roll(g, g->has_sketches ? COUNT_OF(figures) : COUNT_OF(measures));
    q->report = slice_text("gauges");
    q->measure = slice_text(g->has_sketches ? figures[*measure] : measures[*measure][0]);
    q->format = QUERY_CSV;
    q->from_ms = fixture_ms("2014-12-20") + roll(g, 43LL * DAY_MS);
    if (roll(g, 2) == 0)
        q->from_ms = fixture_ms("2015-01-30T20:00") + roll(g, 4LL * HOUR_MS);
    q->to_ms = q->from_ms + 1 + roll(g, roll(g, 2) == 0 ? 6LL * HOUR_MS : 60LL * DAY_MS);
    if (roll(g, 2) == 0) {
        w->name = (int)roll(g, NAMES);
        q->filters[q->filter_count++] = (struct query_filter){slice_text("name"), slice_text(names[w->name])};
    }
    if (roll(g, 2) == 0) {
        w->user = (int)roll(g, USERS);
        q->filters[q->filter_count++] =
            (struct query_filter){slice_text("userid"), slice_text(g->users[w->user])};
    }
}

static void check_answers(struct game *g, const struct text *expected)
{
    struct store *stores[] = {g->stores[0], g->stores[1], g->reader};
    for (size_t i = 0; i < COUNT_OF(stores); i++) {
        struct query_stats stats;
        struct text out = {0};
        struct err e;
        if (!query_run(stores[i], &g->query, &out, &stats, &e))
            fail_msg("%s", e.text);
        assert_string_equal(out.ptr, expected->ptr);
        text_fini(&out);
    }
}

static void check_steps(struct game *g)
{
    struct query *q = &g->query;
    struct text expected = {0};
    struct wanted w;
    size_t measure;
    char iso[CIVIL_ISO_BYTES];
    roll_question(g, &w, &measure);
    q->has_step = roll(g, 4) > 0;
    bool is_short = q->to_ms - q->from_ms < DAY_MS;
    enum span step = is_short ? (enum span)(SPAN_MINUTE + roll(g, 4)) : (enum span)(SPAN_HOUR + roll(g, 3));
    assert_true(step_parse(slice_text(span_name(step)), &q->step));
    enum span unit = q->has_step ? step : SPAN_MINUTE;
    int64_t at_ms = span_floor(unit, q->from_ms), end_ms = plan_ceil(unit, q->to_ms);
    text_puts(&expected, "time,value\n");
    for (; at_ms < end_ms; at_ms = w.to_ms) {
        w.from_ms = at_ms;
        w.to_ms = q->has_step ? span_next(unit, at_ms) : end_ms;
        text_puts(&expected, civil_iso(at_ms, iso));
        put_value(g, &w, measure, &expected);
        text_putc(&expected, '\n');
    }
    check_answers(g, &expected);
    text_fini(&expected);
}

struct ranked {
    char key[32];
    int name, user;
    bool is_there;
    int128 value;
};

static int compare_ranked(const void *left, const void *right)
{
    const struct ranked *a = left, *b = right;
    if (a->is_there != b->is_there)
        return a->is_there ? -1 : 1;
    if (a->is_there && a->value != b->value)
        return a->value > b->value ? -1 : 1;
    return strcmp(a->key, b->key);
}

/* Is a series with 0 of it left out of a ranking? */
static bool is_amount(const struct game *g, size_t measure)
{
    return g->has_sketches ? measure <= 2 || measure == 5 : measure <= 1;
}

static size_t rank_all(const struct game *g, const struct wanted *range, size_t measure,
                       struct ranked *ranked)
{
    size_t count = 0;
    for (int i = 0; i < SERIES; i++) {
        struct ranked *r = &ranked[count];
        struct wanted one = {range->from_ms, range->to_ms, i % NAMES, i / NAMES};
        int128 events;
        if ((range->name >= 0 && range->name != one.name) || (range->user >= 0 && range->user != one.user))
            continue;
        (void)recount(g, &one, 0, &events);
        *r = (struct ranked){.name = one.name, .user = one.user};
        r->is_there = recount(g, &one, measure, &r->value);
        snprintf(r->key, sizeof r->key, "%s\t%s", names[r->name], g->users[r->user]);
        count += events > 0 && (!is_amount(g, measure) || r->value != 0);
    }
    qsort(ranked, count, sizeof *ranked, compare_ranked);
    return count;
}

static void check_top(struct game *g)
{
    struct query *q = &g->query;
    struct text expected = {0};
    struct ranked ranked[SERIES + 1];
    struct wanted w;
    size_t measure;
    bool is_all = !g->has_sketches && roll(g, 3) == 0;
    roll_question(g, &w, &measure);
    q->top = (uint64_t)(1 + roll(g, 2 * SERIES));
    w.from_ms = span_floor(SPAN_MINUTE, q->from_ms);
    w.to_ms = plan_ceil(SPAN_MINUTE, q->to_ms);
    if (is_all) {
        measure = 0;
        q->measure = slice_text("all");
    }
    size_t count = rank_all(g, &w, measure, ranked);
    text_puts(&expected, "name,userid");
    for (size_t m = 0; m < (is_all ? COUNT_OF(measures) : 1); m++)
        text_printf(&expected, ",%s", is_all ? measures[m][0] : "value");
    text_putc(&expected, '\n');
    for (size_t i = 0; i < count && i < q->top; i++) {
        struct wanted one = {w.from_ms, w.to_ms, ranked[i].name, ranked[i].user};
        text_printf(&expected, "%s,%s", names[one.name], g->users[one.user]);
        for (size_t m = is_all ? 0 : measure; m <= (is_all ? COUNT_OF(measures) - 1 : measure); m++)
            put_value(g, &one, m, &expected);
        text_putc(&expected, '\n');
    }
    check_answers(g, &expected);
    text_fini(&expected);
}

static void play(const char *name, bool has_sketches)
{
    struct game g = {.dice = dice_new(name), .has_sketches = has_sketches};
    open_all(&g);
    for (int round = 0; round < ROUNDS; round++) {
        play_round(&g, round);
        for (int i = 0; i < QUESTIONS; i++) {
            check_steps(&g);
            check_top(&g);
        }
    }
    close_all(&g);
}

static void test_any_question_equals_a_naive_recount(void **state)
{
    (void)state;
    play("gauges", false);
}

static void test_any_figure_of_a_sketch_equals_a_naive_recount(void **state)
{
    (void)state;
    play("sketches", true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_any_question_equals_a_naive_recount),
                                       cmocka_unit_test(test_any_figure_of_a_sketch_equals_a_naive_recount)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
