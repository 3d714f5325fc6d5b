/* format_time.h - reads the times of a compiled format: format_run.c calls it for ops of a time, then once at
 * the end of the line. A time of one part is read at once; the parts of others are collected.
 *
 * Zone    : a time without a zone is UTC, as in timestamp.h.
 * Cost    : the last minutes of a CLF time, and the last ISO minute, are cached.
 * Threads : one at a time, since it caches.
 */
#pragma once

#include "ingest/decode/format.h"
#include "ingest/timestamp.h"

struct format_clock {
    struct clf_minute minutes[2];
    struct timestamp_minute iso;
    int64_t at_ms; /* the line's time, without its fraction and if it is not assembled */
    struct civil civil;
    int64_t zone_ms;
    int fraction_ms;
    const char *start; /* first byte of the first part; NULL: no part was read */
};

void format_clock_init(struct format_clock *k);
/* Begins a line of a format with parts of a time. */
void format_clock_reset(struct format_clock *k);
/* Takes the op's part at `p`; returns the byte behind it. NULL: *reason says why, *at where. */
const char *format_clock_take(struct format_clock *k, const struct format *f, const struct format_op *op,
                              const char *p, const char *end, enum reject_reason *reason, const char **at);
/* The time of the line. False: it is no date of the years 1970 to 9999. */
bool format_clock_finish(const struct format_clock *k, const struct format *f, int64_t *at_ms);
