#include "stats/beat.h"

#include "base/check.h"

void beats_init(struct beats *bs, const struct clock *clock)
{
    bs->clock = clock;
    bs->count = 0;
}

struct beat *beats_add(struct beats *bs, const char *name)
{
    ASSERT(bs->count < BEATS_MAX);
    struct beat *b = &bs->list[bs->count++];
    b->name = name;
    b->clock = bs->clock;
    beat_rest(b);
    return b;
}

const struct beat *beats_stuck(const struct beats *bs, int64_t for_ms)
{
    const struct beat *found = NULL;
    int64_t before_ms = clock_mono_ms(bs->clock) - for_ms;
    for (size_t i = 0; i < bs->count; i++) {
        int64_t turned_ms = atomic_load_explicit(&bs->list[i].turned_ms, memory_order_relaxed);
        if (turned_ms >= before_ms)
            continue;
        before_ms = turned_ms;
        found = &bs->list[i];
    }
    return found;
}
