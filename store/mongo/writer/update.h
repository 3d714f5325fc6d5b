/* mongo/writer/update.h - a batch becomes a log of updates. */
#pragma once

#include "store/mongo/handle/handle.h"

bool mongo_resolve(struct mongo_store *m, const struct batch *batch, struct err *e);
void mongo_write_updates(struct mongo_store *m, const struct batch *batch, struct mongo_log *log);
/* The series of the batch are in the database now. */
void mongo_note_stored(struct mongo_store *m);
