/* w3c.h - finds the parts of a line in the W3C extended log file format, as IIS and CloudFront write it.
 * text_step.c calls it.
 *
 *   #Fields: date time c-ip cs-method cs-uri-stem cs-uri-query sc-status time-taken
 *   2024-01-02 03:04:05 10.0.0.1 GET /a b=c 200 15
 *
 * Fields  : a line that begins with # is a directive. #Fields: names the columns of the lines behind it, up
 *           to the next one. Names that the configuration gives hold until the first one. A #Fields: that
 *           cannot be used (no date and time, too many names, too long) makes the lines behind it rejects:
 *           they are never read by older names.
 * Names   : c-ip is the host, and so on (docs/formats.md); cs(Any-Name) is any_name, and any other name is
 *           the field in small letters, with _ for other bytes. The first column of a field counts.
 * Columns : between tabs if the line has one, else between blanks. They may be in quotes, which are doubled
 *           within. A column of - or nothing is absent.
 * Made    : cs-uri-stem?cs-uri-query is the target. The agent's + are blanks (IIS) and its %XX bytes
 *           (CloudFront). time-taken is in ms at IIS and in seconds elsewhere; duration is in seconds. Texts
 *           that are made are in `memory`.
 * Threads : one at a time.
 */
#pragma once

#include "base/err.h"
#include "ingest/decode/parts.h"
#include "ingest/file/directive.h"

#define W3C_COLUMNS_MAX 128

struct w3c;

/* Are these names that can be used, "date time c-ip …"? `needs_time`: date and time must be among them. */
bool w3c_names_are_good(struct slice names, bool needs_time, struct err *e) MUST_CHECK;

/* `names` hold until the first #Fields:; it is borrowed, and may be empty. `others`: bit per own field that
 * no column fills. */
struct w3c *w3c_new(struct slice names, bool needs_time, uint64_t others);
void w3c_free(struct w3c *w);

/* Takes a line that begins with #. Only #Fields: changes anything. */
void w3c_directive(struct w3c *w, struct slice line);
/* Forgets all directives: the names of the configuration hold. */
void w3c_reset(struct w3c *w);
/* Do other names hold than those of the configuration? */
bool w3c_has_others(const struct w3c *w);
/* No names hold until the next #Fields: the last one was too long. */
void w3c_lose(struct w3c *w);
/* False: *reason, and *at is the byte that does not fit. *at_ms is set unless the time is the broker's. */
bool w3c_read(struct w3c *w, struct slice line, struct parts *ps, struct arena *memory, int64_t *at_ms,
              enum reject_reason *reason, const char **at);
