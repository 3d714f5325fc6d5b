/* jobs.h - the daemon's background jobs: they roll up periods that are over (store_roll()), and rank their
 * series (store_rank()). They run in a thread of their own, by a store handle of their own. `run` starts them
 * only if the store has jobs.
 *
 * Pace   : the thread looks for work every JOBS_EVERY_MS, or every rollup_after_ms if that is shorter. It
 *          rests after each turn, so that jobs take at most 1/JOBS_SHARE of the time. No rest is longer than
 *          JOBS_REST_MS.
 * Errors : logged at a limited rate, counted in the status, and retried. Counting does not wait for jobs.
 * Threads: one thread calls jobs_start() and jobs_stop().
 */
#pragma once

#include "base/clock.h"
#include "stats/status.h"

#include <stdatomic.h>

#define JOBS_EVERY_MS 10000
#define JOBS_SHARE    20
#define JOBS_TURN_MS  250 /* after it no report starts another period, except its first */
#define JOBS_REST_MS  (5 * 60 * 1000)

struct jobs;

struct jobs_options {
    const char *store_url; /* borrowed until jobs_stop() */
    const struct clock *clock;
    int64_t rollup_after_ms;
    bool weeks; /* roll up weeks, too; they begin on week_start */
    enum weekday week_start;
    struct status *status;   /* borrowed */
    const atomic_bool *stop; /* borrowed; set: start no more work */
};

/* Returns NULL if no thread could be started. */
struct jobs *jobs_start(const struct jobs_options *options, struct err *e) MUST_CHECK;
/* Ends within one call of the store; unfinished work waits for the next start. `j` may be NULL. */
void jobs_stop(struct jobs *j);
