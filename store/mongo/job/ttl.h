/* mongo/job/ttl.h - lets the server expire documents with a MongoDB TTL index, if store.ttl is true. A writer
 * calls it at start and now and then. docs/LEDGER.md, "Expiry", argues that it is correct.
 *
 *   reports  { _id: "pages", …, ttl: { minute: 10800000, hour: 172800000, since: ISODate(…) } }
 *
 * Index  : tallyd_ttl, {metadata.date: -1}, for each kind of documents whose longest buckets are not kept for
 *          ever. A different index of this name is replaced.
 * Expiry : the server deletes a document when all that is read from it expired MONGO_TTL_MARGIN_MS ago.
 *          tallyd deletes what the server has left MONGO_TTL_GRACE_MS later.
 * Readers: watermarks move only while a tallyd writes, but the server deletes all the time. So `ttl` says at
 *          which age (ms) buckets may be gone. By its own clock, a reader moves its watermark at least that
 *          far. The clocks of the server and of readers may differ by the margin.
 * Writers: go by watermarks alone. Nobody reads what they write before a reader's watermark.
 * Change : `ttl` is never longer than an index in force allows. It becomes shorter before an index is
 *          changed. It becomes longer, or goes, MONGO_TTL_SETTLE_MS after the last change; the same update
 *          moves the watermarks to where `ttl` had them.
 */
#pragma once

#include "store/mongo/handle/handle.h"

#define MONGO_TTL_MARGIN_MS (60 * MINUTE_MS)
#define MONGO_TTL_GRACE_MS  (15 * MINUTE_MS) /* servers look about every minute */
#define MONGO_TTL_SETTLE_MS (10 * MINUTE_MS) /* no request is under way for longer */

/* The age at which the server deletes documents of a kind, in seconds; 0: it deletes none. */
int64_t mongo_ttl_s(const struct mongo_store *m, size_t report, const struct mongo_kind *k);
/* tallyd deletes expired documents before this time; INT64_MAX: all of them. */
int64_t mongo_ttl_left(const struct mongo_store *m, size_t report, const struct mongo_kind *k,
                       int64_t now_ms);

/* The server's clock. */
bool mongo_ttl_read_clock(struct mongo_store *m, int64_t *now_ms, struct err *e) MUST_CHECK;

/* The age at which the index of a collection deletes documents, in seconds; 0: the index is a different one;
 * -1: there is none. */
bool mongo_ttl_find(struct mongo_store *m, const char *collection, int64_t *ttl_s, struct err *e) MUST_CHECK;
/* At start: makes, replaces or drops the indexes. */
bool mongo_ttl_open(struct mongo_store *m, struct err *e) MUST_CHECK;
/* Makes `ttl` as it is configured, if it is time. Call it now and then, after reading the watermarks. */
bool mongo_ttl_settle(struct mongo_store *m, size_t report, struct err *e) MUST_CHECK;
