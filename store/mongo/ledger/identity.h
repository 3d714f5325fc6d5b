/* mongo/ledger/identity.h - is it still the database that this handle counts into? */
#pragma once

#include "store/mongo/handle/handle.h"

/* The ledger is there, and has an identity. */
bool mongo_begin_ledger(struct mongo_store *m, struct err *e);
/* { _id, identity, epoch } of the ledger that this handle has seen first. */
void mongo_add_ledger(const struct mongo_store *m, bson_t *filter);
bool mongo_is_same_ledger(const struct mongo_store *m, const bson_t *ledger);
/* The same one, and nothing of this writer's slot went back in it; else EX_DATAERR. */
bool mongo_check_ledger(struct mongo_store *m, const bson_t *ledger, struct err *e);
/* A partition that it claimed again goes on from where it was; else EX_DATAERR. */
bool mongo_check_partition(struct mongo_store *m, const struct mongo_partition *was,
                           const struct mongo_partition *now, struct err *e);
/* The database is not what it was: EX_DATAERR, whatever is asked of the handle. Returns false. */
bool mongo_refuse(struct mongo_store *m, struct err *e, const char *format, ...) PRINTF_LIKE(3, 4);
/* A document whose number of `of`'s slot is above `of->prev`: is it that of a batch which the ledger knows?
 * EX_DATAERR: no. */
bool mongo_check_applied(struct mongo_client *client, const struct mongo_open *of, const char *collection,
                         const char *id, int64_t applied, struct err *e);
/* No: EX_DATAERR. Returns false. */
bool mongo_refuse_document(const struct mongo_client *client, const char *collection, const char *id,
                           int64_t applied, const char *slot, int64_t seq, struct err *e);
