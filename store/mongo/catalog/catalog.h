/* mongo/catalog/catalog.h - the table of all collections of a database, with their indexes and validators.
 * Start, `tallyd admin` and `tallyd check` walk it.
 *
 *   pages.day, …   documents    index, validator; weeks only if the database has them
 *   pages.latency.day, …        the same of a histogram or distinct count
 *   pages.series   series       validator
 *   pages.top      rankings     index, validator
 *   books          books        validator
 *   raw.access     events       indexes; collections by period are not listed: each gets its own at its start
 *   batches, ledger, reports, jobs
 *
 * Indexes    : documents of all series are found by `_id`, which begins with the time. Beside that there are
 *
 *                { metadata.path: 1, metadata.date: 1 }   one series over a range of dates
 *                { waiting: 1 }                           of R.top: rankings that wait
 *
 * Validators : what tallyd writes always passes. In writes of others, every counter is checked if the server
 *              supports additionalProperties; else only members with fixed names. Logs, the ledger and its
 *              seats have no validator: others have no reason to change logs, and each commit compares its
 *              part of a seat or of the ledger.
 */
#pragma once

#include "aggregate/raw.h"
#include "base/err.h"
#include "store/mongo/handle/handle.h"
#include "store/mongo/wire/command.h"
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
    size_t report;                 /* index of the report: documents, series and rankings */
    const struct mongo_kind *kind; /* documents only */
    size_t sketch;                 /* kind->of_sketch: index among the report's sketches */
    char name[MONGO_NAME_BYTES];
    const struct raw *raw; /* raw events only */
};

typedef bool mongo_collection_fn(void *context, const struct mongo_collection *c, struct err *e);
/* Calls `fn` for every collection. If it returns false, the walk ends with false. */
bool mongo_each_collection(struct mongo_store *m, mongo_collection_fn *fn, void *context,
                           struct err *e) MUST_CHECK;
/* The same for the collections of a report's documents: of each kind, then of each kind of each sketch. */
bool mongo_each_kind(struct mongo_store *m, size_t report, bool with_weeks, mongo_collection_fn *fn,
                     void *context, struct err *e) MUST_CHECK;

#define MONGO_INDEX     "tallyd_series_date"
#define MONGO_INDEX_TOP "tallyd_waiting"
#define MONGO_INDEX_TTL "tallyd_ttl" /* of documents; not in this table: mongo/job/ttl.h */
/* The n-th index beside that of _id, from 0; false: there are no more. `key` is initialised in any case. */
bool mongo_index_at(const struct mongo_store *m, const struct mongo_collection *c, size_t n,
                    struct mongo_index_of *index, bson_t *key);

/* At start: makes the indexes that are missing. A different index of the same name is the operator's choice:
 * it is logged, and left alone. */
bool mongo_create_indexes(struct mongo_store *m, struct err *e) MUST_CHECK;
