/* mongo/catalog/validator.h - makes and checks the validators of collections. Called when a store opens, and
 * by `tallyd admin`. Errors are those of wire/client.h.
 */
#pragma once

#include "store/mongo/catalog/catalog.h"

/* FOREIGN: somebody else's, which is left alone. */
enum mongo_validator { VALIDATOR_IS_THERE, VALIDATOR_NO_COLLECTION, VALIDATOR_DIFFERS, VALIDATOR_FOREIGN };
/* FerretDB loses updates of several clients, without a word, where a validator refuses documents: at least
 * up to 2.7, by updates of many documents. The extension of PostgreSQL below it does the updates, and
 * DocumentDB's own gateway stands on the same one. So validators of both only warn: *v becomes
 * VALIDATION_WARN. *loses: the server's name if it is one of them, else NULL. */
bool mongo_settle_validation(struct mongo_store *m, enum store_validation *v, const char **loses,
                             struct err *e) MUST_CHECK;
/* Sets all validators, at start. EX_CONFIG: one that loses updates stays. */
bool mongo_set_validators(struct mongo_store *m, enum store_validation validation, struct err *e) MUST_CHECK;
/* Lists the options of all collections, or of one: { NAME: { validator, … }, … }. Initialises `options` in
 * any case. */
bool mongo_list_options(struct mongo_store *m, const char *collection, bson_t *options,
                        struct err *e) MUST_CHECK;
/* Has `options` have those of this collection: reads them, unless the list is whole. A list that is too long
 * for one reply is not. */
bool mongo_options_of(struct mongo_store *m, const char *collection, bool is_whole, bson_t *options,
                      struct err *e) MUST_CHECK;
/* The state of a collection's validator by that list. The collection must have a schema. */
enum mongo_validator mongo_validator_state(const struct mongo_store *m, const struct mongo_collection *c,
                                           enum store_validation v, const bson_t *options);
/* Makes the validator; `create`: and its collection. */
bool mongo_make_validator(struct mongo_store *m, const struct mongo_collection *c, enum store_validation v,
                          bool create, struct err *e) MUST_CHECK;
/* Writes the command that does so; `whole`: with the whole schema, else only with members of fixed names. */
void mongo_validator_command(const struct mongo_store *m, const struct mongo_collection *c,
                             enum store_validation v, bool create, bool whole, bson_t *command);
