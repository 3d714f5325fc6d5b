/* mongo/writer/sums.h - the sums that documents of longer periods lack, and the periods of fine ones that a
 * batch has counts of. update.c adds what a batch counts; longer.c rolls up what is committed.
 *
 * Shape : by report, a sum for each series and bucket of the shortest longer document.
 */
#pragma once

#include "store/mongo/handle/handle.h"

#define MONGO_UNROLLED_MAX 32 /* periods of a batch; one with more is rolled up before it is done */

/* Begins with the sums and periods of the batch under way. */
void mongo_sums_begin(struct mongo_store *m);
/* Adds to the sum of a bucket. */
void mongo_sums_add(struct mongo_store *m, size_t report, uint32_t series, int64_t start_ms,
                    const int64_t *columns);
/* Notes the period of a fine document. */
void mongo_sums_note(struct mongo_store *m, enum span span, int64_t start_ms);
/* The batch is committed: adds its sums to those that wait for a roll-up, if they are wanted. */
void mongo_sums_commit(struct mongo_store *m, bool are_wanted);
/* Forgets those that wait. */
void mongo_sums_clear(struct mongo_store *m);
size_t mongo_sums_count(const struct mongo_store *m);
