/* mongo/raw/raw.h - raw events: each is a document (raw_document.h), beside what is counted. A writer stores
 * those of a batch before it logs and commits the batch.
 *
 *   raw.access             raw_growth: forever, ttl or capped
 *   raw.access.20101010    a collection for each day; for weeks, with the Monday
 *   raw.access.201010      a collection for each month
 *   DATABASE_raw_access_201010.raw.access    a database for each month
 *
 * Exact  : the documents of a batch are inserted, with their own write concern, before the batch is
 *          committed. Their `_id` names the event's place in its source. So a batch that is repeated inserts
 *          the same documents again, and those that exist count as inserted. They are also inserted again if
 *          the log or the commit failed, since another primary may lack what the last one alone had. Without
 *          w: majority they may be lost if the caller then brings another batch, or if the primary changes
 *          unnoticed. With w: 0 nothing is known.
 * Refused: a document that the server refuses for good (a validator, somebody's unique index, its size) is
 *          counted, and the others are stored. The first few of a minute are logged one by one; the rest of
 *          a batch is logged as a number. A failure that may pass (no server, no primary, too few members)
 *          fails the batch, which is tried again. An unknown error code counts as final if the last of a few
 *          tries still returns it.
 * Growth : a whole period is dropped when enough later periods exist; the newest one at the last look
 *          decides. A future period decides nothing until its time has come, whatever the clock said before.
 *          If the clock is not trusted, neither does a period that does not follow another. Events of a
 *          dropped period are counted as expired, and not stored. A daemon that lags may make a dropped
 *          period again; the next look drops it.
 * Indexes: {path}, {host, time} and {time}, if these fields are stored and store.indexes is true.
 * Start  : the collection is made and checked: a server that only pretends to make a capped collection or a
 *          TTL index is refused. A period's collection is made with its first event; a delete that matches
 *          nothing checks the right to write there. It has the write concern of the source, so it also
 *          checks whether the server could ever meet that.
 * Threads: the handle's. Inserts use all its connections at once; inserts into capped collections use one,
 *          since these keep the order of arrival.
 */
#pragma once

#include "aggregate/raw.h"
#include "store/mongo/handle/handle.h"

/* Stores the documents of a batch. mongo_raw_note() adds up the results when the batch is applied. */
bool mongo_raw_store(struct mongo_store *m, const struct batch *batch, struct err *e) MUST_CHECK;
void mongo_raw_note(struct mongo_store *m);
