/* mongo/admin/backup.h - a database of tallyd's is copied into a directory beside its writers, and restored
 * from it: mongo/admin/copy.h. */
#pragma once

#include "base/text.h"
#include "store/backup.h"

bool mongo_backup(const struct backup *b, struct text *said, struct err *e) MUST_CHECK;
bool mongo_restore(const struct backup *b, struct text *said, struct err *e) MUST_CHECK;
