#include "daemon/count/flush.h"

#include "base/check.h"

static int64_t between(int64_t low, int64_t value, int64_t high)
{
    return value < low ? low : value > high ? high : value;
}

void flush_limit(struct flush *f, int64_t min_ms, int64_t max_ms)
{
    ASSERT(min_ms > 0);
    f->min_ms = min_ms;
    f->max_ms = max_ms < min_ms ? min_ms : max_ms;
    f->interval_ms = between(f->min_ms, f->interval_ms, f->max_ms);
}

void flush_init(struct flush *f, int64_t min_ms, int64_t max_ms, int64_t batches)
{
    *f = (struct flush){.batches = batches};
    flush_limit(f, min_ms, max_ms);
}

void flush_note(struct flush *f, int64_t apply_ms)
{
    int64_t wanted_ms = 2 * apply_ms * f->batches;
    wanted_ms = between(f->interval_ms / 2, wanted_ms, f->interval_ms * 2);
    f->interval_ms = between(f->min_ms, wanted_ms, f->max_ms);
}
