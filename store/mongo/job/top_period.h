/* mongo/job/top_period.h - one period that is ranked: the largest series by each figure, and the totals.
 * mongo/job/top_job.c adds all series of the period, and writes it. Nothing can fail.
 *
 * Figures: those of aggregate/rank_by.h. mongo/doc/top.h shows the document.
 * Memory : a list of MONGO_TOP_SERIES series, with their keys, for each figure; a sketch for each measure
 *          that has one.
 * Damage : a measure with a damaged sketch in a series gets no rankings. Queries scan it, and say where the
 *          damage is.
 */
#pragma once

#include "store/mongo/handle/handle.h"

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

/* The total of a measure. */
struct top_sum {
    int64_t columns[MEASURE_COLUMNS_MAX];
    union sketch sketch;
    bool is_damaged;
};

struct top_period {
    const struct report *report;
    enum span span;
    struct top_list *lists;            /* by measure, and by figure of it */
    size_t first[REPORT_MEASURES_MAX]; /* by measure: its first list */
    struct top_sum sums[REPORT_MEASURES_MAX];
    struct arena memory; /* of the sketches */
};

/* The lists that a period of the report has: the figures of all measures. */
size_t top_period_lists(const struct report *r);
void top_period_init(struct top_period *p, const struct report *r, enum span span);
void top_period_fini(struct top_period *p);
/* Adds a series with all measures without a sketch. `key` NULL: the series `other`. */
void top_period_add(struct top_period *p, const struct slice *key, const int64_t *values);
/* Adds a series with one sketch of the report, as mongo_key_fn has it. `work` is emptied. */
void top_period_add_sketch(struct top_period *p, size_t sketch, const struct slice *key,
                           const int64_t *values, struct slice value, struct sketch_work *work);
/* The greatest number of series by any figure. */
uint64_t top_period_series(const struct top_period *p);
/* Appends `measures` of the document. Add nothing afterwards. */
void top_period_append(struct top_period *p, const struct mongo_store *m, size_t report, bson_t *to);
