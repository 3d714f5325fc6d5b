#include "prom/rank.h"

#include "base/heap.h"
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

static bool is_less(const void *a, const void *b)
{
    return *(const double *)a < *(const double *)b;
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
        double value = vector_row(v, i)[step], rank = rank_of(value, bottom);
        struct heap *h = &heaps[g->of[i]];
        if (!vector_is_absent(value))
            heap_offer(h->ranks, &h->count, h->room, &rank, sizeof rank, is_less);
    }
    for (size_t i = 0; i < g->count; i++) {
        bool is_full = heaps[i].count == heaps[i].room;
        bounds[i] = !is_full ? -INFINITY : heaps[i].room > 0 ? heaps[i].ranks[0] : INFINITY;
    }
    free(ranks);
    free(heaps);
}
