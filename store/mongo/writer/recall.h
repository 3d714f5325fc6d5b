/* mongo/writer/recall.h - the positions of partitions that are being claimed: asks the seats that may have
 * them, which can commit nothing of them from then on (docs/LEDGER.md, "claim", "recall", "settle", "bring
 * home").
 *
 * Errors : as those of a claim (store.h). Call it again.
 */
#pragma once

#include "store/mongo/handle/handle.h"
#include "store/mongo/handle/names.h"

/* Some partitions that are claimed at once. */
struct mongo_claims {
    struct mongo_store *m;
    struct mongo_partition *partitions;
    struct range *ranges; /* where each goes on */
    int64_t *held;        /* epoch under which the position in its range was written; 0: there is none */
    size_t count;
    struct mongo_names keys; /* of partitions 1, 2, … */
    struct mongo_open *open; /* batches in seats with events of these partitions, to be recovered */
    size_t open_count;
};

/* Does a document's open batch have events of these partitions? `path`: of its ranges. */
bool mongo_covers(const struct mongo_names *keys, const bson_t *document, const char *path);
/* Recalls each seat that `ledger`, the one since the claim, names. *held: no later claim was there. */
bool mongo_recall(struct mongo_claims *c, const bson_t *ledger, bool *held, struct err *e) MUST_CHECK;
/* Writes the positions into the ledger, and says that no seat has them. *held: the claims still hold. */
bool mongo_bring_home(const struct mongo_claims *c, bool *held, struct err *e) MUST_CHECK;
/* Tells the ledger of partitions that only this writer's seat has them, once a batch is committed there. */
bool mongo_settle_claims(struct mongo_store *m, struct err *e) MUST_CHECK;
/* Looks where a partition stands, without a claim. *next: -1 if the ledger and its seats have no position.
 * Recovers open batches of its seats with events of it. */
bool mongo_look_at_seats(struct mongo_store *m, const char *key, const bson_t *ledger, int64_t *next,
                         struct err *e) MUST_CHECK;
