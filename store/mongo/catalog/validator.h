/* mongo/catalog/validator.h - makes and checks the validators of collections. */
#pragma once

#include "store/mongo/catalog/catalog.h"

enum mongo_validator { VALIDATOR_IS_THERE, VALIDATOR_NO_COLLECTION, VALIDATOR_DIFFERS, VALIDATOR_FOREIGN };
/* Sets all validators, at start. */
bool mongo_set_validators(struct mongo_store *m, enum store_validation validation, struct err *e);
/* Reads the state of a collection's validator. The collection must have a schema. */
bool mongo_find_validator(struct mongo_store *m, const struct mongo_collection *c, enum store_validation v,
                          enum mongo_validator *state, struct err *e);
/* Makes the validator; `create`: with its collection. */
bool mongo_make_validator(struct mongo_store *m, const struct mongo_collection *c, enum store_validation v,
                          bool create, struct err *e);
/* Writes the command for that. */
void mongo_validator_command(const struct mongo_store *m, const struct mongo_collection *c,
                             enum store_validation v, bool create, bool whole, bson_t *command);
