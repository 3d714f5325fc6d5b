#include "daemon/count/jobs.h"

#include "base/log.h"
#include "base/mem.h"
#include "store/backend/backend.h"
#include "store/jobs.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* The periods of one report that a pass has ranked so far: they are logged together. */
struct ranked_periods {
    const char *report; /* NULL: none yet. It belongs to the store */
    int64_t from_ms, to_ms;
    size_t count;
};

struct jobs {
    struct jobs_options options;
    struct store *store; /* NULL: not open yet, or closed after a failure */
    pthread_t thread;
    atomic_bool stop;
    pthread_mutex_t lock; /* guards `wake`: without it the thread could sleep through a stop */
    pthread_cond_t wake;
    struct ranked_periods ranked;
    uint64_t waiting; /* periods that wait for jobs, while they are added up */
};

static void tell_period(void *context, const char *report, enum span span, int64_t start_ms,
                        uint64_t documents)
{
    struct jobs *j = context;
    char iso[CIVIL_ISO_BYTES];
    log_info("rolled_up", "report=%s %s=%.*s documents=%" PRIu64, report, span_name(span),
             span == SPAN_MONTH ? 7 : 10, civil_iso(start_ms, iso), documents);
    status_note_rollup(j->options.status, documents);
}

static void log_ranked(const struct ranked_periods *p)
{
    char from[CIVIL_ISO_BYTES], to[CIVIL_ISO_BYTES];
    if (p->report != NULL)
        log_info("ranked", "report=%s periods=%zu from=%s to=%s", p->report, p->count,
                 civil_iso(p->from_ms, from), civil_iso(p->to_ms, to));
}

/* A pass ranks one report after the other. */
static void note_ranking(void *context, const char *report, enum span span, int64_t start_ms, uint64_t series)
{
    struct jobs *j = context;
    struct ranked_periods *p = &j->ranked;
    int64_t end_ms = span_next(span, start_ms);
    (void)series;
    status_note_ranking(j->options.status);
    if (p->report == NULL || strcmp(p->report, report) != 0) {
        log_ranked(p);
        *p = (struct ranked_periods){report, start_ms, end_ms, 0};
    }
    p->from_ms = p->from_ms < start_ms ? p->from_ms : start_ms;
    p->to_ms = p->to_ms > end_ms ? p->to_ms : end_ms;
    p->count++;
}

static bool is_stopped(void *context)
{
    const struct jobs *j = context;
    return atomic_load(&j->stop) || atomic_load(j->options.stop);
}

static bool rank_periods(struct jobs *j, struct store_roll *what, struct err *e)
{
    what->done = note_ranking;
    what->until_ms = clock_mono_ms(j->options.clock) + JOBS_TURN_MS;
    j->ranked.report = NULL;
    bool good = store_rank(j->store, what, e);
    log_ranked(&j->ranked);
    return good;
}

/* Add up what waits, of jobs that this daemon runs. */
static void add_waiting(void *context, const struct store_job *job)
{
    struct jobs *j = context;
    if (j->options.weeks || strcmp(job->name, "weeks") != 0)
        j->waiting += job->is_of_writer ? 0 : job->waiting;
}

static bool note_waiting(struct jobs *j, struct err *e)
{
    j->waiting = 0;
    if (!store_jobs(j->store, add_waiting, j, e))
        return false;
    status_note_jobs(j->options.status, j->waiting);
    return true;
}

/* Roll up, rank and count what waits, each even if another failed. *failed: the first job that failed. */
static bool work(struct jobs *j, const char **failed, struct err *e)
{
    struct store_roll what = {.quiet_ms = j->options.rollup_after_ms,
                              .from_ms = -1,
                              .weeks = j->options.weeks,
                              .week_start = j->options.week_start,
                              .is_stopped = is_stopped,
                              .done = tell_period,
                              .context = j};
    struct err other;
    *failed = "rollup";
    what.until_ms = clock_mono_ms(j->options.clock) + JOBS_TURN_MS;
    if (j->store == NULL)
        j->store = store_open_with(j->options.store_url, STORE_WORK,
                                   &(struct store_options){.clock = j->options.clock}, NULL, 0, e);
    if (j->store == NULL)
        return false;
    bool rolled = store_roll(j->store, &what, e);
    bool good = rank_periods(j, &what, rolled ? e : &other);
    if (rolled)
        *failed = good ? "waiting" : "top";
    good = rolled && good;
    if (!good && e->code == EX_UNAVAILABLE)
        return false; /* do not wait for the server once more */
    return note_waiting(j, good ? e : &other) && good;
}

/* A handle that lost its server is closed: its knowledge may be old. Other failures may come from one report
 * and recur. Then the handle stays open, since it knows how long the other reports have waited. */
static void turn(struct jobs *j)
{
    char quoted[LOG_QUOTE_BYTES];
    const char *failed;
    struct err e;
    if (work(j, &failed, &e))
        return;
    if (e.code == EX_UNAVAILABLE) {
        store_close(j->store);
        j->store = NULL;
    }
    status_note_job_failure(j->options.status);
    log_limited(LOG_LEVEL_WARN, "job_failed", "job=%s error=%s next=\"trying again\"", failed,
                log_quote(e.text, quoted));
}

/* Rest so long that a trickle of late events does not keep the server busy. */
static void rest(struct jobs *j, int64_t took_ms)
{
    int64_t ms = j->options.rollup_after_ms < JOBS_EVERY_MS ? j->options.rollup_after_ms : JOBS_EVERY_MS;
    ms = ms > (JOBS_SHARE - 1) * took_ms ? ms : (JOBS_SHARE - 1) * took_ms;
    ms = ms < JOBS_REST_MS ? ms : JOBS_REST_MS;
    int64_t until_ms = clock_mono_ms(j->options.clock) + ms;
    pthread_mutex_lock(&j->lock);
    while (!atomic_load(&j->stop) && clock_wait(j->options.clock, &j->wake, &j->lock, until_ms)) {
    }
    pthread_mutex_unlock(&j->lock);
}

static void *run(void *context)
{
    struct jobs *j = context;
    while (!is_stopped(j)) {
        int64_t begun_ms = clock_mono_ms(j->options.clock);
        turn(j);
        rest(j, clock_mono_ms(j->options.clock) - begun_ms);
    }
    return NULL;
}

static void free_jobs(struct jobs *j)
{
    store_close(j->store);
    pthread_cond_destroy(&j->wake);
    pthread_mutex_destroy(&j->lock);
    free(j);
}

struct jobs *jobs_start(const struct jobs_options *options, struct err *e)
{
    struct jobs *j = xcalloc(1, sizeof *j);
    j->options = *options;
    clock_cond_init(&j->wake);
    pthread_mutex_init(&j->lock, NULL);
    int error = pthread_create(&j->thread, NULL, run, j); /* does not set errno */
    if (error == 0)
        return j;
    err_set(e, EX_OSERR, "cannot start a thread for jobs: %s; allow this user more processes or memory",
            strerror(error));
    free_jobs(j);
    return NULL;
}

void jobs_stop(struct jobs *j)
{
    if (j == NULL)
        return;
    pthread_mutex_lock(&j->lock);
    atomic_store(&j->stop, true);
    pthread_cond_signal(&j->wake);
    pthread_mutex_unlock(&j->lock);
    pthread_join(j->thread, NULL);
    free_jobs(j);
}
