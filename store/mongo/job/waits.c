#include "store/mongo/job/waits.h"

#include "base/clock.h"
#include "base/mem.h"
#include "base/order.h"

#include <stdlib.h>

void mongo_waits_add(struct mongo_waits *w, const struct mongo_wait *one)
{
    w->list = xgrow(w->list, &w->capacity, w->count + 1, sizeof *w->list);
    w->list[w->count++] = *one;
}

static int compare_waits(const void *left, const void *right)
{
    const struct mongo_wait *a = left, *b = right;
    int order = order_int64(a->span, b->span);
    return order != 0 ? order : order_int64(a->start_ms, b->start_ms);
}

bool mongo_wait_is_over(const struct mongo_wait *one, const struct mongo_store *m)
{
    return one->end_ms <= clock_wall_ms(m->store.clock);
}

/* A period that is not over does not wait yet. */
void mongo_waits_follow(struct mongo_waits *known, struct mongo_waits *now, const struct mongo_store *m)
{
    int64_t now_ms = clock_mono_ms(m->store.clock);
    size_t k = 0;
    if (now->count > 0)
        qsort(now->list, now->count, sizeof *now->list, compare_waits);
    for (size_t i = 0; i < now->count; i++) {
        struct mongo_wait *one = &now->list[i];
        one->first_ms = one->seen_ms = now_ms;
        while (k < known->count && compare_waits(&known->list[k], one) < 0)
            k++;
        if (k == known->count || compare_waits(&known->list[k], one) != 0)
            continue;
        if (mongo_wait_is_over(one, m))
            one->first_ms = known->list[k].first_ms;
        if (known->list[k].written == one->written)
            one->seen_ms = known->list[k].seen_ms;
    }
    known->count = 0;
    for (size_t i = 0; i < now->count; i++)
        mongo_waits_add(known, &now->list[i]);
}

bool mongo_wait_is_due(const struct mongo_wait *one, const struct store_roll *what,
                       const struct mongo_store *m)
{
    int64_t now_ms = clock_mono_ms(m->store.clock);
    return what->now || (mongo_wait_is_over(one, m) && (now_ms - one->seen_ms >= what->quiet_ms ||
                                                        now_ms - one->first_ms >= MONGO_WAIT_MAX_MS));
}

void mongo_waits_anew(struct mongo_waits *known, enum span span, int64_t start_ms,
                      const struct mongo_store *m)
{
    const struct mongo_wait wanted = {.span = span, .start_ms = start_ms};
    for (size_t i = 0; i < known->count; i++) {
        if (compare_waits(&known->list[i], &wanted) == 0)
            known->list[i].first_ms = known->list[i].seen_ms = clock_mono_ms(m->store.clock);
    }
}
