#include "aggregate/exponential.h"

struct adding {
    struct histogram *h;
    struct arena *arena;
    const struct histogram_layout *layout;
    int32_t sign;
};

/* Adds to the bucket of an index of the layout's schema. */
static void add(const struct adding *a, int64_t index, uint64_t count)
{
    const int32_t slot = histogram_slot_of_index(a->layout, index);
    histogram_add(a->h, a->arena, a->sign * slot, (int64_t)count);
}

/* How many of n numbers are in the first j of 2^bits buckets. */
static uint64_t count_within(uint64_t n, uint64_t j, int bits)
{
    return (2 * n * j + ((uint64_t)1 << bits) - 1) >> (bits + 1);
}

/* Adds n numbers to the buckets behind `index`, up to index + 2^bits. Those at the ends of the layout take
 * the numbers of all beyond, so there are not many steps. */
static void spread(const struct adding *a, int64_t index, uint64_t n, int bits)
{
    const int64_t slots = (int64_t)1 << bits, least = histogram_index_min(a->layout);
    const int64_t most = histogram_index_max(a->layout);
    for (uint64_t done = 0, next; done < n; done = next) {
        int64_t j = (int64_t)(((2 * done + 1) << bits) / (2 * n)), to = index + j + 1;
        if (to < least)
            to = index + slots < least ? index + slots : least;
        else if (to >= most)
            to = index + slots;
        next = count_within(n, (uint64_t)(to - index), bits);
        add(a, to, next - done);
    }
}

static void add_side(const struct adding *a, const struct distribution_side *side, int down)
{
    struct distribution_walk w = distribution_walk(side);
    int64_t index;
    uint64_t count;
    while (distribution_next(&w, &index, &count)) {
        if (down >= 0)
            add(a, (index >> down) + 1, count);
        else
            spread(a, index * ((int64_t)1 << -down), count, -down);
    }
}

void exponential_add(struct histogram *h, struct arena *arena, const struct histogram_layout *l,
                     const struct distribution *d)
{
    const int down = d->scale - l->schema;
    if (d->zeros > 0)
        histogram_add(h, arena, 0, d->zeros);
    add_side(&(struct adding){h, arena, l, 1}, &d->sides[DISTRIBUTION_ABOVE_0], down);
    add_side(&(struct adding){h, arena, l, -1}, &d->sides[DISTRIBUTION_BELOW_0], down);
}
