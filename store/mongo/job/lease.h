/* mongo/job/lease.h - leases: which process does a job that one process is enough for. Each job and report
 * has a document of `jobs`.
 *
 *   jobs   { _id: "top/pages", fence: 17, owner: "host 4711", until: ISODate(…), last_run: ISODate(…) }
 *
 * Lease : held until `until`, by everybody's clock. The holder renews it while it works, so another follows a
 *         holder that was killed. Correctness never depends on the time: each new holder raises `fence`, by
 *         which a slow holder's late writes are refused, or a job compares the document that it replaces.
 * Owner : ids are borrowed for the call.
 */
#pragma once

#include "store/mongo/handle/handle.h"

/* Takes the lease, or renews our own, which has this `fence` (0: none yet). *taken false: another holds it,
 * or there is no document. `after` is the document after the change; the caller destroys it. */
bool mongo_lease_take(struct mongo_store *m, const char *id, int64_t fence, bool *taken, bson_t *after,
                      struct err *e) MUST_CHECK;
/* Renews the lease; *held false: another holds it now. */
bool mongo_lease_keep(struct mongo_store *m, const char *id, int64_t fence, bool *held,
                      struct err *e) MUST_CHECK;
bool mongo_lease_give(struct mongo_store *m, const char *id, int64_t fence, struct err *e) MUST_CHECK;
/* Sets members of the job's document, if this fence is still the current one. */
bool mongo_lease_set(struct mongo_store *m, const char *id, int64_t fence, const bson_t *set, bool *held,
                     struct err *e) MUST_CHECK;

/* Waits until every batch that the ledger shows open now is applied or recovered. It asks `goes_on` in
 * between: false ends the wait with false, and *e is as goes_on() left it. */
typedef bool mongo_goes_on_fn(void *context);
bool mongo_wait_for_open(struct mongo_store *m, mongo_goes_on_fn *goes_on, void *context,
                         struct err *e) MUST_CHECK;
