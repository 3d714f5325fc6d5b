/* level.h - the text that one step of a chain splits: into lines, or into JSON values. chain.c has a level
 * for each step.
 *
 * Owner   : the text is borrowed.
 * Threads : one at a time.
 * Errors  : none; text that is not JSON is reported by a result.
 */
#pragma once

#include "base/slice.h"

#include <stdbool.h>

/* The rest of the text that one step splits. The first step's text is the record; each further step's text is
 * what the step before it unwrapped. */
struct level {
    const char *start; /* first byte of the whole text */
    const char *p, *end;
    bool is_done;
    bool in_array;  /* JSON: between elements of an array */
    bool has_begun; /* JSON: after a first value or an empty array */
};

static inline void level_start(struct level *l, struct slice text)
{
    *l = (struct level){.start = text.ptr, .p = text.ptr, .end = slice_end(text)};
}

/* Takes the next line. A line feed at the end of a message begins no further line. */
static inline struct slice level_take_line(struct level *l)
{
    const char *from = l->p, *feed = from < l->end ? memchr(from, '\n', (size_t)(l->end - from)) : NULL;
    if (feed == NULL) {
        l->is_done = true;
        return slice_of(from, (size_t)(l->end - from));
    }
    l->p = feed + 1;
    l->is_done = l->p == l->end;
    return slice_of(from, (size_t)(feed - from));
}

/* Moves to the start of the next JSON value, into an array if one begins. False: there is no value, or
 * *broken. */
bool level_find_value(struct level *l, bool *broken);
/* After any value: takes the separator, or the end of the array. False: neither follows. */
bool level_take_separator(struct level *l);
/* Skips text that is not JSON, from `at`: resumes at the next line that begins with '{' or '[', or ends the
 * level. Returns the end of the skipped text. */
const char *level_skip_broken(struct level *l, const char *at);
