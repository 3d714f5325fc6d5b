#include "prom/fetch_room.h"

#include "base/check.h"

bool fetch_room(struct fetch *fe, size_t series_count, struct vector *out, struct err *e)
{
    if (series_count > fe->budget->values_left / fe->step_count) {
        fe->budget->is_full = true;
        return err_set(e, EX_UNAVAILABLE,
                       "%zu series of %zu steps are more than %d values at once: select fewer series, a "
                       "shorter range or a longer step",
                       series_count, fe->step_count, BUDGET_VALUES_MAX);
    }
    if (!budget_take(fe->budget, BUDGET_POINTS, series_count * fe->step_count, e))
        return false;
    fe->budget->values_left -= series_count * fe->step_count;
    vector_init(out, series_count, fe->step_count);
    out->reserved = series_count * fe->step_count;
    return true;
}

void fetch_release(struct fetch *fe, struct vector *v)
{
    fe->budget->values_left += v->reserved;
    vector_fini(v);
}

void fetch_shrink(struct fetch *fe, struct vector *v)
{
    size_t needed = v->series_count * v->step_count;
    ASSERT(needed <= v->reserved);
    fe->budget->values_left += v->reserved - needed;
    v->reserved = needed;
}
