/* threads.c - C11's threads over those of POSIX, for programs that run under ThreadSanitizer.
 *
 * Why : librdkafka is built upon <threads.h>, which ThreadSanitizer does not know: a thread made by the C
 *       library's own thrd_create() has no state of the sanitizer and dies at the first call that it watches.
 *       These here are found first, and call what it does watch. Only what librdkafka needs, and a join of
 *       the program's own that the sanitizer does not know either.
 */
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <threads.h>
#include <time.h>

#define JOIN_WAIT_MS 5

_Static_assert(sizeof(mtx_t) >= sizeof(pthread_mutex_t), "a mutex of POSIX must fit");
_Static_assert(sizeof(cnd_t) >= sizeof(pthread_cond_t), "a condition variable of POSIX must fit");

/* The names of the header's parameters are reserved ones. */
/* NOLINTBEGIN(readability-inconsistent-declaration-parameter-name) */

struct start {
    thrd_start_t run;
    void *context;
};

static int result_of(int error)
{
    if (error == 0)
        return thrd_success;
    return error == ETIMEDOUT ? thrd_timedout : error == ENOMEM ? thrd_nomem : thrd_error;
}

static void *thread_main(void *context)
{
    struct start start = *(struct start *)context;
    free(context);
    return (void *)(intptr_t)start.run(start.context);
}

int thrd_create(thrd_t *thread, thrd_start_t run, void *context)
{
    struct start *start = malloc(sizeof *start);
    if (start == NULL)
        return thrd_nomem;
    *start = (struct start){run, context};
    int error = pthread_create(thread, NULL, thread_main, start);
    if (error != 0)
        free(start);
    return result_of(error);
}

int thrd_join(thrd_t thread, int *result)
{
    void *returned = NULL;
    int error = pthread_join(thread, &returned);
    if (result != NULL)
        *result = (int)(intptr_t)returned;
    return result_of(error);
}

/* By a call that the sanitizer knows: else it takes the thread for one that still runs. */
int pthread_clockjoin_np(pthread_t thread, void **result, clockid_t clock, const struct timespec *until)
{
    int error;
    while ((error = pthread_tryjoin_np(thread, result)) == EBUSY) {
        struct timespec now;
        clock_gettime(clock, &now);
        if (now.tv_sec > until->tv_sec || (now.tv_sec == until->tv_sec && now.tv_nsec >= until->tv_nsec))
            return ETIMEDOUT;
        nanosleep(&(struct timespec){.tv_nsec = JOIN_WAIT_MS * 1000000L}, NULL);
    }
    return error;
}

int mtx_init(mtx_t *mutex, int type)
{
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    if (type & mtx_recursive)
        pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_RECURSIVE);
    int error = pthread_mutex_init((pthread_mutex_t *)mutex, &attributes);
    pthread_mutexattr_destroy(&attributes);
    return result_of(error);
}

void mtx_destroy(mtx_t *mutex)
{
    pthread_mutex_destroy((pthread_mutex_t *)mutex);
}

int mtx_lock(mtx_t *mutex)
{
    return result_of(pthread_mutex_lock((pthread_mutex_t *)mutex));
}

int mtx_unlock(mtx_t *mutex)
{
    return result_of(pthread_mutex_unlock((pthread_mutex_t *)mutex));
}

int cnd_init(cnd_t *condition)
{
    return result_of(pthread_cond_init((pthread_cond_t *)condition, NULL));
}

void cnd_destroy(cnd_t *condition)
{
    pthread_cond_destroy((pthread_cond_t *)condition);
}

int cnd_signal(cnd_t *condition)
{
    return result_of(pthread_cond_signal((pthread_cond_t *)condition));
}

int cnd_broadcast(cnd_t *condition)
{
    return result_of(pthread_cond_broadcast((pthread_cond_t *)condition));
}

int cnd_wait(cnd_t *condition, mtx_t *mutex)
{
    return result_of(pthread_cond_wait((pthread_cond_t *)condition, (pthread_mutex_t *)mutex));
}

int cnd_timedwait(cnd_t *restrict condition, mtx_t *restrict mutex, const struct timespec *restrict until)
{
    return result_of(pthread_cond_timedwait((pthread_cond_t *)condition, (pthread_mutex_t *)mutex, until));
}

/* NOLINTEND(readability-inconsistent-declaration-parameter-name) */
