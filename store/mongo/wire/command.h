/* mongo/wire/command.h - one document, read or changed. `client.h` says how calls fail. */
#pragma once

#include "store/mongo/wire/client.h"

/* As the primary has it; empty where there is none. The caller destroys it. */
bool mongo_read_document(struct mongo_client *c, const char *collection, const char *id, bson_t *document,
                         struct err *e);
/* findAndModify: *found false where `query` does not hold. `after` is the document as it is then; the caller
 * destroys it. */
bool mongo_modify(struct mongo_client *c, const char *collection, const bson_t *query, const bson_t *update,
                  bool *found, bson_t *after, struct err *e);
