/* mongo/wire/index.h - an index that is to be there. */
#pragma once

#include "store/mongo/wire/client.h"

enum mongo_index { INDEX_MISSING, INDEX_IS_THERE, INDEX_DIFFERS };

/* An index as it is explained to a person. */
struct mongo_index_of {
    const char *name;
    const char *why; /* for a person */
    int64_t ttl_s;   /* documents go so long after their date; 0: they stay */
};

struct mongo_index_wanted {
    const char *database; /* NULL: that of the handle */
    const char *collection, *name;
    const bson_t *key;
    int64_t ttl_s; /* documents go so long after their date; 0: they stay */
};

/* *state afterwards: it is there, or another one differs, as *e says. */
bool mongo_create_index(struct mongo_client *c, const struct mongo_index_wanted *wanted,
                        enum mongo_index *state, struct err *e);
