/* jobs.h - rolls up and ranks periods that are over, on a STORE_WORK handle (store.h). The daemon's jobs and
 * `tallyd job` call it, if the store has a table of jobs. Every function with a struct err may fail.
 */
#pragma once

#include "store/store.h"

/* A job: roll periods that are over up into documents of longer periods, or rank them. */
struct store_roll {
    bool now;               /* whether to include periods that are not over, and to ignore `quiet_ms` */
    int64_t quiet_ms;       /* time for which a period must have been seen unwritten; 0: none */
    bool dry;               /* whether to report the work without doing it */
    int64_t from_ms, to_ms; /* range to do again, whether or not it was done; from_ms < 0: none */
    bool weeks;             /* whether to make documents of weeks, too, as in struct store_options */
    enum weekday week_start;
    /* Deadline, monotonic: after it no report starts another period, except its first. 0: none. */
    int64_t until_ms;
    /* True: the job ends early, without an error. NULL: never. */
    bool (*is_stopped)(void *context);
    /* Another process holds the lease on a report, so this call leaves the report out. NULL: not called. */
    void (*held)(void *context, const char *report, const char *owner);
    /* A period was done, or would be, with so many documents. SPAN_MONTH or SPAN_WEEK; for rankings any. */
    void (*done)(void *context, const char *report, enum span span, int64_t start_ms, uint64_t documents);
    void *context;
};

/* State of a job on one report, or of what a writer rolls up after its batches. Texts are borrowed. */
struct store_job {
    const char *name, *report;
    bool is_of_writer;   /* `report` names a writer */
    uint64_t waiting;    /* number of periods to do */
    int64_t last_run_ms; /* time of the last run; 0: never */
    const char *owner;   /* holder of the lease; "": nobody */
};
typedef void job_fn(void *context, const struct store_job *job);

/* The jobs of a kind of store. */
struct store_jobs_ops {
    bool (*roll)(struct store *st, const struct store_roll *what, struct err *e);
    bool (*rank)(struct store *st, const struct store_roll *what, struct err *e);
    bool (*list)(struct store *st, job_fn *fn, void *context, struct err *e);
};

/* Roll up, on a STORE_WORK handle. Reports whose lease another process holds are left out. */
bool store_roll(struct store *st, const struct store_roll *what, struct err *e) MUST_CHECK;
bool store_roll_has_time(const struct store *st, const struct store_roll *what);
/* Rank periods that are over, for store_top(). `done` receives the number of series. */
bool store_rank(struct store *st, const struct store_roll *what, struct err *e) MUST_CHECK;
/* Tell the state of each job on each report. */
bool store_jobs(struct store *st, job_fn *fn, void *context, struct err *e) MUST_CHECK;
