/* mongo/live/applied.h - which batches documents have: by slot, the number of the last one. live.c compares
 * documents of counts with the document of their period.
 *
 * Numbers : a slot's batches are applied one after the other (docs/LEDGER.md). So a document with a slot's
 *           batch has all earlier ones of the slot that concern it.
 */
#pragma once

#include "store/mongo/handle/handle.h"

struct mongo_applied {
    int64_t last[MONGO_SLOTS]; /* 0: none */
    bool is_odd;               /* a slot has a name that this version does not know */
};

/* Merges the `applied` of a document. */
void mongo_applied_add(struct mongo_applied *a, const bson_t *document);
/* Merges the batches that are done, by ledger and seats: every document has those. */
bool mongo_applied_done(struct mongo_applied *a, struct mongo_store *m, struct err *e) MUST_CHECK;
/* Does `a` have every batch of `b`? */
bool mongo_applied_covers(const struct mongo_applied *a, const struct mongo_applied *b);
