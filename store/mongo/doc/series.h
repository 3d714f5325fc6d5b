/* mongo/doc/series.h - the series of a report: documents of R.series, and their numbers in a handle. */
#pragma once

#include "store/mongo/handle/handle.h"

/* The number of a series that is stored in the database; notes that. */
uint32_t mongo_name_stored(struct mongo_store *m, size_t report, struct slice key);
/* The number of a document's series, which is noted as stored in the database. False: the document does not
 * fit the report. `key` is scratch. */
bool mongo_take_name(struct mongo_store *m, size_t report, const bson_t *document, struct text *key,
                     uint32_t *series);
/* Adds all series of the database to the handle's names. */
bool mongo_read_names(struct mongo_store *m, size_t report, struct err *e) MUST_CHECK;

bool mongo_series_find(struct store *st, size_t report, struct slice key, uint32_t *series, bool *found,
                       struct err *e) MUST_CHECK;
bool mongo_series_key(struct store *st, size_t report, uint32_t series, struct text *key,
                      struct err *e) MUST_CHECK;
bool mongo_series_each(struct store *st, size_t report, series_fn *fn, void *context,
                       struct err *e) MUST_CHECK;
bool mongo_series_like(struct store *st, size_t report, const struct slice *values, series_fn *fn,
                       void *context, struct err *e) MUST_CHECK;
bool mongo_values(struct store *st, size_t report, size_t dimension, struct slice prefix, size_t limit,
                  value_fn *fn, void *context, struct err *e) MUST_CHECK;
