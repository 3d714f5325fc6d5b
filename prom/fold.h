/* fold.h - which series are added up under one row, so that sum by (a) of a million series keeps no more rows
 * than `a` has values.
 *
 * Memory : four bytes a series, and the labels of each row.
 */
#pragma once

#include "prom/select.h"

struct fold {
    const struct report *report;
    bool keeps[REPORT_DIMENSIONS_MAX]; /* does the grouping keep the dimension? */
    bool keeps_any;
    struct arena *arena;
    struct slice *keys; /* of rows: the kept texts */
    size_t row_count, key_capacity;
    uint32_t *slots; /* hash table: row + 1; 0: empty */
    size_t slot_count;
    uint32_t *rows; /* by series: row + 1; 0: never seen */
    size_t series_count, series_capacity;
};

void fold_init(struct fold *f, const struct report *r, const struct names *names, const struct grouping *g,
               struct arena *arena);
void fold_fini(struct fold *f);
/* Where a grouping keeps no label, all series are of row 0, and this is not needed. */
void fold_add(struct fold *f, uint32_t series, struct slice key);
/* False: the series was not there when they were added. */
bool fold_find(const struct fold *f, uint32_t series, size_t *row);
struct labels fold_labels(const struct fold *f, const struct names *names, size_t row);
