/* mongo/wire/field.h - members of documents by their paths, and conditions on them. */
#pragma once

#include <bson/bson.h>

/* A member of a document by its path. */
bool mongo_find_member(const bson_t *document, const char *path, bson_iter_t *found);
/* A date in milliseconds; `otherwise` where there is nothing. */
int64_t mongo_number_at(const bson_t *document, const char *path, int64_t otherwise);
/* "" where there is none; valid as long as the document is. */
const char *mongo_text_at(const bson_t *document, const char *path);

/* Adds a condition to a query: nothing is at `path`; … */
void mongo_match_nothing(bson_t *query, const char *path);
/* … or the number there is this one, if one is there. */
void mongo_match_number(bson_t *query, const char *path, int64_t number, bool is_there);
