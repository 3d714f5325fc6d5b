/* Turns histograms, distinct counts and newest events of a batch into updates of the documents that they have
 * for themselves. Each document has buckets of one resolution (mongo/handle/kind.h). */
#include "store/mongo/doc/document.h"
#include "store/mongo/doc/sketch.h"
#include "store/mongo/writer/crowd.h"
#include "store/mongo/writer/update_internal.h"

/* One sketch of the report, and the documents that are written. */
struct writing {
    struct update *u;
    size_t sketch;
    const struct measure *measure;
    const struct mongo_kind *kind;
    size_t cell_count;
};

/* The sum of the cells of a time bucket, of one measure. */
struct bucket {
    int64_t columns[MEASURE_COLUMNS_MAX];
    const union sketch *sketch; /* of its only cell, or `merged`, in the buckets of the resolution */
    union sketch merged;
};

static void merge_columns(const struct writing *w, const struct cell *c, struct bucket *b)
{
    const int64_t *own = &c->value[w->measure->column];
    int64_t opposite[MEASURE_COLUMNS_MAX];
    const bool takes = w->u->m->batch.taken != NULL;
    for (size_t i = 0; takes && i < measure_column_count(w->measure); i++)
        opposite[i] = own[i] == INT64_MIN ? INT64_MAX : -own[i];
    measure_merge(w->measure, b->columns, takes ? opposite : own);
}

/* Merges the cells from `i` on that are in a bucket. Returns the first cell behind it. */
static size_t merge_bucket(const struct writing *w, size_t i, int64_t end_ms, struct bucket *b)
{
    const struct update *u = w->u;
    const struct report *r = &u->m->reports[u->report];
    const uint32_t series = update_series_at(u, i);
    struct arena *arena = sketch_work_ready(&u->m->sorting.sketches);
    memset(b, 0, sizeof *b);
    for (; update_is_within(u, i, w->cell_count, series, end_ms); i++) {
        struct cell *c = update_cell_at(u, i);
        const union sketch *own = report_sketch(r, c, w->sketch);
        merge_columns(w, c, b);
        if (b->sketch == NULL && !measure_widens(w->measure, w->kind->finest)) {
            b->sketch = own;
            continue;
        }
        if (b->sketch != NULL && b->sketch != &b->merged)
            measure_unite_sketch(w->measure, w->kind->finest, &b->merged, arena, b->sketch);
        b->sketch = &b->merged;
        measure_unite_sketch(w->measure, w->kind->finest, &b->merged, arena, own);
    }
    return i;
}

/* Adds a sketch to the update of the document that begins at start_ms. */
static void add_sketch(const struct writing *w, uint32_t series, int64_t start_ms, const char *path,
                       const union sketch *s)
{
    struct update *u = w->u;
    const struct mongo_counted where = {u->report, w->sketch, w->kind, series, start_ms};
    if (w->measure->kind == MEASURE_HISTOGRAM)
        mongo_add_histogram(&u->inc, path, &s->histogram, u->m->batch.taken != NULL);
    else if (w->measure->kind == MEASURE_NEWEST)
        mongo_add_newest(&u->push, path, &s->recent);
    else if (w->measure->kind == MEASURE_DISTINCT &&
             u->m->batch.taken == NULL) /* nothing is taken out of it */
        mongo_add_distinct(&u->max, path, &s->distinct, mongo_crowd_note(u->m, &where, &s->distinct));
}

/* Writes a document, from the cells from `i` on. Buckets that have expired are left out, and so is a document
 * without others. Returns the first cell behind it. */
static size_t write_document(const struct writing *w, size_t i)
{
    struct update *u = w->u;
    const struct mongo_kind *k = w->kind;
    const uint32_t series = update_series_at(u, i);
    const int64_t kept_ms = u->m->more[u->report].watermarks.before_ms[k->finest];
    const int64_t start_ms = span_floor(k->span, update_ms_at(u, i)), end_ms = span_next(k->span, start_ms);
    char path[MONGO_PATH_BYTES];
    bool is_empty = true;
    mongo_begin_update(u);
    while (update_is_within(u, i, w->cell_count, series, end_ms)) {
        const int64_t at_ms = span_floor(k->finest, update_ms_at(u, i));
        struct bucket b;
        i = merge_bucket(w, i, span_next(k->finest, at_ms), &b);
        if (at_ms < kept_ms || (w->measure->kind == MEASURE_NEWEST && b.sketch->recent.count == 0))
            continue;
        is_empty = false;
        mongo_path(k, k->finest, at_ms, path);
        mongo_add_value(&u->inc, &u->min, &u->max, w->measure, u->m->more[u->report].is_decimal, path,
                        b.columns);
        add_sketch(w, series, start_ms, path, b.sketch);
    }
    if (is_empty)
        mongo_drop_update(u);
    else
        mongo_end_document(u, series, k->span, start_ms);
    return i;
}

void mongo_write_sketches(struct update *u, size_t cell_count)
{
    const struct report *r = &u->m->reports[u->report];
    struct writing w = {.u = u, .cell_count = cell_count};
    for (w.sketch = u->of_newest ? r->sketch_count : 0; w.sketch < mongo_sketch_count(r); w.sketch++) {
        size_t kind_count;
        const struct mongo_kind *kinds = mongo_sketch_kinds(r, w.sketch, &kind_count);
        w.measure = report_sketched(r, w.sketch);
        for (size_t k = 0; k < kind_count; k++) {
            char name[MONGO_NAME_BYTES];
            w.kind = &kinds[k];
            u->collection = mongo_sketch_collection(u->m, u->report, w.sketch, span_name(w.kind->span), name);
            for (size_t i = 0; i < cell_count;)
                i = write_document(&w, i);
        }
    }
}
