/* mongo/live/hints.h - the series that are likely the largest of an open period, by group. live.c reads their
 * documents first. A hint may be wrong or missing: then a reader reads more documents, or all of them.
 *
 * From    : cached rankings of periods before, and scans of this handle.
 * Memory  : four bytes for each of MONGO_HINTS_MAX series, beside their names.
 * Owner   : the handle, by report and measure (struct mongo_hints of handle/report.h).
 */
#pragma once

#include "store/mongo/live/groups.h"
#include "store/reader.h"

#define MONGO_HINTS_MAX 5000 /* five rankings */

/* The handle's hints, made when they are first asked for. */
struct mongo_hints *mongo_hints_of(struct mongo_store *m, size_t report, size_t measure);
/* Reads the rankings, unless that was done a short while ago. *more: there may be more hints now. */
bool mongo_hints_read(struct mongo_store *m, size_t report, size_t measure, struct scan_stats *stats,
                      bool *more, struct err *e) MUST_CHECK;
/* store_top_learn() of store.h. */
void mongo_hints_learn(struct store *st, size_t report, size_t measure, const uint32_t *series, size_t count);
