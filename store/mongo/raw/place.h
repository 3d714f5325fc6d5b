/* mongo/raw/place.h - the collections of raw events: made, looked at, and dropped as raw.h says. */
#pragma once

#include "store/mongo/handle/handle.h"
#include "store/mongo/wire/index.h"

#define MONGO_DATABASE_BYTES 64 /* servers take 63 */
#define MONGO_RAW_HOST_TIME  "tallyd_host_time"

struct mongo_place {
    char database[MONGO_DATABASE_BYTES], collection[MONGO_NAME_BYTES];
};

bool mongo_raw_open(struct mongo_store *m, const struct store_options *options, struct err *e) MUST_CHECK;
/* The sources of which events are kept; nothing is asked of the server. */
void mongo_raw_init(struct mongo_store *m, const struct raw *const *raws, size_t count);
void mongo_raw_place(const struct mongo_store *m, const struct raw *r, int64_t period_ms,
                     struct mongo_place *place);
/* The write concern of a source's documents; begun in any case. */
void mongo_raw_concern(const struct raw *r, const struct mongo_client *client, bson_t *concern);
/* The n-th index of a source's collections; `key` is begun in any case. */
bool mongo_raw_index(const struct raw *r, size_t n, struct mongo_index_of *index, bson_t *key);
/* Its collection is there, with what belongs to it. */
bool mongo_raw_prepare(struct mongo_store *m, struct mongo_raw *raw, int64_t period_ms,
                       struct err *e) MUST_CHECK;
/* Drop the periods that are not to be kept; a source that fails holds up no other. The first error. */
bool mongo_raw_expire(struct mongo_store *m, int64_t now_ms, bool trusts_clock, struct err *e) MUST_CHECK;
