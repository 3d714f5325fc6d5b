/* mongo/writer/position.h - reads and writes how far a partition is counted, in the ledger, a seat or `past`.
 * Cannot fail.
 */
#pragma once

#include "store/mongo/handle/handle.h"

/* The key of a partition in `partitions`; the caller frees it. */
char *mongo_partition_key(const struct range *range);
/* The path of a member: "partitions.kafka:access/0.next"; valid until the next call. */
const char *mongo_partition_member(struct mongo_store *m, const struct mongo_partition *p, const char *name);
/* The same of a partition by its key; and the path of all its members, "partitions.kafka:access/0". */
const char *mongo_entry_member(struct mongo_store *m, const char *key, const char *name);
const char *mongo_entry_path(struct mongo_store *m, const char *key);
/* The members of a partition in the ledger or in a seat; false: there are none. */
bool mongo_find_entry(struct mongo_store *m, const bson_t *document, const char *key, bson_t *entry);
/* Adds the conditions under which a claim holds in the ledger, but for the slot's incarnation. */
void mongo_add_claim(struct mongo_store *m, const struct mongo_partition *p, bson_t *query);
/* Adds the position of a partition to a $set of the ledger or a seat; `p` NULL: to a document of `past`. */
void mongo_add_position(struct mongo_store *m, const struct mongo_partition *p, const struct range *range,
                        bson_t *set);
/* Takes notice of the time of the last log behind a ledger or a seat: `at` of later logs is later. */
void mongo_note_time(struct mongo_store *m, const bson_t *document);
/* Reads a position, but for the names; false: there is none, and `r` is unchanged. */
bool mongo_read_place(const bson_t *place, struct range *r);
