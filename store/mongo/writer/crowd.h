/* mongo/writer/crowd.h - decides when a distinct count is written as registers, and puts registers in place
 * of entries. A batch asks for each document; mongo_housekeep() condenses between batches.
 *
 * Rule    : a document gets registers once it surely has more than DISTINCT_ENTRIES_MAX texts, and entries
 *           before that. Then its state is that of the set of its texts (aggregate/distinct.h), whoever wrote
 *           it. A writer is sure if it has written them itself, or has read that they are there.
 * Size    : nobody reads a document to write it, so entries of many writers add up in it. One in
 *           MONGO_CROWD_DRAWN entries that a writer adds, drawn by chance, has it read the document. If that
 *           has more than DISTINCT_ENTRIES_MAX texts, registers replace the entries. So a document takes 256
 *           entries from one look to the next, 13 bytes each, or 15: the mean over all writers, whatever
 *           they remember. More than 5,000 are one case in 300 million.
 * Steps   : documents of few writers are read earlier, so that they have registers as soon as they have more
 *           texts: when a writer's own entries reach 16, 64, 256, and the maximum; of an hour or less, only
 *           at 256 and the maximum. A turn reads few of these, but all that were drawn.
 * Exact   : registers are set and entries removed by one update, if `applied` is as it was read: so no batch
 *           was applied in between. It says the same as before, so it has no batch number.
 * Dropped : texts of a batch that was not committed are not written. All is forgotten then: a writer may know
 *           too little, but never too much.
 * Memory  : MONGO_CROWD_BYTES, for some 49,000 documents. If there are more, texts are forgotten: they pass
 *           for new when they come again. Which documents have registers is forgotten only if these are many.
 */
#pragma once

#include "store/mongo/handle/handle.h"

#define MONGO_CROWD_BYTES ((size_t)16 << 20)
#define MONGO_CROWD_DRAWN 256

/* 0 if no report has a distinct count. */
size_t mongo_crowd_bytes_max(const struct report *reports, size_t count);
/* Notes that the batch writes these texts into a document. Returns whether it gets registers. */
bool mongo_crowd_note(struct mongo_store *m, const struct mongo_counted *where, const struct distinct *d);
void mongo_crowd_forget(struct mongo_store *m);
/* Reads the documents that were drawn and some that have come to a step, or all of these, and condenses those
 * that have too many entries. */
bool mongo_condense(struct mongo_store *m, bool all, struct err *e) MUST_CHECK;
