/* hand_over.h - hands files of `tallyd import` and `tallyd backfill` to the daemon that writes the store. The
 * daemon counts them. daemon/file/handover.h has the messages between both.
 */
#pragma once

#include "aggregate/batch.h"
#include "config/config.h"
#include "store/backfill.h"

#include <stdatomic.h>

struct handover_reply;

struct hand_over {
    const struct config *config;
    bool has_config;    /* it was given by -c: the daemon must count by the same sources and reports */
    const char *decode; /* text of --decode; NULL: as the daemon's configuration says */
    const char *source_id;
    const char *report;         /* name of the report to backfill; NULL: import */
    struct backfill_times only; /* backfill only events of these times */
    bool last_line, force, quiet;
    const atomic_bool *stop;
};

/* Returns a connected socket, or -1 if no daemon writes the configured store. */
int hand_over_connect(const struct hand_over *h);
/* Hand over one file, and wait until it is counted. It closes the socket `fd`; -1: the daemon has gone.
 * *rp: the last reply, also after a failure. */
bool hand_over_file(const struct hand_over *h, int fd, const char *path, struct handover_reply *rp,
                    struct err *e) MUST_CHECK;
/* Have it backfill the report from its topics. As hand_over_file(). */
bool hand_over_topics(const struct hand_over *h, int fd, struct handover_reply *rp, struct err *e) MUST_CHECK;
