/* mongo/wire/field.h - reads members of documents by path, and adds conditions on members to queries. */
#pragma once

#include <bson/bson.h>

/* Finds the member at a path. */
bool mongo_find_member(const bson_t *document, const char *path, bson_iter_t *found);
/* A number, or a date in milliseconds; `otherwise` if there is none. */
int64_t mongo_number_at(const bson_t *document, const char *path, int64_t otherwise);
/* "" if there is no text; valid as long as the document. */
const char *mongo_text_at(const bson_t *document, const char *path);

/* Adds a condition to a query: no member at `path`. */
void mongo_match_nothing(bson_t *query, const char *path);
/* Adds a condition to a query: `number` at `path`; if `is_there` is false, no member. */
void mongo_match_number(bson_t *query, const char *path, int64_t number, bool is_there);
