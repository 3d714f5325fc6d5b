/* Questions as text, answers as text. */
#include "query/query.h"
#include "tests/support/asking.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

static struct query_limits limits = {.rows_max = 1000, .points_max = 100, .series_max = 10};

static struct query_stats last; /* of the last answer */

/* Now is 2015-05-20T10:30:20. */
static void begin(struct query *q)
{
    query_init(q, fixture_ms("2015-05-20T10:30:20"), &limits);
}

static bool run(struct store *st, const struct query *q, struct text *out, struct err *e)
{
    return query_run(st, q, out, &last, e);
}

static const struct asking query = {begin, query_set, run};

static int setup(void **state)
{
    world_setup(state);
    struct world *w = *state;
    world_hit(w, FIXTURE_PAGES, "/favicon.ico", "2015-05-17T10:05", 100);
    world_hit(w, FIXTURE_PAGES, "/favicon.ico", "2015-05-17T10:06", 100);
    world_hit(w, FIXTURE_PAGES, "/favicon.ico", "2015-05-19T00:00", 1);
    world_hit(w, FIXTURE_PAGES, "/a,\"b\"", "2015-05-19T23:59", 5);
    world_hit(w, FIXTURE_PAGES, "/z", "2015-05-20T10:29", 5);
    world_hit(w, FIXTURE_PAGES, "/y", "2015-05-20T10:30", 7);
    world_hit(w, FIXTURE_SITE, "", "2015-05-17T10:05", 9);
    world_hit(w, FIXTURE_CLIENTS, "::1\tGET\t200", "2015-05-17T10:05", 9);
    world_hit(w, FIXTURE_CLIENTS, "::1\tGET\t404", "2015-05-17T10:06", 10);
    world_hit(w, FIXTURE_CLIENTS, "::1\tPOST\t200", "2015-05-17T10:07", 11);
    world_hit(w, FIXTURE_CLIENTS, "h\tGET\t200", "2015-05-17T10:08", 12);
    world_apply(w, 1);
    return 0;
}

static void test_csv_has_a_row_for_each_step(void **state)
{
    asking_check(&query, *state,
                 PARAMETERS("report=pages", "filter=path=/favicon.ico", "measure=hits", "from=2015-05-17",
                            "to=2015-05-21", "step=day", "format=csv"),
                 "time,value\n"
                 "2015-05-17T00:00:00Z,2\n"
                 "2015-05-18T00:00:00Z,0\n"
                 "2015-05-19T00:00:00Z,1\n"
                 "2015-05-20T00:00:00Z,0\n");
    asking_check(&query, *state,
                 PARAMETERS("report=pages", "from=2015-04-17", "to=2015-06-02", "step=month", "format=csv"),
                 "time,value\n"
                 "2015-04-01T00:00:00Z,0\n"
                 "2015-05-01T00:00:00Z,6\n"
                 "2015-06-01T00:00:00Z,0\n");
    asking_check(&query, *state,
                 PARAMETERS("report=pages", "from=2015-05-17T10:05:30", "to=2015-05-17T10:06:01",
                            "step=minute", "measure=all", "format=csv"),
                 "time,hits,bytes\n"
                 "2015-05-17T10:05:00Z,1,100\n"
                 "2015-05-17T10:06:00Z,1,100\n");
}

/* 2015-05-17 was a Sunday; pages were hit 2 times on it, and 4 times on the days after. */
static void test_weeks_begin_on_the_day_that_is_asked_for(void **state)
{
    const char *const sundays = "time,value\n2015-05-17T00:00:00Z,6\n";
    const char *const mondays = "time,value\n2015-05-11T00:00:00Z,2\n2015-05-18T00:00:00Z,4\n";
    asking_check(&query, *state,
                 PARAMETERS("report=pages", "from=2015-05-17", "to=2015-05-21", "week_start=sunday",
                            "step=week", "measure=hits", "format=csv"),
                 sundays);
    asking_check(&query, *state,
                 PARAMETERS("report=pages", "from=2015-05-17", "to=2015-05-21", "step=week",
                            "week_start=sunday", "measure=hits", "format=csv"),
                 sundays);
    asking_check(&query, *state,
                 PARAMETERS("report=pages", "from=2015-05-17", "to=2015-05-21", "step=week", "measure=hits",
                            "format=csv"),
                 mondays);
    limits.week_start = WEEKDAY_SUNDAY;
    asking_check(&query, *state,
                 PARAMETERS("report=pages", "from=2015-05-17", "to=2015-05-21", "step=week", "measure=hits",
                            "format=csv"),
                 sundays);
    asking_check(&query, *state,
                 PARAMETERS("report=pages", "from=2015-05-17", "to=2015-05-21", "step=week",
                            "week_start=monday", "measure=hits", "format=csv"),
                 mondays);
    limits.week_start = WEEKDAY_MONDAY;
}

static void test_without_a_step_there_is_one_sum(void **state)
{
    asking_check(
        &query, *state,
        PARAMETERS("report=pages", "from=2015-05-17", "to=2015-05-20", "format=csv", "measure=bytes"),
        "time,value\n2015-05-17T00:00:00Z,206\n");
    /* the last hour */
    asking_check(&query, *state, PARAMETERS("report=pages", "format=csv"),
                 "time,value\n2015-05-20T09:30:00Z,2\n");
    asking_check(&query, *state, PARAMETERS("report=pages", "format=csv", "to=2015-05-17T10:06"),
                 "time,value\n2015-05-17T09:06:00Z,1\n");
    asking_check(&query, *state, PARAMETERS("report=site", "format=csv", "from=-7d"),
                 "time,value\n2015-05-13T10:30:00Z,1\n");
}

static void test_filter_over_some_dimensions_sums_up_the_rest(void **state)
{
    static const char from[] = "from=2015-05-17", to[] = "to=2015-05-18", csv[] = "format=csv",
                      bytes[] = "measure=bytes", clients[] = "report=clients";
    asking_check(&query, *state, PARAMETERS(clients, from, to, csv, bytes, "filter=host=::1"),
                 "time,value\n2015-05-17T00:00:00Z,30\n");
    asking_check(&query, *state,
                 PARAMETERS(clients, from, to, csv, bytes, "filter=status=200", "filter=method=GET"),
                 "time,value\n2015-05-17T00:00:00Z,21\n");
    asking_check(
        &query, *state,
        PARAMETERS(clients, from, to, csv, bytes, "filter=status=200", "filter=method=GET", "filter=host=h"),
        "time,value\n2015-05-17T00:00:00Z,12\n");
    asking_check(&query, *state, PARAMETERS(clients, from, to, csv, bytes, "filter=status=20"),
                 "time,value\n2015-05-17T00:00:00Z,0\n");
    asking_check(&query, *state, PARAMETERS(clients, from, to, csv, bytes, "filter=status="),
                 "time,value\n2015-05-17T00:00:00Z,0\n");
}

static void test_top_ranks_by_value_then_key(void **state)
{
    asking_check(&query, *state,
                 PARAMETERS("report=pages", "from=2015-05-01", "to=2015-06-01", "top=3", "format=csv"),
                 "path,value\n"
                 "/favicon.ico,3\n"
                 "\"/a,\"\"b\"\"\",1\n"
                 "/y,1\n");
    asking_check(&query, *state,
                 PARAMETERS("report=clients", "from=2015-05-01", "to=2015-06-01", "top=2", "format=csv",
                            "measure=bytes", "filter=method=GET"),
                 "host,method,status,value\n"
                 "h,GET,200,12\n"
                 "::1,GET,404,10\n");
    asking_check(&query, *state,
                 PARAMETERS("report=pages", "from=2015-06-01", "to=2015-06-02", "top=3", "format=csv"),
                 "path,value\n");
    asking_check(&query, *state,
                 PARAMETERS("report=site", "from=2015-05-01", "to=2015-06-02", "top=3", "format=csv"),
                 "value\n1\n");
}

static void test_top_shows_other_in_every_dimension(void **state)
{
    struct world *w = *state;
    w->reports[FIXTURE_CLIENTS].series_max = 1;
    world_reopen(w);
    world_hit(w, FIXTURE_CLIENTS, "h\tGET\t200", "2015-06-17T10:05", 1);
    world_hit(w, FIXTURE_CLIENTS, "h\tGET\t206", "2015-06-17T10:05", 2);
    world_apply(w, 1);
    asking_check(&query, w,
                 PARAMETERS("report=clients", "from=2015-06-01", "to=2015-07-01", "top=5", "format=csv",
                            "measure=bytes"),
                 "host,method,status,value\n(other),(other),(other),2\nh,GET,200,1\n");
    static const char other[] = "filter=status=(other)", month[] = "from=2015-06-01", csv[] = "format=csv";
    asking_check(&query, w, PARAMETERS("report=clients", month, "measure=bytes", other, csv, "to=2015-07-01"),
                 "time,value\n2015-06-01T00:00:00Z,2\n");
    asking_check(&query, w, PARAMETERS("report=clients", month, other, "filter=host=h", csv, "to=2015-07-01"),
                 "time,value\n2015-06-01T00:00:00Z,0\n");
}

/* So a condition and its opposite share all counts. */
static void test_conditions_take_other_as_a_text(void **state)
{
    struct world *w = *state;
    w->reports[FIXTURE_CLIENTS].series_max = 1;
    world_reopen(w);
    world_hit(w, FIXTURE_CLIENTS, "h\tGET\t200", "2015-06-17T10:05", 1);
    world_hit(w, FIXTURE_CLIENTS, "h\tGET\t206", "2015-06-17T10:05", 2);
    world_apply(w, 1);
    static const struct {
        const char *where, *bytes;
    } cases[] = {{"where=status=2*", "1"},       {"where=status!=2*", "2"}, {"where=status=(other)", "2"},
                 {"where=host!=(other)", "1"},   {"where=status>=0", "1"},  {"where=status<0", "0"},
                 {"where=method=GET|(o*)", "3"}, {"where=host=x", "0"}};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        char expected[64];
        snprintf(expected, sizeof expected, "time,value\n2015-06-01T00:00:00Z,%s\n", cases[i].bytes);
        asking_check(&query, w,
                     PARAMETERS("report=clients", "from=2015-06", "to=2015-07", "step=month", "format=csv",
                                "measure=bytes", cases[i].where),
                     expected);
    }
}

static void test_conditions_that_are_none(void **state)
{
    static const struct {
        const char *where, *error;
    } cases[] = {
        {"where=path", "where: found \"path\", expected a dimension, one of = != < <= > >=, and a value"},
        {"where=path=", "where: found \"path=\", expected a value at its end (- stands for absent)"},
        {"where==x", "report pages: unknown dimension \"\""},
        {"where=pth=x", "report pages: unknown dimension \"pth\" (did you mean \"path\"?)"},
        {"where=path>=x", "where: found \"path>=x\", expected a number after < <= > >="},
        {"where=path>=5", "where: found \"path>=5\", but < <= > >= compare numbers, and path is a text"},
        {"where=path==/a", "where: path: found ==, expected = and a text, in which * stands for any part"},
        {"where=path=/a|~b", "where: path: found |~, expected | and a text"},
        {"where=status=200",
         "unknown dimension \"status\": there is only path; a report with `by: [status]` has it"},
        {"where=path<0.0000001", "expected a number after < <= > >=, with at most 6 digits after the point"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++)
        asking_refused(&query, *state, PARAMETERS("report=pages", cases[i].where), EX_USAGE, cases[i].error);
    asking_refused(&query, *state, PARAMETERS("report=clients", "where=status!=5xx"), EX_USAGE,
                   "where: status: found \"5xx\" after !=, expected digits");
}

static void test_json_is_what_the_page_reads(void **state)
{
    asking_check(&query, *state,
                 PARAMETERS("report=pages", "from=2015-05-19", "to=2015-05-21", "step=day", "format=json"),
                 "{\"report\":\"pages\",\"measures\":[\"hits\"],\"step\":\"day\","
                 "\"from\":\"2015-05-19T00:00:00Z\",\"to\":\"2015-05-21T00:00:00Z\",\"values\":["
                 "[\"2015-05-19T00:00:00Z\",2],[\"2015-05-20T00:00:00Z\",2]]}\n");
    asking_check(
        &query, *state,
        PARAMETERS("report=pages", "from=2015-05-19", "to=2015-05-20", "top=1", "measure=all", "format=json"),
        "{\"report\":\"pages\",\"measures\":[\"hits\",\"bytes\"],\"step\":null,"
        "\"from\":\"2015-05-19T00:00:00Z\",\"to\":\"2015-05-20T00:00:00Z\",\"top\":["
        "{\"series\":{\"path\":\"/a,\\\"b\\\"\"},\"values\":[1,5]}]}\n");
    asking_check(&query, *state, PARAMETERS("report=pages", "format=json"),
                 "{\"report\":\"pages\",\"measures\":[\"hits\"],\"step\":null,"
                 "\"from\":\"2015-05-20T09:30:00Z\",\"to\":\"2015-05-20T10:31:00Z\",\"values\":["
                 "[\"2015-05-20T09:30:00Z\",2]]}\n");
}

static void test_table_is_aligned(void **state)
{
    asking_check(&query, *state,
                 PARAMETERS("report=pages", "from=2015-05-17", "to=2015-05-20", "step=day", "measure=all"),
                 "pages, 2015-05-17 00:00 to 2015-05-20 00:00 UTC, by day\n"
                 "time        hits  bytes\n"
                 "2015-05-17     2    200\n"
                 "2015-05-18     0      0\n"
                 "2015-05-19     2      6\n");
    asking_check(&query, *state, PARAMETERS("report=clients", "from=2015-05-17", "to=2015-05-18", "top=2"),
                 "clients, 2015-05-17 00:00 to 2015-05-18 00:00 UTC\n"
                 "host  method  status  hits\n"
                 "::1   GET     200        1\n"
                 "::1   GET     404        1\n");
    asking_check(&query, *state, PARAMETERS("report=site", "from=2015-05-17", "to=2015-05-18"),
                 "site, 2015-05-17 00:00 to 2015-05-18 00:00 UTC\n"
                 "from              hits\n"
                 "2015-05-17 00:00     1\n");
}

static void test_table_cuts_long_text_and_draws_bars(void **state)
{
    struct world *w = *state;
    char key[201];
    memset(key, 'x', sizeof key - 1);
    key[200] = '\0';
    memcpy(key, "/caf\xc3\xa9", 6);
    for (int i = 0; i < 2; i++)
        world_hit(w, FIXTURE_PAGES, key, "2015-06-01", 1);
    world_hit(w, FIXTURE_PAGES, "/caf\xc3\xa9", "2015-06-01", 1);
    world_apply(w, 1);
    struct query q;
    struct query_stats stats;
    struct err e;
    struct text out = {0};
    query_init(&q, 0, &limits);
    q.report = slice_text("pages");
    q.from_ms = fixture_ms("2015-06-01");
    q.to_ms = fixture_ms("2015-06-02");
    q.top = 2;
    q.bars = true;
    assert_true(query_run(w->store, &q, &out, &stats, &e));
    assert_string_equal(out.ptr, "pages, 2015-06-01 00:00 to 2015-06-02 00:00 UTC\n"
                                 "path                                                          hits\n"
                                 "/caf\xc3\xa9xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx…     2"
                                 "  ########################\n"
                                 "/caf\xc3\xa9                                                            1"
                                 "  ############\n");
    text_fini(&out);
}

static void test_wrong_questions_are_answered_with_what_exists(void **state)
{
    asking_refused(&query, *state, PARAMETERS("report=pagse"), EX_USAGE,
                   "unknown report \"pagse\" (did you mean \"pages\"?): there are site, pages, clients");
    asking_refused(&query, *state, PARAMETERS("format=csv"), EX_USAGE, "unknown report \"\": there are site");
    asking_refused(&query, *state, PARAMETERS("report=pages", "measure=hit"), EX_USAGE,
                   "unknown measure \"hit\" (did you mean \"hits\"?): there are hits, bytes, all");
    asking_refused(
        &query, *state, PARAMETERS("report=pages", "measure=p99(bytes)"), EX_USAGE,
        "unknown measure \"p99(bytes)\": bytes is sum(bytes), and figures are those of a histogram");
    asking_refused(&query, *state, PARAMETERS("report=pages", "filter=pth=/"), EX_USAGE,
                   "report pages: unknown dimension \"pth\" (did you mean \"path\"?): there is only path");
    asking_refused(&query, *state, PARAMETERS("report=site", "filter=path=/"), EX_USAGE,
                   "report site: unknown dimension \"path\": there is none");
    asking_refused(&query, *state, PARAMETERS("report=pages", "filter=path"), EX_USAGE,
                   "expected DIMENSION=VALUE");
    asking_refused(&query, *state, PARAMETERS("report=pages", "filter=path=/a", "filter=path=/b"), EX_USAGE,
                   "path is given twice");
    asking_refused(
        &query, *state, PARAMETERS("report=pages", "step=weak"), EX_USAGE,
        "unknown step \"weak\" (did you mean \"week\"?): there are second, minute, hour, day, week, ");
    asking_refused(&query, *state, PARAMETERS("report=pages", "step=90s"), EX_USAGE,
                   "report pages has no seconds");
    asking_refused(&query, *state, PARAMETERS("report=pages", "week_start=sundy"), EX_USAGE,
                   "unknown day of the week \"sundy\" (did you mean \"sunday\"?): there are monday, tuesday");
    asking_refused(&query, *state, PARAMETERS("report=pages", "tz=Berlin"), EX_USAGE,
                   "tz: unknown time zone \"Berlin\" (did you mean \"Europe/Berlin\"?)");
    asking_refused(&query, *state, PARAMETERS("report=pages", "tz=Europe/Berlin", "to=2040-01-01"), EX_USAGE,
                   "Europe/Berlin are known until 2038");
    asking_refused(&query, *state, PARAMETERS("report=pages", "step=second"), EX_USAGE,
                   "step: report pages has no seconds, as one of `layout: minute` has");
    asking_refused(&query, *state, PARAMETERS("report=pages", "format=xml"), EX_USAGE,
                   "there are table, csv, csv-raw, json");
    asking_refused(&query, *state, PARAMETERS("report=pages", "form=csv"), EX_USAGE,
                   "unknown parameter \"form\"");
    asking_refused(&query, *state, PARAMETERS("report=pages", "from=tomorrow"), EX_USAGE, "expected a time");
    asking_refused(&query, *state, PARAMETERS("report=pages", "from=2015-05-18", "to=2015-05-18"), EX_USAGE,
                   "the range is empty");
    asking_refused(&query, *state, PARAMETERS("report=pages", "top=0"), EX_USAGE, "from 1 to 10");
    asking_refused(&query, *state, PARAMETERS("report=pages", "top=11"), EX_USAGE, "from 1 to 10");
    asking_refused(&query, *state, PARAMETERS("report=pages", "top=1x"), EX_USAGE, "from 1 to 10");
    asking_refused(&query, *state, PARAMETERS("report=pages", "top=99999999999999999999"), EX_USAGE,
                   "from 1 to 10");
    asking_refused(&query, *state, PARAMETERS("report=pages", "top=1", "step=day"), EX_USAGE,
                   "leave out the step");
}

static void test_days_of_a_zone_are_its_own(void **state)
{
    struct world *w = *state;
    world_hit(w, FIXTURE_PAGES, "/dst", "2015-10-24T21:59", 1); /* the 24th of Berlin */
    world_hit(w, FIXTURE_PAGES, "/dst", "2015-10-24T22:00", 1);
    world_hit(w, FIXTURE_PAGES, "/dst", "2015-10-25T00:30", 1);
    world_hit(w, FIXTURE_PAGES, "/dst", "2015-10-25T01:30", 1);
    world_hit(w, FIXTURE_PAGES, "/dst", "2015-10-25T22:59", 1);
    world_hit(w, FIXTURE_PAGES, "/dst", "2015-10-25T23:00", 1); /* the 26th */
    world_apply(w, 1);
    asking_check(&query, w,
                 PARAMETERS("report=pages", "filter=path=/dst", "from=2015-10-24", "to=2015-10-27",
                            "step=day", "format=csv", "tz=Europe/Berlin"),
                 "time,value\n"
                 "2015-10-24T00:00:00+02:00,1\n"
                 "2015-10-25T00:00:00+02:00,4\n"
                 "2015-10-26T00:00:00+01:00,1\n");
    asking_check(&query, w,
                 PARAMETERS("tz=Europe/Berlin", "report=pages", "from=2015-10-25T02:00",
                            "to=2015-10-25T03:00", "step=hour", "format=table"),
                 "pages, 2015-10-25 02:00 to 2015-10-25 03:00 Europe/Berlin, by hour\n"
                 "time                    hits\n"
                 "2015-10-25 02:00+02:00     1\n"
                 "2015-10-25 02:00+01:00     1\n");
    asking_check(&query, w,
                 PARAMETERS("report=pages", "from=2015-10-20", "to=2015-10-31", "step=week",
                            "tz=Asia/Kathmandu", "format=json"),
                 "{\"report\":\"pages\",\"measures\":[\"hits\"],\"step\":\"week\",\"tz\":\"Asia/Kathmandu\","
                 "\"from\":\"2015-10-19T00:00:00+05:45\",\"to\":\"2015-11-02T00:00:00+05:45\",\"values\":["
                 "[\"2015-10-19T00:00:00+05:45\",4],[\"2015-10-26T00:00:00+05:45\",2]]}\n");
    asking_check(
        &query, w,
        PARAMETERS("report=pages", "from=2015-10-25", "to=2015-10-26", "tz=Europe/Berlin", "format=csv"),
        "time,value\n2015-10-25T00:00:00+02:00,4\n");
}

static void test_what_a_zone_cannot_say_exactly_is_refused(void **state)
{
    asking_refused(
        &query, *state,
        PARAMETERS("report=pages", "from=1971-01-01", "to=1971-01-03", "step=day", "tz=Africa/Monrovia"),
        EX_UNAVAILABLE,
        "1971-01-01T00:00:00-00:44:30, within a minute, but report pages counts whole minutes");
    asking_check(&query, *state,
                 PARAMETERS("report=pages", "from=1972-01-08", "to=1972-01-09", "step=day",
                            "tz=Africa/Monrovia", "format=csv"),
                 "time,value\n1972-01-08T00:00:00+00:00,0\n");
}

static void test_first_and_last_steps_reach_beyond_what_is_counted(void **state)
{
    asking_check(&query, *state,
                 PARAMETERS("report=pages", "from=1970-01-02", "to=1970-01-03", "step=week", "format=csv"),
                 "time,value\n1969-12-29T00:00:00Z,0\n");
    asking_check(&query, *state,
                 PARAMETERS("report=pages", "from=9999-01-02", "to=9999-12-31", "step=9y", "format=csv"),
                 "time,value\n9998-01-01T00:00:00Z,0\n");
}

static void test_limits_refuse_what_is_too_much(void **state)
{
    struct world *w = *state;
    asking_refused(&query, w, PARAMETERS("report=pages", "from=2015-05-17", "to=2015-05-18", "step=minute"),
                   EX_UNAVAILABLE,
                   "1440 steps, more than 100 (query.points_max): ask for a shorter range, or by 15m");
    for (int64_t hour = 0; hour < 1200; hour++)
        batcher_add(w->batcher, 0, FIXTURE_PAGES, "/a", fixture_ms("2016-01-01") + hour * HOUR_MS,
                    (int64_t[]){1, 1});
    world_apply(w, 1);
    struct query q;
    struct query_stats stats;
    struct err e;
    struct text out = {0};
    query_init(&q, 0, &limits);
    q.limits.points_max = 100000;
    q.report = slice_text("pages");
    q.has_step = true;
    q.step = (struct step){.unit = STEP_MINUTE, .count = 1};
    q.from_ms = fixture_ms("2016-01-01");
    q.to_ms = fixture_ms("2016-03-01");
    assert_false(query_run(w->store, &q, &out, &stats, &e));
    assert_int_equal(e.code, EX_UNAVAILABLE);
    assert_non_null(
        strstr(e.text, "1000 rows of the store (query.rows_max): ask for a shorter range, or by hour"));
    text_fini(&out);
}

static void test_what_is_refused_may_be_asked_of_another_report(void **state)
{
    struct world *w = *state;
    for (int64_t hour = 0; hour < 1001; hour++)
        batcher_add(w->batcher, 0, FIXTURE_CLIENTS, "h\tGET\t200", fixture_ms("2016-01-01") + hour * HOUR_MS,
                    (int64_t[]){1, 1});
    world_apply(w, 1);
    asking_refused(&query, w, PARAMETERS("report=clients", "from=2016-01-01", "to=2016-03-01", "step=day"),
                   EX_UNAVAILABLE, "ask for a shorter range, or by month, or of report site");
    asking_refused(
        &query, w,
        PARAMETERS("report=clients", "from=2016-01-01", "to=2016-03-01", "step=month", "filter=host=h"),
        EX_UNAVAILABLE, "(query.rows_max): ask for a shorter range");
}

static void test_long_answers_are_refused(void **state)
{
    struct world *w = *state;
    struct text out = {0};
    struct query_stats stats;
    struct err e;
    struct query q;
    query_init(&q, 0, &limits);
    q.limits.bytes_max = 600;
    q.report = slice_text("pages");
    q.from_ms = fixture_ms("2015-05-17");
    q.to_ms = fixture_ms("2015-05-19");
    q.has_step = true;
    q.step = (struct step){.unit = STEP_HOUR, .count = 1};
    text_puts(&out, "before");
    for (int format = QUERY_TABLE; format <= QUERY_JSON; format++) {
        q.format = (enum query_format)format;
        assert_false(query_run(w->store, &q, &out, &stats, &e));
        assert_int_equal(e.code, EX_UNAVAILABLE);
        assert_non_null(strstr(e.text, "600 bytes (query.response_max): ask for a shorter range, or by 6h"));
        assert_string_equal(out.ptr, "before");
    }
    q.step = (struct step){.unit = STEP_HOUR, .count = 6};
    assert_true(query_run(w->store, &q, &out, &stats, &e));
    assert_in_range(out.len, 100, 606);
    q.has_step = false;
    q.top = 3;
    q.to_ms = fixture_ms("2015-05-21");
    q.limits.bytes_max = 220;
    assert_false(query_run(w->store, &q, &out, &stats, &e));
    assert_non_null(strstr(e.text, "220 bytes (query.response_max): ask for top 2"));
    text_fini(&out);
}

static void test_tiles_of_a_sum_share_the_limit_of_rows(void **state)
{
    struct world *w = *state;
    struct query q;
    struct query_stats stats;
    struct err e;
    struct text out = {0};
    query_init(&q, 0, &limits);
    q.report = slice_text("pages");
    q.from_ms = fixture_ms("2015-05-17T10:05"); /* minutes with two rows, then days with two */
    q.to_ms = fixture_ms("2015-05-20");
    q.limits.rows_max = 4;
    assert_true(query_run(w->store, &q, &out, &stats, &e));
    q.limits.rows_max = 3;
    assert_false(query_run(w->store, &q, &out, &stats, &e));
    assert_int_equal(e.code, EX_UNAVAILABLE);
    text_fini(&out);
}

static void test_page_never_seen_reads_nothing(void **state)
{
    struct text out = {0};
    struct err e = {0};
    assert_true(asking_run(&query, *state,
                           PARAMETERS("report=pages", "filter=path=/nowhere", "step=minute", "format=csv"),
                           &out, &e));
    assert_false(last.every_series);
    assert_int_equal(last.series_matched, 0);
    assert_int_equal(last.scan_count, 0);
    assert_non_null(strstr(out.ptr, "2015-05-20T10:29:00Z,0\n2015-05-20T10:30:00Z,0\n"));
    text_fini(&out);
}

static void test_explain_says_what_was_read(void **state)
{
    struct world *w = *state;
    struct text out = {0}, plan = {0};
    struct query q;
    struct query_stats stats;
    struct err e = {0};
    query_init(&q, 0, &limits);
    q.report = slice_text("pages");
    q.from_ms = fixture_ms("2015-05-17T10:05");
    q.to_ms = fixture_ms("2015-05-20T11:00");
    assert_true(query_run(w->store, &q, &out, &stats, &e));
    query_explain(&q, &stats, &plan);
    assert_non_null(strstr(plan.ptr, "every series\n"));
    assert_non_null(strstr(plan.ptr, "  minute buckets 2015-05-17T10:05:00Z to 2015-05-17T11:00:00Z: "));
    assert_non_null(
        strstr(plan.ptr, "  hour   buckets 2015-05-17T11:00:00Z to 2015-05-18T00:00:00Z: 0 rows"));
    assert_non_null(strstr(plan.ptr, "  day    buckets 2015-05-18T00:00:00Z to 2015-05-20T00:00:00Z: "));
    assert_non_null(strstr(plan.ptr, "  hour   buckets 2015-05-20T00:00:00Z to 2015-05-20T11:00:00Z: "));
    text_fini(&out);
    text_fini(&plan);
}

/* A report that counts seconds: every step, and sums from any second to any other. */
static void test_seconds_are_answered_where_they_are_counted(void **state)
{
    struct world *w = *state;
    struct text out = {0};
    struct err e = {0};
    for (int i = 0; i < 4; i++)
        batcher_add(w->batcher, 0, FIXTURE_PAGES, "/a", fixture_ms("2015-05-18T10:04:58") + i * 1300,
                    (int64_t[]){1, 10});
    world_apply(w, 1);
    asking_check(&query, w,
                 PARAMETERS("report=pages", "from=2015-05-18T10:04:57", "to=2015-05-18T10:05:02.500",
                            "step=second", "format=csv"),
                 "time,value\n2015-05-18T10:04:57Z,0\n2015-05-18T10:04:58Z,1\n2015-05-18T10:04:59Z,1\n"
                 "2015-05-18T10:05:00Z,1\n2015-05-18T10:05:01Z,1\n2015-05-18T10:05:02Z,0\n");
    asking_check(&query, w,
                 PARAMETERS("report=pages", "from=2015-05-18T10:04", "to=2015-05-18T10:06", "step=minute",
                            "format=csv"),
                 "time,value\n2015-05-18T10:04:00Z,2\n2015-05-18T10:05:00Z,2\n");
    asking_check(&query, w, PARAMETERS("report=pages", "from=2015-05-18T10:04:59", "to=2015-05-18T10:05:01"),
                 "pages, 2015-05-18 10:04:59 to 2015-05-18 10:05:01 UTC\n"
                 "from                 hits\n"
                 "2015-05-18 10:04:59     2\n");
    assert_true(asking_run(&query, w,
                           PARAMETERS("report=pages", "from=2015-05-17T23:59:59", "to=2015-05-19T00:00:01"),
                           &out, &e));
    assert_int_equal(last.scan_count, 3);
    assert_int_equal(last.reads[0].resolution, SPAN_SECOND);
    assert_int_equal(last.reads[1].resolution, SPAN_DAY);
    text_fini(&out);
}

static int setup_of_seconds(void **state)
{
    world_kind = &world_kinds[2];
    return setup(state);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, world_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_csv_has_a_row_for_each_step),
        TEST(test_weeks_begin_on_the_day_that_is_asked_for),
        TEST(test_without_a_step_there_is_one_sum),
        TEST(test_filter_over_some_dimensions_sums_up_the_rest),
        TEST(test_top_ranks_by_value_then_key),
        TEST(test_top_shows_other_in_every_dimension),
        TEST(test_conditions_take_other_as_a_text),
        TEST(test_conditions_that_are_none),
        TEST(test_json_is_what_the_page_reads),
        TEST(test_table_is_aligned),
        TEST(test_table_cuts_long_text_and_draws_bars),
        TEST(test_wrong_questions_are_answered_with_what_exists),
        TEST(test_days_of_a_zone_are_its_own),
        TEST(test_what_a_zone_cannot_say_exactly_is_refused),
        TEST(test_first_and_last_steps_reach_beyond_what_is_counted),
        TEST(test_limits_refuse_what_is_too_much),
        TEST(test_what_is_refused_may_be_asked_of_another_report),
        TEST(test_long_answers_are_refused),
        TEST(test_tiles_of_a_sum_share_the_limit_of_rows),
        TEST(test_page_never_seen_reads_nothing),
        TEST(test_explain_says_what_was_read),
        cmocka_unit_test_setup_teardown(test_seconds_are_answered_where_they_are_counted, setup_of_seconds,
                                        world_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
