/* suggest.h - the words of every complaint about what a user wrote: found X, expected Y, did you mean Z.
 *
 * Distance : insertions, deletions, replacements and swapped neighbours each count one; a name is near
 *            where at most a third of the text (but always one) differs.
 * Limits   : text over SUGGEST_TEXT_MAX is near to nothing; quoted text is cut after as many bytes.
 */
#pragma once

#include "base/slice.h"

#define SUGGEST_TEXT_MAX    64
#define SUGGEST_QUOTE_BYTES (4 * SUGGEST_TEXT_MAX + 8)
#define SUGGEST_HINT_BYTES  (SUGGEST_TEXT_MAX + 32)

/* The nearest of `names` (NULL at the end), the first of several; NULL where none is near. */
const char *suggest_nearest(struct slice given, const char *const names[]);
/* ` (did you mean "path"?)`, or "" where no name is near. */
const char *suggest_hint(struct slice given, const char *const names[], char buf[SUGGEST_HINT_BYTES]);
/* `given` in double quotes on one line: control bytes and bytes that are not UTF-8 become \xHH. */
const char *suggest_quote(struct slice given, char buf[SUGGEST_QUOTE_BYTES]);
