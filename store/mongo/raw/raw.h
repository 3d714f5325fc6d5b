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
#include "store/mongo/handle/internal.h"

#define MONGO_DATABASE_BYTES 64 /* servers take 63 */
#define MONGO_RAW_HOST_TIME  "tallyd_host_time"

struct mongo_raw {
    const struct raw *of;       /* NULL: of this source nothing is kept */
    struct raw_figures pending; /* of the batch under way */
    int64_t shown;              /* … of those refused, so many are in the log */
    int64_t newest_ms;          /* by the last look, the period that decides what is kept; its start */
    int64_t first_kept_ms;      /* of a batch: what is before this is not stored */
    int64_t *ready;             /* periods whose collection is as it should be */
    size_t ready_count, ready_capacity;
};

struct mongo_place {
    char database[MONGO_DATABASE_BYTES], collection[MONGO_NAME_BYTES];
};

/* ---- mongo/raw/raw.c */

/* The documents of a batch; what became of them is noted by mongo_raw_note() when the batch is applied. */
bool mongo_raw_store(struct mongo_store *m, const struct batch *batch, struct err *e) MUST_CHECK;
void mongo_raw_note(struct mongo_store *m);
/* The write concern of a source's documents; begun in any case. */
void mongo_raw_concern(const struct raw *r, const struct mongo_client *client, bson_t *concern);
void mongo_raw_fini(struct mongo_store *m);

/* ---- mongo/raw/place.c */

bool mongo_raw_open(struct mongo_store *m, const struct store_options *options, struct err *e) MUST_CHECK;
void mongo_raw_place(const struct mongo_store *m, const struct raw *r, int64_t period_ms,
                     struct mongo_place *place);
/* The sources of which events are kept; nothing is asked of the server. */
void mongo_raw_init(struct mongo_store *m, const struct raw *const *raws, size_t count);
/* The n-th index of a source's collections; `key` is begun in any case. */
bool mongo_raw_index(const struct raw *r, size_t n, struct mongo_index_of *index, bson_t *key);
/* Its collection is there, with what belongs to it. */
bool mongo_raw_prepare(struct mongo_store *m, struct mongo_raw *raw, int64_t period_ms,
                       struct err *e) MUST_CHECK;
/* Drop the periods that are not to be kept; a source that fails holds up no other. The first error. */
bool mongo_raw_expire(struct mongo_store *m, int64_t now_ms, bool trusts_clock, struct err *e) MUST_CHECK;
