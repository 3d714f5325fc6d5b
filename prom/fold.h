/* fold.h - maps each series to the row in which it is added up. So sum by (a) of a million series keeps only
 * one row for each value of `a`. Used by fetch.c and list.c; cannot fail.
 *
 * Memory : four bytes a series, and the labels of each row.
 */
#pragma once

#include "base/index.h"
#include "prom/select.h"

struct fold {
    const struct report *report;
    bool keeps[REPORT_DIMENSIONS_MAX]; /* does the grouping keep the dimension? */
    bool keeps_any;
    struct arena *arena;
    struct slice *keys; /* by row: the texts of the kept dimensions */
    size_t row_count, key_capacity;
    struct index index; /* of keys */
    uint32_t *rows;     /* by series: row + 1; 0: never seen */
    size_t series_count, series_capacity;
};

void fold_init(struct fold *f, const struct report *r, const struct names *names, const struct grouping *g,
               struct arena *arena);
void fold_fini(struct fold *f);
/* Adds a series. Not needed if the grouping keeps no label: all series share row 0 then. */
void fold_add(struct fold *f, uint32_t series, struct slice key);
/* False: the series was not added. */
bool fold_find(const struct fold *f, uint32_t series, size_t *row);
struct labels fold_labels(const struct fold *f, const struct names *names, size_t row);
