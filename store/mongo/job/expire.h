/* mongo/job/expire.h - marks are moved, and what is before them is deleted. */
#pragma once

#include "store/mongo/handle/handle.h"

bool mongo_expire(struct store *st, int64_t now_ms, bool trusts_clock, struct expired *expired,
                  struct err *e);
bool mongo_move_back(struct store *st, size_t report, int64_t now_ms, struct err *e);
