/* rejects_file.h - the file that keeps rejected lines: rejects.file, or --rejects of an import.
 *
 * Appended text is on disk whole, or leaves nothing behind: when the disk fills up in the middle of a line,
 * the file is cut back to its last length, and the same text can be appended again later. Only a kill or a
 * power cut can leave the beginning of a line; the next open ends that line, and it follows again whole.
 *
 * Errors  : writing fails with EX_IOERR, retryable: a full disk may get room.
 * Threads : one.
 */
#pragma once

#include "base/err.h"
#include "base/slice.h"

#include <stdbool.h>

struct rejects_file {
    const char *path; /* borrowed */
    int fd;           /* -1: not open */
};

/* Makes it if it is missing. EX_NOPERM, EX_CANTCREAT. */
bool rejects_file_open(struct rejects_file *f, const char *path, struct err *e) MUST_CHECK;
bool rejects_file_append(const struct rejects_file *f, struct slice lines, struct err *e) MUST_CHECK;
/* Nothing happens to one that is not open. */
void rejects_file_close(struct rejects_file *f);
