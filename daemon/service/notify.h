/* notify.h - what the daemon tells systemd (sd_notify(3)); without systemd it does nothing.
 *
 *   READY=1                        once, when the source is being consumed
 *   EXTEND_TIMEOUT_USEC            until then, every NOTIFY_EXTEND_MS: systemd's TimeoutStartSec does not end
 *                                  a daemon that waits for its store or its cluster
 *   STATUS=                        rate and lag, every NOTIFY_STATUS_MS if they changed
 *   WATCHDOG=1                     several times in WATCHDOG_USEC, while no thread is stuck (heartbeat.h)
 *   RELOADING=1, READY=1           around a reload
 *   STOPPING=1, EXTEND_TIMEOUT_USEC  while draining
 *
 * Threads : one: a thread whose own turns show that the daemon works, not a thread made for this.
 */
#pragma once

#include "stats/heartbeat.h"
#include "stats/status.h"

#include <stdbool.h>

#define NOTIFY_STATUS_MS    2000
#define NOTIFY_STATUS_BYTES 160
#define NOTIFY_EXTEND_MS    10000
#define NOTIFY_EXTENDED_MS  1800000 /* longer than opening a store takes: it may be converted */

struct notify {
    const struct clock *clock;
    struct heartbeats heartbeats;
    int64_t watchdog_ms;              /* 0: no watchdog */
    int64_t fed_ms, told_ms;          /* monotonic times of the last WATCHDOG=1 and STATUS= */
    int64_t extended_ms;              /* monotonic time of the last start extension; 0: never */
    bool is_ready, is_stopping;       /* READY=1, STOPPING=1 were sent */
    bool is_stuck;                    /* a thread is stuck, and the log says so */
    char status[NOTIFY_STATUS_BYTES]; /* last STATUS= sent */
};

void notify_init(struct notify *n, const struct clock *clock);
/* Send what is due. Call it at least five times a second. Sends READY=1 once the status says that the source
 * is consumed. */
void notify_tick(struct notify *n, struct status *status);
void notify_reloading(const struct notify *n);
void notify_reloaded(const struct notify *n);
/* Announce a stop that may take within_ms from now. Only the first call counts. */
void notify_stopping(struct notify *n, int64_t within_ms);
