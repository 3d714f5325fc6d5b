/* rejects_file.h - the file of rejected lines: rejects.file, or --rejects of an import.
 *
 * Appended text is on disk whole, or not at all. If the disk fills up in the middle of a line, the file is
 * cut back to its last length. Then the caller can append the same text again. Only a kill or a power cut can
 * leave a partial line. The next open ends that line, and the whole line follows again.
 *
 * Rotated : logrotate may rename or delete the file, and sends no signal. Each call looks whether the path
 *           still leads to the open file. If not, it opens the path again.
 * Errors  : a failed write is EX_IOERR, retryable: a full disk may get room. So is a failure to open a
 *           rotated file again.
 * Threads : one.
 */
#pragma once

#include "base/err.h"
#include "base/slice.h"

#include <stdbool.h>

struct rejects_file {
    const char *path; /* borrowed */
    int fd;           /* -1: not open, or a rotated file could not be opened again */
};

/* Creates the file if it is missing. EX_NOPERM, EX_CANTCREAT. */
bool rejects_file_open(struct rejects_file *f, const char *path, struct err *e) MUST_CHECK;
bool rejects_file_append(struct rejects_file *f, struct slice lines, struct err *e) MUST_CHECK;
/* Does nothing if the file is not open. */
void rejects_file_close(struct rejects_file *f);
