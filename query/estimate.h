/* estimate.h - the note that the figures of a report are estimates, since it counts one event in n. Every
 * answer of such a report has it: query_run.c, answer.c, ranking.c and prom_api.c call it. Nothing fails.
 */
#pragma once

#include "aggregate/report.h"
#include "base/text.h"

/* Adds the note, a sentence without its end; nothing if the report counts every event. */
void estimate_note(const struct report *r, struct text *out);
