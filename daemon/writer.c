#include "daemon/writer.h"

#include "aggregate/keep.h"
#include "base/log.h"

#include <time.h>

#define WAIT_MS        50
#define BACKOFF_MIN_MS 100
#define BACKOFF_MAX_MS 10000
#define CLOCK_STEP_MS  HOUR_MS /* of the wall clock against the monotonic one */

void writer_turn(struct writer *w)
{
    int64_t now_ms = clock_mono_ms(w->clock);
    beat_turn(w->beat);
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

static int64_t now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

static int64_t count_events(const struct batch *batch)
{
    int64_t events = 0;
    for (size_t i = 0; i < batch->range_count; i++)
        events += batch->books[i].entries[BOOK_PARSED];
    return events;
}

static bool apply_once(struct writer *w, const struct batch *batch, struct err *e)
{
    int64_t begun_us = now_us(), begun_ms = clock_mono_ms(w->clock);
    bool good = store_apply(w->store, batch, e);
    if (good && w->flush != NULL)
        flush_note(w->flush, clock_mono_ms(w->clock) - begun_ms);
    if (w->status == NULL)
        return good;
    status_note_store(w->status, good ? NULL : e->text);
    if (good)
        status_note_batch(w->status, &(struct status_batch){.events = count_events(batch),
                                                            .cells = writer_count_cells(batch),
                                                            .apply_us = now_us() - begun_us,
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

/* What fails is said once, and tried again. */
static void note_failure(bool good, const struct err *e, const char *event, bool *is_failing)
{
    char quoted[LOG_QUOTE_BYTES];
    if (!good && !*is_failing)
        log_warn(event, "error=%s", log_quote(e->text, quoted));
    *is_failing = !good;
}

bool writer_tidy(struct writer *w, struct err *e)
{
    bool good = store_tidy(w->store, false, e);
    note_failure(good, e, "tidy_failed", &w->tidy_is_failing);
    return good || e->retryable;
}

static bool note_marks(struct writer *w, struct err *e)
{
    struct marks marks;
    for (size_t r = 0; w->late_ms != NULL && r < w->store->report_count; r++) {
        if (!store_marks(w->store, r, &marks, e))
            return false;
        atomic_store_explicit(&w->late_ms[r], marks.before_ms[SPAN_MONTH], memory_order_relaxed);
    }
    return true;
}

/* One that would be behind where it is by the time of so many days ago, too. */
static bool has_leaping_mark(const struct report *r, const struct marks *marks, int64_t now_ms)
{
    bool has = false;
    for (int s = 0; s < SPAN_COUNT; s++)
        has |= marks->before_ms[s] > 0 &&
               keep_from(r, (enum span)s, now_ms - WRITER_EXPIRE_LEAP_MS) > marks->before_ms[s];
    return has;
}

/* One that was put forward under a daemon that runs has to show that it is meant, too. */
static bool is_clock_trusted(struct writer *w)
{
    int64_t mono_ms = clock_mono_ms(w->clock), ahead_ms = clock_wall_ms(w->clock) - mono_ms;
    if (w->ahead_ms != 0 && ahead_ms - w->ahead_ms > CLOCK_STEP_MS)
        w->trust_at_ms = mono_ms + WRITER_EXPIRE_TRUST_MS;
    w->ahead_ms = ahead_ms;
    return mono_ms >= w->trust_at_ms;
}

static bool find_leap(struct writer *w, bool trusts_clock, bool *waits, struct err *e)
{
    const struct report *found = NULL;
    struct marks marks;
    for (size_t r = 0; !trusts_clock && r < w->store->report_count; r++) {
        if (!store_marks(w->store, r, &marks, e))
            return false;
        if (has_leaping_mark(&w->store->reports[r], &marks, clock_wall_ms(w->clock)))
            found = &w->store->reports[r];
    }
    *waits = found != NULL;
    if (*waits && !w->expire_waits)
        log_warn("clock_ahead", "report=%s next=\"nothing is let go for %d min: is the time right?\"",
                 found->name, (int)(WRITER_EXPIRE_TRUST_MS / MINUTE_MS));
    w->expire_waits = *waits;
    return true;
}

bool writer_expire(struct writer *w, struct err *e)
{
    struct expired expired = {0};
    bool waits;
    int64_t begun_ms = clock_mono_ms(w->clock);
    if (begun_ms < w->expire_at_ms)
        return true;
    bool trusts_clock = is_clock_trusted(w);
    struct err later;
    bool good = find_leap(w, trusts_clock, &waits, e) &&
                (waits || store_expire(w->store, clock_wall_ms(w->clock), trusts_clock, &expired, e));
    good &= note_marks(w, good ? e : &later); /* they may have moved before something else failed */
    int64_t now_ms = clock_mono_ms(w->clock), rest_ms = (WRITER_EXPIRE_SHARE - 1) * (now_ms - begun_ms);
    w->expire_at_ms =
        now_ms + (good && expired.more && rest_ms < WRITER_EXPIRE_MS ? rest_ms : WRITER_EXPIRE_MS);
    if (good && !waits && w->status != NULL)
        status_note_expired(w->status, expired.rows, expired.bytes);
    note_failure(good, e, "expire_failed", &w->expire_is_failing);
    return good || e->retryable || e->code != EX_DATAERR; /* what stays too long is no reason not to count */
}
