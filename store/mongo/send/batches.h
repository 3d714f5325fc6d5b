/* mongo/send/batches.h - logs in the database, as documents of `batches`:
 *
 *   batches   { _id: "w0/INC/SEQ/PART", prev: 41, zstd: … }
 *
 * `prev` leads a backup from the last batch back to the first that it needs.
 */
#pragma once

#include "store/mongo/handle/handle.h"

/* "w0/0000000000000001/000000000000002a", and `part`. */
#define MONGO_BATCH_BYTES 64
void mongo_batch_id(char buf[MONGO_BATCH_BYTES], const struct mongo_open *o, const char *part);
bool mongo_insert_log(struct mongo_store *m, const struct mongo_open *o, struct slice packed, struct err *e);
/* The log of an open batch, as much of it as is there. */
bool mongo_read_log(struct mongo_store *m, const struct mongo_open *o, struct text *packed, struct err *e);
/* What a document of `batches` holds of a log, behind what is there. */
void mongo_log_add_part(const bson_t *document, struct text *packed);
/* All logs of a slot before this batch. */
bool mongo_delete_logs(struct mongo_store *m, const struct mongo_open *last, struct err *e);
