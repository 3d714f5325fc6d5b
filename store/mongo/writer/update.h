/* mongo/writer/update.h - turns a batch into a log of updates. writer/apply.c calls it. */
#pragma once

#include "store/mongo/handle/handle.h"

bool mongo_resolve(struct mongo_store *m, const struct batch *batch, struct err *e) MUST_CHECK;
/* These write the logs of the batch under way, and its sums for longer documents (longer.h). Counts: only
 * series and documents, no books. */
void mongo_write_counts(struct mongo_store *m, const struct batch *batch);
void mongo_write_updates(struct mongo_store *m, const struct batch *batch);
/* The opposites of all that, for a batch that takes a range out again (take.h). Without ranges: documents
 * only. */
void mongo_write_opposites(struct mongo_store *m, const struct batch *batch);
#define MONGO_ROLL_UP_UPDATES 4000 /* of a piece of a roll-up */
/* Writes the pieces of a roll-up of m->longer.sums, up to m->longer.to. */
void mongo_write_roll_up(struct mongo_store *m);
/* Adds an entry of the books to a $set. `report`: its name in the database; NULL: of the source. */
void mongo_set_entry(bson_t *to, const char *report, const char *entry, int64_t value);
/* The database has all series of the batch now. */
void mongo_note_stored(struct mongo_store *m);
