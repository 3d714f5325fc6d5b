/* suggest.h - parts of every error about user input: found X, expected Y, did you mean Z.
 *
 * Distance : insertions, deletions, replacements and swapped neighbours each count one. A name is near if
 *            its distance is at most a third of the text's length; a distance of one is always near.
 * Limits   : text over SUGGEST_TEXT_MAX bytes has no near name; quoted text is cut after as many bytes.
 */
#pragma once

#include "base/slice.h"

#define SUGGEST_TEXT_MAX    64
#define SUGGEST_QUOTE_BYTES (4 * SUGGEST_TEXT_MAX + 8)
#define SUGGEST_HINT_BYTES  (SUGGEST_TEXT_MAX + 32)

/* The nearest of `names` (NULL at the end), the first if several are equally near; NULL: none is near. */
const char *suggest_nearest(struct slice given, const char *const names[]);
/* As suggest_nearest(), but its distance is one at most: for names that may be meant as they are. */
const char *suggest_slip(struct slice given, const char *const names[]);
/* ` (did you mean "path"?)`, or "" if no name is near. */
const char *suggest_hint(struct slice given, const char *const names[], char buf[SUGGEST_HINT_BYTES]);
/* `given` in double quotes on one line: control bytes and bytes that are not UTF-8 become \xHH. */
const char *suggest_quote(struct slice given, char buf[SUGGEST_QUOTE_BYTES]);
