/* hand_over.h - `tallyd import` and `tallyd backfill` beside a running daemon. They call it to hand each file
 * to the daemon that writes the store, which counts it. daemon/file/handover.h has the messages between both.
 */
#pragma once

#include "aggregate/batch.h"
#include "config/config.h"

#include <stdatomic.h>

struct handover_reply;

struct hand_over {
    const struct config *config;
    bool has_config;    /* it was given by -c: the daemon must count by the same sources and reports */
    const char *decode; /* text of --decode; NULL: as the daemon's configuration says */
    const char *source_id;
    const char *report; /* name of the report to backfill; NULL: import */
    bool last_line, force, quiet;
    const atomic_bool *stop;
};

/* Connect to the daemon that writes the configured store; -1: there is none. */
int hand_over_connect(const struct hand_over *h);
/* Hand over one file, and wait until it is counted. It closes the connection `fd`; -1: the daemon has gone.
 * *rp: the last reply, also after a failure. */
bool hand_over_file(const struct hand_over *h, int fd, const char *path, struct handover_reply *rp,
                    struct err *e) MUST_CHECK;
