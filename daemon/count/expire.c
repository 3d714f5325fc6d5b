#include "daemon/count/expire.h"

#include "aggregate/keep.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/units.h"
#include "store/common/watermarks.h"
#include "store/writer.h"

#include <inttypes.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define WAIT_MS 20 /* until others know the watermarks */
#define SHOW_MS 500

bool expire_time(struct store *st, bool by_clock, struct event_time *by, struct err *e)
{
    int64_t wall_ms = clock_wall_ms(st->clock);
    *by = (struct event_time){.now_ms = wall_ms, .newest_ms = wall_ms, .wall_ms = wall_ms};
    return by_clock || event_time(st, wall_ms, by, e);
}

bool expire_has_limits(const struct store *st, const struct watermarks *watermarks)
{
    bool has = st->raw_count > 0;
    for (size_t r = 0; r < st->report_count; r++) {
        const struct report *report = &st->reports[r];
        has |= keep_is_limited(report) || watermarks[r].before_ms[report_cell(report)] > 0;
    }
    return has;
}

static bool find_limits(struct store *st, bool *has, struct err *e)
{
    struct watermarks *watermarks = xcalloc(st->report_count + 1, sizeof *watermarks);
    bool good = true;
    for (size_t r = 0; good && r < st->report_count; r++)
        good = store_watermarks(st, r, &watermarks[r], e);
    *has = good && expire_has_limits(st, watermarks);
    free(watermarks);
    return good;
}

bool expire_all(struct store *st, bool by_clock, const atomic_bool *stop, bool quiet, uint64_t *rows,
                struct err *e)
{
    struct expired expired = {.more = true};
    struct event_time by;
    bool has_limits, shows = !quiet && isatty(STDERR_FILENO);
    if (!find_limits(st, &has_limits, e))
        return false;
    if (!has_limits)
        return true;
    bool good = expire_time(st, by_clock, &by, e);
    int64_t show_ms = clock_mono_ms(st->clock) + SHOW_MS;
    while (good && expired.more && !atomic_load(stop)) {
        char number[UNITS_NUMBER_BYTES];
        good = store_expire(st, by.now_ms, true, &expired, e);
        *rows += expired.rows;
        if (shows && clock_mono_ms(st->clock) >= show_ms) {
            fprintf(stderr, "\rexpired: %s so far\033[K", units_number((int64_t)*rows, number));
            show_ms = clock_mono_ms(st->clock) + SHOW_MS;
        }
        if (good && expired.more && expired.rows == 0)
            nanosleep(&(struct timespec){.tv_nsec = WAIT_MS * 1000000L}, NULL);
    }
    if (shows)
        fputs("\r\033[K", stderr);
    return good;
}

/* Compute where the report's watermarks would move. *is_there false: nothing of it was counted yet. */
static bool move(struct store *st, const struct report *r, int64_t now_ms, struct watermarks *before,
                 struct watermarks *after, bool *is_there, struct err *e)
{
    int report = store_find_report(st, slice_text(r->name));
    *is_there = report >= 0;
    if (!*is_there)
        return true;
    if (!store_watermarks(st, (size_t)report, before, e))
        return false;
    *after = *before;
    (void)store_move_watermarks(st, r, r->keep_ms, now_ms, after);
    return true;
}

bool expire_count(struct store *st, const struct report *r, uint64_t *moving, struct err *e)
{
    struct event_time by;
    struct watermarks before, after;
    bool is_there;
    *moving = 0;
    if (!expire_time(st, false, &by, e) || !move(st, r, by.now_ms, &before, &after, &is_there, e))
        return false;
    for (int s = 0; is_there && s < SPAN_COUNT; s++)
        *moving += after.before_ms[s] > before.before_ms[s];
    return true;
}

static const char *from_text(int64_t watermark_ms, char iso[CIVIL_ISO_BYTES])
{
    return watermark_ms > 0 ? civil_iso(watermark_ms, iso) : "the first";
}

bool expire_show(FILE *out, struct store *st, const struct report *reports, size_t report_count,
                 const struct event_time *by, size_t *count, struct err *e)
{
    *count = 0;
    for (size_t r = 0; r < report_count; r++) {
        struct watermarks before, after;
        bool is_there;
        if (!move(st, &reports[r], by->now_ms, &before, &after, &is_there, e))
            return false;
        for (int s = 0; is_there && s < SPAN_COUNT; s++) {
            char is[CIVIL_ISO_BYTES], will[CIVIL_ISO_BYTES];
            if (after.before_ms[s] == 0)
                continue;
            if ((*count)++ == 0)
                fprintf(out, "%-24s %-10s  %-20s  %s\n", "report", "resolution", "kept from",
                        "kept from then on");
            fprintf(out, "%-24s %-10s  %-20s  %s\n", reports[r].name, span_name((enum span)s),
                    from_text(before.before_ms[s], is), from_text(after.before_ms[s], will));
        }
    }
    return true;
}
