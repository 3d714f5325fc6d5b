/* Every line is counted once, no matter what the threads, the stripes and the store do, and a run that was
 * broken off is completed by the next. verify.h judges the counts. */
#include "base/log.h"
#include "config/config_read.h"
#include "daemon/count/pipeline.h"
#include "daemon/count/writer.h"
#include "daemon/source.h"
#include "store/backend/backend.h"
#include "tests/support/fixture.h"
#include "tests/support/flaky.h"
#include "tests/support/lines.h"
#include "tests/support/scratch.h"
#include "verify/verify.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#define LINE_MAX_BYTES 5000
#define REPORTS        4

struct stage {
    struct scratch scratch;
    struct dice dice;
    struct report reports[REPORTS];
    struct text lines;
    char path[128];
    struct store *mem;
    struct flaky store;
    atomic_bool stop;
    struct pipeline_options options;
};

/* Reports of every kind: by nothing, by one field, by several, with a filter and few series. */
static void make_reports(struct stage *s)
{
    struct err e;
    struct report *few = &s->reports[FIXTURE_COUNT];
    fixture_reports(s->reports);
    assert_true(report_init(few, slice_text("few"), 1, &e));
    assert_true(report_add_dimension(few, slice_text("path:1"), &e));
    assert_true(report_add_dimension(few, slice_text("status_class"), &e));
    assert_true(report_add_condition(few, slice_text("status>=300"), &e));
    assert_true(report_finish(few, &e));
    few->series_max = 7;
}

static void open_mem(struct stage *s)
{
    struct err e;
    s->mem = store_open("mem:", STORE_WRITE, s->reports, REPORTS, &e);
    assert_non_null(s->mem);
    flaky_init(&s->store, s->mem);
    s->store.stop = &s->stop;
}

static int setup(void **state)
{
    struct stage *s = calloc(1, sizeof *s);
    s->dice = dice_new("pipeline");
    scratch_make(&s->scratch);
    make_reports(s);
    snprintf(s->path, sizeof s->path, "%s", scratch_path(&s->scratch, "log"));
    open_mem(s);
    s->options = (struct pipeline_options){
        .threads = 2,
        .decode = fixture_decode(),
        .line_max = LINE_MAX_BYTES,
        .stripe_ms = 1000,
        .stripe_bytes = 10000,
        .future_max_ms = DAY_MS,
        .shard = {.cells_max = 1000, .series_max = 1000, .key_bytes_max = 1 << 20, .dimension_bytes_max = 64},
        .retry = true,
        .clock = &clock_system,
        .stop = &s->stop,
    };
    *state = s;
    return 0;
}

static int teardown(void **state)
{
    struct stage *s = *state;
    store_close(s->mem);
    for (size_t i = 0; i < REPORTS; i++)
        report_fini(&s->reports[i]);
    text_fini(&s->lines);
    scratch_remove(&s->scratch);
    free(s);
    return 0;
}

static void make_lines(struct stage *s, int count)
{
    int64_t now_ms = clock_wall_ms(&clock_system);
    for (int i = 0; i < count; i++) {
        if (dice_roll(&s->dice, 500) == 0) { /* too long by far, by one byte, or just not */
            static const int lengths[] = {300000, LINE_MAX_BYTES + 1, LINE_MAX_BYTES};
            text_printf(&s->lines, "%0*d\n", lengths[dice_roll(&s->dice, COUNT_OF(lengths))], 0);
        } else if (dice_roll(&s->dice, 200) == 0) {
            lines_add_good(&s->lines, &s->dice, now_ms + 3LL * DAY_MS, DAY_MS);
        } else {
            lines_add(&s->lines, &s->dice, now_ms, HOUR_MS);
        }
    }
}

static ssize_t read_short(void *context, int fd, void *buf, size_t cap)
{
    struct dice *d = context;
    size_t most = (size_t)dice_roll(d, 20000) + 1;
    return read(fd, buf, cap < most ? cap : most);
}

/* Count the file from where the store stands, by a pipeline of its own. */
static bool count_file(struct stage *s, struct pipeline *p, struct err *e)
{
    struct source src;
    struct source_options options = {.line_max = LINE_MAX_BYTES};
    assert_true(source_open(&src, s->path, s->mem, &options, e));
    struct err e2;
    struct input *in = input_open_with(s->path, read_short, &s->dice, &e2);
    assert_non_null(in);
    struct reader *rd = reader_new(in, LINE_MAX_BYTES, LAST_LINE_LEAVE);
    if (!reader_skip(rd, src.range.to, &e2))
        fail_msg("%s", e2.text);
    bool good = pipeline_run(p, rd, &src.range, e);
    const struct pipeline_progress *progress = pipeline_progress(p);
    assert_true(books_balance(&progress->books));
    assert_true(!good || progress->stored == reader_offset(rd));
    reader_free(rd);
    input_close(in);
    source_close(&src);
    return good;
}

static bool run_once(struct stage *s, struct err *e)
{
    struct pipeline *p = pipeline_new(&s->store.store, s->reports, REPORTS, &s->options);
    bool good = count_file(s, p, e);
    pipeline_free(p);
    return good;
}

static bool take_position(void *context, const struct position *p)
{
    *(struct position *)context = *p;
    return true;
}

static int64_t stored_to(struct stage *s)
{
    struct position p = {0};
    struct err e;
    assert_true(store_positions(s->mem, take_position, &p, &e));
    return p.range.to;
}

/* Is what the store holds, up to where it stands, what the file says? */
static void check_counts(struct stage *s)
{
    struct config *c = config_default();
    struct position p = {0};
    struct verify v;
    struct err e;
    bool more;
    c->limits.line_max = LINE_MAX_BYTES;
    c->limits.future_max_ms = DAY_MS;
    c->limits.dimension_bytes_max = 64;
    verify_init(&v, c, s->mem, stdout);
    assert_true(store_positions(s->mem, take_position, &p, &e));
    assert_true(verify_file(&v, s->path, fixture_decode(), NULL, &p, &more, &e));
    assert_true(verify_buckets(&v, &e));
    assert_true(v.compared > 0);
    assert_int_equal(v.differences, 0);
    verify_fini(&v);
    config_free(c);
}

static void check_complete(struct stage *s)
{
    assert_int_equal(stored_to(s), s->lines.len);
    check_counts(s);
}

/* Any options, small enough to seal, fill and start anew all the time. */
static void roll_options(struct stage *s)
{
    struct pipeline_options *o = &s->options;
    o->threads = (size_t)dice_roll(&s->dice, 4) + 1;
    o->stripe_bytes = dice_roll(&s->dice, 2) == 0 ? 1 : 1 + dice_roll(&s->dice, 300000);
    o->stripe_ms = dice_roll(&s->dice, 2) == 0 ? 1 : 1000;
    o->shard.cells_max = (size_t)dice_roll(&s->dice, 2000) + 1;
    o->shard.series_max = (size_t)dice_roll(&s->dice, 400) + 1;
    o->shard.key_bytes_max = dice_roll(&s->dice, 4) == 0 ? 1 : 1 << 20;
    s->store.apply_ms = (int)dice_roll(&s->dice, 3);
}

static void test_any_threads_and_limits_count_every_line_once(void **state)
{
    struct stage *s = *state;
    struct err e;
    for (int round = 0; round < 12; round++) {
        text_clear(&s->lines);
        make_lines(s, 3000);
        scratch_write(s->path, text_slice(&s->lines));
        store_close(s->mem);
        open_mem(s);
        roll_options(s);
        assert_true(run_once(s, &e));
        check_complete(s);
    }
}

static void test_failing_store_is_tried_again(void **state)
{
    struct stage *s = *state;
    struct err e;
    make_lines(s, 3000);
    scratch_write(s->path, text_slice(&s->lines));
    log_set_level(LOG_LEVEL_ERROR);
    s->options.threads = 4;
    s->options.shard.series_max = 50;
    s->store.fail_from = 3;
    s->store.failures = 2;
    s->store.retryable = true;
    assert_true(run_once(s, &e));
    assert_true(s->store.applies > 5);
    check_complete(s);
}

/* While the first batch is being applied, every worker but the one that sealed it seals and reads on. */
static void test_slow_store_stops_the_reading(void **state)
{
    struct stage *s = *state;
    struct err e;
    make_lines(s, 2000);
    scratch_write(s->path, text_slice(&s->lines));
    s->options.threads = 16;
    s->options.stripe_bytes = 1;
    s->store.apply_ms = 20;
    s->store.stop_after = 40;
    assert_true(run_once(s, &e));
    check_counts(s);
}

/* What is read while a batch is being applied becomes one more batch, however long that takes. */
static void test_batches_grow_while_the_store_is_busy(void **state)
{
    struct stage *s = *state;
    struct err e;
    make_lines(s, 20000);
    scratch_write(s->path, text_slice(&s->lines));
    s->options.stripe_ms = 1;
    s->options.stripe_bytes = INT64_MAX;
    s->options.shard.cells_max = s->options.shard.series_max = 1000000;
    s->store.apply_ms = 200;
    assert_true(run_once(s, &e));
    assert_in_range(s->store.applies, 1, 6);
    check_complete(s);
}

/* The store fails when it is to stop. */
static bool run_to_a_failing_end(struct stage *s, uint64_t failures)
{
    struct err e;
    make_lines(s, 2000);
    scratch_write(s->path, text_slice(&s->lines));
    log_set_level(LOG_LEVEL_ERROR);
    s->options.threads = 16;
    s->options.stripe_bytes = 1;
    s->store.retryable = true;
    s->store.stop_after = s->store.fail_from = 5;
    s->store.failures = failures;
    return run_once(s, &e);
}

static void test_store_that_fails_at_the_end_is_asked_again(void **state)
{
    struct stage *s = *state;
    assert_true(run_to_a_failing_end(s, LAST_TRIES_MAX - 1));
    assert_in_range(s->store.applies, 5 + s->store.failures, UINT64_MAX);
    check_counts(s);
}

static void test_store_that_fails_at_the_end_is_not_asked_for_ever(void **state)
{
    struct stage *s = *state;
    assert_false(run_to_a_failing_end(s, 1000));
    assert_int_equal(s->store.applies, 5 + LAST_TRIES_MAX - 1);
}

static void test_run_ended_by_the_store_is_completed_by_the_next(void **state)
{
    struct stage *s = *state;
    struct err e = {0};
    make_lines(s, 4000);
    scratch_write(s->path, text_slice(&s->lines));
    s->store.failures = 1;
    do {
        roll_options(s);
        s->options.stripe_bytes = 1 + dice_roll(&s->dice, 100000);
        s->store.retryable = dice_roll(&s->dice, 2) == 0;
        s->options.retry = false;
        s->store.applies = 0;
        s->store.fail_from = 1 + (uint64_t)dice_roll(&s->dice, 10);
        bool good = run_once(s, &e);
        assert_int_equal(good, stored_to(s) == (int64_t)s->lines.len);
        assert_true(good || strstr(e.text, "the ") != NULL);
        if (stored_to(s) > 0)
            check_counts(s);
    } while (stored_to(s) < (int64_t)s->lines.len);
    check_complete(s);
}

/* Lines that workers still hold of a failed batch must not be counted as another file's. */
static void test_pipeline_whose_store_failed_takes_no_more(void **state)
{
    struct stage *s = *state;
    struct err e = {0};
    make_lines(s, 3000);
    scratch_write(s->path, text_slice(&s->lines));
    s->store.fail_from = 2;
    s->store.failures = 1;
    struct pipeline *p = pipeline_new(&s->store.store, s->reports, REPORTS, &s->options);
    assert_false(count_file(s, p, &e));
    int64_t stored = stored_to(s);
    e = (struct err){0};
    assert_false(count_file(s, p, &e));
    assert_int_equal(e.code, EX_DATAERR);
    assert_int_equal(stored_to(s), stored);
    pipeline_free(p);
    assert_true(run_once(s, &e));
    check_complete(s);
}

static void test_stopped_run_is_completed_by_the_next(void **state)
{
    struct stage *s = *state;
    struct err e;
    make_lines(s, 4000);
    scratch_write(s->path, text_slice(&s->lines));
    int stops = 0;
    do {
        roll_options(s);
        s->options.stripe_bytes = 1 + dice_roll(&s->dice, 50000);
        atomic_store(&s->stop, false);
        s->store.stop_after = s->store.applies + 1 + (uint64_t)dice_roll(&s->dice, 4);
        assert_true(run_once(s, &e));
        assert_true(stored_to(s) > 0);
        check_counts(s);
    } while (stored_to(s) < (int64_t)s->lines.len && ++stops < 1000);
    check_complete(s);
}

/* Offsets in the rejects file are those of lines, each there once. */
static void test_rejects_file_names_every_rejected_line(void **state)
{
    struct stage *s = *state;
    struct err e;
    char line[65536];
    int64_t rejected[REJECT_COUNT] = {0};
    make_lines(s, 3000);
    /* One of each kind whatever the dice say: empty, too long, in the future. */
    text_printf(&s->lines, "\n%0*d\n", LINE_MAX_BYTES + 1, 0);
    lines_add_good(&s->lines, &s->dice, clock_wall_ms(&clock_system) + 3LL * DAY_MS, DAY_MS);
    scratch_write(s->path, text_slice(&s->lines));
    struct rejects_file rejects;
    assert_true(rejects_file_open(&rejects, scratch_path(&s->scratch, "rejects"), &e));
    s->options.rejects = &rejects;
    s->options.threads = 3;
    struct pipeline *p = pipeline_new(&s->store.store, s->reports, REPORTS, &s->options);
    assert_true(count_file(s, p, &e));
    FILE *f = fopen(rejects.path, "r");
    assert_non_null(f);
    while (fgets(line, sizeof line, f) != NULL) {
        char *reason = strchr(line, '\t') + 1;
        int64_t offset = strtoll(line, NULL, 10);
        assert_true(offset == 0 || s->lines.ptr[offset - 1] == '\n');
        s->lines.ptr[offset > 0 ? offset - 1 : 0] = '!'; /* so that a second one of this line fails */
        for (int r = 0; r < REJECT_COUNT; r++)
            rejected[r] += strncmp(reason, reject_name((enum reject_reason)r), strcspn(reason, "\t")) == 0 &&
                           strlen(reject_name((enum reject_reason)r)) == strcspn(reason, "\t");
    }
    fclose(f);
    rejects_file_close(&rejects);
    for (int r = 0; r < REJECT_COUNT; r++)
        assert_int_equal(rejected[r], pipeline_progress(p)->books.entries[BOOK_REJECTED + r]);
    assert_true(rejected[REJECT_TOO_LONG] > 0 && rejected[REJECT_FUTURE] > 0 && rejected[REJECT_EMPTY] > 0);
    pipeline_free(p);
}

/* What the file at the path holds. */
static void check_text(const char *path, const char *want)
{
    struct text got = {0};
    scratch_read(path, &got);
    text_putc(&got, '\0');
    assert_string_equal(got.ptr, want);
    text_fini(&got);
}

/* logrotate renames a file, or deletes it, and sends no signal. */
static void test_rotated_rejects_file_is_opened_again(void **state)
{
    struct stage *s = *state;
    struct err e = {0};
    struct rejects_file rejects;
    char path[128], rotated[128], elsewhere[128];
    snprintf(path, sizeof path, "%s", scratch_path(&s->scratch, "rejects"));
    snprintf(rotated, sizeof rotated, "%s", scratch_path(&s->scratch, "rejects.1"));
    snprintf(elsewhere, sizeof elsewhere, "%s", scratch_path(&s->scratch, "elsewhere"));
    assert_true(rejects_file_open(&rejects, path, &e));
    assert_true(rejects_file_append(&rejects, slice_text("a\n"), &e));
    assert_int_equal(rename(path, rotated), 0);
    assert_true(rejects_file_append(&rejects, slice_text("b\n"), &e));
    check_text(rotated, "a\n");
    check_text(path, "b\n");
    scratch_write(elsewhere, slice_text("c\n")); /* as logrotate's `create` does, and an editor */
    assert_int_equal(rename(elsewhere, path), 0);
    assert_true(rejects_file_append(&rejects, slice_text("d\n"), &e));
    check_text(path, "c\nd\n");
    /* No file can be made there: nothing is lost, and a later call goes on. */
    assert_int_equal(unlink(path), 0);
    assert_int_equal(symlink("missing/file", path), 0);
    for (int i = 0; i < 2; i++) {
        e = (struct err){0};
        assert_false(rejects_file_append(&rejects, slice_text("e\n"), &e));
        assert_true(e.retryable);
    }
    assert_int_equal(unlink(path), 0);
    assert_true(rejects_file_append(&rejects, slice_text("e\n"), &e));
    check_text(path, "e\n");
    rejects_file_close(&rejects);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_any_threads_and_limits_count_every_line_once),
        TEST(test_failing_store_is_tried_again),
        TEST(test_slow_store_stops_the_reading),
        TEST(test_batches_grow_while_the_store_is_busy),
        TEST(test_run_ended_by_the_store_is_completed_by_the_next),
        TEST(test_pipeline_whose_store_failed_takes_no_more),
        TEST(test_store_that_fails_at_the_end_is_asked_again),
        TEST(test_store_that_fails_at_the_end_is_not_asked_for_ever),
        TEST(test_stopped_run_is_completed_by_the_next),
        TEST(test_rejects_file_names_every_rejected_line),
        TEST(test_rotated_rejects_file_is_opened_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
