/* lacks.h - what a report counts, but the first events of a file do not have: a number in a measure's field,
 * or a path. Such events count without a reject, so `import` says it.
 *
 * Looked at : the lines of the reader's next 64 KiB; of a pipe, what is there already. So nothing is asked of
 *             the events that are counted.
 * Told      : a field that is a text in some event and a number in none, as "12ms"; a path that no event has,
 *             though the report's dimensions have it; a status or size that is a text of another kind, in how
 *             many events, if the report uses that field.
 */
#pragma once

#include "aggregate/report.h"
#include "daemon/source.h"
#include "ingest/decode/constants.h"
#include "ingest/decode/decode.h"

/* Adds a line for each. `constants`: those of the file, NULL: none. Pre: as reader_peek(). */
void lacks_print(const struct source *src, const struct decode *d, const struct constants *constants,
                 const struct report *reports, size_t report_count, struct text *out);
