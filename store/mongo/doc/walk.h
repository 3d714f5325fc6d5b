/* mongo/doc/walk.h - finds the months that have documents. */
#pragma once

#include "store/mongo/handle/handle.h"

/* Calls `fn` for each month that has documents and touches [from_ms, to_ms), in order. */
typedef bool mongo_month_fn(void *context, int64_t month_ms, struct err *e); /* false ends the walk */
bool mongo_each_month(struct mongo_store *m, size_t report, int64_t from_ms, int64_t to_ms,
                      mongo_month_fn *fn, void *context, struct err *e) MUST_CHECK;
