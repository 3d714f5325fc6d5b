#include "store/mongo/job/top_period.h"

#include "aggregate/dimension.h"
#include "base/heap.h"
#include "base/mem.h"
#include "store/mongo/doc/decimal.h"
#include "store/mongo/doc/sketch.h"
#include "store/mongo/doc/top.h"
#include "store/mongo/wire/field.h"

#include <stdlib.h>

#define MEMORY_BYTES ((size_t)16 << 10)

/* ---- a list: by value, the largest first, then by key, as query/top.h ranks */

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

/* Adds a series if there is room or it is larger than another. Copies its key. */
static void top_list_add(struct top_list *l, const struct top_entry *candidate)
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

static void top_list_fini(struct top_list *l)
{
    for (size_t i = 0; i < l->count; i++)
        free((char *)l->entries[i].key.ptr);
    free(l->entries);
}

/* ---- a period */

static size_t lists_of(const struct measure *m)
{
    size_t count = 0;
    for (enum rank_by by = 0; by < RANK_BY_END; by++)
        count += rank_by_is_of(by, m);
    return count;
}

size_t top_period_lists(const struct report *r)
{
    size_t count = 0;
    for (size_t i = 0; i < r->measure_count; i++)
        count += lists_of(&r->measures[i]);
    return count;
}

void top_period_init(struct top_period *p, const struct report *r, enum span span)
{
    memset(p, 0, sizeof *p); /* all of the sketches, too */
    p->report = r;
    p->span = span;
    p->lists = xcalloc(top_period_lists(r), sizeof *p->lists);
    for (size_t i = 1; i < r->measure_count; i++)
        p->first[i] = p->first[i - 1] + lists_of(&r->measures[i - 1]);
    arena_init(&p->memory, MEMORY_BYTES);
}

void top_period_fini(struct top_period *p)
{
    const size_t count = top_period_lists(p->report);
    for (size_t i = 0; i < count; i++)
        top_list_fini(&p->lists[i]);
    free(p->lists);
    arena_fini(&p->memory);
}

/* ---- series */

/* An absent value is counted, but not listed: a list that is long enough has only series with values. */
static void rank_series(struct top_period *p, size_t measure, const struct slice *key, const int64_t *columns,
                        const union sketch *s)
{
    const struct measure *m = &p->report->measures[measure];
    struct top_list *l = &p->lists[p->first[measure]];
    struct top_entry one = {.key = key != NULL ? *key : slice_text(STORE_OTHER_KEY), .is_other = key == NULL};
    memcpy(one.columns, columns, measure_column_count(m) * sizeof *columns);
    for (enum rank_by by = 0; by < RANK_BY_END; by++) {
        if (!rank_by_is_of(by, m))
            continue;
        const bool is_there = rank_by_value(by, m, p->span, columns, s, &one.value);
        if (!rank_by_is_amount(by) || (is_there && one.value != 0))
            l->series++;
        if (is_there && (!rank_by_is_amount(by) || one.value != 0))
            top_list_add(l, &one);
        l++;
    }
}

void top_period_add(struct top_period *p, const struct slice *key, const int64_t *values)
{
    for (size_t i = 0; i < p->report->measure_count; i++) {
        const struct measure *m = &p->report->measures[i];
        if (!rank_by_is_of(RANK_BY_VALUE, m) || measure_has_sketch(m))
            continue;
        measure_merge(m, p->sums[i].columns, &values[m->column]);
        rank_series(p, i, key, &values[m->column], NULL);
    }
}

void top_period_add_sketch(struct top_period *p, size_t sketch, const struct slice *key,
                           const int64_t *values, struct slice value, struct sketch_work *work)
{
    const size_t measure = p->report->sketched[sketch];
    const struct measure *m = &p->report->measures[measure];
    struct top_sum *sum = &p->sums[measure];
    union sketch s;
    memset(&s, 0, sizeof s);
    sum->is_damaged = sum->is_damaged || !mongo_merge_sketch(m, value, &s, sketch_work_ready(work));
    if (sum->is_damaged)
        return;
    sketch_unite(measure_sketch_kind(m), &sum->sketch, &p->memory, &s, HISTOGRAM_SCHEMA_MAX);
    measure_merge(m, sum->columns, &values[m->column]);
    rank_series(p, measure, key, &values[m->column], &s);
}

uint64_t top_period_series(const struct top_period *p)
{
    uint64_t series = 0;
    for (size_t i = 0, count = top_period_lists(p->report); i < count; i++)
        series = p->lists[i].series > series ? p->lists[i].series : series;
    return series;
}

/* ---- as a document */

/* Appends a count or sum. A sum with fractions is a decimal, also if its report has none: a ranking is
 * replaced as a whole. */
static void append_value(bson_t *to, const char *name, const struct measure *m, const int64_t *columns)
{
    int128 value;
    if (!m->is_fraction)
        bson_append_int64(to, name, -1, columns[0]);
    else if (measure_value(m, columns, &value))
        mongo_append_decimal(to, name, value);
}

static void append_metadata(const struct mongo_report *more, size_t dimensions, bson_t *to,
                            const struct top_entry *one)
{
    struct slice rest = one->key;
    bson_t metadata;
    BSON_APPEND_DOCUMENT_BEGIN(to, "metadata", &metadata);
    if (one->is_other)
        BSON_APPEND_BOOL(&metadata, "other", true);
    for (size_t d = 0; !one->is_other && d < dimensions; d++) {
        struct slice text = dimension_next(&rest);
        bson_append_utf8(&metadata, more->dimensions[d] + strlen("metadata."), -1,
                         text.len > 0 ? text.ptr : "", (int)text.len);
    }
    bson_append_document_end(to, &metadata);
}

/* Appends the figure of a series, and the number of its events. */
static void append_figure(bson_t *to, const struct measure *m, enum rank_by by, const struct top_entry *one)
{
    if (rank_by_is_amount(by))
        BSON_APPEND_INT64(to, "value", (int64_t)(one->value / EVENT_SCALE));
    else
        mongo_append_decimal(to, "value", one->value);
    BSON_APPEND_INT64(to, "count", one->columns[measure_column_count(m) - 1]);
}

/* Appends as many entries as there is room for. */
static void append_list(const struct top_period *p, const struct mongo_report *more, const struct measure *m,
                        enum rank_by by, struct top_list *l, bson_t *to)
{
    const bool of_sketch = measure_has_sketch(m);
    bson_t top, entry;
    size_t bytes = 0;
    if (l->count > 0)
        qsort(l->entries, l->count, sizeof *l->entries, compare_entries);
    BSON_APPEND_INT64(to, "series", (int64_t)l->series);
    BSON_APPEND_ARRAY_BEGIN(to, "top", &top);
    for (size_t i = 0; i < l->count && (bytes += l->entries[i].key.len) <= MONGO_TOP_BYTES &&
                       !(of_sketch && top.len >= MONGO_TOP_FIGURE_BYTES);
         i++) {
        char room[MONGO_KEY_BYTES];
        bson_append_document_begin(&top, mongo_array_key(i, room), -1, &entry);
        append_metadata(more, p->report->dimension_count, &entry, &l->entries[i]);
        if (of_sketch)
            append_figure(&entry, m, by, &l->entries[i]);
        else
            append_value(&entry, "value", m, l->entries[i].columns);
        bson_append_document_end(&top, &entry);
    }
    bson_append_array_end(to, &top);
}

static void append_measure(const struct top_period *p, const struct mongo_report *more, size_t measure,
                           bson_t *to)
{
    const struct measure *m = &p->report->measures[measure];
    const struct top_sum *sum = &p->sums[measure];
    struct top_list *l = &p->lists[p->first[measure]];
    bson_t of, list;
    bson_append_document_begin(to, m->name, -1, &of);
    if (measure_has_sketch(m))
        mongo_append_bucket(&of, "total", m, true, sum->columns, &sum->sketch);
    else
        append_value(&of, "total", m, sum->columns);
    for (enum rank_by by = 0; by < RANK_BY_END; by++) {
        if (!rank_by_is_of(by, m))
            continue;
        if (measure_has_sketch(m)) {
            bson_append_document_begin(&of, rank_by_name(by), -1, &list);
            append_list(p, more, m, by, l, &list);
            bson_append_document_end(&of, &list);
        } else {
            append_list(p, more, m, by, l, &of);
        }
        l++;
    }
    bson_append_document_end(to, &of);
}

void top_period_append(struct top_period *p, const struct mongo_store *m, size_t report, bson_t *to)
{
    bson_t measures;
    BSON_APPEND_DOCUMENT_BEGIN(to, "measures", &measures);
    for (size_t i = 0; i < p->report->measure_count; i++) {
        if (lists_of(&p->report->measures[i]) > 0 && !p->sums[i].is_damaged)
            append_measure(p, &m->more[report], i, &measures);
    }
    bson_append_document_end(to, &measures);
}
