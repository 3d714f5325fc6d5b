/* mongo/writer/apply.h - applies one batch: log, commit, apply, done (docs/LEDGER.md). The handle keeps the
 * batch under way: after a failure, the same call resumes. */
#pragma once

#include "store/mongo/handle/handle.h"

bool mongo_apply(struct store *st, const struct batch *batch, struct err *e) MUST_CHECK;
bool mongo_housekeep(struct store *st, bool all, struct err *e) MUST_CHECK;
