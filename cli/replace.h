/* replace.h - a report that was counted again, with another filter or decoding, beside the one whose place it
 * takes: `tallyd backfill REPORT --compare OLD` and `--take OLD`. cmd_backfill.c calls it.
 *
 * Errors: printed; each function returns the exit status.
 */
#pragma once

#include "config/config.h"

/* Print the figures of the days in which both reports differ. */
int replace_compare(const struct config *c, const char *report, const char *old);
/* Make the report the newest generation of `old`. Refused unless it has all that `old` counted. */
int replace_take(const struct config *c, const char *report, const char *old, bool drops_old);
