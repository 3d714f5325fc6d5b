/* mongo/ledger/peers.h - who else counts into the database, and who of them must not.
 *
 *   writers.w3.who: { host: "web-2", group: "tallyd", instance: "two", topics: ["access"],
 *                     reports: [{ name: "pages", generation: 2 }], since: ISODate("…") }
 *
 * Slots   : each says who its writer is, since it was taken.
 * Refused : two writers that count one report in different generations: each event would be in one of them
 *           only. Two consumer groups that count one topic: each would take its partitions from the other.
 * Start   : whoever comes is refused as long as such another lives (mongo_slot_is_others()): EX_TEMPFAIL, as
 *           that one may be about to end. `since` is set once it is let in.
 * Running : of two that were let in, the one that came first had been silent for longer than a lease, so it
 *           ends: EX_CONFIG. So does whoever finds a newer generation of a report in the database, and the
 *           first of two of one kafka.instance, as in Kafka. It looks whenever it claims partitions, and
 *           three times a lease.
 */
#pragma once

#include "store/mongo/handle/handle.h"

#define MONGO_WRITER_BYTES 320

/* Into `set`, for taking the slot: `who`, of the reports that the handle has. */
void mongo_add_who(const struct mongo_store *m, bson_t *set);
/* Let in: others may see since when, which is later than of all that were let in before. */
bool mongo_admit(struct mongo_store *m, const bson_t *ledger, struct err *e);

/* May it begin, with these reports, beside those that the ledger has? */
bool mongo_may_begin(const struct mongo_store *m, const struct report *reports, size_t count,
                     const bson_t *ledger, struct err *e);
/* May it go on? */
bool mongo_may_go_on(struct mongo_store *m, const bson_t *ledger, struct err *e);
/* … beside what the database has of its reports? */
bool mongo_check_generations(struct mongo_store *m, struct err *e);
/* Both, by a ledger that is read for it: of struct store_ops. */
bool mongo_meet(struct store *st, struct err *e);

/* "writer w3 (process 4711 on web-2, group tallyd, instance two, since 2026-11-23T07:01:02Z)", or as much
 * as the slot says. */
const char *mongo_describe_writer(const bson_t *ledger, const char *slot, char buf[MONGO_WRITER_BYTES]);
/* Why the ledger has another owner of something than this writer: sets *e, which is final if both have one
 * kafka.instance. Returns false. */
bool mongo_taken_over(const struct mongo_store *m, const bson_t *ledger, const char *what, const char *owner,
                      struct err *e);
/* Another has the slot, as the ledger says: it is not ours any more. Returns false. */
bool mongo_lose_slot(struct mongo_store *m, const bson_t *ledger, struct err *e);
