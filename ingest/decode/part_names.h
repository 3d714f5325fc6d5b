/* part_names.h - the names that a configuration gives to the parts of a line. csv.c adds those of columns,
 * line_regex.c those of groups; decode.c and text_step.c make fields of them.
 *
 * Errors : EX_CONFIG, "found …, expected …".
 */
#pragma once

#include "base/err.h"
#include "ingest/event.h"

#define PART_NAMES_MAX 64

struct part_name {
    unsigned number; /* the part's number in the line, as its step counts them */
    char text[FIELD_NAME_BYTES];
};

struct part_names {
    size_t count;
    struct part_name list[PART_NAMES_MAX];
};

/* Refuses a text that can be no field's name, a name that is there already, and too many names. */
bool part_names_add(struct part_names *names, struct slice text, unsigned number, struct err *e) MUST_CHECK;
