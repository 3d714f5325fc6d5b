/* mongo/writer/longer.h - when documents of longer periods get a batch's counts: those of months, and of
 * other layouts those of hours and days, too. docs/LEDGER.md, "Longer documents", is the protocol.
 *
 * Log    : a batch's log has their updates apart. Its commit names the periods that they lack (`unrolled`).
 * Roll-up: the sums of many batches are added up (sums.h), and each document is written once, in one update
 *          that stands for all batches since the last roll-up. Nothing of it is logged: who finds the slot
 *          without its writer applies the logs one by one instead (send/replay.h). Documents say which of
 *          both came first.
 * When   : after each batch, as soon as the pause is as long as the batch took. While the server is too
 *          busy for that, in pieces between batches: a document lacks at most what was counted in
 *          `store.rollup_delay`.
 * Limits : a roll-up begins as soon as MONGO_LONGER_MAX sums wait for it, the logs of MONGO_LONGER_LOGS
 *          batches, or MONGO_LONGER_BYTES of them. If twice as many logs wait, batches do, too.
 */
#pragma once

#include "store/mongo/handle/handle.h"

#define MONGO_LONGER_MS    60000
#define MONGO_LONGER_MAX   ((size_t)1 << 20)
#define MONGO_LONGER_BYTES ((size_t)64 << 20)
#define MONGO_LONGER_LOGS  50

/* ---- the batch under way */

/* Adds what the commit in the seat says of the longer documents. */
void mongo_longer_add_commit(const struct mongo_store *m, int64_t seq, bson_t *set, bson_t *unset);
/* Must the batch roll up itself, since too many others wait? */
bool mongo_longer_must_wait(const struct mongo_store *m);
/* The batch is committed. */
void mongo_longer_commit(struct mongo_store *m);

/* ---- roll-ups */

/* Begins with a slot whose longer documents have all batches. `stored`: as of its seat. */
void mongo_longer_take(struct mongo_store *m, int64_t stored);
/* Rolls up what is due; `all`: everything that is committed. After a failure the next call goes on. */
bool mongo_roll_up(struct mongo_store *m, bool all, struct err *e) MUST_CHECK;
/* Tells readers how far it is rolled up, which also ends the last batch of the seat. */
bool mongo_tell_rolled(struct mongo_store *m, struct err *e) MUST_CHECK;
