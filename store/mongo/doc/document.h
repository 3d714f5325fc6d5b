/* mongo/doc/document.h - the names of documents, and the columns of a measure as members of documents.
 * Writers and readers call it; nothing here asks the server. */
#pragma once

#include "store/mongo/handle/handle.h"

/* The name of a report's collection: "pages.day". */
const char *mongo_collection(const struct mongo_store *m, size_t report, const char *kind,
                             char buf[MONGO_NAME_BYTES]);
/* The collection of one of its sketches: "pages.latency.day". */
const char *mongo_sketch_collection(const struct mongo_store *m, size_t report, size_t sketch,
                                    const char *kind, char buf[MONGO_NAME_BYTES]);
/* The `_id` of a document: "20150517/site-1/%2Fa.html"; without `time`: "site-1/%2Fa.html". `key` NULL: the
 * series `other`. */
void mongo_id(struct text *out, const struct mongo_store *m, size_t report, const char *time,
              const struct slice *key);
/* Adds the metadata of a series to a filter, as "metadata.path": its dimensions; for `other`, nulls and
 * other: true. */
void mongo_add_metadata(bson_t *to, const struct mongo_store *m, size_t report, const struct slice *key);
/* Adds { _id, metadata } of one document of a series to a filter: the document that begins at date_ms.
 * Leaves its `_id` in m->id. */
void mongo_add_document(bson_t *filter, struct mongo_store *m, size_t report, enum span span, int64_t date_ms,
                        const struct slice *key);
/* Adds the guard { applied: { $not: { $gte: number } } } to a filter: no batch from `number` on was applied.
 * `applied` is a path. */
void mongo_add_guard(bson_t *filter, const char *applied, int64_t number);
/* Adds the guard { applied: { $gte: from, $lt: number } }: a batch of this copy was applied, and none from
 * `number` on. A document that is missing is made all the same, by an upsert or an insert. */
void mongo_add_guard_of_copy(bson_t *filter, const char *applied, int64_t from, int64_t number);
/* Reads the key of a series from a document's `metadata`. False: it does not fit the report. */
bool mongo_key_of(const struct mongo_store *m, size_t report, const bson_iter_t *metadata, struct text *key,
                  bool *is_other);
/* The same from a whole document. */
bool mongo_key_in_document(const struct mongo_store *m, size_t report, const bson_t *document,
                           struct text *key, bool *is_other);
/* Adds the columns of a measure at `path` to $inc, $min and $max of an update. `as_decimal`: is_decimal of
 * the report. */
void mongo_add_value(bson_t *inc, bson_t *min, bson_t *max, const struct measure *m, bool as_decimal,
                     const char *path, const int64_t *columns);
/* Reads the columns of a measure from a document, with decimals or without. False: it is damaged: infinite,
 * or not a number, which no writer writes. */
bool mongo_read_value(const struct measure *m, const bson_iter_t *value, int64_t *columns) MUST_CHECK;
/* The start of a document's period; false: it has none. */
bool mongo_date_of(const bson_t *document, int64_t *date_ms);
