#include "prom/rank.h"

#include "base/mem.h"

#include <math.h>
#include <stdlib.h>

/* The greatest ranks so far, the least of them at the root. */
struct heap {
    double *ranks;
    size_t count, room;
};

double rank_of(double value, bool bottom)
{
    if (isnan(value))
        return -INFINITY;
    return bottom ? -value : value;
}

static void swap(double *a, double *b)
{
    double other = *a;
    *a = *b;
    *b = other;
}

static void rise(struct heap *h, size_t at)
{
    for (size_t above; at > 0 && h->ranks[above = (at - 1) / 2] > h->ranks[at]; at = above)
        swap(&h->ranks[above], &h->ranks[at]);
}

static void sink(struct heap *h)
{
    for (size_t at = 0, below; (below = 2 * at + 1) < h->count; at = below) {
        below += below + 1 < h->count && h->ranks[below + 1] < h->ranks[below];
        if (h->ranks[at] <= h->ranks[below])
            return;
        swap(&h->ranks[at], &h->ranks[below]);
    }
}

static void offer(struct heap *h, double rank)
{
    if (h->count < h->room) {
        h->ranks[h->count++] = rank;
        rise(h, h->count - 1);
    } else if (h->room > 0 && rank > h->ranks[0]) {
        h->ranks[0] = rank;
        sink(h);
    }
}

void rank_bounds(const struct vector *v, const struct groups *g, size_t step, double k, bool bottom,
                 double *bounds)
{
    struct heap *heaps = xcalloc(g->count, sizeof *heaps);
    double *ranks = xmalloc(v->series_count * sizeof *ranks);
    size_t used = 0;
    for (size_t i = 0; i < v->series_count; i++)
        heaps[g->of[i]].room++;
    for (size_t i = 0; i < g->count; i++) {
        heaps[i].ranks = ranks + used;
        used += heaps[i].room;
        if (!(k >= (double)heaps[i].room))
            heaps[i].room = k >= 1 ? (size_t)k : 0;
    }
    for (size_t i = 0; i < v->series_count; i++) {
        double value = vector_row(v, i)[step];
        if (!vector_is_absent(value))
            offer(&heaps[g->of[i]], rank_of(value, bottom));
    }
    for (size_t i = 0; i < g->count; i++) {
        bool is_full = heaps[i].count == heaps[i].room;
        bounds[i] = !is_full ? -INFINITY : heaps[i].room > 0 ? heaps[i].ranks[0] : INFINITY;
    }
    free(ranks);
    free(heaps);
}
