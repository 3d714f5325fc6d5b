/* The largest series of a period, with share and trend. */
#include "base/mem.h"
#include "query/ranking.h"
#include "tests/support/asking.h"
#include "tests/support/dice.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

static const struct query_limits limits = {.rows_max = 100000, .points_max = 100, .series_max = 50};

/* Now is 2015-05-20T10:30:20. */
static void begin(struct query *q)
{
    query_init(q, fixture_ms("2015-05-20T10:30:20"), &limits);
    q->format = QUERY_JSON;
    q->top = RANKING_LIMIT;
}

static const struct asking ranking = {begin, ranking_set, ranking_run};

static int setup(void **state)
{
    world_setup(state);
    struct world *w = *state;
    world_hit(w, FIXTURE_PAGES, "/a", "2015-05-19T10:05", 100);
    world_hit(w, FIXTURE_PAGES, "/gone", "2015-05-19T10:06", 50);
    for (int i = 0; i < 3; i++)
        world_hit(w, FIXTURE_PAGES, "/a", "2015-05-20T09:06", 1);
    world_hit(w, FIXTURE_PAGES, "/new,\"b\"", "2015-05-20T10:06", 5);
    world_hit(w, FIXTURE_CLIENTS, "::1\tGET\t200", "2015-05-19T10:05", 9);
    world_hit(w, FIXTURE_CLIENTS, "::1\tGET\t404", "2015-05-20T10:06", 10);
    world_hit(w, FIXTURE_CLIENTS, "h\tGET\t200", "2015-05-20T10:06", 30);
    world_hit(w, FIXTURE_SITE, "", "1970-01-01T00:30", 9);
    world_apply(w, 1);
    return 0;
}

static void test_share_and_trend(void **state)
{
    asking_check(&ranking, *state, PARAMETERS("report=pages", "from=2015-05-20", "to=2015-05-21"),
                 "{\"report\":\"pages\",\"measure\":\"hits\",\"from\":\"2015-05-20T00:00:00Z\","
                 "\"to\":\"2015-05-21T00:00:00Z\",\"total\":4,"
                 "\"before\":{\"from\":\"2015-05-19T00:00:00Z\",\"to\":\"2015-05-20T00:00:00Z\",\"total\":2},"
                 "\"series\":[{\"series\":{\"path\":\"/a\"},\"value\":3,\"share\":0.75,\"before\":1},"
                 "{\"series\":{\"path\":\"/new,\\\"b\\\"\"},\"value\":1,\"share\":0.25,\"before\":null}]}\n");
    asking_check(&ranking, *state,
                 PARAMETERS("report=pages", "from=2015-05-20", "to=2015-05-21", "format=csv"),
                 "path,value,share,before\n/a,3,0.75,1\n\"/new,\"\"b\"\"\",1,0.25,\n");
    /* The share is of all, not of what is shown. */
    asking_check(&ranking, *state,
                 PARAMETERS("report=pages", "from=2015-05-20", "to=2015-05-21", "format=csv", "limit=1"),
                 "path,value,share,before\n/a,3,0.75,1\n");
    asking_check(
        &ranking, *state,
        PARAMETERS("report=pages", "measure=bytes", "from=2015-05-20", "to=2015-05-21", "format=csv"),
        "path,value,share,before\n\"/new,\"\"b\"\"\",5,0.625,\n/a,3,0.375,100\n");
}

static void test_filters_make_the_whole_smaller(void **state)
{
    asking_check(&ranking, *state,
                 PARAMETERS("report=clients", "measure=bytes", "filter=host=::1", "from=2015-05-20",
                            "to=2015-05-21", "format=csv"),
                 "host,method,status,value,share,before\n::1,GET,404,10,1,\n");
    asking_check(&ranking, *state,
                 PARAMETERS("report=clients", "filter=host=nobody", "from=2015-05-20", "to=2015-05-21"),
                 "{\"report\":\"clients\",\"measure\":\"hits\",\"from\":\"2015-05-20T00:00:00Z\","
                 "\"to\":\"2015-05-21T00:00:00Z\",\"total\":0,"
                 "\"before\":{\"from\":\"2015-05-19T00:00:00Z\",\"to\":\"2015-05-20T00:00:00Z\",\"total\":0},"
                 "\"series\":[]}\n");
}

static void test_nothing_is_before_1970(void **state)
{
    asking_check(&ranking, *state, PARAMETERS("report=site", "from=1970-01-01", "to=1970-01-01T01:00"),
                 "{\"report\":\"site\",\"measure\":\"hits\",\"from\":\"1970-01-01T00:00:00Z\","
                 "\"to\":\"1970-01-01T01:00:00Z\",\"total\":1,\"before\":null,"
                 "\"series\":[{\"series\":{},\"value\":1,\"share\":1,\"before\":null}]}\n");
}

static void test_limits_are_cut_to_what_may_be_asked_for(void **state)
{
    struct query q;
    struct err e;
    (void)state;
    begin(&q);
    assert_true(ranking_set(&q, slice_text("limit"), slice_text("50"), &e));
    assert_int_equal(q.top, 50);
    assert_true(ranking_set(&q, slice_text("limit"), slice_text("51"), &e));
    assert_int_equal(q.top, 50);
    assert_true(ranking_set(&q, slice_text("limit"), slice_text("999999999"), &e));
    assert_int_equal(q.top, 50);
    assert_true(ranking_set(&q, slice_text("limit"), slice_text("7"), &e));
    assert_int_equal(q.top, 7);
}

static void test_refusals(void **state)
{
    asking_refused(&ranking, *state, PARAMETERS("report=pages", "step=day"), EX_USAGE, "unknown parameter");
    asking_refused(&ranking, *state, PARAMETERS("report=pages", "top=3"), EX_USAGE, "unknown parameter");
    asking_refused(&ranking, *state, PARAMETERS("report=pages", "limit=0"), EX_USAGE, "limit: found");
    asking_refused(&ranking, *state, PARAMETERS("report=pages", "limit=1e3"), EX_USAGE, "limit: found");
    asking_refused(&ranking, *state, PARAMETERS("report=pages", "limit=1000000000"), EX_USAGE,
                   "from 1 to 999999999");
    asking_refused(&ranking, *state, PARAMETERS("report=pages", "format=table"), EX_USAGE, "unknown format");
    asking_refused(&ranking, *state, PARAMETERS("report=pages", "format=xml"), EX_USAGE,
                   "there are json, csv, csv-raw");
    asking_refused(&ranking, *state, PARAMETERS("report=pages", "measure=all"), EX_USAGE,
                   "series are ranked by one measure");
    asking_refused(&ranking, *state, PARAMETERS("report=pages", "measure=quantile(1.5,bytes)"), EX_USAGE,
                   "found \"quantile(1.5,bytes)\": a quantile is from 0 to 1");
    asking_refused(&ranking, *state, PARAMETERS("report=pages", "measure=p101(bytes)"), EX_USAGE,
                   "found \"p101(bytes)\": a percentile is from 0 to 100");
    asking_refused(&ranking, *state, PARAMETERS("report=page"), EX_USAGE, "did you mean");
    asking_refused(&ranking, *state, PARAMETERS("report=pages", "from=now"), EX_USAGE, "the range is empty");
}

#define PAGES 40

/* The counts of a page in either period, and its name. */
struct tally {
    int hits[2];
    char name[8];
};

static int compare_tallies(const void *left, const void *right)
{
    const struct tally *a = left, *b = right;
    return a->hits[1] != b->hits[1] ? b->hits[1] - a->hits[1] : strcmp(a->name, b->name);
}

/* Random hits of two periods of random length, against a count of them. */
static void test_random_against_a_naive_count(void **state)
{
    struct world *w = *state;
    struct tally tallies[PAGES] = {0};
    struct text out = {0}, expected = {0};
    struct err e = {0};
    struct dice dice = dice_new("ranking");
    char at[CIVIL_ISO_BYTES], from[48], to[48];
    int64_t base_ms = fixture_ms("2016-02-27"), length_ms = (1 + dice_roll(&dice, 5000)) * MINUTE_MS;
    int total = 0;
    for (int i = 0; i < PAGES; i++)
        snprintf(tallies[i].name, sizeof tallies[i].name, "/%d", i);
    for (int i = 0; i < 400; i++) {
        struct tally *t = &tallies[dice_roll(&dice, PAGES)];
        int64_t ms = base_ms + dice_roll(&dice, 2 * length_ms);
        world_hit(w, FIXTURE_PAGES, t->name, civil_iso(ms, at), 1);
        t->hits[ms >= base_ms + length_ms]++;
        total += ms >= base_ms + length_ms;
        if (i % 100 == 99)
            world_apply(w, 1);
    }
    qsort(tallies, PAGES, sizeof *tallies, compare_tallies);
    text_puts(&expected, "path,value,share,before\n");
    for (int i = 0; i < 7 && tallies[i].hits[1] > 0; i++) {
        text_printf(&expected, "%s,%d,%.6g,", tallies[i].name, tallies[i].hits[1],
                    (double)tallies[i].hits[1] / total);
        if (tallies[i].hits[0] > 0)
            text_printf(&expected, "%d", tallies[i].hits[0]);
        text_putc(&expected, '\n');
    }
    snprintf(from, sizeof from, "from=%s", civil_iso(base_ms + length_ms, at));
    snprintf(to, sizeof to, "to=%s", civil_iso(base_ms + 2 * length_ms, at));
    if (!asking_run(&ranking, w, PARAMETERS("report=pages", "limit=7", "format=csv", from, to), &out, &e))
        fail_msg("%s", e.text);
    assert_string_equal(out.ptr, expected.ptr);
    text_fini(&out);
    text_fini(&expected);
}

static size_t learned;

static void learn(struct store *st, size_t report, size_t measure, const uint32_t *series, size_t count)
{
    (void)st, (void)report, (void)measure, (void)series;
    learned += count;
}

/* A store is told the largest series of a period that goes on; those of others would displace them. */
static void test_what_goes_on_is_learned(void **state)
{
    struct world *w = *state;
    const struct store_reader_ops *own = w->store->reader;
    struct store_reader_ops ops = *own;
    const char *const ranges[][2] = {{"from=2015-05-20", "to=2015-05-21"},
                                     {"from=2015-05-20", "to=now"},
                                     {"from=2015-05-19", "to=2015-05-20"},
                                     {"from=2015-05-20T09:30", "to=now"}};
    const size_t expected[] = {2, 2, 0, 0};
    struct text out = {0};
    struct err e = {0};
    ops.learn = learn;
    w->store->reader = &ops;
    for (size_t i = 0; i < COUNT_OF(ranges); i++) {
        learned = 0;
        if (!asking_run(&ranking, w, PARAMETERS("report=pages", ranges[i][0], ranges[i][1]), &out, &e))
            fail_msg("%s", e.text);
        assert_int_equal(learned, expected[i]);
    }
    w->store->reader = own;
    text_fini(&out);
}

int main(void)
{
#define RANKING_TEST(f) cmocka_unit_test_setup_teardown(f, setup, world_teardown)
    const struct CMUnitTest tests[] = {
        RANKING_TEST(test_share_and_trend),
        RANKING_TEST(test_filters_make_the_whole_smaller),
        RANKING_TEST(test_limits_are_cut_to_what_may_be_asked_for),
        RANKING_TEST(test_nothing_is_before_1970),
        RANKING_TEST(test_refusals),
        RANKING_TEST(test_what_goes_on_is_learned),
        RANKING_TEST(test_random_against_a_naive_count),
    };
    int failed = 0;
    for (size_t i = 0; i < world_kind_count(); i++) {
        world_kind = &world_kinds[i];
        failed += cmocka_run_group_tests_name(world_kind->name, tests, NULL, NULL);
    }
    return failed;
}
