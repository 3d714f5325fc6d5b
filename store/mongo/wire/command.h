/* mongo/wire/command.h - reads or changes one document. client.h describes the errors. */
#pragma once

#include "store/mongo/wire/client.h"

/* Reads a document by its `_id`, from the primary. `document` is empty if there is no such document. The
 * caller destroys it. */
bool mongo_read_document(struct mongo_client *c, const char *collection, const char *id, bson_t *document,
                         struct err *e) MUST_CHECK;
/* findAndModify. *found is false if no document matches `query`. `after` is the document after the change;
 * the caller destroys it. */
bool mongo_modify(struct mongo_client *c, const char *collection, const bson_t *query, const bson_t *update,
                  bool *found, bson_t *after, struct err *e) MUST_CHECK;
