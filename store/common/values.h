/* values.h - the texts that a dimension has, by a walk over all series of a report. Stores without a faster
 * way use it; MongoDB uses it when its server cannot answer. Only the walk can fail.
 *
 * Memory: at most the `limit` values.
 */
#pragma once

#include "store/reader.h"

/* Does the work of store_values(). */
bool values_walk(struct store *st, size_t report, size_t dimension, struct slice prefix, size_t limit,
                 value_fn *fn, void *context, struct err *e) MUST_CHECK;
