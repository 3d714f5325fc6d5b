#include "aggregate/rank_by.h"

static const struct {
    const char *name;
    int64_t quantile;
} all[RANK_BY_END] = {
    [RANK_BY_VALUE] = {"value", -1},  [RANK_BY_COUNT] = {"count", -1}, [RANK_BY_MEAN] = {"mean", -1},
    [RANK_BY_MAX] = {"max", 1000000}, [RANK_BY_P50] = {"p50", 500000}, [RANK_BY_P90] = {"p90", 900000},
    [RANK_BY_P95] = {"p95", 950000},  [RANK_BY_P99] = {"p99", 990000}, [RANK_BY_P99_9] = {"p99_9", 999000},
};
_Static_assert(EVENT_SCALE == 1000000, "quantiles are in millionths");

bool rank_by_is_of(enum rank_by by, const struct measure *m)
{
    switch (m->kind) {
    case MEASURE_COUNT:
    case MEASURE_SUM:
        return by == RANK_BY_VALUE;
    case MEASURE_DISTINCT:
        return by == RANK_BY_VALUE || by == RANK_BY_COUNT;
    case MEASURE_HISTOGRAM:
        return by != RANK_BY_VALUE;
    default:
        return false;
    }
}

const char *rank_by_name(enum rank_by by)
{
    return all[by].name;
}

int64_t rank_by_quantile(enum rank_by by)
{
    return all[by].quantile;
}

bool rank_by_is_amount(enum rank_by by)
{
    return by == RANK_BY_VALUE || by == RANK_BY_COUNT;
}

bool rank_by_value(enum rank_by by, const struct measure *m, enum span span, const int64_t *columns,
                   const union sketch *s, int128 *value)
{
    ASSERT(rank_by_is_of(by, m));
    if (all[by].quantile >= 0)
        return histogram_quantile(&s->histogram, m->layouts[span], all[by].quantile, value);
    if (m->kind == MEASURE_HISTOGRAM && by == RANK_BY_COUNT)
        *value = (int128)histogram_count(&s->histogram) * EVENT_SCALE;
    else if (m->kind == MEASURE_DISTINCT && by == RANK_BY_VALUE)
        *value = (int128)distinct_count(&s->distinct) * EVENT_SCALE;
    else
        return measure_value(m, columns, value);
    return true;
}
