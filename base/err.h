/* err.h - an operating failure: an error of the outside world, in words a user can act on.
 *
 * Shape  : functions that can fail return bool and fill `struct err *e`; on false nothing else has
 *          changed. `return err_set(e, EX_IOERR, "cannot read %s: %s", ...)` is the idiom.
 * Text   : one line, and safe for a terminal (show.h), whatever a file name or a server put into it. It may
 *          be cut.
 * Codes  : from <sysexits.h>; a command exits with the code of the error that ended it.
 * Retry  : `retryable` says that the same call may succeed later (a locked file, a full disk).
 */
#pragma once

#include "base/check.h"

#include <stdbool.h>
#include <sysexits.h>

struct err {
    int code; /* exit code from <sysexits.h> */
    bool retryable;
    char text[768];
};

/* All return false, so that the caller can `return err_set(...)`. */
bool err_set(struct err *e, int code, const char *format, ...) PRINTF_LIKE(3, 4);
bool err_set_retryable(struct err *e, int code, const char *format, ...) PRINTF_LIKE(3, 4);
/* Puts "text: " before the error's present text. */
bool err_prefix(struct err *e, const char *format, ...) PRINTF_LIKE(2, 3);
