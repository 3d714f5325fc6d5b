/* mongo/admin/admin.h - prepares a new database or cluster: as text for a MongoDB shell, or by doing it.
 * `tallyd admin` calls it.
 *
 * Indexes   : made at start, too. Here all are listed, also those that others made. The TTL indexes of
 *             store.ttl are made at start only, since readers must know of them first.
 * Validators: made at start, too. This is for daemons without the right to make them.
 * Shards    : tallyd itself never shards.
 *
 *     pages.day, …   metadata's dimensions, metadata.date   one series' history asks one shard; no hot chunk
 *     pages.series   _id                                    lookups are by _id; it grows with no clock
 *     batches        _id, hashed                            written, and deleted a second later
 *     raw.SOURCE     host, time                             one client's events ask one shard; no hot chunk
 *     pages.top, books, past, ledger, reports, jobs         not sharded: few documents, or small ones
 *     documents of a report without dimensions              not sharded: one series
 *
 *   A collection whose shard key is not _id has a unique _id on each shard only. There is still only one
 *   document of a series and time. Every update has the full metadata beside _id in its filter (for `other`,
 *   each dimension is null). So all updates that could make the document are sent to one shard.
 *
 * An existing index, validator or shard key that differs is reported, and left alone.
 * Errors    : EX_UNAVAILABLE: no server, or one that cannot shard; else the errors of mongo/wire/client.h.
 *             Everything is tried before the first error is returned.
 */
#pragma once

#include "base/text.h"
#include "store/store.h"

enum mongo_admin { ADMIN_INDEXES, ADMIN_SHARD, ADMIN_VALIDATOR };

/* One task of `tallyd admin`. */
struct mongo_task {
    enum mongo_admin what;
    bool apply; /* carry it out; else print it, which needs no server */
    enum store_validation validation;
    const struct report *reports;
    size_t report_count;
    bool weeks;                    /* include documents of weeks */
    bool ttl;                      /* as in store_options */
    const struct raw *const *raws; /* as in store_options */
    size_t raw_count;
};

/* `out`: the text for the shell, or a report of what was done; after a failure, too. */
bool mongo_admin(const char *url, const struct mongo_task *task, struct text *out, struct err *e) MUST_CHECK;
/* Raises the format of a database (mongo/ledger/copies.h). `dry`: only says that it would. */
bool mongo_upgrade(const char *url, bool dry, struct text *said, struct err *e) MUST_CHECK;
