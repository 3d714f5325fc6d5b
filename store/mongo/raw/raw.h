/* mongo/raw/raw.h - events as they are, each a document (raw_document.h), beside what is counted.
 *
 *   raw.access             of raw_growth: forever, ttl and capped
 *   raw.access.20101010    a collection for each day; of weeks, their Monday
 *   raw.access.201010      … for each month
 *   DATABASE_raw_access_201010.raw.access    a database for each month
 *
 * Exact  : the documents of a batch are inserted, with their own write concern, before it is sealed; their
 *          `_id` says where their event stands. So a batch that is repeated inserts the same ones again, and
 *          that they are there already is a success. So it is when its log or seal failed, since another
 *          primary may lack what the last one alone had; but not where the caller brings another batch then,
 *          or the primary changes unseen in between: w: majority is exact there, too. With w: 0 nothing is
 *          known.
 * Refused: a document that the server does not take for good (a validator, an index of somebody's own that is
 *          unique, its size) is counted; all others are taken. The first few of a minute are in the log, each
 *          for itself, and how many a batch had besides. What may pass (no server, no primary, too few
 *          members) fails the batch, which is tried again. A code of which nothing is known is for good when
 *          it still comes at the last of a few tries.
 * Growth : a period is dropped whole when so many later ones are kept, by the newest one that is there at a
 *          look. One that is yet to come decides nothing until it is its time, whatever the clock said
 *          before; nor does one, where the clock is not trusted, that does not follow on another. What
 *          arrives of one that is dropped is counted as expired, and not stored. A daemon that is behind
 *          another may make one again: it goes at the next look.
 * Indexes: {path}, {host, time} and {time}, of the fields that are kept, where store.indexes is true.
 * Start  : the collection is made, and looked at: what a server only says that it does (a capped collection,
 *          an index that ends documents) is refused there. Of periods none is made before it has an event:
 *          a delete of nothing finds out whether there is a right to write where they go. With the write
 *          concern of the source, it also finds out whether the server could ever meet that.
 * Threads: the handle's; inserts go over its connections at once, those into capped collections over one,
 *          since these keep the order of arrival.
 */
#pragma once

#include "aggregate/raw.h"
#include "store/mongo/handle/handle.h"

/* The documents of a batch; what became of them is noted by mongo_raw_note() when the batch is applied. */
bool mongo_raw_store(struct mongo_store *m, const struct batch *batch, struct err *e) MUST_CHECK;
void mongo_raw_note(struct mongo_store *m);
