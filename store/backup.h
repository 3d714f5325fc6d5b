/* backup.h - a copy of a whole store, made beside the daemons that write it, and put back. The commands
 * `tallyd admin backup` and `tallyd admin restore` use it, by way of backend/backend.h.
 *
 * Copy   : one file of SQLite; for MongoDB a directory as mongodump makes it (mongo/admin/dump.h). It holds
 *          all counts up to one moment, with the positions of that moment. A daemon that resumes from a
 *          restored store reads later records from its sources again, so nothing is lost or counted twice.
 * Backup : writes under a temporary name ("PATH-partial"), reads it again, makes it durable, and renames it.
 *          The next backup overwrites the remains of a killed one.
 * Restore: checks the copy before it touches the store. It refuses a store that a daemon writes. Without
 *          `force` it also refuses a store that is not empty.
 * Errors : EX_NOINPUT: the store or the copy does not exist. EX_CANTCREAT: the target exists, and `force` is
 *          not given. EX_DATAERR: the copy or the store is damaged, or belongs to another program.
 *          EX_TEMPFAIL + retryable: in use. EX_TEMPFAIL: the work was stopped. Others are the store's.
 */
#pragma once

#include "base/err.h"

#include <stdint.h>

struct backup {
    const char *url;  /* URL of the store */
    const char *path; /* path of the copy */
    bool force;       /* whether to replace an existing target */
    /* Called now and then. `what` names the work under way; `total` is 0 if unknown. False ends the work. */
    bool (*goes_on)(void *context, const char *what, uint64_t done, uint64_t total);
    void *context;
};

/* ---- shared by the kinds of store */

#define BACKUP_PATH_BYTES 4096

/* "DIRECTORY/NAME-partial"; false: the path is too long. */
bool backup_partial(const char *path, char partial[BACKUP_PATH_BYTES], struct err *e) MUST_CHECK;
/* False with *e: the path of the copy exists, and must not be replaced. */
bool backup_may_write(const struct backup *b, struct err *e) MUST_CHECK;
/* Make the bytes of a file, or the names in a directory, durable (fsync). */
bool backup_sync(const char *path, struct err *e) MUST_CHECK;
/* Make the names in the directory that contains `path` durable. */
bool backup_sync_parent(const char *path, struct err *e) MUST_CHECK;
/* Set EX_TEMPFAIL: `what` was stopped. Returns false. */
bool backup_stopped(const char *what, struct err *e);
