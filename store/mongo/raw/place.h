/* mongo/raw/place.h - makes, checks and drops the collections of raw events, as raw.h describes them. Writers
 * call it at start, before an insert, and now and then.
 */
#pragma once

#include "store/mongo/handle/handle.h"
#include "store/mongo/wire/command.h"

#define MONGO_DATABASE_BYTES 64 /* servers allow 63, and a zero byte */
#define MONGO_RAW_HOST_TIME  "tallyd_host_time"

struct mongo_place {
    char database[MONGO_DATABASE_BYTES], collection[MONGO_NAME_BYTES];
};

bool mongo_raw_open(struct mongo_store *m, const struct store_options *options, struct err *e) MUST_CHECK;
/* Sets the sources whose events are stored. Sends nothing to the server. */
void mongo_raw_init(struct mongo_store *m, const struct raw *const *raws, size_t count);
void mongo_raw_place(const struct mongo_store *m, const struct raw *r, int64_t period_ms,
                     struct mongo_place *place);
/* The write concern of a source's documents; `concern` is initialised in any case. */
void mongo_raw_concern(const struct raw *r, const struct mongo_client *client, bson_t *concern);
/* The n-th index of a source's collections; `key` is initialised in any case. */
bool mongo_raw_index(const struct raw *r, size_t n, struct mongo_index_of *index, bson_t *key);
/* Makes the collection of a period, with its indexes, unless that was done. */
bool mongo_raw_prepare(struct mongo_store *m, struct mongo_raw *raw, int64_t period_ms,
                       struct err *e) MUST_CHECK;
/* Calls `fn` for each database of raw events, such as "DATABASE_raw_access_201010", of any source. */
typedef bool mongo_database_fn(void *context, const char *database, struct err *e); /* false ends the walk */
bool mongo_raw_each_database(struct mongo_store *m, mongo_database_fn *fn, void *context,
                             struct err *e) MUST_CHECK;
/* Drops expired periods. If one source fails, it goes on with the others; *e is the first error. */
bool mongo_raw_expire(struct mongo_store *m, int64_t now_ms, bool trusts_clock, struct err *e) MUST_CHECK;
