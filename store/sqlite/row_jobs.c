#include "store/sqlite/row_jobs.h"

#include "base/check.h"
#include "base/varint.h"

#include <stdlib.h>
#include <unistd.h>

/* A larger buffer is not kept for the next batch. */
#define KEPT_BYTES  ((size_t)1 << 20)
#define ROW_BUFFERS 3 /* of a job: old, body, and the slots of one series */

size_t row_jobs_bytes_max(const struct report *r)
{
    const size_t numbers = BODY_SERIES * BODY_SLOTS * (1 + r->column_count) * VARINT_BYTES_MAX;
    return ROW_JOBS * ROW_BUFFERS * (r->sketch_count > 0 || numbers > KEPT_BYTES ? KEPT_BYTES : numbers);
}

/* Merge the next job that no thread has taken. Pre: there is one, and the lock is held. It is released
 * meanwhile. */
static void merge_next(struct row_jobs *j)
{
    struct row_job *job = &j->jobs[j->taken++ % ROW_JOBS];
    pthread_mutex_unlock(&j->lock);
    job->is_damaged = !body_merge(text_slice(&job->old), job->items, job->item_count, j->report, &job->body);
    pthread_mutex_lock(&j->lock);
    job->is_merged = true;
}

static void *help(void *context)
{
    struct row_jobs *j = context;
    pthread_mutex_lock(&j->lock);
    while (!j->ended) {
        if (j->taken == j->submitted) {
            pthread_cond_wait(&j->is_submitted, &j->lock);
            continue;
        }
        merge_next(j);
        pthread_cond_signal(&j->is_merged);
    }
    pthread_mutex_unlock(&j->lock);
    return NULL;
}

void row_jobs_start(struct row_jobs *j, const struct report *r, bool packs_tight, size_t items)
{
    const long processors = items < ROW_HELPED_ITEMS ? 1 : sysconf(_SC_NPROCESSORS_ONLN);
    const size_t helpers = processors <= 1                 ? 0
                           : processors <= ROW_HELPERS_MAX ? (size_t)processors - 1
                                                           : ROW_HELPERS_MAX;
    ASSERT(j->helper_count == 0);
    j->report = r;
    j->submitted = j->taken = j->released = 0;
    j->ended = false;
    for (size_t i = 0; i < ROW_JOBS; i++)
        j->jobs[i].body.packs_tight = packs_tight;
    pthread_mutex_init(&j->lock, NULL);
    pthread_cond_init(&j->is_submitted, NULL);
    pthread_cond_init(&j->is_merged, NULL);
    while (j->helper_count < helpers && pthread_create(&j->helpers[j->helper_count], NULL, help, j) == 0)
        pthread_setname_np(j->helpers[j->helper_count++], "tallyd-rows");
}

struct row_job *row_jobs_free(struct row_jobs *j)
{
    return j->submitted - j->released < ROW_JOBS ? &j->jobs[j->submitted % ROW_JOBS] : NULL;
}

void row_jobs_submit(struct row_jobs *j)
{
    pthread_mutex_lock(&j->lock);
    j->jobs[j->submitted++ % ROW_JOBS].is_merged = false;
    pthread_cond_signal(&j->is_submitted);
    pthread_mutex_unlock(&j->lock);
}

struct row_job *row_jobs_oldest(struct row_jobs *j)
{
    struct row_job *job = &j->jobs[j->released % ROW_JOBS];
    if (j->released == j->submitted)
        return NULL;
    pthread_mutex_lock(&j->lock);
    while (!job->is_merged) {
        if (j->taken < j->submitted)
            merge_next(j);
        else
            pthread_cond_wait(&j->is_merged, &j->lock);
    }
    pthread_mutex_unlock(&j->lock);
    return job;
}

void row_jobs_release(struct row_jobs *j)
{
    j->released++;
}

static void drop_large_buffers(struct row_job *job)
{
    if (job->old.capacity > KEPT_BYTES)
        text_fini(&job->old);
    if (job->body.capacity > KEPT_BYTES || job->body.slots_capacity > KEPT_BYTES)
        body_buffer_fini(&job->body);
}

void row_jobs_stop(struct row_jobs *j)
{
    pthread_mutex_lock(&j->lock);
    j->ended = true;
    pthread_cond_broadcast(&j->is_submitted);
    pthread_mutex_unlock(&j->lock);
    for (size_t i = 0; i < j->helper_count; i++)
        pthread_join(j->helpers[i], NULL);
    j->helper_count = 0;
    pthread_cond_destroy(&j->is_submitted);
    pthread_cond_destroy(&j->is_merged);
    pthread_mutex_destroy(&j->lock);
    for (size_t i = 0; i < ROW_JOBS; i++)
        drop_large_buffers(&j->jobs[i]);
}

void row_jobs_fini(struct row_jobs *j)
{
    for (size_t i = 0; i < ROW_JOBS; i++) {
        text_fini(&j->jobs[i].old);
        free(j->jobs[i].items);
        body_buffer_fini(&j->jobs[i].body);
    }
}
