/* notify.h - what the daemon tells systemd (sd_notify(3)); silent where nobody listens.
 *
 *   READY=1                        once, when the source is being consumed
 *   EXTEND_TIMEOUT_USEC            until then, every NOTIFY_EXTEND_MS: systemd's TimeoutStartSec does not end
 *                                  a daemon that waits for its store or its cluster
 *   STATUS=                        rate and lag, every NOTIFY_STATUS_MS where they changed
 *   WATCHDOG=1                     several times in WATCHDOG_USEC, while no watched thread is stuck (beat.h)
 *   RELOADING=1, READY=1           around a reload
 *   STOPPING=1, EXTEND_TIMEOUT_USEC  while draining
 *
 * Threads : one, and that is one whose own turns show that the daemon works: not a thread kept for this.
 */
#pragma once

#include "stats/beat.h"
#include "stats/status.h"

#include <stdbool.h>

#define NOTIFY_STATUS_MS    2000
#define NOTIFY_STATUS_BYTES 160
#define NOTIFY_EXTEND_MS    10000
#define NOTIFY_EXTENDED_MS  1800000 /* longer than a store takes that is opened: it may be converted */

struct notify {
    const struct clock *clock;
    struct beats beats;
    int64_t watchdog_ms;              /* 0: no watchdog */
    int64_t fed_ms, told_ms;          /* when last; monotonic */
    int64_t extended_ms;              /* when the start was extended last; monotonic; 0: never */
    bool is_ready, is_stopping;       /* said so */
    bool is_stuck;                    /* and logged */
    char status[NOTIFY_STATUS_BYTES]; /* said last */
};

void notify_init(struct notify *n, const struct clock *clock);
/* What is due: call it at least five times a second. READY=1 once the status says that it consumes. */
void notify_tick(struct notify *n, struct status *status);
void notify_reloading(const struct notify *n);
void notify_reloaded(const struct notify *n);
/* The end may take so long from now. Only the first call counts. */
void notify_stopping(struct notify *n, int64_t within_ms);
