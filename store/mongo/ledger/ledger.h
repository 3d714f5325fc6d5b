/* mongo/ledger/ledger.h - reads the ledger: the open batch and the last number of each slot. docs/LEDGER.md
 * shows the document.
 *
 * mongo_read_home()    the ledger itself: who, leases, owners, the format
 * mongo_read_ledger()  the same, with numbers and open batches of slots as of their seats, too: each slot by
 *                      itself, and not all as of one moment
 * mongo_read_all()     the same, with the positions that count, each seat by itself: of a partition that
 *                      moves meanwhile it may show an older position, or none
 * mongo_read_picture() the same, as of one moment; it reads all twice at least
 */
#pragma once

#include "store/mongo/handle/handle.h"

/* Reads from the primary; `ledger` is empty if there is none. The caller destroys it in any case.
 * A writer decides by what it reads, so that must be neither old nor taken back later. A member that is no
 * primary any more, and does not know it yet, answers reads by an old state. Only the read concern
 * `linearizable` prevents that, and not every server has it. So a writer reads by an update that changes
 * nothing: only the present primary can acknowledge it by a majority, and then all that it shows stays
 * (docs/mongodb.md). That holds for the ledger itself. Seats are read after it: they are not older than that
 * update, but a failover may undo what they show. Code that relies on it confirms it: mongo_confirm(). */
bool mongo_read_home(struct mongo_store *m, bson_t *ledger, struct err *e) MUST_CHECK;
bool mongo_read_ledger(struct mongo_store *m, bson_t *ledger, struct err *e) MUST_CHECK;
bool mongo_read_all(struct mongo_store *m, bson_t *ledger, struct err *e) MUST_CHECK;
bool mongo_read_picture(struct mongo_store *m, bson_t *ledger, struct err *e) MUST_CHECK;

/* A number in the slot of a ledger, such as "inc" or "gap.after"; `otherwise` if there is none. */
int64_t mongo_slot_at(const bson_t *ledger, const char *slot, const char *name, int64_t otherwise);
/* The number of a slot's last batch. The ledger was read by any of these but mongo_read_home(). */
int64_t mongo_seq_of(const bson_t *ledger, const char *slot);
/* Numbers between these were never given, neither by the slot's last writer in this place nor before. */
struct mongo_gap {
    int64_t after, before;
};
/* The gaps of a slot: in the ledger itself, and in the seat. */
#define MONGO_GAPS 2
void mongo_gaps_of(const bson_t *ledger, const char *slot, struct mongo_gap gaps[MONGO_GAPS]);
bool mongo_is_in_gap(const struct mongo_gap gaps[MONGO_GAPS], int64_t number);
/* The seat of a slot, without its positions; false: none. The same readings. */
bool mongo_seat_of(const bson_t *ledger, const char *slot, bson_t *seat);
/* The open batch of a slot; false: none. */
bool mongo_open_of(const bson_t *ledger, const char *slot, struct mongo_open *o);
/* The open batches of all slots; returns their count. */
size_t mongo_all_open(const bson_t *ledger, struct mongo_open open[MONGO_SLOTS]);
/* Reads the batch that is open now in the place where `of` was open. now->seq is -1 if there is none. */
bool mongo_read_open(struct mongo_store *m, const struct mongo_open *of, struct mongo_open *now,
                     struct err *e) MUST_CHECK;

/* The ledger and each seat are one document, and a server takes 16 MiB. */

/* Warns once of the ledger, and once of this writer's seat; another's is not this one's to tell. */
void mongo_warn_if_full(struct mongo_store *m, const bson_t *document);
/* The server has refused an update of the ledger or of a seat: if that is nearly full, *e says so, and what
 * to do. Returns false. */
bool mongo_explain_full(struct mongo_store *m, const char *id, struct err *e);
