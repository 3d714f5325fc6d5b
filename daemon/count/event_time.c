#include "daemon/count/event_time.h"

#include "base/check.h"
#include "store/reader.h"

/* The start of the newest bucket with counts; or of the next newest, if the two are not adjacent. */
static int64_t confirmed_ms(const struct newest *n)
{
    bool is_alone = n->before_ms >= 0 && span_next(n->span, n->before_ms) != n->start_ms;
    return is_alone ? n->before_ms : n->start_ms;
}

bool event_time(struct store *st, int64_t wall_ms, struct event_time *by, struct err *e)
{
    *by = (struct event_time){.wall_ms = wall_ms};
    for (size_t r = 0; r < st->report_count; r++) {
        struct newest newest;
        if (!store_newest(st, r, CIVIL_END_MS, &newest, e))
            return false;
        if (newest.start_ms < 0)
            continue;
        int64_t from_ms = confirmed_ms(&newest), now_ms = wall_ms < from_ms ? wall_ms : from_ms;
        if (wall_ms >= from_ms && wall_ms < span_next(newest.span, from_ms))
            now_ms = wall_ms;
        if (now_ms < by->now_ms)
            continue;
        by->now_ms = now_ms;
        by->newest_ms = from_ms;
        by->end_ms = span_next(newest.span, from_ms);
    }
    ASSERT(by->now_ms == 0 || by->now_ms <= wall_ms); /* expiry is irreversible */
    return true;
}
