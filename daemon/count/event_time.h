/* event_time.h - the time by which buckets expire: the wall clock, as far as counted events confirm it. The
 * writer asks for it before it calls store_expire(). Only reading the store can fail.
 *
 * Expiry is irreversible, and a wall clock may be wrong. So expiry never uses a time later than the counted
 * events. If the clock is ahead of the newest hour that has events, expiry uses the start of that hour. Else
 * expiry uses the clock, which is within that hour or behind it. If the store knows only days (or months), a
 * day (or month) takes the hour's place.
 *
 * One wrong event must not confirm a wrong clock. So an hour decides only if the hour before has events, too.
 * Otherwise the newest earlier hour with events decides, if there is one. The report with the newest events
 * decides for all reports, since some have few events.
 *
 * Limits : while no new events come, nothing expires. If clock and events are wrong together for more than an
 *          hour, expiry follows them (daemon/count/writer.h delays that).
 */
#pragma once

#include "store/store.h"

struct event_time {
    int64_t now_ms;    /* time to expire by; never after wall_ms; 0: nothing was counted yet */
    int64_t newest_ms; /* start of the hour (or day) of events that decided; 0: nothing was counted yet */
    int64_t end_ms;    /* end of that hour (or day); 0: nothing was counted yet */
    int64_t wall_ms;   /* the wall clock, as given */
};

bool event_time(struct store *st, int64_t wall_ms, struct event_time *by, struct err *e) MUST_CHECK;
