/* jobs.h - what the daemon does beside counting, by a thread and a handle of its own: periods that are over
 * are rolled up (store_roll()), and ranked (store_rank()). In a store without jobs there is no thread.
 *
 * Pace   : it looks every JOBS_EVERY_MS, or rollup_after_ms where that is less, and works for no more than
 *          one part of JOBS_SHARE of the time: it rests after each turn, though not longer than JOBS_REST_MS.
 * Errors : told at most now and then, counted in the status, tried again: counting does not wait for it.
 * Threads: jobs_start() and jobs_stop() by one.
 */
#pragma once

#include "stats/status.h"

#include <stdatomic.h>

#define JOBS_EVERY_MS 10000
#define JOBS_SHARE    20
#define JOBS_TURN_MS  250 /* then a job begins nothing more, but of reports that it did not come to */
#define JOBS_REST_MS  (5 * 60 * 1000)

struct jobs;

struct jobs_options {
    const char *store_url; /* borrowed until it is stopped */
    int64_t rollup_after_ms;
    bool weeks; /* likewise those, which begin on this day */
    enum weekday week_start;
    struct status *status;   /* borrowed likewise */
    const atomic_bool *stop; /* likewise: set, nothing more is begun */
};

/* NULL: no thread could be had. */
struct jobs *jobs_start(const struct jobs_options *options, struct err *e) MUST_CHECK;
/* It ends within a call of the store; what it had in hand waits for the next. NULL: none. */
void jobs_stop(struct jobs *j);
