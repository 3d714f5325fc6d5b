/* mongo/doc/document.h - how documents are called, and how the columns of a measure look in them. */
#pragma once

#include "store/mongo/handle/handle.h"

/* The collection of a report: "pages.day". */
const char *mongo_collection(const struct mongo_store *m, size_t report, const char *kind,
                             char buf[MONGO_NAME_BYTES]);
/* "20150517/site-1/%2Fa.html", or without `time`: "site-1/%2Fa.html". `key` NULL: of `other`. */
void mongo_id(struct text *out, const struct mongo_store *m, size_t report, const char *time,
              const struct slice *key);
/* The metadata of a series: its dimensions; of `other`: nulls, and other: true. As "metadata.path" into a
 * filter. */
void mongo_add_metadata(bson_t *to, const struct mongo_store *m, size_t report, const struct slice *key);
/* The one document of a series that begins then, into a filter: { _id, metadata }. Its `_id` is in m->id. */
void mongo_add_document(bson_t *filter, struct mongo_store *m, size_t report, enum span span, int64_t date_ms,
                        const struct slice *key);
/* { applied: { $not: { $gte: number } } } into a filter: so much was not done yet. `applied` is a path. */
void mongo_add_guard(bson_t *filter, const char *applied, int64_t number);
/* A document's `metadata` as a key. False: it is none of this report. */
bool mongo_key_of(const struct mongo_store *m, size_t report, const bson_iter_t *metadata, struct text *key,
                  bool *is_other);
/* The value of a measure at `path` of a document that is updated, into $inc, $min and $max. */
void mongo_add_value(bson_t *inc, bson_t *min, bson_t *max, const struct measure *m, const char *path,
                     const int64_t *columns);
/* … and back. */
void mongo_read_value(const struct measure *m, const bson_iter_t *value, int64_t *columns);
/* The start of what a document counts; false: it has none. */
bool mongo_date_of(const bson_t *document, int64_t *date_ms);
