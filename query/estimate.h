/* estimate.h - the notes that figures are less exact than usual: a report counts one event in n, so all are
 * estimates; or longer time buckets were read, in which histograms have wider buckets. query_run.c, answer.c
 * and prom_api.c call it. Nothing fails.
 */
#pragma once

#include "aggregate/report.h"
#include "base/text.h"

/* Adds the note, a sentence without its end; nothing if the report counts every event. */
void estimate_note(const struct report *r, struct text *out);
/* Adds the note of each of these histograms (a bit by measure), if time buckets of `longest` were read; a
 * sentence without its end, or several; nothing if none of them has wider buckets there. */
void estimate_note_width(const struct report *r, uint32_t histograms, enum span longest, struct text *out);
