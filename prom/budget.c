#include "prom/budget.h"

#include <inttypes.h>
#include <stdio.h>

static const struct {
    const char *what, *advice;
    uint64_t per_row; /* limit for each row of query.rows_max; 0: `max` is the limit */
    uint64_t max;
} kinds[BUDGET_KINDS] = {
    {"rows of the store", "select fewer series, a shorter range or a longer step", 1, 0},
    {"names of series", "use fewer selectors, or give each label of theirs by =", 10, 0},
    {"steps of regular expressions", "use fewer or simpler ones", 500, 0},
    {"values in all of its parts",
     "use fewer operations, or select fewer series, a shorter range or a longer step", 0, BUDGET_POINTS_MAX},
    {"series with their labels", "select fewer, or put sum by (…) right around the selector or its function",
     0, BUDGET_SERIES_MAX},
};

void budget_init(struct budget *b, uint64_t rows_max, const struct store *st, const struct arena *arena)
{
    *b = (struct budget){.values_left = BUDGET_VALUES_MAX, .arena = arena};
    if (st != NULL) {
        b->deadline = st->deadline;
        b->memory = st->memory;
    }
    for (size_t i = 0; i < BUDGET_KINDS; i++) {
        uint64_t per_row = kinds[i].per_row;
        b->max[i] = kinds[i].max;
        if (per_row > 0)
            b->max[i] = rows_max > UINT64_MAX / per_row ? UINT64_MAX : rows_max * per_row;
        b->left[i] = b->max[i];
    }
}

bool budget_fail(const struct budget *b, enum budget_kind kind, struct err *e)
{
    char of[64] = "";
    if (kinds[kind].per_row == 1)
        snprintf(of, sizeof of, " (query.rows_max)");
    else if (kinds[kind].per_row > 1)
        snprintf(of, sizeof of, " (%" PRIu64 " for each of query.rows_max)", kinds[kind].per_row);
    return err_set(e, EX_UNAVAILABLE, "the question takes more than %" PRIu64 " %s%s: %s", b->max[kind],
                   kinds[kind].what, of, kinds[kind].advice);
}

bool budget_take(struct budget *b, enum budget_kind kind, uint64_t count, struct err *e)
{
    if (count > b->left[kind])
        return budget_fail(b, kind, e);
    b->left[kind] -= count;
    if (b->arena != NULL && !share_fit(b->memory, &b->arena_bytes, arena_bytes(b->arena)))
        return share_fail(b->memory, e);
    return deadline_check(b->deadline, e);
}

bool budget_hold(struct budget *b, uint64_t bytes, struct err *e)
{
    if (share_take(b->memory, bytes))
        return true;
    b->is_full = true;
    return share_fail(b->memory, e);
}

void budget_drop(struct budget *b, uint64_t bytes)
{
    share_give(b->memory, bytes);
}

bool budget_work(struct budget *b, uint64_t bytes, struct err *e)
{
    if (share_fit(b->memory, &b->work_bytes, bytes))
        return true;
    b->is_full = true;
    return share_fail(b->memory, e);
}
