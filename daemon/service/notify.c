#include "daemon/service/notify.h"

#include "base/log.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <systemd/sd-daemon.h>
#include <time.h>

/* The watchdog is fed this often in its interval, so that one turn may be late. */
#define FEEDS 3

void notify_init(struct notify *n, const struct clock *clock)
{
    uint64_t watchdog_us = 0;
    *n = (struct notify){.clock = clock};
    heartbeats_init(&n->heartbeats, clock);
    if (sd_watchdog_enabled(0, &watchdog_us) > 0)
        n->watchdog_ms = (int64_t)(watchdog_us / 1000);
    n->told_ms = n->fed_ms = clock_mono_ms(clock);
}

static void feed(struct notify *n, int64_t now_ms)
{
    const struct heartbeat *stuck = heartbeats_stuck(&n->heartbeats, n->watchdog_ms);
    if (stuck != NULL) {
        if (!n->is_stuck)
            log_error("stuck",
                      "thread=%s next=\"systemd's watchdog is no longer notified, and restarts the daemon\"",
                      stuck->name);
        n->is_stuck = true;
        return;
    }
    n->is_stuck = false;
    if (now_ms - n->fed_ms < n->watchdog_ms / FEEDS)
        return;
    sd_notify(0, "WATCHDOG=1");
    n->fed_ms = now_ms;
}

static void tell_status(struct notify *n, struct status *status, int64_t now_ms)
{
    char text[NOTIFY_STATUS_BYTES];
    if (n->told_ms != 0 && now_ms - n->told_ms < NOTIFY_STATUS_MS)
        return;
    n->told_ms = now_ms;
    status_line(status, text, sizeof text);
    if (strcmp(text, n->status) == 0)
        return;
    memcpy(n->status, text, sizeof text);
    sd_notifyf(0, "STATUS=%s", text);
}

static void extend_start(struct notify *n, int64_t now_ms)
{
    if (n->extended_ms != 0 && now_ms - n->extended_ms < NOTIFY_EXTEND_MS)
        return;
    n->extended_ms = now_ms;
    sd_notifyf(0, "EXTEND_TIMEOUT_USEC=%" PRId64, INT64_C(1000) * NOTIFY_EXTENDED_MS);
}

void notify_tick(struct notify *n, struct status *status)
{
    int64_t now_ms = clock_mono_ms(n->clock);
    if (!n->is_ready && status_is_consuming(status)) {
        n->is_ready = true;
        n->told_ms = 0;
        sd_notify(0, "READY=1");
    }
    if (!n->is_ready && !n->is_stopping)
        extend_start(n, now_ms);
    if (n->watchdog_ms > 0)
        feed(n, now_ms);
    tell_status(n, status, now_ms);
}

void notify_reloading(const struct notify *n)
{
    if (n->is_ready) /* systemd compares it with its own reading of the system's clock */
        sd_notifyf(0, "RELOADING=1\nMONOTONIC_USEC=%" PRId64, clock_mono_us(&clock_system));
}

void notify_reloaded(const struct notify *n)
{
    if (n->is_ready)
        sd_notify(0, "READY=1");
}

void notify_stopping(struct notify *n, int64_t within_ms)
{
    if (n->is_stopping)
        return;
    n->is_stopping = true;
    sd_notifyf(0, "STOPPING=1\nEXTEND_TIMEOUT_USEC=%" PRId64 "\nSTATUS=stopping", within_ms * 1000);
}
