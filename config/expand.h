/* expand.h - expands references in values: ${NAME} from the environment, file:PATH from a file.
 *
 * Why    : secrets stay out of the configuration file, of printed configurations and of errors.
 * Limits : a file is a regular one of at most EXPAND_FILE_BYTES_MAX; a line feed at its end is dropped.
 * Errors : "found X, expected Y"; X quotes only the reference.
 */
#pragma once

#include "base/err.h"
#include "base/text.h"

#define EXPAND_FILE_BYTES_MAX 4096

/* Does it contain ${, escaped or not? */
bool expand_is_reference(struct slice raw);
/* Adds `raw` to `out` with its references expanded; `$${` becomes the text ${. `may_be_file`: file:PATH is a
 * reference, too. *referred: `raw` had a reference. */
bool expand_text(struct slice raw, bool may_be_file, struct text *out, bool *referred,
                 struct err *e) MUST_CHECK;
/* Adds `s` in double quotes, as YAML reads it. Pre: `s` is UTF-8. */
void expand_quote(struct slice s, struct text *out);
/* Adds `text`, escaped so that expand_text() returns it unchanged. */
void expand_escape(struct slice text, struct text *out);
