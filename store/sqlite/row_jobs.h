/* row_jobs.h - the new bodies of rows, merged by several threads at once. rows.c reads old bodies and writes
 * new ones, one row after the other in the order of the file; helpers merge the rows between.
 *
 *   row_jobs_free() → old body, items → row_jobs_submit() ─┐
 *                                                          any thread: body_merge()
 *   row_jobs_release() ← new body ← row_jobs_oldest() ─────┘
 *
 * Why    : merging takes 59 % of the writer's instructions in an import with histograms and distinct counts.
 * Threads: only one thread calls these functions. While it waits for the oldest row, it merges others. The
 *          helpers live between row_jobs_start() and row_jobs_stop(), and touch no SQLite. A batch of few
 *          items has none, and if no thread can be made, the caller merges all rows.
 * Order  : rows come back in the order in which they were submitted, so the file does not depend on threads.
 * Memory : ROW_JOBS rows, old and new. Buffers stay for the next batch, unless they are large.
 */
#pragma once

#include "base/text.h"
#include "store/sqlite/body.h"

#include <pthread.h>

#define ROW_JOBS         12
#define ROW_HELPERS_MAX  3
/* Items of a batch from which on helpers are worth their start: some milliseconds of merging. */
#define ROW_HELPED_ITEMS 8192

struct row_job {
    int64_t at;                  /* rowid */
    struct text old;             /* the row's body in the file; empty: there is no row */
    struct body_item *items;     /* to add, sorted */
    size_t item_count, capacity; /* of `items` */
    struct body_buffer body;     /* the new body, once it is merged */
    bool is_merged, is_damaged;  /* is_damaged: the old body does not decode */
};

/* Zeros: unused. */
struct row_jobs {
    struct row_job jobs[ROW_JOBS];
    const struct report *report;
    uint64_t submitted, taken, released; /* numbers of the next job to be so; job N is jobs[N % ROW_JOBS] */
    pthread_mutex_t lock;                /* guards submitted, taken, is_merged and `ended` */
    pthread_cond_t is_submitted;         /* for helpers: there is a job, or they must return */
    pthread_cond_t is_merged;            /* for the caller: a helper has merged a job */
    pthread_t helpers[ROW_HELPERS_MAX];
    size_t helper_count;
    bool ended; /* helpers must return */
};

/* Begin to merge rows of a report, of a batch with so many items. `packs_tight` is body_buffer's. */
void row_jobs_start(struct row_jobs *j, const struct report *r, bool packs_tight, size_t items);
/* A job to fill in: its `at`, `old` and items. NULL: the caller must release the oldest first. */
struct row_job *row_jobs_free(struct row_jobs *j);
/* Have the job of row_jobs_free() merged. */
void row_jobs_submit(struct row_jobs *j);
/* The oldest job that was submitted and not released, once it is merged. NULL: there is none. */
struct row_job *row_jobs_oldest(struct row_jobs *j);
/* Release the job of row_jobs_oldest(). */
void row_jobs_release(struct row_jobs *j);
/* End the helpers. After an error, jobs may be left: they are dropped. */
void row_jobs_stop(struct row_jobs *j);
void row_jobs_fini(struct row_jobs *j);

/* About the memory of full buffers, in bytes. Rows of very many texts may take more while they are merged. */
size_t row_jobs_bytes_max(const struct report *r);
