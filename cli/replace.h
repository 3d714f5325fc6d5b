/* replace.h - a report that was counted again, with another filter or decoding, beside the one whose place it
 * takes: `tallyd backfill REPORT --compare OLD` and `--take OLD`. cmd_backfill.c calls it.
 *
 * Errors: printed; each function returns the exit status.
 */
#pragma once

#include "config/config.h"
#include "store/backfill.h"

struct replace_request {
    const char *report, *old;    /* names: the new one, and the one whose place it takes */
    struct backfill_times times; /* of --from and --to: it keeps the old one's counts of other times */
    bool drops_old;
    bool forced; /* although it lacks what the old one counted */
};

/* Print the figures of the days in which both reports differ. */
int replace_compare(const struct config *c, const char *report, const char *old);
/* Make the report the newest generation of `old`. Refused unless it has all that `old` counted of the times,
 * or is forced. */
int replace_take(const struct config *c, const struct replace_request *rq);
