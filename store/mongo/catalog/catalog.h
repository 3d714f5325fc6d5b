/* mongo/catalog/catalog.h - every collection of a database, and what belongs to it: an index, a validator.
 *
 *   pages.day, …   documents    index, validator; those of weeks where a database has them
 *   pages.series   series       validator
 *   pages.top      rankings     index, validator
 *   books          books        validator
 *   raw.access     events       indexes; those by period are not here: each has its own as it begins
 *   batches, ledger, reports, jobs
 *
 * Validators : what tallyd writes always passes. Of what others write every counter is looked at, where the
 *              server takes members without naming them (additionalProperties); else only those with a name.
 *              Logs are for nobody to change, and of the ledger each seal compares what it relies on.
 */
#pragma once

#include "aggregate/raw.h"
#include "base/err.h"
#include "store/mongo/handle/handle.h"
#include "store/mongo/wire/index.h"
#include "store/store.h"

#include <bson/bson.h>

enum mongo_holds {
    HOLDS_DOCUMENTS,
    HOLDS_SERIES,
    HOLDS_TOP,
    HOLDS_BOOKS,
    HOLDS_BATCHES,
    HOLDS_LEDGER,
    HOLDS_JOBS,
    HOLDS_REPORTS,
    HOLDS_RAW
};

struct mongo_collection {
    enum mongo_holds holds;
    size_t report;                 /* of documents, series and rankings */
    const struct mongo_kind *kind; /* of documents */
    char name[MONGO_NAME_BYTES];
    const struct raw *raw; /* of events */
};

typedef bool mongo_collection_fn(void *context, const struct mongo_collection *c, struct err *e);
/* False where `fn` says so, which ends the walk. */
bool mongo_each_collection(struct mongo_store *m, mongo_collection_fn *fn, void *context, struct err *e);

/* What follows begins the bson_t that it writes, in any case. */

/* The index beside that of _id, and its name; NULL: none. */
#define MONGO_INDEX     "tallyd_series_date"
#define MONGO_INDEX_TOP "tallyd_waiting"
#define MONGO_INDEX_TTL "tallyd_ttl" /* of documents, not among these: mongo/job/ttl.h */
const char *mongo_index_key(const struct mongo_store *m, const struct mongo_collection *c, bson_t *key);
/* All of them, from 0 on; false: there are no more. */
bool mongo_index_at(const struct mongo_store *m, const struct mongo_collection *c, size_t n,
                    struct mongo_index_of *index, bson_t *key);
