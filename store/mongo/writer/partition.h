/* mongo/writer/partition.h - the partitions that this writer has claimed, and how far each is counted. */
#pragma once

#include "store/mongo/handle/handle.h"

/* The partition as it was last claimed, even if the claim was lost; NULL: never claimed. */
struct mongo_partition *mongo_known_partition(struct mongo_store *m, const struct range *range);
/* The partition of a range of the batch under way. Pre: this writer has claimed it. */
struct mongo_partition *mongo_own_partition(struct mongo_store *m, const struct range *range);
/* Forgets all claims, so that the next batch claims its partitions anew. */
void mongo_forget_partitions(struct mongo_store *m);

/* Forget every partition of these ranges whose claim is lost, also its last state: its position is in `past`
 * (mongo/writer/retire.h). So a writer keeps memory for files in the ledger only. Pointers to partitions are
 * void afterwards. */
void mongo_drop_partitions(struct mongo_store *m, const struct range *ranges, size_t count);

/* Claims the partitions of these ranges and sets where each goes on. Batches that another writer has
 * committed with events of them, and has not finished, are finished first. */
bool mongo_claim(struct store *st, struct range *ranges, size_t count, struct err *e) MUST_CHECK;
/* The same for one who counts in the ledger itself, or moves positions from there: brings them there. */
bool mongo_claim_home(struct mongo_store *m, struct range *ranges, size_t count, struct err *e) MUST_CHECK;
/* Claims those partitions of a batch that this writer does not have. */
bool mongo_claim_for(struct mongo_store *m, const struct batch *batch, struct err *e) MUST_CHECK;
/* Recovers batches of other slots that are open in the ledger itself and have events of the partition. */
bool mongo_recover_of(struct mongo_store *m, const char *key, const bson_t *ledger, struct err *e) MUST_CHECK;
/* Positions of the ledger and its seats, as of one moment, and of `past`. */
bool mongo_positions(struct store *st, position_fn *fn, void *context, struct err *e) MUST_CHECK;
