/* csv.h - finds the parts of a line of columns, with commas (CSV) or tabs (TSV) between them.
 *
 * Quotes  : as in RFC 4180, for both: a column that begins with a quote ends at the next one that is not
 *           doubled; then a separator or the end follows. A quote elsewhere stands for itself.
 * Absent  : an empty column has no text; a column of two quotes has the text "".
 * Columns : a line must have as many columns as there are names. A column is one line at most.
 * Threads : read-only once complete.
 */
#pragma once

#include "ingest/decode/part_names.h"
#include "ingest/decode/parts.h"

#define CSV_COLUMNS_MAX 256
#define CSV_SKIP        255 /* the slot of a column that nobody wants */

struct csv {
    char separator;
    size_t count;
    unsigned char slots[CSV_COLUMNS_MAX]; /* by column */
};

/* Reads the names of all columns, "time,host,-,path": a column called - is skipped. Their numbers are those
 * of the columns, from 0; *count is the number of columns. */
bool csv_names(struct slice columns, struct part_names *names, size_t *count, struct err *e) MUST_CHECK;
/* False: *reason, and *at is the byte that does not fit. */
bool csv_read(const struct csv *csv, struct slice line, struct parts *ps, enum reject_reason *reason,
              const char **at);
/* Undoes the doubled quotes of a column of csv_read(). */
size_t csv_unescape(struct slice text, char *out);
