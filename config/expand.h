/* expand.h - values that come from elsewhere: ${NAME} from the environment, file:PATH from a file.
 *
 * Why    : secrets stay out of the configuration file, out of what is printed and out of errors.
 * Limits : a file is a regular one of at most EXPAND_FILE_BYTES_MAX; a line feed at its end is dropped.
 * Errors : "found X, expected Y", which quotes the reference only.
 */
#pragma once

#include "base/err.h"
#include "base/text.h"

#define EXPAND_FILE_BYTES_MAX 4096

/* Is there a ${ in it, with or without an escape? */
bool expand_is_reference(struct slice raw);
/* Adds to `out` what `raw` stands for; `$${` is the text ${. `may_be_file`: so is file:PATH.
 * *referred: something came from elsewhere. */
bool expand_text(struct slice raw, bool may_be_file, struct text *out, bool *referred,
                 struct err *e) MUST_CHECK;
/* Adds `text` such that expand_text() gives it back. */
void expand_escape(struct slice text, struct text *out);
