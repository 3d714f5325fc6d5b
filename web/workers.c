#include "web/workers.h"

#include "base/mem.h"

#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

struct workers {
    pthread_mutex_t lock;
    pthread_cond_t changed; /* a job was added, or `ending` was set */
    struct job *first, **last;
    struct job *running[WORKERS_COUNT]; /* NULL: the thread waits */
    pthread_t threads[WORKERS_COUNT];
    size_t thread_count, begun_count; /* threads started; threads that have their place in `running` */
    bool ending;
};

/* Call under the lock, with a job that waits. */
static struct job *take_first(struct workers *w)
{
    struct job *job = w->first;
    w->first = job->next;
    if (w->first == NULL)
        w->last = &w->first;
    return job;
}

static void *work(void *context)
{
    struct workers *w = context;
    (void)setpriority(PRIO_PROCESS, (id_t)gettid(), WORKERS_NICE); /* of this thread; else it is as it was */
    pthread_mutex_lock(&w->lock);
    size_t place = w->begun_count++;
    while (w->first != NULL || !w->ending) {
        if (w->first == NULL) {
            pthread_cond_wait(&w->changed, &w->lock);
            continue;
        }
        struct job *job = w->running[place] = take_first(w);
        pthread_mutex_unlock(&w->lock);
        job->run(job);
        pthread_mutex_lock(&w->lock);
        w->running[place] = NULL;
        pthread_mutex_unlock(&w->lock);
        job->done(job);
        pthread_mutex_lock(&w->lock);
    }
    pthread_mutex_unlock(&w->lock);
    return NULL;
}

struct workers *workers_start(void)
{
    struct workers *w = xcalloc(1, sizeof *w);
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->changed, NULL);
    w->last = &w->first;
    while (w->thread_count < WORKERS_COUNT &&
           pthread_create(&w->threads[w->thread_count], NULL, work, w) == 0)
        w->thread_count++;
    if (w->thread_count == WORKERS_COUNT)
        return w;
    workers_end(w);
    workers_free(w);
    return NULL;
}

bool workers_add(struct workers *w, struct job *job)
{
    pthread_mutex_lock(&w->lock);
    bool takes = !w->ending;
    if (takes) {
        job->next = NULL;
        *w->last = job;
        w->last = &job->next;
        pthread_cond_signal(&w->changed);
    }
    pthread_mutex_unlock(&w->lock);
    return takes;
}

void workers_end(struct workers *w)
{
    pthread_mutex_lock(&w->lock);
    w->ending = true;
    for (size_t i = 0; i < WORKERS_COUNT; i++) {
        if (w->running[i] != NULL)
            deadline_cancel(&w->running[i]->deadline);
    }
    for (struct job *job = w->first; job != NULL; job = job->next)
        deadline_cancel(&job->deadline);
    pthread_cond_broadcast(&w->changed);
    pthread_mutex_unlock(&w->lock);
    while (w->thread_count > 0)
        pthread_join(w->threads[--w->thread_count], NULL);
}

void workers_free(struct workers *w)
{
    if (w == NULL)
        return;
    ASSERT(w->first == NULL && w->thread_count == 0);
    pthread_cond_destroy(&w->changed);
    pthread_mutex_destroy(&w->lock);
    free(w);
}
