/* mongo/job/ttl.h - documents that the server itself ends, by a TTL index, where store.ttl says so; argued in
 * docs/LEDGER.md, "Expiry".
 *
 *   reports  { _id: "pages", …, ttl: { minute: 10800000, hour: 172800000, since: ISODate(…) } }
 *
 * Index  : tallyd_ttl, {metadata.date: -1}, of each kind of documents whose longest slots are not kept for
 *          ever. Another one of this name is replaced.
 * Ended  : a document, when all that is read from it has been before the mark for MONGO_TTL_MARGIN_MS. What
 *          the server has left MONGO_TTL_GRACE_MS later, tallyd deletes.
 * Readers: marks move while a tallyd writes; documents are ended all the time. So `ttl` says from which age
 *          on slots may be gone (ms), and who reads takes the mark to be there at least, by its own clock.
 *          Clocks of the server and of readers may differ by the margin.
 * Writers: go by marks alone: what they write before the mark of a reader, nobody reads.
 * Change : `ttl` is never longer than an index in force allows. It becomes shorter before an index is
 *          changed, and longer (or goes) when that is MONGO_TTL_SETTLE_MS ago, with the marks moved to where
 *          it had them, in one update.
 */
#pragma once

#include "store/mongo/handle/handle.h"

#define MONGO_TTL_MARGIN_MS (60 * MINUTE_MS)
#define MONGO_TTL_GRACE_MS  (15 * MINUTE_MS) /* servers look every minute or so */
#define MONGO_TTL_SETTLE_MS (10 * MINUTE_MS) /* no request is on its way for longer */

/* So old are documents when the server is to end them; 0: it does not. */
int64_t mongo_ttl_s(const struct mongo_store *m, size_t report, const struct mongo_kind *k);
/* Documents of before this are tallyd's to delete; INT64_MAX: all are. */
int64_t mongo_ttl_left(const struct mongo_store *m, size_t report, const struct mongo_kind *k,
                       int64_t now_ms);

/* The server's. */
bool mongo_ttl_read_clock(struct mongo_store *m, int64_t *now_ms, struct err *e);

/* How long the index of a collection lets documents live; 0: it is another, -1: there is none. */
bool mongo_ttl_find(struct mongo_store *m, const char *collection, int64_t *ttl_s, struct err *e);
/* At start: all indexes are made what they are to be, or dropped. */
bool mongo_ttl_open(struct mongo_store *m, struct err *e);
/* Now and then, when the marks were read: `ttl` is made what it is to be, if it may. */
bool mongo_ttl_settle(struct mongo_store *m, size_t report, struct err *e);
