#include "store/mongo/job/top_list.h"

#include "base/heap.h"
#include "base/mem.h"
#include "store/mongo/doc/top.h"

#include <stdlib.h>

/* Does the left entry rank behind the right one? */
static bool is_behind(const void *left, const void *right)
{
    const struct top_entry *a = left, *b = right;
    return a->value != b->value ? a->value < b->value : slice_compare(a->key, b->key) > 0;
}

static int compare_entries(const void *left, const void *right)
{
    return is_behind(left, right) - is_behind(right, left);
}

void top_list_add(struct top_list *l, const struct top_entry *candidate)
{
    bool is_full = l->count == MONGO_TOP_SERIES;
    if (l->entries == NULL)
        l->entries = xmalloc(MONGO_TOP_SERIES * sizeof *l->entries);
    if (is_full && !is_behind(&l->entries[0], candidate))
        return;
    struct top_entry added = *candidate;
    char *key = xmalloc(added.key.len + 1);
    if (added.key.len > 0)
        memcpy(key, added.key.ptr, added.key.len);
    added.key.ptr = key;
    char *replaced = is_full ? (char *)l->entries[0].key.ptr : NULL;
    heap_offer(l->entries, &l->count, MONGO_TOP_SERIES, &added, sizeof added, is_behind);
    free(replaced);
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
