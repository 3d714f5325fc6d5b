/* parts.h - the named parts of one line, and the event that they make. Readers of lines (logfmt.h) find the
 * parts; text_step.c makes the event.
 *
 * Slots   : a part whose name is a field has the field's number as its slot; another part that may be the
 *           time has one of the slots behind.
 * Time    : the first of `times` that has a text; "" and "-" are none. It is a time of
 *           text_time.h.
 * Fields  : as chain_field.h puts them. If a line has a part twice, the last counts.
 * Owner   : texts are slices of the line, or of the arena where an escape was undone.
 * Columns : columns of rejects count from the first byte of the line, from 1.
 */
#pragma once

#include "base/arena.h"
#include "ingest/decode/text_time.h"
#include "ingest/event.h"

#define PARTS_TIMES_MAX 4
#define PARTS_TIME      FIELD_MAX /* the slot of the first time */
#define PARTS_SLOTS     (PARTS_TIME + PARTS_TIMES_MAX)
#define PARTS_WORDS     2 /* of 64 slots each */

/* Undoes the escapes of a text. `out` needs text.len bytes; returns how many are used. */
typedef size_t parts_unescape_fn(struct slice text, char *out);

struct parts {
    uint64_t has[PARTS_WORDS];     /* bit per slot: its text is valid */
    uint64_t escaped[PARTS_WORDS]; /* bit per slot: its text has escapes */
    struct slice texts[PARTS_SLOTS];
    parts_unescape_fn *unescape;     /* NULL: no text has escapes */
    unsigned times[PARTS_TIMES_MAX]; /* slots of parts that may be the time, the first one first */
    bool is_strict;                  /* a text that is no status or no size rejects the line */
    size_t time_count;               /* number of `times`; 0: the caller knows the time */
    struct text_time time;
};

/* The names of parts that may be the time, the first one first: the name of the JSON pointer `pointer`, or
 * the default names if it is "". They live as long as the pointer. Returns their number. */
size_t parts_time_names(const char *pointer, struct slice names[PARTS_TIMES_MAX]);

static inline void parts_clear(struct parts *ps)
{
    memset(ps->has, 0, sizeof ps->has);
}

static inline void parts_put(struct parts *ps, unsigned slot, struct slice text, bool is_escaped)
{
    uint64_t bit = (uint64_t)1 << slot % 64, *escaped = &ps->escaped[slot / 64];
    ps->texts[slot] = text;
    ps->has[slot / 64] |= bit;
    *escaped = is_escaped ? *escaped | bit : *escaped & ~bit;
}

/* Makes an event of the parts of `line`. False: *why says why they make none. */
bool parts_event(struct parts *ps, struct slice line, struct arena *memory, struct event *ev,
                 struct reject *why);
