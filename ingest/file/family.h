/* family.h - lists the rotated files of a log, oldest first. They are found by their names, in the log's
 * folder and where logrotate's `olddir` moves them.
 *
 *   access.log.2.gz  access.log.1      numbers: the highest is the oldest
 *   access.log-20261122, -20261123     dates
 *   access-20261123.log                logrotate's `extension`
 *   access.log.old
 *
 * Packed : with .gz, .zst, .bz2 or .xz behind the name. If the same name is there unpacked, too, only that
 *          is listed: the other is being made of it.
 * Order  : by number or date if both names have the same kind, else by the time of the last change.
 * Limits : FAMILY_FILES_MAX; more are EX_CONFIG.
 * Errors : a folder, or a file in it, that cannot be looked at: EX_NOPERM, EX_NOINPUT, or EX_IOERR, which is
 *          retryable. A file that vanishes meanwhile is left out.
 */
#pragma once

#include "base/err.h"
#include "base/slice.h"
#include "base/text.h"

#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

#define FAMILY_FILES_MAX 10000

struct family_file {
    char *path;
    dev_t device;
    ino_t inode;
    int64_t size, changed_ns; /* at the time of the listing */
    bool is_packed;           /* by its name */
    int64_t number;           /* in its name; -1: none */
};

struct family {
    struct family_file *files;
    size_t count, capacity;
};

/* The folders of the log at `path`: its own, and `olddir`, each to be freed; NULL: none. */
#define FAMILY_FOLDERS 2
void family_folders(const char *path, const char *olddir, char *folders[FAMILY_FOLDERS]);
/* Is `name` that of a rotated file of the log `base`? Both without folders. */
bool family_has(struct slice base, struct slice name);
/* Find the next log of which `name` may be a rotated file, the one with the shortest name first; *at is 0 at
 * first. `base` gets its name, without a folder. False: there is no further one. */
bool family_next_log(struct slice name, size_t *at, struct text *base);
/* The name of the log that is packed as `name`; as long as `name`: it is not packed. */
struct slice family_unpacked(struct slice name);
/* Is `file`, by its path, a rotated file of the log at `path`? It need not exist. */
bool family_holds(const char *path, const char *olddir, const char *file);
/* The rotated files of the log at `path`, without the log itself. `olddir`: NULL, or a folder; a relative one
 * is within the log's. */
bool family_list(struct family *f, const char *path, const char *olddir, struct err *e) MUST_CHECK;
/* All regular files of the same folders, whatever their names, in no order. */
bool family_list_all(struct family *f, const char *path, const char *olddir, struct err *e) MUST_CHECK;
/* Look at one file. *is_there: it is a regular file. False: nobody can know; EX_NOPERM or a retryable
 * EX_IOERR. */
bool family_look(const char *path, struct stat *status, bool *is_there, struct err *e) MUST_CHECK;
void family_fini(struct family *f);
