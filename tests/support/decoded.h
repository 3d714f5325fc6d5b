/* decoded.h - what a chain makes of one line, as a text that a table of a test can hold.
 *
 *   "1286720242000 host=a own~=\x01 status=200#200"   an event: its ms, its fields in their order; ~ is odd,
 *                                                     ~~ literally so; #N is the number
 *   "reject time 7"                                   a reject: its reason and column
 */
#pragma once

#include "base/text.h"
#include "ingest/decode/decode.h"

struct decoded_case {
    const char *line, *expected;
};

/* Fills `d` by steps with blanks between them, the last one with all that is behind, and by `time` (NULL:
 * none). False: *e says why not. */
bool decoded_configure(struct decode *d, const char *steps, const char *time, struct err *e) MUST_CHECK;
/* Reads the line by a chain of its own, from memory of just its size. */
void decoded_line(const struct decode *d, struct slice line, struct text *out);
/* Fails the test, with all cases that differ, unless each line is decoded as expected. */
void decoded_check(const char *steps, const char *time, const struct decoded_case *cases, size_t count);
