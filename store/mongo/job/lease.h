/* mongo/job/lease.h - who does a job that one is enough for: a document of `jobs` each.
 *
 *   jobs   { _id: "top/pages", fence: 17, owner: "host 4711", until: ISODate(…), last_run: ISODate(…) }
 *
 * Held  : until `until` by the clocks of all, which is renewed while the work goes on; so who was killed is
 *         followed by another. What a slow one may still do is decided by `fence`, which each taking raises,
 *         or by what it compares: never by the time.
 * Owner : ids are borrowed for the call.
 */
#pragma once

#include "store/mongo/handle/handle.h"

/* *taken false: another has it, and not we, by `fence` (0: not yet), or there is no document. `after` is the
 * document as it is then; the caller destroys it. */
bool mongo_lease_take(struct mongo_store *m, const char *id, int64_t fence, bool *taken, bson_t *after,
                      struct err *e) MUST_CHECK;
/* While it goes on; *held false: another has it now. */
bool mongo_lease_keep(struct mongo_store *m, const char *id, int64_t fence, bool *held,
                      struct err *e) MUST_CHECK;
bool mongo_lease_give(struct mongo_store *m, const char *id, int64_t fence, struct err *e) MUST_CHECK;
/* Change the document of whoever has it by this fence. */
bool mongo_lease_set(struct mongo_store *m, const char *id, int64_t fence, const bson_t *set, bool *held,
                     struct err *e) MUST_CHECK;

/* Every batch that the ledger shows open now is applied, or recovered, when it returns true. `goes_on` is
 * asked in between: false ends it, with false, and *e is what that left there. */
typedef bool mongo_goes_on_fn(void *context);
bool mongo_wait_for_open(struct mongo_store *m, mongo_goes_on_fn *goes_on, void *context,
                         struct err *e) MUST_CHECK;
