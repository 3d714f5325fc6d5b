#include "config/config_read.h"
#include "daemon/budget.h"

#include "daemon/setup.h"
#include "tests/support/fixture.h"
#include "web/readers.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#define MIB ((int64_t)1 << 20)

/* A shard that is as full as it may be takes about what it is said to take. */
static void test_budget_of_a_shard_is_what_a_full_one_takes(void **state)
{
    (void)state;
    struct config *c = fixture_config("aggregate: {cells_max: 20000, series_max: 20000, keys_size: 1MiB}\n"
                                      "reports: {r: {by: [path]}, s: {by: [path, host]}}");
    struct shard_limits limits = setup_pipeline(c, 1).shard;
    struct shard *sh = shard_new(0, c->reports, c->report_count, &limits);
    size_t most = shard_bytes_max(c->reports, c->report_count, &limits);
    for (int i = 0; !shard_is_full(sh); i++) {
        char path[32];
        struct event ev = {.at_ms = 60000, .present = 1 << FIELD_PATH};
        ev.field[FIELD_PATH] = slice_of(path, (size_t)snprintf(path, sizeof path, "/%d", i));
        shard_add(sh, &ev, 1);
        assert_true(i <= 20000);
    }
    /* The other part is as large once it was the open one; pointers to keys are not in shard_bytes(). */
    assert_true(shard_bytes(sh) < most);
    assert_true(shard_bytes(sh) > most / 4);
    shard_free(sh);
    config_free(c);
}

static void test_budget_follows_the_configuration(void **state)
{
    (void)state;
    struct config *c = fixture_config("kafka: {brokers: b, threads: 3, queue_size: 10MiB}\n"
                                      "sources: {a: {type: kafka}}\nhttp: {enabled: false}");
    struct budget b = budget_of(c), one;
    assert_true(b.queue_bytes == (3 * 60 + 8) * MIB);
    assert_int_equal(b.sending_bytes + b.question_bytes, 0);
    assert_int_equal(b.rejects_bytes, 0);
    assert_true(b.store_bytes > 32 * MIB);
    assert_true(budget_total(&b) ==
                b.shards_bytes + b.input_bytes + b.queue_bytes + b.store_bytes + BUDGET_PROGRAM_BYTES);
    config_free(c);
    c = fixture_config("kafka: {brokers: b, queue_size: 10MiB, properties: {fetch.max.bytes: 1048576}}\n"
                       "sources: {a: {type: kafka}}\nrejects: {file: f}\nstore: {url: \"mem:\"}");
    one = budget_of(c);
    assert_true(one.queue_bytes == 11 * MIB);
    /* one of files that are handed over, and a small one of a report that is backfilled */
    assert_in_range(b.shards_bytes - 4 * one.shards_bytes, 1, one.shards_bytes / 4);
    assert_true(one.rejects_bytes > 0);
    assert_int_equal(one.store_bytes, 0);
    config_free(c);
    c = config_default();
    one = budget_of(c);
    assert_int_equal(one.queue_bytes, 0);
    assert_in_range(one.sending_bytes, 32 * MIB, 64 * MIB);
    assert_in_range(one.question_bytes, (128 + 64) * MIB, 300 * MIB);
    config_free(c);
}

/* Each key that bounds what HTTP takes is counted, once. */
static void test_budget_counts_each_limit_of_http(void **state)
{
    static const struct {
        const char *text;
        int64_t sending, questions; /* KiB more than before */
    } cases[] = {
        {"query: {memory_max: 228MiB}", 0, 100 << 10},
        {"query: {response_max: 26MiB}", 2 * 10 << 10, 4 * 10 << 10},
        {"query: {sketches_max: 128MiB}", 0, 0},
        {"http: {streams_max: 60}", 10 * 2 * 160, 0},
        {"http: {connections_max: 74}", 10 * (4 * 16 + 64), 0},
    };
    (void)state;
    struct config *c = config_default();
    struct budget before = budget_of(c);
    config_free(c);
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        c = fixture_config(cases[i].text);
        struct budget b = budget_of(c);
        assert_int_equal(b.sending_bytes - before.sending_bytes, cases[i].sending << 10);
        assert_int_equal(b.question_bytes - before.question_bytes, cases[i].questions << 10);
        assert_int_equal(budget_total(&b) - budget_total(&before), (cases[i].sending + cases[i].questions)
                                                                       << 10);
        config_free(c);
    }
}

/* Each chain remembers hosts, and agents, by itself: one of each topic in each thread, one of each file. */
static void test_budget_knows_what_is_made_of_texts(void **state)
{
    (void)state;
    struct config *c =
        fixture_config("kafka: {brokers: b, threads: 3}\nsources: {a: {type: kafka}, b: {type: kafka}}\n"
                       "reports: {a: {by: [host_net, host_id, bot, hour_of_day, 'query:a']}}\n"
                       "derive: {key: abcdefghijklmnop}\nstore: {url: \"mem:\"}");
    struct budget b = budget_of(c);
    assert_in_range(b.derived_bytes, 6 * 2 * 8 * MIB, 6 * 2 * 11 * MIB);
    config_free(c);
    c = fixture_config(
        "derive: {anonymise: true}\nsources: {a: {type: file, path: a}, b: {type: file, path: b}}\n"
        "store: {url: \"mem:\"}");
    b = budget_of(c);
    assert_in_range(b.derived_bytes, 2 * 8 * MIB, 2 * 11 * MIB);
    config_free(c);
    c = config_default();
    b = budget_of(c);
    assert_int_equal(b.derived_bytes, 0);
    config_free(c);
}

/* Every handle knows series by names of its own. */
static void test_budget_knows_all_handles_of_a_server(void **state)
{
    (void)state;
    struct config *few =
        fixture_config("store: {url: mongodb://h/d}\nreports: {a: {by: [path], series_max: 1000}}");
    struct config *many =
        fixture_config("store: {url: mongodb://h/d}\nreports: {a: {by: [path], series_max: 11000}}");
    struct budget b = budget_of(few), one = budget_of(many);
    assert_true(one.question_bytes - b.question_bytes >= 64 * READERS_MAX * 10000);
    assert_true(one.store_bytes - b.store_bytes >= 64 * 2 * 10000);
    config_free(few);
    config_free(many);
}

/* A batch has them, and so have the rows of SQLite's writer while it merges them. */
static void test_budget_knows_sketches(void **state)
{
    (void)state;
    struct config *without = fixture_config("reports: {a: {measures: {n: count}}}"),
                  *with = fixture_config("reports: {a: {measures: {n: count, s: histogram(bytes)}}}");
    struct budget b = budget_of(without), more = budget_of(with);
    struct text out = {0};
    assert_true(more.shards_bytes - b.shards_bytes >= 2 * 32 * MIB);
    assert_in_range(more.store_bytes - b.store_bytes, 30 * MIB, 36 * MIB);
    budget_print(with, &out);
    assert_non_null(strstr(out.ptr, "sketches"));
    config_free(without);
    config_free(with);
    text_fini(&out);
}

/* The text that is printed under a configuration is no part of it. */
static void test_budget_prints_comments(void **state)
{
    (void)state;
    struct text out = {0};
    struct config *c = config_default();
    struct budget b = budget_of(c);
    char all[64];
    config_print(c, false, &out);
    budget_print(c, &out);
    snprintf(all, sizeof all, "%lld MiB\n", (long long)((budget_total(&b) + MIB - 1) / MIB));
    assert_non_null(strstr(out.ptr, "#   in all "));
    assert_string_equal(out.ptr + out.len - strlen(all), all);
    config_free(fixture_config(out.ptr));
    config_free(c);
    text_fini(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_budget_of_a_shard_is_what_a_full_one_takes),
        cmocka_unit_test(test_budget_follows_the_configuration),
        cmocka_unit_test(test_budget_counts_each_limit_of_http),
        cmocka_unit_test(test_budget_knows_what_is_made_of_texts),
        cmocka_unit_test(test_budget_knows_all_handles_of_a_server),
        cmocka_unit_test(test_budget_knows_sketches),
        cmocka_unit_test(test_budget_prints_comments),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
