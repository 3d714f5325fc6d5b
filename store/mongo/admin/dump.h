/* mongo/admin/dump.h - writes and reads a copy of a database as files, in the format of mongodump. Backup and
 * restore call it.
 *
 *   DIR/DATABASE/COLLECTION.bson             documents, one behind the other
 *   DIR/DATABASE/COLLECTION.metadata.json    { options, indexes, collectionName, type }
 *   DIR/DATABASE/ledger.bson                 the seats, and behind them the ledger with all positions
 *   DIR/tallyd-backup.json     { format, database, taken,
 *                                files: [ { database, collection, documents, bytes, xxh3 } ] }
 *
 * Whole  : tallyd-backup.json is written last, and names all files with their length and checksum.
 * Memory : one document at a time.
 */
#pragma once

#include "store/mongo/raw/place.h"

#define MONGO_DUMP_NAME   "tallyd-backup.json"
#define MONGO_DUMP_SEATS  2 /* since when a copy has seats */
#define MONGO_DUMP_FORMAT 3

struct mongo_dump_entry {
    struct mongo_place place;
    uint64_t documents, bytes, hash;
};

struct mongo_dump {
    const char *dir;                     /* borrowed */
    int64_t format;                      /* that was read, up to MONGO_DUMP_FORMAT */
    char database[MONGO_DATABASE_BYTES]; /* of the counts; others begin with its name */
    struct mongo_dump_entry *list;
    size_t count, capacity;
};

void mongo_dump_fini(struct mongo_dump *d);
/* NULL: no such collection. */
const struct mongo_dump_entry *mongo_dump_find(const struct mongo_dump *d, const char *database,
                                               const char *collection);

/* ---- writing */

struct mongo_dump_file {
    FILE *file;
    char path[4096];
    void *hash;
    struct mongo_dump_entry entry;
};

bool mongo_dump_delete(const char *dir, struct err *e) MUST_CHECK;
/* Makes the directory. Deletes the remains of a backup that was killed. */
bool mongo_dump_make_directory(const char *dir, struct err *e) MUST_CHECK;
bool mongo_dump_create(struct mongo_dump *d, const struct mongo_place *place, struct mongo_dump_file *f,
                       struct err *e) MUST_CHECK;
bool mongo_dump_put(struct mongo_dump_file *f, const bson_t *document, struct err *e) MUST_CHECK;
/* Closes the file in any case. If `good`, makes it durable and adds it to `d`. */
bool mongo_dump_end(struct mongo_dump *d, struct mongo_dump_file *f, bool good, struct err *e) MUST_CHECK;
bool mongo_dump_put_metadata(const struct mongo_dump *d, const struct mongo_place *place,
                             const bson_t *metadata, struct err *e) MUST_CHECK;
/* Writes tallyd-backup.json, which names all files. */
bool mongo_dump_put_names(const struct mongo_dump *d, int64_t taken_ms, struct err *e) MUST_CHECK;

/* ---- reading */

/* EX_NOINPUT: `dir` has no complete backup. */
bool mongo_dump_open(struct mongo_dump *d, const char *dir, struct err *e) MUST_CHECK;
typedef bool mongo_dump_fn(void *context, const bson_t *document, struct err *e); /* false ends the walk */
/* EX_DATAERR: the file is damaged. fn NULL: only check it. */
bool mongo_dump_read(const struct mongo_dump *d, const struct mongo_dump_entry *entry, mongo_dump_fn *fn,
                     void *context, struct err *e) MUST_CHECK;
/* Initialises `metadata` in any case; empty if there is none. */
bool mongo_dump_read_metadata(const struct mongo_dump *d, const struct mongo_dump_entry *entry,
                              bson_t *metadata, struct err *e) MUST_CHECK;
