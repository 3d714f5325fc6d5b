/* mongo/catalog/validator.h - makes and checks the validators of collections. Called when a store opens, and
 * by `tallyd admin`. Errors are those of wire/client.h.
 */
#pragma once

#include "store/mongo/catalog/catalog.h"

/* FOREIGN: somebody else's, which is left alone. */
enum mongo_validator { VALIDATOR_IS_THERE, VALIDATOR_NO_COLLECTION, VALIDATOR_DIFFERS, VALIDATOR_FOREIGN };
/* FerretDB loses updates of several clients, without a word, where a validator refuses documents: at least
 * up to 2.7, by updates of many documents. So its validators only warn: *v becomes VALIDATION_WARN. */
bool mongo_settle_validation(struct mongo_store *m, enum store_validation *v, bool *is_ferretdb,
                             struct err *e) MUST_CHECK;
/* Sets all validators, at start. EX_CONFIG: one that loses updates stays. */
bool mongo_set_validators(struct mongo_store *m, enum store_validation validation, struct err *e) MUST_CHECK;
/* Reads the state of a collection's validator. The collection must have a schema. */
bool mongo_find_validator(struct mongo_store *m, const struct mongo_collection *c, enum store_validation v,
                          enum mongo_validator *state, struct err *e) MUST_CHECK;
/* Makes the validator; `create`: and its collection. */
bool mongo_make_validator(struct mongo_store *m, const struct mongo_collection *c, enum store_validation v,
                          bool create, struct err *e) MUST_CHECK;
/* Writes the command that does so; `whole`: with the whole schema, else only with members of fixed names. */
void mongo_validator_command(const struct mongo_store *m, const struct mongo_collection *c,
                             enum store_validation v, bool create, bool whole, bson_t *command);
