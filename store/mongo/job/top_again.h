/* mongo/job/top_again.h - periods that are to be ranked again. */
#pragma once

#include "store/mongo/handle/handle.h"

/* Those of [from_ms, to_ms) are to be ranked again, also such as nobody wrote: what was counted without being
 * stamped, or changed by hand. None that is yet to come, or gone. */
bool mongo_top_again(struct mongo_store *m, size_t report, int64_t from_ms, int64_t to_ms,
                     struct err *e) MUST_CHECK;
