/* mongo/doc/series.h - the series of a report, as documents of R.series, and their names in a handle. */
#pragma once

#include "store/mongo/handle/handle.h"

/* The number of the series that a document is of, which the database is known to have from now on; false: of
 * none of the report. `key` is for its text. */
bool mongo_take_name(struct mongo_store *m, size_t report, const bson_t *document, struct text *key,
                     uint32_t *series);
/* Take the names of all series that are stored. */
bool mongo_read_names(struct mongo_store *m, size_t report, struct err *e);

bool mongo_series_find(struct store *st, size_t report, struct slice key, uint32_t *series, bool *found,
                       struct err *e);
bool mongo_series_key(struct store *st, size_t report, uint32_t series, struct text *key, struct err *e);
bool mongo_series_each(struct store *st, size_t report, series_fn *fn, void *context, struct err *e);
bool mongo_series_like(struct store *st, size_t report, const struct slice *values, series_fn *fn,
                       void *context, struct err *e);
bool mongo_values(struct store *st, size_t report, size_t dimension, struct slice prefix, size_t limit,
                  value_fn *fn, void *context, struct err *e);
