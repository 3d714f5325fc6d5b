/* mongo/job/expire.h - moves the expiry watermarks, and deletes expired documents and buckets:
 * store_expire(). */
#pragma once

#include "store/mongo/handle/handle.h"
#include "store/writer.h"

bool mongo_expire(struct store *st, int64_t now_ms, bool trusts_clock, struct expired *expired,
                  struct err *e) MUST_CHECK;
bool mongo_move_back(struct store *st, size_t report, int64_t now_ms, struct err *e) MUST_CHECK;
