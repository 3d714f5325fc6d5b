#include "base/deadline.h"

#include <inttypes.h>

void deadline_init(struct deadline *d, const struct clock *clock, int64_t for_ms)
{
    int64_t now_ms = clock_mono_ms(clock);
    *d = (struct deadline){.clock = clock, .begun_ms = now_ms, .at_ms = now_ms + for_ms};
}

void deadline_cancel(struct deadline *d)
{
    atomic_store(&d->cancelled, true);
}

static enum deadline_end find_end(struct deadline *d)
{
    int64_t now_ms = clock_mono_ms(d->clock);
    if (atomic_load_explicit(&d->cancelled, memory_order_relaxed))
        return DEADLINE_CANCELLED;
    if (now_ms >= d->at_ms)
        return DEADLINE_PASSED;
    if (d->is_left == NULL || now_ms < d->look_ms)
        return DEADLINE_GOES_ON;
    d->look_ms = now_ms + DEADLINE_LOOK_MS;
    return d->is_left(d->asker) ? DEADLINE_LEFT : DEADLINE_GOES_ON;
}

bool deadline_is_over(struct deadline *d)
{
    if (d != NULL && d->end == DEADLINE_GOES_ON)
        d->end = find_end(d);
    return d != NULL && d->end != DEADLINE_GOES_ON;
}

bool deadline_check(struct deadline *d, struct err *e)
{
    if (!deadline_is_over(d))
        return true;
    if (d->end == DEADLINE_PASSED)
        return err_set_retryable(
            e, EX_TEMPFAIL,
            "the question takes longer than %" PRId64
            " ms (query.timeout): ask for a shorter range, fewer series or a longer step",
            d->at_ms - d->begun_ms);
    return err_set_retryable(e, EX_TEMPFAIL, "%s",
                             d->end == DEADLINE_LEFT ? "the client has left" : "the server stops");
}
