/* text_step.h - the step of a chain that makes events of lines whose parts have names. chain.c calls it; a
 * line that does not fit is a reject.
 *
 * Line    : a carriage return at its end and a byte order mark at its beginning are no part of it.
 * Owner   : texts are slices of the line, or of the arena where an escape was undone.
 * Cost    : one pass over the line, no allocation.
 * Columns : columns of rejects count from the first byte of the line, from 1.
 */
#pragma once

#include "ingest/decode/decode.h"
#include "ingest/decode/parts.h"

struct text_step;

/* Makes the last step of `d`, which is borrowed. Pre: decode_step_has_parts(). */
struct text_step *text_step_new(const struct decode *d);
void text_step_free(struct text_step *ts);
/* The texts of the next lines are those of another record or file: `w3c` forgets its directives. */
void text_step_reset(struct text_step *ts);
/* Is the line a directive of `w3c`? Then it is heeded. A line that is `too_long` may be one, too: then no
 * names hold. */
bool text_step_heed(struct text_step *ts, struct slice line, bool too_long);
/* Did `w3c` heed other names than those of the configuration, for none of the lines since? */
bool text_step_has_idle_names(const struct text_step *ts);
/* False: *why says why the line does not fit. */
bool text_step_event(struct text_step *ts, struct slice line, struct arena *memory, struct event *ev,
                     struct reject *why);
