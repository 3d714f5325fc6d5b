/* mongo/send/replay.h - applies the logs' updates of longer documents, batch by batch: a roll-up
 * (mongo/writer/longer.h) whose sums are lost with their writer, or of which a part failed.
 *
 * Anybody may do that at any time, also while the writer lives: a document's number says which batches it
 * has.
 */
#pragma once

#include "store/mongo/handle/handle.h"

/* Replays the slot's committed batches after `after`, up to `to`. True also if others have rolled them up,
 * and their logs are gone. EX_DATAERR: a log is damaged, or is gone. */
bool mongo_replay(struct mongo_store *m, const char *slot, int64_t after, int64_t to,
                  struct err *e) MUST_CHECK;
/* Replays what longer documents lack of the slot, and notes that in the seat. `read`: the seat as it was
 * read; if they lack something by that, it is read again, so that it stays. */
bool mongo_catch_up(struct mongo_store *m, const char *slot, const bson_t *read, struct err *e) MUST_CHECK;
