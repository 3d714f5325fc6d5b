/* mongo/admin/check.h - is the ledger of the same moment as the documents? */
#pragma once

#include "store/mongo/handle/handle.h"

bool mongo_check(struct store *st, check_fn *problem, void *context, struct err *e);
