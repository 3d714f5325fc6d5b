/* mongo/admin/backup.h - copies a database of tallyd into a directory while writers go on, and restores it:
 * mongo/admin/copy.h. */
#pragma once

#include "base/text.h"
#include "store/backup.h"

bool mongo_backup(const struct backup *b, struct text *said, struct err *e) MUST_CHECK;
bool mongo_restore(const struct backup *b, struct text *said, struct err *e) MUST_CHECK;
