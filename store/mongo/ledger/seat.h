/* mongo/ledger/seat.h - seats: what changes with each batch of a slot is in a document of its own, beside the
 * ledger. So writers do not wait for each other (docs/LEDGER.md).
 *
 *   ledger   { _id: "w3", inc: 1767225600000, seq: 1767225600042, at: ISODate("2026-01-05T12:03:07.042Z"),
 *              gap: { after: 17, before: 1767225600001 },
 *              open: { seq: 1767225600042, prev: 1767225600041, inc: 1767225600000, bytes: 4711,
 *                      ranges: [{ partition: "access:0", from: 10, to: 20 }] },
 *              rolled: 1767225600040, unrolled: { "20260105": 1767225600042 },
 *              partitions: { "access:0": { fence: 3, held: 3, next: 20, witnesses: … } } }
 *
 * Home    : the ledger itself has the batches of `backfill`, `forget` and `splice`, and those of format 4.
 *           The number of a slot is the higher one of both places, and at most one of both has an open batch.
 * Rolled  : longer documents have the slot's batches up to `rolled`. `unrolled` names periods of which they
 *           lack later ones, and the last of these: mongo/writer/longer.h.
 * Position: of the ledger and the seats that `from` names, the one with the highest `held` has it.
 */
#pragma once

#include "store/mongo/handle/handle.h"

/* The seats, by number of their slot. */
struct mongo_seats {
    bson_t list[MONGO_SLOTS];
    bool has[MONGO_SLOTS];
};

/* Reads all of them from the primary by one request. `with_positions`: their partitions, too. The caller
 * calls mongo_seats_fini() in any case. */
bool mongo_read_seats(struct mongo_client *client, bool with_positions, struct mongo_seats *s,
                      struct err *e) MUST_CHECK;
void mongo_seats_fini(struct mongo_seats *s);
/* Reads the seat of a slot, or the ledger itself as MONGO_LEDGER, by any connection, as mongo_read_home()
 * says: what it shows is not old, and stays. Empty: there is none. The caller destroys it. */
bool mongo_confirm(struct mongo_client *client, const char *id, bson_t *document, struct err *e) MUST_CHECK;
/* The open batch of a seat; false: none. */
bool mongo_seat_open(const bson_t *seat, const char *slot, struct mongo_open *o);
/* The error of a seat that is not there, though the ledger names it. Returns false. */
bool mongo_miss_seat(const struct mongo_client *client, const char *slot, struct err *e);

/* Does the ledger name this slot's seat in `from` of a partition? */
bool mongo_is_from(const bson_t *partition, const char *slot);
