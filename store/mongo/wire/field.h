/* mongo/wire/field.h - reads members of documents by path, appends members, and adds conditions on
 * members to queries. */
#pragma once

#include "base/slice.h"

#include <bson/bson.h>

/* Finds the member at a path. */
bool mongo_find_member(const bson_t *document, const char *path, bson_iter_t *found);
/* A number, or a date in milliseconds; `otherwise` if there is none. */
int64_t mongo_number_at(const bson_t *document, const char *path, int64_t otherwise);
/* The document that a member holds, borrowed; false: it holds something else. */
bool mongo_take_document(const bson_iter_t *member, bson_t *document);
/* The document at a path, borrowed. */
bool mongo_find_document(const bson_t *document, const char *path, bson_t *found);
/* Begins to read the members of the document or array at a path; false: there is none. */
bool mongo_begin_members(const bson_t *document, const char *path, bson_iter_t *at);
/* The next member that is a document, borrowed; false: there is none. */
bool mongo_next_document(bson_iter_t *at, bson_t *document);
/* Finds a member of the document that another member holds; false: there is none. */
bool mongo_find_in(const bson_iter_t *document, const char *name, bson_iter_t *found);
/* The bytes of the document that a member holds, borrowed; empty: it holds something else. */
struct slice mongo_bytes_of(const bson_iter_t *member);
/* The number below `end` that the name of a member says, as tallyd writes numbers; false: it is another
 * name. */
bool mongo_name_is_number(const char *name, size_t end, size_t *number);
/* "" if there is no text; valid as long as the document. */
const char *mongo_text_at(const bson_t *document, const char *path);

/* Appends the members of the document that `of` holds. Pre: it holds one. */
void mongo_append_members(bson_t *to, const bson_iter_t *of);
/* Appends an operator to an update, such as $set, unless it is empty: servers refuse that. Destroys `of`. */
void mongo_add_operator(bson_t *update, const char *name, bson_t *of);
/* The name of the i-th member of an array. It may lie in `room`. */
#define MONGO_KEY_BYTES 16
const char *mongo_array_key(size_t i, char room[MONGO_KEY_BYTES]);

/* Adds a condition to a query: no member at `path`. */
void mongo_match_nothing(bson_t *query, const char *path);
/* Adds a condition to a query: `number` at `path`; if `is_there` is false, no member. */
void mongo_match_number(bson_t *query, const char *path, int64_t number, bool is_there);

/* ---- documents by several `_id`s */

/* Adds { _id: { $in: [ … ] } } to a filter, which mongo_ids_end() returns. Each `_id` is copied. */
struct mongo_ids {
    bson_t *filter; /* borrowed */
    bson_t in, list;
    uint32_t count;
};
void mongo_ids_begin(struct mongo_ids *ids, bson_t *filter);
void mongo_ids_add(struct mongo_ids *ids, struct slice id);
bson_t *mongo_ids_end(struct mongo_ids *ids);
