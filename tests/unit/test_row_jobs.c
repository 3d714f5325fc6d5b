/* Rows that several threads merge come back in order, as body_merge() makes them alone. */
#include "aggregate/report.h"
#include "base/check.h"
#include "base/mem.h"
#include "store/sqlite/row_jobs.h"
#include "tests/support/dice.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define ROWS  200
#define ITEMS 300 /* of a row, at most */

static struct report report;
static struct arena memory;
static int64_t values[ITEMS][REPORT_COLUMNS_MAX];
static union sketch sketches[ITEMS][2];

static int set_up(void **state)
{
    static const char *const measures[][2] = {
        {"hits", "count"}, {"latency", "histogram(value)"}, {"visitors", "distinct(host)"}};
    struct err e;
    (void)state;
    arena_init(&memory, 65536);
    assert_true(report_init(&report, slice_text("rows"), 1, &e));
    for (size_t m = 0; m < COUNT_OF(measures); m++)
        assert_true(report_add_measure(&report, slice_text(measures[m][0]), slice_text(measures[m][1]), &e));
    assert_true(report_finish(&report, &e));
    for (size_t i = 0; i < ITEMS; i++) {
        for (size_t c = 0; c < report.column_count; c++)
            values[i][c] = (int64_t)(i * 7 + c + 1);
        for (uint64_t n = 0; n < 1 + i * i % 90; n++) {
            histogram_add(&sketches[i][0].histogram, &memory, (int32_t)(n * i % 150), 1);
            distinct_add(&sketches[i][1].distinct, &memory, (n * 1000 + i) * 0x9E3779B97F4A7C15u);
        }
    }
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    report_fini(&report);
    arena_fini(&memory);
    return 0;
}

/* Fill in random items, sorted, each place once. */
static size_t roll_items(struct dice *d, struct body_item *items)
{
    size_t count = 0;
    const int64_t gap = 1 + dice_roll(d, 60);
    for (int64_t place = dice_roll(d, gap); place < (int64_t)BODY_SERIES * BODY_SLOTS && count < ITEMS;
         place += 1 + dice_roll(d, gap)) {
        const size_t which = (size_t)dice_roll(d, ITEMS);
        items[count++] = (struct body_item){.series = (uint32_t)(place / BODY_SLOTS),
                                            .slot = (uint32_t)(place % BODY_SLOTS),
                                            .value = values[which],
                                            .sketches = sketches[which]};
    }
    return count;
}

struct rows {
    struct row_jobs jobs;
    struct body_buffer expected[ROWS];
    bool is_damaged[ROWS];
    int64_t next; /* the row that is expected next */
};

static void check_oldest(struct rows *rows)
{
    const struct row_job *job = row_jobs_oldest(&rows->jobs);
    assert_non_null(job);
    const struct body_buffer *expected = &rows->expected[job->at];
    assert_int_equal(job->at, rows->next++);
    assert_int_equal(job->is_damaged, rows->is_damaged[job->at]);
    if (!job->is_damaged) {
        assert_int_equal(job->body.len, expected->len);
        assert_memory_equal(job->body.data, expected->data, expected->len);
    }
    row_jobs_release(&rows->jobs);
}

/* Submit a row whose old body is that of an earlier one, or is damaged; and merge it alone. */
static void submit_row(struct dice *d, struct rows *rows, int64_t at)
{
    struct row_job *job = row_jobs_free(&rows->jobs);
    struct slice old = {NULL, 0};
    if (at > 0 && dice_roll(d, 4) > 0) {
        const struct body_buffer *before = &rows->expected[dice_roll(d, at)];
        old = slice_of((const char *)before->data, before->len);
    }
    if (old.len > 0 && dice_roll(d, 16) == 0)
        old.len--;
    job->at = at;
    job->items = xgrow(job->items, &job->capacity, ITEMS, sizeof *job->items);
    job->item_count = roll_items(d, job->items);
    text_clear(&job->old);
    text_add(&job->old, old.ptr, old.len);
    rows->expected[at].packs_tight = true;
    rows->is_damaged[at] = !body_merge(old, job->items, job->item_count, &report, &rows->expected[at]);
    if (rows->is_damaged[at])
        rows->expected[at].len = 0;
    row_jobs_submit(&rows->jobs);
}

static void merge_rows(size_t items, int64_t count, bool drops_last)
{
    struct dice d = dice_new("row_jobs");
    struct rows *rows = calloc(1, sizeof *rows);
    for (int round = 0; round < 2; round++) { /* buffers are used again */
        rows->next = 0;
        row_jobs_start(&rows->jobs, &report, true, items);
        for (int64_t at = 0; at < count; at++) {
            if (row_jobs_free(&rows->jobs) == NULL)
                check_oldest(rows);
            submit_row(&d, rows, at);
        }
        while (!drops_last && rows->next < count)
            check_oldest(rows);
        if (!drops_last)
            assert_null(row_jobs_oldest(&rows->jobs));
        row_jobs_stop(&rows->jobs);
    }
    row_jobs_fini(&rows->jobs);
    for (size_t i = 0; i < ROWS; i++)
        body_buffer_fini(&rows->expected[i]);
    free(rows);
}

static void test_helped(void **state)
{
    (void)state;
    merge_rows(ROW_HELPED_ITEMS, ROWS, false);
}

static void test_alone(void **state)
{
    (void)state;
    merge_rows(ROW_HELPED_ITEMS - 1, ROWS / 4, false);
}

static void test_rows_left_after_an_error_are_dropped(void **state)
{
    (void)state;
    merge_rows(ROW_HELPED_ITEMS, ROW_JOBS + ROW_JOBS / 2, true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_helped), cmocka_unit_test(test_alone),
                                       cmocka_unit_test(test_rows_left_after_an_error_are_dropped)};
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
