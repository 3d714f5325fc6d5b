#include "verify/recent.h"

#include "aggregate/raw_document.h"
#include "base/civil.h"
#include "base/mem.h"
#include "base/order.h"

#include <stdlib.h>

#define LIST_MIN ((size_t)1 << 16)

void recent_list_fini(struct recent_list *l)
{
    for (size_t i = 0; i < l->count; i++)
        free((char *)(uintptr_t)l->list[i].document.ptr);
    free(l->list);
    text_fini(&l->place);
    recent_room_fini(&l->room);
    *l = (struct recent_list){0};
}

void recent_list_add(struct recent_list *l, const struct report *r, uint32_t series, const struct event *ev,
                     const struct recount_origin *of)
{
    raw_document_prefix(&l->place, of->source, of->partition);
    const struct slice document =
        recent_document(&l->room, r->newest_fields, r->newest_field_count, text_slice(&l->place), ev);
    l->list = xgrow(l->list, &l->capacity, l->count + 1, sizeof *l->list);
    l->list[l->count++] =
        (struct recent_seen){series, ev->at_ms, slice_of(xstrndup(document.ptr, document.len), document.len)};
    if (l->count >= (l->cut_at > 0 ? l->cut_at : LIST_MIN)) {
        recent_list_cut(l, r->newest);
        l->cut_at = 2 * l->count > LIST_MIN ? 2 * l->count : LIST_MIN;
    }
}

static struct slice place_of(const struct recent_seen *s)
{
    struct slice place = {"", 0};
    int64_t at_ms;
    (void)!recent_key(s->document, &at_ms, &place);
    return place;
}

static int compare_seen(const void *a, const void *b)
{
    const struct recent_seen *x = a, *y = b;
    int order = order_int64(x->series, y->series);
    order = order != 0 ? order : order_int64(y->at_ms, x->at_ms);
    return order != 0 ? order : slice_compare(place_of(y), place_of(x));
}

void recent_list_cut(struct recent_list *l, uint32_t newest)
{
    size_t kept = 0, of_day = 0;
    if (l->count > 0)
        qsort(l->list, l->count, sizeof *l->list, compare_seen);
    for (size_t i = 0; i < l->count; i++) {
        const struct recent_seen *s = &l->list[i], *before = kept > 0 ? &l->list[kept - 1] : NULL;
        const bool is_same = before != NULL && before->series == s->series &&
                             span_floor(SPAN_DAY, before->at_ms) == span_floor(SPAN_DAY, s->at_ms);
        const bool is_twice = is_same && recent_compare(before->document, s->document) == 0;
        of_day = is_same ? of_day + !is_twice : 1;
        if (of_day <= newest && !is_twice)
            l->list[kept++] = *s;
        else
            free((char *)(uintptr_t)s->document.ptr);
    }
    l->count = kept;
}

const struct recent_seen *recent_list_find(const struct recent_list *l, uint32_t series, int64_t day_ms,
                                           size_t *count)
{
    size_t low = 0, high = l->count;
    while (low < high) {
        const size_t middle = (low + high) / 2;
        const struct recent_seen *s = &l->list[middle];
        if (s->series < series || (s->series == series && s->at_ms >= day_ms + DAY_MS))
            low = middle + 1;
        else
            high = middle;
    }
    *count = 0;
    while (low + *count < l->count && l->list[low + *count].series == series &&
           l->list[low + *count].at_ms >= day_ms)
        ++*count;
    return &l->list[low];
}
