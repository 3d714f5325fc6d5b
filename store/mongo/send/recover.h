/* mongo/send/recover.h - a batch that is open is finished from its log, whoever sealed it. */
#pragma once

#include "store/mongo/handle/handle.h"

/* The ledger says that the batch is applied. */
bool mongo_done(struct mongo_store *m, const struct mongo_open *o, struct err *e);
/* Apply an open batch from its log, and mark it done. */
bool mongo_recover(struct mongo_store *m, const struct mongo_open *o, struct err *e);
/* What is open in others' slots whose writers are gone. `goes_on`: where a log is damaged, or the server
 * refuses it, that is a warning. */
bool mongo_recover_abandoned(struct mongo_store *m, const bson_t *ledger, bool goes_on, struct err *e);
