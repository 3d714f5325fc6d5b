/* format_run.h - decodes lines by a compiled format (format.h). chain.c calls it.
 *
 * Texts   : slices of the line, with Apache's or nginx's escapes in place, as those of clf.h. JSON's escapes
 *           are undone, and numbers in another unit than their field's are written anew: both in `memory`.
 * Lists   : an OP_SUM's or OP_LAST's "-" counts as no element.
 * Absent  : "-"; and an own field that is empty.
 * Cut     : if the format ends with a text in quotes, that may lack its closing quote, as in clf.h.
 * Cost    : one pass, one loop over the ops; no allocation once the memory has grown to its use.
 * Threads : one at a time, since it caches times.
 */
#pragma once

#include "base/arena.h"
#include "ingest/decode/decoder.h"
#include "ingest/decode/format_fast.h"

struct format_run {
    struct decoder decoder; /* first: a struct format_run is a struct decoder */
    const struct format *format;
    struct arena *memory;
    struct format_clock clock;
    struct format_fast fast;
    bool has_parts; /* the format has parts of a time */
};

/* Both are borrowed. */
void format_run_init(struct format_run *run, const struct format *format, struct arena *memory);
