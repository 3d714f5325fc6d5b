#include "store/mongo/doc/periods.h"

#include "base/mem.h"
#include "base/order.h"

#include <stdlib.h>

void mongo_periods_clear(struct mongo_periods *p)
{
    p->count = 0;
    memset(p->seen_ms, 0xFF, sizeof p->seen_ms); /* -1: no hour */
}

void mongo_periods_add(struct mongo_periods *p, int64_t ms)
{
    int64_t start_ms = span_floor(SPAN_HOUR, ms);
    int64_t *seen_ms = &p->seen_ms[(size_t)(start_ms / HOUR_MS) % MONGO_PERIODS_SEEN];
    if (*seen_ms == start_ms)
        return;
    *seen_ms = start_ms;
    p->starts = xgrow(p->starts, &p->capacity, p->count + 1, sizeof *p->starts);
    p->starts[p->count++] = start_ms;
}

void mongo_periods_floor(struct mongo_periods *p, enum span span)
{
    size_t count = 0;
    if (p->count > 0)
        qsort(p->starts, p->count, sizeof *p->starts, order_int64s);
    for (size_t i = 0; i < p->count; i++) {
        int64_t start_ms = span_floor(span, p->starts[i]);
        if (count == 0 || p->starts[count - 1] != start_ms)
            p->starts[count++] = start_ms;
    }
    p->count = count;
}
