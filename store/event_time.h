/* event_time.h - the time that expiry goes by: the wall clock, as far as counted events confirm it.
 *
 * Expiry is irreversible, and a wall clock may be wrong. So expiry never goes by a time that is later than
 * the events that were counted: while the clock is within the newest hour that has events (or day, where the
 * store knows only days), it is right; otherwise expiry goes by the start of that hour.
 *
 * One wrong event must not confirm a wrong clock. So an hour confirms it only if the hour before has events,
 * too; otherwise the newest hour before it decides. A report may have few events: the report whose events
 * are the newest decides for all.
 *
 * Limits : while no new events come, nothing expires. If clock and events are wrong together for more than an
 *          hour, expiry goes by them (writer.h delays that).
 */
#pragma once

#include "store/store.h"

struct event_time {
    int64_t now_ms;    /* what expiry goes by; never after wall_ms; 0: nothing was counted yet */
    int64_t newest_ms; /* start of the hour (or day) of events that it was found by; 0: the same */
    int64_t end_ms;    /* of that hour; 0: the same */
    int64_t wall_ms;
};

bool event_time(struct store *st, int64_t wall_ms, struct event_time *by, struct err *e) MUST_CHECK;
