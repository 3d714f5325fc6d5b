/* mongo/wire/id.h - filters that find documents by several `_id`s. The reader, the writer and batches build
 * them. */
#pragma once

#include "base/slice.h"
#include <bson/bson.h>

/* Adds { _id: { $in: [ … ] } } to a filter, which mongo_ids_end() returns. Each `_id` is copied. */
struct mongo_ids {
    bson_t *filter; /* borrowed */
    bson_t in, list;
    uint32_t count;
};
void mongo_ids_begin(struct mongo_ids *ids, bson_t *filter);
void mongo_ids_add(struct mongo_ids *ids, struct slice id);
bson_t *mongo_ids_end(struct mongo_ids *ids);
