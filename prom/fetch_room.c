#include "prom/fetch_room.h"

#include "base/check.h"

#define WORK_BYTES 128 /* of a series, while it is sorted and grouped */

/* Memory of a vector's values and series. */
static uint64_t bytes_of(size_t reserved, size_t step_count)
{
    return reserved > 0 ? reserved * sizeof(double) + reserved / step_count * sizeof(struct labels) : 0;
}

bool fetch_room(struct fetch *fe, size_t series_count, struct vector *out, struct err *e)
{
    if (series_count > fe->budget->values_left / fe->step_count) {
        fe->budget->is_full = true;
        return err_set(e, EX_UNAVAILABLE,
                       "%zu series of %zu steps are more than %d values at once: select fewer series, a "
                       "shorter range or a longer step",
                       series_count, fe->step_count, BUDGET_VALUES_MAX);
    }
    const size_t values = series_count * fe->step_count;
    const uint64_t bytes = bytes_of(values, fe->step_count);
    if (!budget_take(fe->budget, BUDGET_POINTS, values, e) ||
        !budget_work(fe->budget, bytes + series_count * WORK_BYTES, e) || !budget_hold(fe->budget, bytes, e))
        return false;
    fe->budget->values_left -= values;
    vector_init(out, series_count, fe->step_count);
    out->reserved = values;
    return true;
}

bool fetch_append(struct fetch *fe, struct vector *v, struct vector *more, struct err *e)
{
    bool good = budget_work(fe->budget, bytes_of(v->reserved + more->reserved, v->step_count), e);
    if (good)
        vector_append(v, more);
    else
        fetch_release(fe, more);
    return good;
}

void fetch_release(struct fetch *fe, struct vector *v)
{
    fe->budget->values_left += v->reserved;
    budget_drop(fe->budget, bytes_of(v->reserved, v->step_count));
    vector_fini(v);
}

void fetch_shrink(struct fetch *fe, struct vector *v)
{
    size_t needed = v->series_count * v->step_count;
    ASSERT(needed <= v->reserved);
    fe->budget->values_left += v->reserved - needed;
    budget_drop(fe->budget, bytes_of(v->reserved - needed, v->step_count));
    v->reserved = needed;
}
