#include "store/common/values.h"

#include "aggregate/dimension.h"
#include "base/check.h"
#include "base/mem.h"

#include <stdlib.h>

/* The least values seen so far: sorted, each once, each a copy. */
struct values {
    size_t dimension;
    struct slice prefix;
    struct text *list;
    size_t count, room, capacity;
};

/* The first place whose value is not less than `value`; *found: it is equal. */
static size_t place_of(const struct values *v, struct slice value, bool *found)
{
    size_t low = 0, high = v->count;
    *found = false;
    while (low < high && !*found) {
        size_t middle = (low + high) / 2;
        int order = slice_compare(text_slice(&v->list[middle]), value);
        *found = order == 0;
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return high;
}

/* Take the place behind the last value. Without room for it, take the greatest value's place instead. */
static size_t take_last(struct values *v)
{
    ASSERT(v->count <= v->room && v->room > 0);
    if (v->count == v->room)
        return v->count - 1;
    v->list = xgrow(v->list, &v->capacity, v->count + 1, sizeof *v->list);
    v->list[v->count] = (struct text){0};
    return v->count++;
}

static bool look_at(void *context, uint32_t series, struct slice key)
{
    struct values *v = context;
    struct slice value = dimension_next(&key);
    bool found;
    (void)series;
    for (size_t d = 0; d < v->dimension; d++)
        value = dimension_next(&key);
    if (!slice_begins(value, v->prefix))
        return true;
    if (v->count == v->room && slice_compare(value, text_slice(&v->list[v->count - 1])) >= 0)
        return true;
    size_t at = place_of(v, value, &found);
    if (found)
        return true;
    size_t last = take_last(v);
    struct text spare = v->list[last];
    memmove(&v->list[at + 1], &v->list[at], (last - at) * sizeof *v->list);
    text_clear(&spare);
    text_add(&spare, value.ptr, value.len);
    v->list[at] = spare;
    return true;
}

bool values_walk(struct store *st, size_t report, size_t dimension, struct slice prefix, size_t limit,
                 value_fn *fn, void *context, struct err *e)
{
    struct values v = {.dimension = dimension, .prefix = prefix, .room = limit};
    bool good = store_series_each(st, report, look_at, &v, e), more = good;
    for (size_t i = 0; i < v.count; i++) {
        more = more && fn(context, text_slice(&v.list[i]));
        text_fini(&v.list[i]);
    }
    free(v.list);
    return good;
}
