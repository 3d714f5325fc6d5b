/* copy.h - copies a whole store into an empty one, of the same or the other kind. `tallyd admin copy` calls
 * it.
 *
 * Exact  : the target has every time bucket that the source still keeps, every series, the positions, the
 *          books and the expiry watermarks. So every query has the same answer, and counting goes on in the
 *          target where it ended in the source.
 * Moment : the copy is of one moment. A file may be written meanwhile: the copy is of one snapshot. A server
 *          has none, so a database with a living writer is refused, before and after the reading.
 * Left   : raw events, and earlier generations of a report, which no query reads. Cached rankings and
 *          documents of years and weeks are made anew by the jobs of the target.
 * Killed : the target is an unfinished copy then (store/fill.h). The next copy begins anew.
 * Memory : that of copier.h.
 * Errors : those of both stores. EX_CANTCREAT: the target is not empty. EX_TEMPFAIL: a writer is alive, or
 *          the copy was stopped.
 */
#pragma once

#include "store/store.h"

struct store_copying {
    const char *from, *to; /* URLs */
    bool dry;              /* whether to say what would be copied, and write nothing */
    /* Called now and then. `what` names the work under way; `total` is 0 if unknown. False ends the work. */
    bool (*goes_on)(void *context, const char *what, uint64_t done, uint64_t total);
    void *context;
    const struct store_options *options; /* of the target; without watermarks */
};

/* `said` receives a report of the work, for a person. */
bool store_copy_all(const struct store_copying *c, struct text *said, struct err *e) MUST_CHECK;
