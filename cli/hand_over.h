/* hand_over.h - `tallyd import` beside a running daemon. cmd_import.c calls it to hand each file to the
 * daemon that writes the store, which counts it. daemon/file/handover.h has the messages between both. */
#pragma once

#include "aggregate/batch.h"
#include "config/config.h"

#include <stdatomic.h>

struct hand_over {
    const struct config *config;
    bool has_config;    /* it was given by -c: the daemon must count by the same sources and reports */
    const char *decode; /* text of --decode; NULL: as the daemon's configuration says */
    const char *source_id;
    bool last_line, force, quiet;
    const atomic_bool *stop;
};

/* Connect to the daemon that writes the configured store; -1: there is none. */
int hand_over_connect(const struct hand_over *h);
/* Hand over one file, and print what the daemon has counted of it. It takes over `fd`. *begun: the file's
 * source in the store, and as `to` where this import began; of an empty file no source. */
bool hand_over_file(const struct hand_over *h, int fd, const char *path, struct range *begun,
                    struct err *e) MUST_CHECK;
