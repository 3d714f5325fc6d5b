/* backup.h - a copy of a whole store, made beside the daemons that write it, and put back.
 *
 * Copy   : of SQLite one file, of MongoDB a directory as mongodump makes it (mongo/admin/dump.h). It holds
 *          what was counted up to one moment, with the positions of that moment: whoever goes on from a
 *          restored store reads what came later from its sources again, so nothing is lost or counted twice.
 * Backup : writes under a temporary name ("PATH-partial"), reads it again, makes it durable, and renames it.
 *          What a killed backup left is overwritten by the next one.
 * Restore: checks the copy before it touches the store. It refuses a store that a daemon writes, and without
 *          `force` one that holds something.
 * Errors : EX_NOINPUT: no store, or no copy; EX_CANTCREAT: something is there, and `force` is not given;
 *          EX_DATAERR: the copy, or the store, is damaged or another program's; EX_TEMPFAIL + retryable: in
 *          use; without: it was stopped; else those of the store.
 */
#pragma once

#include "base/err.h"

#include <stdint.h>

struct backup {
    const char *url;  /* of the store */
    const char *path; /* of the copy */
    bool force;       /* replace what is there */
    /* Called now and then; `what` is under way, `total` is 0 where nobody knows it. False ends the work. */
    bool (*goes_on)(void *context, const char *what, uint64_t done, uint64_t total);
    void *context;
};

/* ---- what the kinds of store share */

#define BACKUP_PATH_BYTES 4096

/* "DIRECTORY/NAME-partial"; false: the path is too long. */
bool backup_partial(const char *path, char partial[BACKUP_PATH_BYTES], struct err *e) MUST_CHECK;
/* Is there anything under this name already that must not be replaced? Returns false with *e. */
bool backup_may_write(const struct backup *b, struct err *e) MUST_CHECK;
/* What was written into a file, or which names a directory holds, is on disk. */
bool backup_sync(const char *path, struct err *e) MUST_CHECK;
/* … of the directory that `path` is in. */
bool backup_sync_parent(const char *path, struct err *e) MUST_CHECK;
/* EX_TEMPFAIL. Returns false. */
bool backup_stopped(const char *what, struct err *e);
