/* mongo/catalog/schema.h - what documents of a collection look like. */
#pragma once

#include "store/mongo/catalog/catalog.h"

/* Begins `validator` in any case: { $jsonSchema: … }; false: none. `whole`: with those members that have no
 * name of their own. */
bool mongo_schema(const struct mongo_store *m, const struct mongo_collection *c, bool whole,
                  bson_t *validator);
/* Did mongo_schema() write it, of this version of tallyd or another? */
bool mongo_schema_is_ours(const bson_t *validator);
