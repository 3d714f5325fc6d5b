/* mongo/ledger/full.h - the ledger and each seat are one document, and a server takes 16 MiB: warns of one
 * that nears it, and says what to do when one has it.
 */
#pragma once

#include "store/mongo/handle/handle.h"

/* Warns once of the ledger, and once of this writer's seat; another's is not this one's to tell. */
void mongo_warn_if_full(struct mongo_store *m, const bson_t *document);
/* The server has refused an update of the ledger or of a seat: if that is nearly full, *e says so, and what
 * to do. Returns false. */
bool mongo_explain_full(struct mongo_store *m, const char *id, struct err *e);
