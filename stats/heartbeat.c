#include "stats/heartbeat.h"

#include "base/check.h"

void heartbeats_init(struct heartbeats *bs, const struct clock *clock)
{
    bs->clock = clock;
    bs->count = 0;
}

struct heartbeat *heartbeats_add(struct heartbeats *bs, const char *name)
{
    ASSERT(bs->count < HEARTBEATS_MAX);
    struct heartbeat *b = &bs->list[bs->count++];
    b->name = name;
    b->clock = bs->clock;
    heartbeat_rest(b);
    return b;
}

const struct heartbeat *heartbeats_stuck(const struct heartbeats *bs, int64_t for_ms)
{
    const struct heartbeat *found = NULL;
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
