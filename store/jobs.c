#include "store/jobs.h"

#include "base/check.h"
#include "base/clock.h"

static const struct store_jobs_ops *jobs_of(const struct store *st)
{
    ASSERT(st->jobs != NULL); /* not of a reader, nor of a store whose batches do the work */
    return st->jobs;
}

static void check_roll(const struct store_roll *what)
{
    ASSERT(what->quiet_ms >= 0 && what->done != NULL);
    ASSERT(what->from_ms < 0 || what->from_ms < what->to_ms);
}

bool store_roll(struct store *st, const struct store_roll *what, struct err *e)
{
    check_roll(what);
    return jobs_of(st)->roll(st, what, e);
}

bool store_roll_has_time(const struct store *st, const struct store_roll *what)
{
    return what->until_ms == 0 || clock_mono_ms(st->clock) < what->until_ms;
}

bool store_rank(struct store *st, const struct store_roll *what, struct err *e)
{
    check_roll(what);
    return jobs_of(st)->rank(st, what, e);
}

bool store_jobs(struct store *st, job_fn *fn, void *context, struct err *e)
{
    return jobs_of(st)->list(st, fn, context, e);
}
