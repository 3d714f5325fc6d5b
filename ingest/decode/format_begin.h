/* format_begin.h - the beginning of lines whose format begins as combined or vhost_combined does: clf_fast.h
 * reads that of usual lines, at once. format_compile.c finds such formats; format_run.c reads the rest of a
 * line by its ops.
 *
 * Twins   : the ops read the beginning of a usual line to the same fields: tests/fuzz/fuzz_format.c.
 * Threads : one at a time.
 */
#pragma once

#include "ingest/decode/format_time.h"

struct format_begin {
    const struct format *format; /* NULL: the format does not begin so, or the CPU cannot run clf_fast.h */
    struct clf clf;
};

/* The format begins as f->builtin does, up to the quote that ends the agent; `rest` is the shape behind it.
 * Sets begin_ops, unless clf_fast.h cannot help. */
void format_begin_note(struct format *f, struct slice rest);
void format_begin_init(struct format_begin *b, const struct format *f);
/* Reads the fields of begin_ops, the literal behind them, and the time, into *ev and *clock. Returns the byte
 * behind; NULL: the line is not usual, nothing is known of it. */
const char *format_begin_take_usual(struct format_begin *b, struct format_clock *clock, struct slice line,
                                    struct event *ev);

static inline const char *format_begin_take(struct format_begin *b, struct format_clock *clock,
                                            struct slice line, struct event *ev)
{
    return b->format != NULL ? format_begin_take_usual(b, clock, line, ev) : NULL;
}
