#include "tests/support/flaky.h"

#include <time.h>

static struct store *under(struct store *st)
{
    return ((struct flaky *)st)->under;
}

static bool apply(struct store *st, const struct batch *batch, struct err *e)
{
    struct flaky *f = (struct flaky *)st;
    f->applies++;
    nanosleep(&(struct timespec){.tv_nsec = f->apply_ms * 1000000L}, NULL);
    if (f->stop_after > 0 && f->applies >= f->stop_after)
        atomic_store(f->stop, true);
    if (f->fail_from == 0 || f->applies < f->fail_from || f->applies >= f->fail_from + f->failures) {
        bool good = store_apply(f->under, batch, e);
        if (good && batch->range_count > 0)
            atomic_store(&f->applied_to, batch->ranges[0].to);
        return good;
    }
    return f->retryable ? err_set_retryable(e, EX_IOERR, "the disk is full")
                        : err_set(e, EX_DATAERR, "the store is damaged");
}

static bool housekeep(struct store *st, bool all, struct err *e)
{
    return store_housekeep(under(st), all, e);
}

static bool expire(struct store *st, int64_t now_ms, bool trusts_clock, struct expired *expired,
                   struct err *e)
{
    return store_expire(under(st), now_ms, trusts_clock, expired, e);
}

static bool watermarks(struct store *st, size_t report, struct watermarks *found, struct err *e)
{
    return store_watermarks(under(st), report, found, e);
}

static bool newest(struct store *st, size_t report, int64_t before_ms, struct newest *found, struct err *e)
{
    return store_newest(under(st), report, before_ms, found, e);
}

static bool positions(struct store *st, position_fn *fn, void *context, struct err *e)
{
    return store_positions(under(st), fn, context, e);
}

static const struct store_writer_ops writer_ops = {.apply = apply, .housekeep = housekeep, .expire = expire};
static const struct store_reader_ops reader_ops = {
    .watermarks = watermarks, .newest = newest, .positions = positions};

void flaky_init(struct flaky *f, struct store *below)
{
    *f = (struct flaky){.store = {.reader = &reader_ops,
                                  .writer = &writer_ops,
                                  .reports = below->reports,
                                  .report_count = below->report_count,
                                  .clock = below->clock},
                        .under = below};
}
