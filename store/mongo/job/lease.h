/* mongo/job/lease.h - a job on one report, under a lease: one process does it at a time. Each job and report
 * has a document of `jobs`.
 *
 *   jobs   { _id: "top/pages", fence: 17, owner: "host 4711", until: ISODate(…), last_run: ISODate(…) }
 *
 * Lease : held until `until`, by everybody's clock. The holder renews it while it works, so another follows a
 *         holder that was killed. Correctness never depends on the time: each new holder raises `fence`, by
 *         which a slow holder's late writes are refused, or a job compares the document that it replaces.
 * Ends  : where a function returns false, either job->goes_on is false, which is no failure, or *job->e says
 *         why.
 */
#pragma once

#include "store/jobs.h"
#include "store/mongo/handle/handle.h"

struct mongo_job {
    struct mongo_store *m;
    const struct store_roll *what;
    size_t report;
    char id[MONGO_NAME_BYTES + 16]; /* `_id` of the lease */
    int64_t fence;                  /* fence of the lease; 0: not taken */
    int64_t kept_ms;                /* when the lease was renewed last, monotonic */
    bool goes_on;                   /* false: another has the lease, or the job was told to stop */
    struct err *e;
};

/* `name`: "top". */
struct mongo_job mongo_job_of(struct mongo_store *m, const struct store_roll *what, size_t report,
                              const char *name, struct err *e) MUST_CHECK;
/* Runs a job on each report, `each` times with n from 0. If it fails on one, it still runs on the others; *e
 * is the first error. */
typedef bool mongo_job_fn(struct mongo_store *m, const struct store_roll *what, size_t report, size_t n,
                          struct err *e);
bool mongo_each_job(struct store *st, const struct store_roll *what, size_t each, mongo_job_fn *fn,
                    struct err *e) MUST_CHECK;

/* Was the job told to stop, or has another the lease? */
bool mongo_job_is_stopped(struct mongo_job *job);
/* Takes the lease, or renews our own, with a new fence. If another holds it, or there is no document, it
 * tells the caller of the job, and job->goes_on is false: true all the same. `after` is the document after
 * the change; the caller destroys it. */
bool mongo_job_take(struct mongo_job *job, bson_t *after) MUST_CHECK;
/* May it go on? Renews the lease now and then. */
bool mongo_job_keep(struct mongo_job *job) MUST_CHECK;
/* Sets members of the job's document, if this fence is still the current one. Destroys `set`. */
bool mongo_job_set(struct mongo_job *job, bson_t *set) MUST_CHECK;
/* Gives the lease back, if it was taken. `good`: the result of the job, which is returned. */
bool mongo_job_give(struct mongo_job *job, bool good) MUST_CHECK;
/* Waits until every batch that ledger and seats show open now is applied or recovered; `longer`: and until
 * longer documents have every batch that they lack now. */
bool mongo_job_wait_for_open(struct mongo_job *job, bool longer) MUST_CHECK;
