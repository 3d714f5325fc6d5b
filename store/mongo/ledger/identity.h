/* mongo/ledger/identity.h - checks that the database is still the one that this handle counts into. Writers
 * call it. EX_DATAERR: it was restored or replaced, or it lost acknowledged writes.
 */
#pragma once

#include "store/mongo/handle/handle.h"

/* Adds { _id, identity, epoch } of that ledger to a filter. */
void mongo_add_ledger(const struct mongo_store *m, bson_t *filter);
/* The same, while this writer has its slot there. */
void mongo_add_own(const struct mongo_store *m, bson_t *filter);
/* The place of a slot's numbers and of its open batch is its seat, or the ledger itself (`is_home`): finds
 * that document by a filter; the path of a member there, which may lie in `buf`. */
void mongo_add_place(const struct mongo_store *m, const char *slot, bool is_home, bson_t *filter);
const char *mongo_place_path(const char *slot, bool is_home, const char *name,
                             char buf[MONGO_SLOT_PATH_BYTES]);
bool mongo_is_same_ledger(const struct mongo_store *m, const bson_t *ledger);
/* EX_DATAERR: another ledger, or this writer's slot went back. */
bool mongo_check_ledger(struct mongo_store *m, const bson_t *ledger, struct err *e) MUST_CHECK;
/* EX_DATAERR: a partition that this writer claims again went back. */
bool mongo_check_partition(struct mongo_store *m, const struct mongo_partition *was,
                           const struct mongo_partition *now, struct err *e) MUST_CHECK;
/* The database is not the same any more: every later call returns EX_DATAERR, too. Returns false. */
bool mongo_refuse(struct mongo_store *m, struct err *e, const char *format, ...) PRINTF_LIKE(3, 4);
/* Checks a document whose number of `of->slot` is above `of->prev`. EX_DATAERR: the ledger does not know
 * that batch. */
bool mongo_check_applied(struct mongo_client *client, const struct mongo_open *of, const char *collection,
                         const char *id, int64_t applied, struct err *e) MUST_CHECK;
/* Sets EX_DATAERR for such a document. Returns false. */
bool mongo_refuse_document(const struct mongo_client *client, const char *collection, const char *id,
                           int64_t applied, const char *slot, int64_t seq, struct err *e);
