#include "store/mongo/send/crew.h"

#include <pthread.h>

struct working {
    const struct mongo_crew *crew;
    pthread_mutex_t lock; /* guards the members below, and what `take` changes */
    bool has_failed;
    struct err error; /* the first error */
};

struct worker {
    struct working *working;
    size_t connection;
    struct mongo_client *client;
    bool has_piece; /* a piece that is taken, and not begun yet */
    pthread_t thread;
};

static void fail(struct working *w, const struct err *e)
{
    if (!w->has_failed)
        w->error = *e;
    w->has_failed = true;
}

/* Takes a piece, unless the worker has one already. False: there is none, or the work has failed. */
static bool take_piece(struct worker *worker)
{
    struct working *w = worker->working;
    struct err e;
    pthread_mutex_lock(&w->lock);
    if (!w->has_failed && !worker->has_piece &&
        !w->crew->take(w->crew->context, worker->connection, &worker->has_piece, &e))
        fail(w, &e);
    bool good = !w->has_failed && worker->has_piece;
    pthread_mutex_unlock(&w->lock);
    return good;
}

static bool do_piece(struct worker *worker)
{
    struct working *w = worker->working;
    struct err e;
    if (!take_piece(worker))
        return false;
    worker->has_piece = false;
    if (w->crew->work(w->crew->context, worker->connection, worker->client, &e))
        return true;
    pthread_mutex_lock(&w->lock);
    fail(w, &e);
    pthread_mutex_unlock(&w->lock);
    return false;
}

static void *run(void *worker)
{
    while (do_piece(worker)) {
    }
    return NULL;
}

/* Makes a connection for each piece only: little work needs one. */
static bool prepare_workers(struct mongo_store *m, struct working *w, struct worker *workers, size_t most,
                            size_t *count, struct err *e)
{
    for (*count = 0; *count < most; ++*count) {
        struct worker *worker = &workers[*count];
        worker->working = w;
        worker->connection = *count;
        if (!take_piece(worker))
            break;
        if (!mongo_connection(m, *count, &worker->client, e))
            return false;
    }
    return true;
}

/* Does the caller's first piece, then those whose threads could not be started, then what is left. */
static void work_too(struct worker *workers, size_t started, size_t count)
{
    do_piece(&workers[0]);
    for (size_t i = started; i < count; i++)
        do_piece(&workers[i]);
    run(&workers[0]);
}

bool mongo_crew_work(struct mongo_store *m, const struct mongo_crew *crew, size_t most, struct err *e)
{
    struct working w = {.crew = crew, .lock = PTHREAD_MUTEX_INITIALIZER};
    struct worker workers[MONGO_CONNECTIONS_MAX] = {0};
    size_t count, started = 1;
    if (!prepare_workers(m, &w, workers, most, &count, e))
        return false;
    while (started < count && pthread_create(&workers[started].thread, NULL, run, &workers[started]) == 0)
        pthread_setname_np(workers[started++].thread, "tallyd-sender");
    if (count > 0)
        work_too(workers, started, count);
    for (size_t i = 1; i < started; i++)
        pthread_join(workers[i].thread, NULL);
    if (w.has_failed)
        *e = w.error;
    return !w.has_failed;
}
