/* preset.h - names for the formats of servers that have a format of their own: `decode: haproxy`. A preset
 * stands for a regular expression or for `json`, with the origins of its fields.
 *
 * Names   : fields are named as in event.h where it has them, else as the server's documentation does.
 *           Milliseconds are in fields that end in _ms; other durations are seconds.
 * Owner   : the table lives as long as the process.
 * Source  : the servers' own documentation of their logs; docs/formats.md names the pages.
 */
#pragma once

#include "base/slice.h"

#define PRESET_FIELDS_MAX 16

struct preset {
    const char *name;
    const char *step; /* as decode_add_step() takes it */
    struct {
        const char *name, *origin; /* as decode_add_field() takes them; NULL: no more */
    } fields[PRESET_FIELDS_MAX];
};

/* The presets; the last one has no name. */
extern const struct preset presets[];

/* NULL: there is none of this name. */
const struct preset *preset_find(struct slice name);
