#include "daemon/count/writer.h"

#include "aggregate/keep.h"
#include "base/log.h"
#include "base/mem.h"
#include "daemon/count/event_time.h"
#include "daemon/count/expire.h"
#include "store/common/watermarks.h"

#include <inttypes.h>
#include <stdlib.h>
#include <time.h>

#define WAIT_MS        50
#define BACKOFF_MIN_MS 100
#define BACKOFF_MAX_MS 10000
#define CLOCK_STEP_MS  HOUR_MS /* jump of the wall clock against the monotonic clock */

void writer_turn(struct writer *w)
{
    int64_t now_ms = clock_mono_ms(w->clock);
    heartbeat_turn(w->heartbeat);
    if (w->tick == NULL || now_ms - w->ticked_ms < WRITER_TICK_MS)
        return;
    w->ticked_ms = now_ms;
    w->tick(w->context);
}

void writer_sleep(struct writer *w, int64_t ms)
{
    for (; ms > 0 && (w->insist || !atomic_load(w->give_up)); ms -= WAIT_MS) {
        nanosleep(&(struct timespec){.tv_nsec = WAIT_MS * 1000000L}, NULL);
        writer_turn(w);
    }
}

int64_t writer_count_cells(const struct batch *batch)
{
    size_t count = 0;
    for (size_t i = 0; i < batch->part_count; i++) {
        for (size_t r = 0; r < batch->parts[i]->report_count; r++)
            count += batch->parts[i]->reports[r].cells.count;
    }
    return (int64_t)count;
}

static int64_t count_events(const struct batch *batch)
{
    int64_t events = 0;
    for (size_t i = 0; i < batch->range_count; i++)
        events += batch->books[i].entries[BOOK_PARSED];
    return events;
}

/* Note events that were left out of expired time buckets, by the watermarks known here. */
static void note_late_events(struct writer *w, const struct batch *batch)
{
    int64_t late[SPAN_COUNT];
    for (size_t r = 0; w->watermarks != NULL && r < w->store->report_count; r++) {
        if (!store_late(w->store, r, &w->watermarks[r], batch, late))
            continue;
        for (int s = 0; s < SPAN_COUNT; s++)
            status_note_late(w->status, r, (enum span)s, late[s]);
    }
}

static bool apply_once(struct writer *w, const struct batch *batch, struct err *e)
{
    int64_t begun_us = clock_mono_us(w->clock);
    bool good = store_apply(w->store, batch, e);
    if (good && w->flush != NULL && !batch->backfills)
        flush_note(w->flush, clock_mono_ms(w->clock) - begun_us / 1000);
    if (w->status == NULL)
        return good;
    status_note_store(w->status, good ? NULL : e->text);
    if (good)
        note_late_events(w, batch);
    if (good)
        status_note_batch(w->status, &(struct status_batch){.events = count_events(batch),
                                                            .cells = writer_count_cells(batch),
                                                            .apply_us = clock_mono_us(w->clock) - begun_us,
                                                            .prealloc = w->store->prealloc,
                                                            .raws = w->store->raws,
                                                            .raw_count = w->store->raw_count});
    return good;
}

bool writer_apply(struct writer *w, const struct batch *batch, bool (*before)(void *context, struct err *e),
                  void *context, struct err *e)
{
    char quoted[LOG_QUOTE_BYTES];
    int64_t backoff_ms = BACKOFF_MIN_MS;
    int last_tries = 0;
    while (true) {
        if (before != NULL && before(context, e))
            before = NULL;
        else if (before != NULL && w->status != NULL)
            status_note_store(w->status, e->text);
        if (before == NULL && apply_once(w, batch, e))
            break;
        if (!e->retryable || !w->retry ||
            (!w->insist && atomic_load(w->give_up) && ++last_tries == LAST_TRIES_MAX))
            return false;
        if (backoff_ms == BACKOFF_MIN_MS)
            log_warn(before != NULL ? "rejects_failed" : "store_failed", "error=%s next=\"retrying\"",
                     log_quote(e->text, quoted));
        writer_sleep(w, backoff_ms);
        backoff_ms = backoff_ms * 2 < BACKOFF_MAX_MS ? backoff_ms * 2 : BACKOFF_MAX_MS;
    }
    if (backoff_ms > BACKOFF_MIN_MS)
        log_info("retry_succeeded", "batches=1");
    return true;
}

/* Log a failure once, until it succeeds again. */
static void note_failure(bool good, const struct err *e, const char *event, bool *is_failing)
{
    char quoted[LOG_QUOTE_BYTES];
    if (!good && !*is_failing)
        log_warn(event, "error=%s", log_quote(e->text, quoted));
    *is_failing = !good;
}

bool writer_housekeep(struct writer *w, struct err *e)
{
    bool good = store_housekeep(w->store, false, e);
    note_failure(good, e, "housekeeping_failed", &w->housekeeping_is_failing);
    if (w->status != NULL)
        status_note_longer(w->status, &w->store->longer);
    return good || e->retryable;
}

static const char *time_text(int64_t ms, char iso[CIVIL_ISO_BYTES])
{
    return ms > 0 ? civil_iso(ms, iso) : "first";
}

/* Log which watermarks of a report move, and why: at most one line per resolution and hour. */
static void log_moves(const struct report *r, const struct watermarks *before, const struct watermarks *after,
                      const struct event_time *by)
{
    for (int s = 0; s < SPAN_COUNT; s++) {
        char from[CIVIL_ISO_BYTES], to[CIVIL_ISO_BYTES], now[CIVIL_ISO_BYTES], keep[KEEP_BYTES];
        if (span_floor(SPAN_HOUR, after->before_ms[s]) <= before->before_ms[s])
            continue;
        bool is_ours = keep_from(r, (enum span)s, by->now_ms) >= after->before_ms[s];
        log_info("expiring", "report=%s span=%s from=%s to=%s keep=%s now=%s by=%s", r->name,
                 span_name((enum span)s), time_text(before->before_ms[s], from),
                 civil_iso(after->before_ms[s], to), keep_text(r->keep_ms[s], keep),
                 time_text(by->now_ms, now),
                 !is_ours                   ? "\"another daemon\""
                 : by->now_ms < by->wall_ms ? "\"newest events\""
                                            : "clock");
    }
}

/* Log what was deleted, once nothing expired is left. */
static void log_deleted(struct writer *w, const struct expired *expired)
{
    w->expired.rows += expired->rows;
    w->expired.bytes += expired->bytes;
    if (expired->more || w->expired.rows == 0)
        return;
    log_info("expired", "rows=%" PRIu64 " bytes=%" PRIu64, w->expired.rows, w->expired.bytes);
    w->expired = (struct expired){0};
}

static bool read_watermarks(struct writer *w, struct watermarks *watermarks, struct err *e)
{
    for (size_t r = 0; r < w->store->report_count; r++) {
        if (!store_watermarks(w->store, r, &watermarks[r], e))
            return false;
    }
    return true;
}

/* Tell the shards where months have expired. */
static void note_late(struct writer *w, const struct watermarks *watermarks)
{
    for (size_t r = 0; w->late_ms != NULL && r < w->store->report_count; r++)
        atomic_store_explicit(&w->late_ms[r], watermarks[r].before_ms[SPAN_MONTH], memory_order_relaxed);
}

/* Would a watermark move by more than WRITER_EXPIRE_LEAP_MS? Its first move does not count. */
static bool has_leaping_watermark(const struct store *st, const struct report *r,
                                  const struct watermarks *watermarks, int64_t now_ms)
{
    struct watermarks earlier = *watermarks;
    bool has = false;
    (void)store_move_watermarks(st, r, r->keep_ms, now_ms - WRITER_EXPIRE_LEAP_MS, &earlier);
    for (int s = 0; s < SPAN_COUNT; s++)
        has |= watermarks->before_ms[s] > 0 && earlier.before_ms[s] > watermarks->before_ms[s];
    return has;
}

/* A clock that jumps forward while the daemon runs is not trusted for WRITER_EXPIRE_TRUST_MS, either. */
static bool is_clock_trusted(struct writer *w)
{
    int64_t mono_ms = clock_mono_ms(w->clock), ahead_ms = clock_wall_ms(w->clock) - mono_ms;
    if (w->ahead_ms != 0 && ahead_ms - w->ahead_ms > CLOCK_STEP_MS)
        w->trust_at_ms = mono_ms + WRITER_EXPIRE_TRUST_MS;
    w->ahead_ms = ahead_ms;
    return mono_ms >= w->trust_at_ms;
}

static bool find_leap(struct writer *w, const struct watermarks *watermarks, int64_t now_ms)
{
    const struct report *found = NULL;
    for (size_t r = 0; r < w->store->report_count; r++) {
        if (has_leaping_watermark(w->store, &w->store->reports[r], &watermarks[r], now_ms))
            found = &w->store->reports[r];
    }
    if (found != NULL && !w->expire_waits)
        log_warn("clock_leaps", "report=%s next=\"nothing expires for %d min: check the clock\"", found->name,
                 (int)(WRITER_EXPIRE_TRUST_MS / MINUTE_MS));
    w->expire_waits = found != NULL;
    return found != NULL;
}

/* Warn of a clock that no event confirms: it is wrong, or nothing is counted any more. An import does not
 * warn: its events are of any time. */
static void tell_ahead(struct writer *w, const struct event_time *by)
{
    bool is_ahead = w->retry && by->now_ms > 0 && by->wall_ms - by->now_ms > WRITER_EXPIRE_AHEAD_MS;
    char now[CIVIL_ISO_BYTES], newest[CIVIL_ISO_BYTES], expiry[CIVIL_ISO_BYTES];
    if (is_ahead && !w->clock_is_ahead)
        log_warn("clock_ahead",
                 "clock=%s newest_events=%s expiry=%s by=\"%s\" next=\"check the clock. If no more events "
                 "come, `tallyd job run expire --now` goes by the clock\"",
                 civil_iso(by->wall_ms, now), civil_iso(by->newest_ms, newest), civil_iso(by->now_ms, expiry),
                 by->now_ms < by->newest_ms ? "timestamps of records" : "newest events");
    w->clock_is_ahead = is_ahead;
}

/* Is the watermark later than all events? A wrong clock moved it, perhaps that of an earlier version. New
 * events would be left out of the resolution until they are as new. */
static bool is_ahead(const struct report *r, const struct watermarks *watermarks, const struct event_time *by)
{
    return by->newest_ms > 0 && watermarks->before_ms[report_cell(r)] > by->end_ms;
}

static void log_restored(const struct report *r, const struct watermarks *before,
                         const struct watermarks *after)
{
    for (int s = 0; s < SPAN_COUNT; s++) {
        char from[CIVIL_ISO_BYTES], to[CIVIL_ISO_BYTES];
        if (after->before_ms[s] < before->before_ms[s])
            log_warn("watermark_restored",
                     "report=%s span=%s from=%s to=%s reason=\"a wrong clock had moved it ahead of all "
                     "events\" next=\"%ss from then on are counted again\"",
                     r->name, span_name((enum span)s), civil_iso(before->before_ms[s], from),
                     civil_iso(after->before_ms[s], to), span_name((enum span)s));
    }
}

static bool restore_one(struct writer *w, size_t report, struct watermarks *watermarks, int64_t now_ms,
                        struct err *e)
{
    const struct watermarks before = *watermarks;
    w->restore_at_ms = clock_mono_ms(w->clock) + WRITER_RESTORE_MS;
    if (!store_move_back(w->store, report, now_ms, e) || !store_watermarks(w->store, report, watermarks, e))
        return false;
    log_restored(&w->store->reports[report], &before, watermarks);
    return true;
}

/* Move watermarks back that are ahead of all events. `watermarks` is set to where they are then. */
static bool restore_watermarks(struct writer *w, struct watermarks *watermarks, const struct event_time *by,
                               struct err *e)
{
    const struct report *ahead = NULL;
    bool is_due = clock_mono_ms(w->clock) >= w->restore_at_ms;
    for (size_t r = 0; r < w->store->report_count; r++) {
        const struct report *report = &w->store->reports[r];
        if (!is_ahead(report, &watermarks[r], by))
            continue;
        if (is_due && !restore_one(w, r, &watermarks[r], by->now_ms, e))
            return false;
        if (is_ahead(report, &watermarks[r], by))
            ahead = report;
    }
    if (ahead != NULL && !w->watermark_is_ahead)
        log_warn("watermark_ahead",
                 "report=%s next=\"events before the watermark count in longer resolutions only; "
                 "tallyd_events_expired_total counts them\"",
                 ahead->name);
    w->watermark_is_ahead = ahead != NULL;
    return true;
}

/* Find the time that expiry goes by: from events, and from records. If their broker sets the time, no
 * producer's clock affects it. */
static bool find_time(struct writer *w, struct event_time *by, struct err *e)
{
    int64_t broker_ms = w->broker_ms != NULL ? atomic_load(w->broker_ms) : 0;
    if (!event_time(w->store, clock_wall_ms(w->clock), by, e))
        return false;
    if (broker_ms > 0 && broker_ms < by->now_ms)
        by->now_ms = broker_ms;
    return true;
}

/* `before`: the watermarks before; w->watermarks: after. */
static bool expire_some(struct writer *w, struct watermarks *before, struct expired *expired, struct err *e)
{
    struct watermarks *after = w->watermarks;
    struct event_time by = {0};
    struct err later;
    bool trusts_clock = is_clock_trusted(w);
    if (!read_watermarks(w, before, e))
        return false;
    /* no record was read yet that bounds the time */
    if (w->broker_ms != NULL && atomic_load(w->broker_ms) == 0) {
        memcpy(after, before, w->store->report_count * sizeof *after);
        note_late(w, after);
        return true;
    }
    if ((expire_has_limits(w->store, before) && !find_time(w, &by, e)) ||
        !restore_watermarks(w, before, &by, e))
        return false;
    tell_ahead(w, &by);
    bool waits = !trusts_clock && find_leap(w, before, by.now_ms);
    w->expire_waits &= waits;
    bool good = waits || store_expire(w->store, by.now_ms, trusts_clock, expired, e);
    if (!read_watermarks(w, after, good ? e : &later)) /* watermarks may have moved before the failure */
        return false;
    note_late(w, after);
    for (size_t r = 0; r < w->store->report_count; r++)
        log_moves(&w->store->reports[r], &before[r], &after[r], &by);
    log_deleted(w, expired);
    if (good && !waits && w->status != NULL)
        status_note_expired(w->status, expired->rows, expired->bytes,
                            by.newest_ms > 0 ? by.wall_ms - by.now_ms : 0);
    return good;
}

void writer_fini(struct writer *w)
{
    free(w->watermarks);
    w->watermarks = NULL;
}

bool writer_expire(struct writer *w, struct err *e)
{
    struct expired expired = {0};
    int64_t begun_ms = clock_mono_ms(w->clock);
    if (begun_ms < w->expire_at_ms)
        return true;
    if (w->watermarks == NULL)
        w->watermarks = xcalloc(w->store->report_count + 1, sizeof *w->watermarks);
    struct watermarks *before = xcalloc(w->store->report_count + 1, sizeof *before);
    bool good = expire_some(w, before, &expired, e);
    free(before);
    int64_t now_ms = clock_mono_ms(w->clock), rest_ms = (WRITER_EXPIRE_SHARE - 1) * (now_ms - begun_ms);
    w->expire_at_ms =
        now_ms + (good && expired.more && rest_ms < WRITER_EXPIRE_MS ? rest_ms : WRITER_EXPIRE_MS);
    note_failure(good, e, "expire_failed", &w->expire_is_failing);
    return good || e->retryable || e->code != EX_DATAERR; /* counting goes on although expired buckets stay */
}
