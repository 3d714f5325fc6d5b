/* mongo/send/batches.h - logs in the database, as documents of `batches`:
 *
 *   batches   { _id: "w0/INC/SEQ/PART", prev: 41, at: ISODate("2026-01-05T12:03:07.042Z"), zstd: …,
 *               longer: …, longer_bytes: 4711 }
 *
 * zstd   : updates of fine documents, and all others that are applied at once: mongo/handle/log.h.
 * longer : updates of longer documents (mongo/writer/longer.h), with their bytes in all parts. Logs of
 *          format 5 have them in `zstd`.
 * prev   : leads a backup from a slot's last batch back to the first that the backup needs.
 * at     : the order in which a restore applies logs of several slots. It is the writer's time, but later
 *          than `at` of each batch before it in its slot, or in the books of the same partition. Logs of
 *          format 4 have none, and are before all others. The idea is that of hybrid logical clocks
 *          (Kulkarni et al., 2014).
 * Owner  : writers insert and delete logs; recovery, backup and restore read them.
 */
#pragma once

#include "store/mongo/handle/handle.h"

/* The `_id` of a log: "w0/0000000000000001/000000000000002a", and `part`. */
#define MONGO_BATCH_BYTES 64
void mongo_batch_id(char buf[MONGO_BATCH_BYTES], const struct mongo_open *o, const char *part);
/* Reads the `_id` of a part of a log; false: it is another name. */
bool mongo_parse_batch_id(const char *id, struct mongo_open *o, unsigned *part);
bool mongo_insert_log(struct mongo_store *m, const struct mongo_open *o, struct slice packed,
                      struct slice longer, struct err *e) MUST_CHECK;
/* Reads the log of an open batch; it is shorter if parts of it are gone. */
bool mongo_read_log(struct mongo_store *m, const struct mongo_open *o, struct text *packed,
                    struct err *e) MUST_CHECK;
/* Reads its updates of longer documents. *is_whole: no byte of them is missing. */
bool mongo_read_longer(struct mongo_store *m, const struct mongo_open *o, struct text *packed, bool *is_whole,
                       struct err *e) MUST_CHECK;
/* Finds the parts of a log. */
bson_t *mongo_filter_parts(const struct mongo_open *o);
/* Appends the part of a log that is in a document of `batches`. `member`: "zstd" or "longer". */
void mongo_log_add_part(const bson_t *document, const char *member, struct text *packed);
struct mongo_logs {
    struct mongo_open *list;
    size_t count, capacity;
};
void mongo_logs_add(struct mongo_logs *l, const struct mongo_open *log);
/* Lists the logs that the database has of a slot, by number. The caller frees the list. */
bool mongo_list_logs(struct mongo_store *m, const char *slot, struct mongo_logs *l, struct err *e) MUST_CHECK;
/* The log of a committed batch; NULL: it is gone. If several writers used its number, the last one committed
 * it: a writer that takes a slot begins behind all that was committed in it. */
const struct mongo_open *mongo_find_log(const struct mongo_logs *l, int64_t seq);

/* Deletes the logs of a slot before this batch, the first ones, some MONGO_LOGS_DELETED at once: after a long
 * backup there are very many. *more: there are others. */
#define MONGO_LOGS_DELETED 1000
bool mongo_delete_logs(struct mongo_store *m, const struct mongo_open *last, bool *more,
                       struct err *e) MUST_CHECK;
