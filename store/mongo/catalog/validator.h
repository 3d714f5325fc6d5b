/* mongo/catalog/validator.h - what the server is told of documents: made, and looked at. */
#pragma once

#include "store/mongo/catalog/catalog.h"

enum mongo_validator { VALIDATOR_IS_THERE, VALIDATOR_NO_COLLECTION, VALIDATOR_DIFFERS, VALIDATOR_FOREIGN };
/* At start. */
bool mongo_set_validators(struct mongo_store *m, enum store_validation validation, struct err *e);
/* One, of a collection that has a schema: how it is, … */
bool mongo_find_validator(struct mongo_store *m, const struct mongo_collection *c, enum store_validation v,
                          enum mongo_validator *state, struct err *e);
/* … make it so, `create`: with its collection, … */
bool mongo_make_validator(struct mongo_store *m, const struct mongo_collection *c, enum store_validation v,
                          bool create, struct err *e);
/* … and by which command. */
void mongo_validator_command(const struct mongo_store *m, const struct mongo_collection *c,
                             enum store_validation v, bool create, bool whole, bson_t *command);
