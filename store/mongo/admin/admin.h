/* mongo/admin/admin.h - what a new database or cluster needs, as a MongoDB shell takes it, or done.
 *
 * Indexes   : made at start, too; here all are listed, also those that others made. Those of store.ttl are
 *             made at start alone: readers must be told before.
 * Validators: made at start, too; this is for whoever counts without the right to it.
 * Shards    : never sharded by tallyd itself.
 *
 *     pages.day, …   metadata's dimensions, metadata.date   one series' history asks one shard; no hot chunk
 *     pages.series   _id                                    as it is found; grows with no clock
 *     batches        _id, hashed                            written, and deleted a second later
 *     raw.SOURCE     host, time                             one client's events ask one shard; no hot chunk
 *     books, ledger, reports; reports by nothing            not at all: few documents, or one
 *
 *   A collection whose shard key is not _id has a unique _id on each shard only. Still there is one document
 *   of a series and time: every update has the metadata beside _id in its filter, in full (of `other`, each
 *   dimension is null), so all that would make it are sent to one shard.
 *
 * What is there already and differs is said, and left alone.
 * Errors    : EX_UNAVAILABLE: no server, or one that cannot shard; else those of mongo/wire/client.h. All is
 *             tried before the first one is returned.
 */
#pragma once

#include "base/text.h"
#include "store/mongo/admin/task.h"

/* `out`: the shell's text, or what was done; also where it fails. */
bool mongo_admin(const char *url, const struct mongo_task *task, struct text *out, struct err *e) MUST_CHECK;
