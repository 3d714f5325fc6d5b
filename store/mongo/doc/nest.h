/* mongo/doc/nest.h - members whose names are paths, as in an update, become documents within each other. Code
 * that writes a document, or a bucket of one, as a whole calls it.
 *
 *   "hourly.9": 2, "hourly.10": 5     hourly: { "9": 2, "10": 5 }
 *
 * Order: as given. Paths with the same beginning stand together, or are sorted before.
 */
#pragma once

#include <bson/bson.h>

/* The place of a value. A bson_iter_t needs an alignment that arrays and sorting do not provide. */
struct mongo_leaf {
    const char *path;
    const uint8_t *data;           /* the document that has the value */
    uint32_t len, offset, key_len; /* of its own key there */
};

struct mongo_leaves {
    struct mongo_leaf *list;
    size_t count, capacity;
};

/* Adds a member of the document `data`, which is borrowed. */
void mongo_leaves_add(struct mongo_leaves *l, const uint8_t *data, uint32_t len, const bson_iter_t *member);
/* Sorts by paths, numbers in them by their value, and appends them. */
void mongo_leaves_nest(struct mongo_leaves *l, bson_t *to);
void mongo_leaves_fini(struct mongo_leaves *l);

/* Appends the member `name`, which may have dots. `flat` has it, or has its members: "NAME.…". */
void mongo_append_nested(bson_t *to, const char *name, const bson_t *flat);
