/* The answers of the status: metrics, readiness, lag, rate. */
#include "base/mem.h"
#include "stats/metrics.h"
#include "web/api.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

enum { SITE, PAGES, REPORTS };

struct fixture {
    struct clock clock;
    struct report reports[REPORTS];
    struct books books; /* to note */
    struct status status;
    struct rejects rejects;
};

static int setup(void **state)
{
    static const char *const names[REPORTS] = {"site", "pages"};
    struct fixture *f = xcalloc(1, sizeof *f);
    struct err e;
    for (size_t i = 0; i < REPORTS; i++)
        assert_true(report_init(&f->reports[i], slice_text(names[i]), 1, &e));
    f->clock = clock_fake(1431856800000); /* 2015-05-17T10:00:00Z */
    f->clock.fake_mono_ms = 1000000;
    books_init(&f->books, REPORTS);
    status_init(&f->status, &(struct status_options){.clock = &f->clock,
                                                     .store = "sqlite:test.db",
                                                     .source = "kafka",
                                                     .reports = f->reports,
                                                     .report_count = REPORTS});
    rejects_init(&f->rejects, &f->clock, 65536);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    for (size_t i = 0; i < REPORTS; i++)
        report_fini(&f->reports[i]);
    status_fini(&f->status);
    rejects_fini(&f->rejects);
    books_fini(&f->books);
    free(f);
    return 0;
}

static void check(struct fixture *f, api_fn *ask, unsigned code, const char *body)
{
    struct api api = {.status = &f->status, .rejects = &f->rejects};
    struct reply rp = {0};
    ask(&api, NULL, 0, &rp);
    if (rp.code != code || strstr(rp.body.ptr, body) == NULL)
        fail_msg("expected %u and %s, got %u: %s", code, body, rp.code, rp.body.ptr);
    text_fini(&rp.body);
}

/* `line` is a whole one. */
static void check_metric(struct fixture *f, const char *line)
{
    struct text whole = {0};
    text_printf(&whole, "\n%s\n", line);
    check(f, api_metrics, 200, whole.ptr);
    text_fini(&whole);
}

static void check_no_metric(struct fixture *f, const char *part)
{
    struct text page = {0};
    metrics_write(&f->status, &f->rejects, &page);
    assert_null(strstr(page.ptr, part));
    text_fini(&page);
}

static void test_metrics_show_every_figure(void **state)
{
    struct fixture *f = *state;
    *books_source(&f->books, BOOK_CONSUMED) = 40;
    *books_source(&f->books, BOOK_PARSED) = 38;
    *books_source(&f->books, BOOK_REJECTED + REJECT_FUTURE) = 2;
    *books_report(&f->books, PAGES, BOOK_COUNTED) = 30;
    *books_report(&f->books, PAGES, BOOK_FILTERED) = 7;
    *books_report(&f->books, PAGES, BOOK_LATE) = 1;
    status_note(&f->status, &(struct status_figures){.state = STATUS_COUNTING,
                                                     .books = &f->books,
                                                     .messages = 21,
                                                     .dead_letters = 3,
                                                     .shard_bytes = 1000,
                                                     .queue_bytes = 2000,
                                                     .memory_budget_bytes = 5000});
    int first = status_add_partition(&f->status, "a\"b\\c\n", 0);
    int second = status_add_partition(&f->status, "plain", 17);
    status_note_partition(&f->status, first, 5, 9);
    status_note_partition(&f->status, second, 100, -1);
    status_note_empty(&f->status, second, 3);
    struct books books;
    books_init(&books, 0);
    books.entries[BOOK_CONSUMED] = 9;
    books.entries[BOOK_PARSED] = 2;
    books.entries[BOOK_REJECTED + REJECT_TIME] = 7;
    rejects_add_source(&f->rejects, "access");
    rejects_add_source(&f->rejects, "\"odd\"");
    rejects_note_range(&f->rejects, &(struct rejects_range){.source = 1, .label = "a.log", .books = &books});
    books_fini(&books);
    static const char *const lines[] = {
        "tallyd_source_consumed_total{source=\"access\"} 0",
        "tallyd_source_consumed_total{source=\"\\\"odd\\\"\"} 9",
        "tallyd_source_rejected_total{source=\"\\\"odd\\\"\"} 7",
        "tallyd_build_info{version=\"" TALLYD_VERSION "\"} 1",
        "tallyd_start_time_seconds 1431856800.000",
        "tallyd_ready 1",
        "tallyd_messages_consumed_total 21",
        "tallyd_lines_consumed_total 40",
        "tallyd_events_parsed_total 38",
        "tallyd_lines_rejected_total{reason=\"future\"} 2",
        "tallyd_dead_letters_written_total 3",
        "tallyd_events_counted_total{report=\"pages\"} 30",
        "tallyd_events_filtered_total{report=\"pages\"} 7",
        "tallyd_events_late_total{report=\"pages\"} 1",
        "tallyd_partition_next_offset{source=\"a\\\"b\\\\c\\n\",partition=\"0\"} 5",
        "tallyd_partition_end_offset{source=\"a\\\"b\\\\c\\n\",partition=\"0\"} 9",
        "tallyd_partition_lag_messages{source=\"a\\\"b\\\\c\\n\",partition=\"0\"} 4",
        "tallyd_partition_next_offset{source=\"plain\",partition=\"17\"} 100",
        "tallyd_partition_offsets_without_record_total{source=\"plain\",partition=\"17\"} 3",
        "tallyd_lag_messages 4",
        "tallyd_memory_shards_bytes 1000",
        "tallyd_memory_queue_bytes 2000",
        "tallyd_memory_budget_bytes 5000"};
    for (size_t i = 0; i < COUNT_OF(lines); i++)
        check_metric(f, lines[i]);
    check_no_metric(f, "tallyd_partition_end_offset{source=\"plain\"");
}

static void test_metrics_show_batches(void **state)
{
    static const int64_t took_us[] = {1, 1000, 1001, 999999, 10000000, 10000001};
    struct fixture *f = *state;
    for (size_t i = 0; i < COUNT_OF(took_us); i++)
        status_note_batch(&f->status, &(struct status_batch){.events = 10,
                                                             .cells = 3,
                                                             .apply_us = took_us[i],
                                                             .prealloc = {100, 99, 120, 7, 1305}});
    status_note_store(&f->status, "disk full");
    status_note_store(&f->status, "disk full");
    static const char *const lines[] = {"tallyd_batches_applied_total 6",
                                        "tallyd_cells_applied_total 18",
                                        "tallyd_last_batch_events 10",
                                        "tallyd_last_batch_cells 3",
                                        "tallyd_apply_duration_seconds_bucket{le=\"0.001\"} 2",
                                        "tallyd_apply_duration_seconds_bucket{le=\"0.002\"} 3",
                                        "tallyd_apply_duration_seconds_bucket{le=\"0.5\"} 3",
                                        "tallyd_apply_duration_seconds_bucket{le=\"1\"} 4",
                                        "tallyd_apply_duration_seconds_bucket{le=\"10\"} 5",
                                        "tallyd_apply_duration_seconds_bucket{le=\"+Inf\"} 6",
                                        "tallyd_apply_duration_seconds_sum 21.002002",
                                        "tallyd_apply_duration_seconds_count 6",
                                        "tallyd_documents_begun_total 100",
                                        "tallyd_documents_preallocated_total 120",
                                        "tallyd_documents_preallocated_used_total 99",
                                        "tallyd_documents_preallocated_unused_total 7",
                                        "tallyd_preallocation_spike 1.305",
                                        "tallyd_store_errors_total 2",
                                        "tallyd_store_reachable 0"};
    for (size_t i = 0; i < COUNT_OF(lines); i++)
        check_metric(f, lines[i]);
}

static void test_ready_says_what_is_missing(void **state)
{
    struct fixture *f = *state;
    struct status_figures figures = {.state = STATUS_STARTING, .books = &f->books};
    check(f, api_ready, 503, "waiting for the store\n");
    f->clock.fake_mono_ms += STATUS_SILENCE_MS + 1; /* of one attempt to open it */
    check(f, api_health, 200, "ok\n");
    status_note_store(&f->status, "no server is there");
    check(f, api_ready, 503, "waiting for the store: no server is there\n");
    status_note_store(&f->status, NULL);
    assert_false(status_is_consuming(&f->status));
    status_note(&f->status, &figures);
    assert_false(status_is_consuming(&f->status));
    check(f, api_ready, 503, "not consuming yet");
    check(f, api_health, 200, "ok\n");
    figures.state = STATUS_WAITING;
    status_note(&f->status, &figures);
    assert_true(status_is_consuming(&f->status));
    check(f, api_ready, 200, "ok\n");
    status_note_store(&f->status, "the disk is full");
    check(f, api_ready, 503, "the store does not take what it is given: the disk is full");
    check(f, api_health, 200, "ok\n");
    check(f, api_status, 200, "\"ready\":false,\"not_ready\":\"the store does not take");
    status_note_store(&f->status, NULL);
    int partition = status_add_partition(&f->status, "access", 0);
    status_note_partition(&f->status, partition, 100, 1101);
    check(f, api_ready, 200, "ok\n"); /* whatever the lag */
    status_note_stuck(&f->status, "ingest");
    check(f, api_health, 503, "a thread hangs: ingest\n");
    check(f, api_ready, 503, "a thread hangs: ingest\n");
    status_note_stuck(&f->status, NULL);
    status_set_lag_max(&f->status, 1000);
    check(f, api_ready, 503, "the lag is 1001 messages, above http.lag_max, 1000");
    check(f, api_status, 200,
          "\"partitions\":[{\"source\":\"access\",\"partition\":0,\"next\":100,\"end\":1101}]");
    status_note_partition(&f->status, partition, 101, 1101);
    check(f, api_ready, 200, "ok\n");
    f->clock.fake_mono_ms += STATUS_SILENCE_MS + 1;
    check(f, api_ready, 503, "a thread hangs");
    figures.state = STATUS_STOPPING;
    status_note(&f->status, &figures);
    check(f, api_ready, 503, "stopping");
}

/* They make nothing wrong, so a daemon that counts stays ready. */
static void test_ready_warns_of_jobs_behind(void **state)
{
    struct fixture *f = *state;
    const struct status_figures figures = {.state = STATUS_COUNTING, .books = &f->books};
    struct text line = {0};
    for (int turn = 0; turn < 2; turn++) {
        status_note_jobs(&f->status, STATUS_JOBS_WAITING + 1 + (uint64_t)turn);
        f->clock.fake_mono_ms += STATUS_JOBS_BEHIND_MS - 1;
        status_warn(&f->status, &line);
        assert_int_equal(line.len, 0);
        status_note_jobs(&f->status, STATUS_JOBS_WAITING + 2); /* still behind */
        f->clock.fake_mono_ms++;
        status_note(&f->status, &figures);
        check(f, api_ready, 200,
              "ok\nwarning: 50 periods wait to be rolled up or ranked, more than 48 for 60 min");
        status_note_jobs(&f->status, STATUS_JOBS_WAITING); /* it begins anew */
        status_warn(&f->status, &line);
        assert_int_equal(line.len, 0);
    }
    text_fini(&line);
}

static void test_status_takes_so_many_partitions(void **state)
{
    struct clock clock = clock_fake(0);
    struct status s;
    char line[40];
    (void)state;
    status_init(&s, &(struct status_options){.clock = &clock, .store = "", .source = ""});
    for (int i = 0; i < STATUS_PARTITIONS_MAX; i++) {
        assert_int_equal(status_add_partition(&s, "t", i), i);
        status_note_partition(&s, i, i, i + 2);
    }
    int more = status_add_partition(&s, "t", STATUS_PARTITIONS_MAX);
    assert_int_equal(more, -1);
    status_note_partition(&s, more, 0, 1000000);
    status_note_partition(&s, 0, 7, 5); /* the end is older than what was counted */
    status_line(&s, line, sizeof line);
    assert_string_equal(line, "opening, 0 lines/s, lag 8190");
    status_line(&s, line, 8);
    assert_string_equal(line, "opening");
    status_fini(&s);
}

static void note_at(struct status *s, struct clock *c, int64_t at_ms, int64_t consumed)
{
    int64_t entries[BOOK_SOURCE_COUNT] = {[BOOK_CONSUMED] = consumed};
    c->fake_mono_ms = at_ms;
    status_note(s, &(struct status_figures){.state = STATUS_COUNTING, .books = &(struct books){0, entries}});
}

static int rate_of(struct status *s)
{
    char line[40];
    int rate;
    status_line(s, line, sizeof line);
    assert_int_equal(sscanf(line, "%*[a-z], %d lines/s", &rate), 1);
    return rate;
}

static void test_status_rate_follows_the_source(void **state)
{
    struct clock clock = clock_fake(0);
    struct status s;
    (void)state;
    status_init(&s, &(struct status_options){.clock = &clock, .store = "", .source = ""});
    assert_int_equal(rate_of(&s), 0);
    /* Noted five times a second, batches of 1,000 a second: no ripple. */
    for (int64_t ms = 0; ms <= 30000; ms += 200) {
        note_at(&s, &clock, ms, ms / 1000 * 1000);
        if (ms >= 2000)
            assert_int_equal(rate_of(&s), 1000);
    }
    /* The source pauses. */
    clock.fake_mono_ms = 33100;
    assert_true(rate_of(&s) < 1000);
    for (int64_t ms = 30200; ms <= 41000; ms += 200)
        note_at(&s, &clock, ms, 30000);
    assert_int_equal(rate_of(&s), 0);
    /* More steps than are kept. */
    for (int64_t ms = 50000; ms <= 52000; ms++)
        note_at(&s, &clock, ms, 30000 + 5 * (ms - 50000));
    assert_int_equal(rate_of(&s), 5000);
    status_fini(&s);
}

int main(void)
{
#define STATUS_TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        STATUS_TEST(test_metrics_show_every_figure),
        STATUS_TEST(test_metrics_show_batches),
        STATUS_TEST(test_ready_says_what_is_missing),
        STATUS_TEST(test_ready_warns_of_jobs_behind),
        cmocka_unit_test(test_status_takes_so_many_partitions),
        cmocka_unit_test(test_status_rate_follows_the_source),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
