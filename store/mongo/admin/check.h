/* mongo/admin/check.h - checks that the ledger and the documents are of the same moment:
 * store_check(). */
#pragma once

#include "store/mongo/handle/handle.h"

bool mongo_check(struct store *st, check_fn *problem, void *context, struct err *e) MUST_CHECK;
