/* mongo/catalog/schema.h - the schema of a collection's documents, as a validator. */
#pragma once

#include "store/mongo/catalog/catalog.h"

bool mongo_has_schema(const struct mongo_collection *c);
/* Initialises `validator` in any case: { $jsonSchema: … }; false: there is none. `whole`: cover members
 * without fixed names, too. */
bool mongo_schema(const struct mongo_store *m, const struct mongo_collection *c, bool whole,
                  bson_t *validator);
/* Did this or another version of tallyd write the validator by mongo_schema()? */
bool mongo_schema_is_ours(const bson_t *validator);
