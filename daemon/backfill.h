/* backfill.h - counts for a report the lines of a file that were counted before without it: it was configured
 * later, or not all the time. `tallyd backfill` calls it for each file.
 *
 * Exact  : a line counts in the report once, and in nothing else: a batch moves the report's entries in the
 *          books with its counts (store/backfill.h). After a crash the same call goes on.
 * File   : it is recognised by its content, as an import does. Only lines before its position are read, so a
 *          daemon or an import goes on behind them.
 * Like then: events that were in the future when the file was counted stay rejected. Decoding is today's:
 *          the books then show other rejects than the source has, and `verify` finds them.
 * Threads: those of a pipeline. The caller's is its writer.
 */
#pragma once

#include "config/config.h"
#include "daemon/count/pipeline.h"
#include "store/backfill.h"

struct backfill {
    const struct config *config;
    struct store *store;         /* opened with the report alone; STORE_WRITE and with `backfills` */
    struct pipeline *pipeline;   /* on that store, with options.backfills */
    struct backfill_plan *plan;  /* what is left to count; stretches that were counted become empty */
    const struct decode *decode; /* NULL: as configured for the file */
    const atomic_bool *stop;     /* EX_TEMPFAIL once it is true; what was counted stays */
};

/* The part of a file that backfill_file() counted. */
struct backfilled {
    bool is_known;        /* its content was counted before */
    size_t position;      /* index in plan.positions; valid if is_known */
    int64_t bytes, lines; /* counted now */
};

bool backfill_file(struct backfill *b, const char *path, struct backfilled *done, struct err *e) MUST_CHECK;
/* The bytes of a position that are left to count. */
int64_t backfill_left(const struct backfill_plan *plan, size_t position);
