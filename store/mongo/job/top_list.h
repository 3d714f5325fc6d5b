/* mongo/job/top_list.h - collects the largest series of a period by one figure. mongo/job/top_period.c
 * calls it. Nothing can fail.
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
    struct slice key; /* key of the series; for `other`, the text that is shown */
    bool is_other;
    int64_t columns[MEASURE_COLUMNS_MAX];
};

/* The largest series of one period by one figure: a heap with the last in rank first. */
struct top_list {
    struct top_entry *entries;
    size_t count;
    uint64_t series; /* number of all series, listed or not */
};

/* Adds a series if there is room or it is larger than another. Copies its key. */
void top_list_add(struct top_list *l, const struct top_entry *candidate);
/* Sorts the list, the largest first. Add nothing afterwards. */
void top_list_sort(struct top_list *l);
void top_list_fini(struct top_list *l);
