/* fit.h - which format fits these lines? The one place that knows: `tallyd explain`, `tallyd detect`, and
 * samples of rejects ask it.
 *
 * Tried   : presets (preset.h), metrics, the line protocol, JSON, logfmt, lines of access logs (shape.h), and
 *           these behind a header of syslog or of a container, or in the member /message or /log of JSON.
 *           Not tried are formats that a line does not give away: regular expressions, and columns, whose
 *           names are in a file's first line.
 * Sure    : a format is named only if it reads all lines, and if the lines leave no doubt about their fields.
 * Fields  : makes no own fields (event.h), so a daemon may ask without changing what it counts.
 * Cost    : some µs a line; fit_new() takes some 100 KiB. Not for the hot path.
 * Threads : one at a time.
 */
#pragma once

#include "ingest/decode/decode.h"
#include "ingest/reject.h"

#define FIT_TIME_BYTES 32

struct fit;

/* A format. Zeros at first; its owner calls text_fini(&steps). */
struct fit_format {
    struct text steps;         /* as --decode takes it */
    char time[FIT_TIME_BYTES]; /* the source's `time`, as "/date"; "": by default */
    const char *doubt;         /* NULL: none; see fit_find() */
};

struct fit *fit_new(size_t line_max);
void fit_free(struct fit *f);

void fit_add(struct fit *f, struct slice line);
/* Forgets the lines. */
void fit_clear(struct fit *f);
/* After a line: why presets with an expression are not tried; NULL: they are. */
const char *fit_missing(const struct fit *f);
/* Finds the most specific format that reads all lines. False: there is none; if the lines are of an access
 * log, `doubt` says why. True: `doubt` is NULL, or says which fields are skipped. */
bool fit_find(const struct fit *f, struct fit_format *found);
/* Finds the format of one line, also one that is only likely: then `doubt` is the condition under which it
 * fits. */
bool fit_line(struct fit *f, struct slice line, struct fit_format *found);
/* Finds the format of a line that `decode` rejected for this reason, as fit_line() does. False: there is none
 * but `decode` itself, or no format would help. */
bool fit_reject(struct fit *f, const struct decode *decode, struct slice line, enum reject_reason reason,
                struct fit_format *found);
/* Finds another format of a line that `decode` read, if `decode` most likely took a text before the host for
 * the host: combined reads "www.example.org 10.0.0.1 - - […", and a container's header. False: there is
 * none. */
bool fit_moved(const struct decode *decode, struct slice line, struct fit_format *found);
/* Adds "json", or "apache:%v … (if …)", for a reader. */
void fit_print(const struct fit_format *found, struct text *out);
