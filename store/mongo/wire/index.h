/* mongo/wire/index.h - creates an index unless it exists. */
#pragma once

#include "store/mongo/wire/client.h"

enum mongo_index { INDEX_MISSING, INDEX_IS_THERE, INDEX_DIFFERS };

/* An index and its purpose, for the operator. */
struct mongo_index_of {
    const char *name;
    const char *why; /* purpose of the index, for the operator */
    int64_t ttl_s;   /* documents expire this long after their date; 0: never */
};

struct mongo_index_wanted {
    const char *database; /* NULL: the database of the handle */
    const char *collection, *name;
    const bson_t *key;
    int64_t ttl_s; /* documents expire this long after their date; 0: never */
};

/* *state afterwards: the index exists, or a different one does, and *e describes it. */
bool mongo_create_index(struct mongo_client *c, const struct mongo_index_wanted *wanted,
                        enum mongo_index *state, struct err *e) MUST_CHECK;
