/* desk_backfill.h - counts for a report the lines of a file that `tallyd backfill` hands over (desk.h). The
 * desk's thread and one more read and decode the file (daemon/backfill.h). The daemon's writer applies their
 * batches between those of its sources (engine_lend()), so nothing but a batch holds live events up.
 *
 * Batches: are of at most DESK_BACKFILL_MS of reading, and within backfill_limits(): live events wait
 *          for one batch at most.
 * Threads: the desk's.
 */
#pragma once

#include "daemon/backfill.h"
#include "daemon/engine.h"

#define DESK_BACKFILL_MS 100

struct desk_backfill {
    struct engine *engine;
    struct store *positions;     /* a STORE_READ handle of the engine's store */
    const char *report;          /* its name */
    struct backfill_times only;  /* count only events of these times */
    const char *path;            /* of the file */
    int fd;                      /* the file, open; borrowed */
    const struct decode *decode; /* NULL: as configured for the file */
    /* Is called several times a second with `context`. False ends the reading: what was counted stays. */
    bool (*go_on)(void *context, const struct pipeline_progress *progress);
    void *context;
};

/* EX_CONFIG: the daemon has no such report. */
bool desk_find_report(const struct desk_backfill *d, size_t *counted, size_t *stored,
                      struct err *e) MUST_CHECK;
/* Count the file. Fails as desk_find_report() does, too. */
bool desk_backfill(const struct desk_backfill *d, struct backfilled *done, struct err *e) MUST_CHECK;
