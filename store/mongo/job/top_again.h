/* mongo/job/top_again.h - has periods ranked again. */
#pragma once

#include "store/mongo/handle/handle.h"

/* Has the periods of [from_ms, to_ms) ranked again, also those without a stamp: for counts from a version
 * that does not stamp, or changed by hand. Future and expired periods are left out. */
bool mongo_top_again(struct mongo_store *m, size_t report, int64_t from_ms, int64_t to_ms,
                     struct err *e) MUST_CHECK;
