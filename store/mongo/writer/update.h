/* mongo/writer/update.h - turns a batch into a log of updates. writer/apply.c calls it. */
#pragma once

#include "store/mongo/handle/handle.h"

bool mongo_resolve(struct mongo_store *m, const struct batch *batch, struct err *e);
void mongo_write_updates(struct mongo_store *m, const struct batch *batch, struct mongo_log *log);
/* The database has all series of the batch now. */
void mongo_note_stored(struct mongo_store *m);
