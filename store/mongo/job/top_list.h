/* mongo/job/top_list.h - the largest series of a period by one measure, as they come.
 *
 * Order  : as query/top.h ranks: by value, the largest first, then by key.
 * Memory : MONGO_TOP_SERIES entries, and a copy of each one's key.
 */
#pragma once

#include "aggregate/measure.h"
#include "base/slice.h"

/* A series in a ranking. */
struct top_entry {
    int128 value;
    struct slice key; /* its own; of `other`, as it is shown */
    bool is_other;
    int64_t columns[MEASURE_COLUMNS_MAX];
};

/* The largest of one period by one measure: a heap, the last one first. */
struct top_list {
    struct top_entry *entries;
    size_t count;
    uint64_t series; /* of which these are the largest */
    int64_t total[MEASURE_COLUMNS_MAX];
};

/* Its key is copied, if there is room for it or it is larger than another. */
void top_list_add(struct top_list *l, const struct top_entry *candidate);
/* The largest first; nothing may be added any more. */
void top_list_sort(struct top_list *l);
void top_list_fini(struct top_list *l);
