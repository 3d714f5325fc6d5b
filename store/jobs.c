#include "store/jobs.h"

#include "base/check.h"
#include "base/clock.h"

bool store_roll(struct store *st, const struct store_roll *what, struct err *e)
{
    ASSERT(st->jobs != NULL);
    return st->jobs->roll(st, what, e);
}

bool store_roll_has_time(const struct store_roll *what)
{
    return what->until_ms == 0 || clock_mono_ms(&clock_system) < what->until_ms;
}

bool store_rank(struct store *st, const struct store_roll *what, struct err *e)
{
    ASSERT(st->jobs != NULL);
    return st->jobs->rank(st, what, e);
}

bool store_jobs(struct store *st, job_fn *fn, void *context, struct err *e)
{
    ASSERT(st->jobs != NULL);
    return st->jobs->list(st, fn, context, e);
}
