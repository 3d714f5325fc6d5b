/* values.h - the texts that a dimension has, by a walk over all series of a report: for stores that have
 * nothing better, and for what others cannot ask their server.
 *
 * Memory: no more than the values that are wanted.
 */
#pragma once

#include "store/store.h"

/* As store_values(). */
bool values_walk(struct store *st, size_t report, size_t dimension, struct slice prefix, size_t limit,
                 value_fn *fn, void *context, struct err *e) MUST_CHECK;
