/* mongo/ledger/peers.h - which other writers count into the database, and which of them must not. A writer
 * calls it when it starts, when it claims partitions, and three times a lease.
 *
 *   writers.w3.who: { host: "web-2", group: "tallyd", instance: "two", topics: ["access"],
 *                     reports: [{ name: "pages", generation: 2 }], since: ISODate("…") }
 *
 * Slots   : `who` of each slot describes the writer that took it. `backfills: true`: it only backfills.
 * Refused : two writers that count one report in different generations: each event would be in one of them
 *           only. Two consumer groups that count one topic: each would take its partitions from the other.
 *           Two backfills: the later one would not get on.
 * Start   : a new writer is refused while such another lives (mongo_slot_is_others()). EX_TEMPFAIL, since the
 *           other may be about to end. `since` is set when a writer is let in.
 * Running : if two such writers were let in, the earlier one had been silent for longer than a lease, and
 *           ends: EX_CONFIG. A writer also ends if the database has a newer generation of one of its reports,
 *           unless that is hidden (`dropping`).
 *           If two writers have one kafka.instance (twins), the earlier one ends.
 * Woken   : a writer may be paused after it has looked here, and go on when its twin has its place. Then it
 *           claims partitions once more, or joins the group once more. The later twin does not end because of
 *           that: it claims and joins again. The earlier one ends when it looks here the next time.
 */
#pragma once

#include "store/mongo/handle/handle.h"

/* The name of this host, for the operator; "" if it has none that a document can hold. */
#define MONGO_HOST_NAME_BYTES 66 /* Linux allows 64, and a zero byte */
void mongo_read_host_name(char buf[MONGO_HOST_NAME_BYTES]);
/* Adds `who`, with the handle's reports, to the update that takes the slot. */
void mongo_add_who(const struct mongo_store *m, bson_t *set);
/* Lets the writer in: sets `since`, later than that of every other writer. */
bool mongo_admit(struct mongo_store *m, const bson_t *ledger, struct err *e) MUST_CHECK;

/* EX_TEMPFAIL: a writer with these reports must not begin beside the writers in the ledger. */
bool mongo_may_begin(const struct mongo_store *m, const struct report *reports, size_t count,
                     const bson_t *ledger, struct err *e) MUST_CHECK;
/* EX_TEMPFAIL: another writer lives. For work that takes a partition from whoever counts it: its writer would
 * claim it again, and so on. */
bool mongo_check_alone(struct mongo_store *m, struct err *e) MUST_CHECK;
/* EX_CONFIG: this writer must end because of another in the ledger. */
bool mongo_may_go_on(struct mongo_store *m, const bson_t *ledger, struct err *e) MUST_CHECK;
/* EX_CONFIG: the database has a newer generation of one of its reports, which is not hidden. */
bool mongo_check_generations(struct mongo_store *m, struct err *e) MUST_CHECK;
/* mongo_may_go_on() with the current ledger, and mongo_check_generations(). See store_meet(). */
bool mongo_meet(struct store *st, struct err *e) MUST_CHECK;

/* Sets *e to why `owner`, and not this writer, has `what`. The error is EX_CONFIG if `owner` is a twin that
 * was let in later, else EX_TEMPFAIL; retryable if `owner` only backfills, since this writer then claims it
 * again. Returns false. */
bool mongo_taken_over(const struct mongo_store *m, const bson_t *ledger, const char *what, const char *owner,
                      struct err *e);
/* Another writer has the slot, as the ledger says: forgets the slot. Returns false. */
bool mongo_lose_slot(struct mongo_store *m, const bson_t *ledger, struct err *e);
