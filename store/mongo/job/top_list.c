#include "store/mongo/job/top_list.h"

#include "base/mem.h"
#include "store/mongo/doc/top.h"

#include <stdlib.h>

/* Does `a` rank behind `b`? */
static bool is_behind(const struct top_entry *a, const struct top_entry *b)
{
    return a->value != b->value ? a->value < b->value : slice_compare(a->key, b->key) > 0;
}

static int compare_entries(const void *left, const void *right)
{
    return is_behind(left, right) - is_behind(right, left);
}

static void sift_up(struct top_entry *heap, size_t at)
{
    const struct top_entry moved = heap[at];
    for (; at > 0 && is_behind(&moved, &heap[(at - 1) / 2]); at = (at - 1) / 2)
        heap[at] = heap[(at - 1) / 2];
    heap[at] = moved;
}

static void sift_down(struct top_entry *heap, size_t count)
{
    const struct top_entry moved = heap[0];
    size_t at = 0;
    for (size_t child; (child = 2 * at + 1) < count; at = child) {
        child += child + 1 < count && is_behind(&heap[child + 1], &heap[child]);
        if (!is_behind(&heap[child], &moved))
            break;
        heap[at] = heap[child];
    }
    heap[at] = moved;
}

void top_list_add(struct top_list *l, const struct top_entry *candidate)
{
    bool is_full = l->count == MONGO_TOP_SERIES;
    if (l->entries == NULL)
        l->entries = xmalloc(MONGO_TOP_SERIES * sizeof *l->entries);
    if (is_full && !is_behind(&l->entries[0], candidate))
        return;
    char *key = xmalloc(candidate->key.len + 1);
    if (candidate->key.len > 0)
        memcpy(key, candidate->key.ptr, candidate->key.len);
    if (is_full)
        free((char *)l->entries[0].key.ptr);
    struct top_entry *to = &l->entries[is_full ? 0 : l->count++];
    *to = *candidate;
    to->key.ptr = key;
    if (is_full)
        sift_down(l->entries, l->count);
    else
        sift_up(l->entries, l->count - 1);
}

void top_list_sort(struct top_list *l)
{
    if (l->count > 0)
        qsort(l->entries, l->count, sizeof *l->entries, compare_entries);
}

void top_list_fini(struct top_list *l)
{
    for (size_t i = 0; i < l->count; i++)
        free((char *)l->entries[i].key.ptr);
    free(l->entries);
}
