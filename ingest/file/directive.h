/* directive.h - the last #Fields: before a place of a file in the W3C extended log file format. The reader
 * passes a file's bytes in order; each block gets the directive that holds at its first line.
 *
 * Limits : it keeps at most `max` bytes of a directive. The caller tells a cut one by its length.
 * Cost   : a search for the line feed of each line.
 * Threads: one at a time.
 */
#pragma once

#include "base/text.h"

#define DIRECTIVE_FIELDS "#Fields:"

/* Of a line that is passed. */
enum directive_state { DIRECTIVE_START, DIRECTIVE_WITHIN, DIRECTIVE_NONE };

/* All zeros but `max` at first. */
struct directive {
    size_t max;
    struct text last; /* the last #Fields:, without its line feed; empty: there was none */
    struct text line; /* the beginning of a directive that has not ended */
    enum directive_state state;
};

/* Removes a byte order mark before the line, and a carriage return behind it. */
struct slice directive_trim(struct slice line);
/* Takes the next bytes of the file. */
void directive_pass(struct directive *d, struct slice bytes);
void directive_fini(struct directive *d);
