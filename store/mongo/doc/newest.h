/* mongo/doc/newest.h - the newest time buckets that have documents. */
#pragma once

#include "store/mongo/handle/handle.h"

bool mongo_newest(struct store *st, size_t report, int64_t before_ms, struct newest *newest,
                  struct err *e) MUST_CHECK;
/* The end of the last document that begins before `before_ms`, also if it is preallocated and has no counts.
 * It does not look at documents of months. 0: there is none. */
bool mongo_documents_end(struct mongo_store *m, size_t report, int64_t before_ms, int64_t *end_ms,
                         struct err *e) MUST_CHECK;
