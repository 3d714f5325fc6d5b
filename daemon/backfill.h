/* backfill.h - counts for a report the lines of a file that were counted before without it: it was configured
 * later, or not all the time. `tallyd backfill` calls it for each file, or has a running daemon
 * do so (daemon/file/desk_backfill.h).
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

#define BACKFILL_QUEUE_BYTES ((int64_t)8 << 20) /* of a topic, in work */

struct backfill {
    const struct config *config;
    struct store *store;         /* its positions are read */
    struct pipeline *pipeline;   /* of the report alone, with options.backfills and the plan's times */
    struct backfill_plan *plan;  /* what is left to count; stretches that were counted become empty */
    const struct decode *decode; /* NULL: as configured for the file */
    const atomic_bool *stop;     /* EX_TEMPFAIL once it is true; what was counted stays */
};

/* The part of a file that backfill_file() counted. */
struct backfilled {
    bool is_known;                   /* its content was counted before */
    size_t position;                 /* index in plan.positions; valid if is_known */
    char source[RANGE_SOURCE_BYTES]; /* its name in the store; valid if is_known */
    int64_t bytes, lines;            /* counted now */
};

/* Count the file at the path. `fd`: the file, open, which stays the caller's; -1: it is opened. */
bool backfill_file(struct backfill *b, const char *path, int fd, struct backfilled *done,
                   struct err *e) MUST_CHECK;
/* The limits of a shard that backfills within a daemon: a share of those of its feeds. */
struct shard_limits backfill_limits(const struct config *c);
/* The bytes of a position that are left to count. */
int64_t backfill_left(const struct backfill_plan *plan, size_t position);
