#include "store/mongo/writer/sums.h"

#include "base/mem.h"

/* One mixing step of MurmurHash3. */
static uint64_t hash_of(uint32_t series, uint32_t time)
{
    uint64_t h = (uint64_t)series << 32 | time;
    h = (h ^ h >> 33) * UINT64_C(0xff51afd7ed558ccd);
    return h ^ h >> 33;
}

static struct cell *find_sum(struct mongo_sums *s, const struct report *r, uint32_t series, uint32_t time)
{
    const uint64_t hash = hash_of(series, time);
    size_t at = hash;
    uint32_t number;
    while ((number = index_next(&s->index, hash, &at)) != 0) {
        struct cell *c = cells_at(&s->cells, number - 1);
        if (c->series == series && c->time == time)
            return c;
    }
    s->cells.stride = sizeof(struct cell) + r->column_count * sizeof(int64_t);
    s->cells.data = xgrow(s->cells.data, &s->cells.capacity, s->cells.count + 1, s->cells.stride);
    struct cell *c = cells_at(&s->cells, s->cells.count++);
    (void)index_add(&s->index, hash);
    memset(c, 0, s->cells.stride);
    c->series = series;
    c->time = time;
    return c;
}

static void clear(struct mongo_store *m, struct mongo_sums *sums)
{
    for (size_t r = 0; sums != NULL && r < m->store.report_count; r++) {
        sums[r].cells.count = 0;
        index_clear(&sums[r].index);
    }
}

void mongo_sums_begin(struct mongo_store *m)
{
    struct mongo_longer *l = &m->longer;
    if (l->fresh == NULL) {
        l->fresh = xcalloc(m->store.report_count + 1, sizeof *l->fresh);
        l->sums = xcalloc(m->store.report_count + 1, sizeof *l->sums);
    }
    clear(m, l->fresh);
    m->batch.fine_count = 0;
    m->batch.rolls_up = false;
}

void mongo_sums_add(struct mongo_store *m, size_t report, uint32_t series, int64_t start_ms,
                    const int64_t *columns)
{
    const struct report *r = &m->reports[report];
    const uint32_t time = (uint32_t)(start_ms / report_cell_ms(r));
    report_merge(r, find_sum(&m->longer.fresh[report], r, series, time)->value, columns);
}

/* Cells come by series, and then by time. So the period is most likely one of the last ones. */
void mongo_sums_note(struct mongo_store *m, enum span span, int64_t start_ms)
{
    struct mongo_batch *b = &m->batch;
    for (size_t i = b->fine_count; i > 0; i--) {
        if (b->fine[i - 1].start_ms == start_ms && b->fine[i - 1].span == span)
            return;
    }
    if (b->fine_count == MONGO_UNROLLED_MAX) {
        b->rolls_up = true;
        return;
    }
    b->fine = xgrow(b->fine, &b->fine_capacity, b->fine_count + 1, sizeof *b->fine);
    b->fine[b->fine_count++] = (struct mongo_unrolled){.span = span, .start_ms = start_ms};
}

static void add_fresh(struct mongo_store *m, size_t report)
{
    const struct report *r = &m->reports[report];
    const struct cells *fresh = &m->longer.fresh[report].cells;
    for (size_t i = 0; i < fresh->count; i++) {
        const struct cell *c = cells_at(fresh, i);
        report_merge(r, find_sum(&m->longer.sums[report], r, c->series, c->time)->value, c->value);
    }
}

void mongo_sums_commit(struct mongo_store *m, bool are_wanted)
{
    for (size_t r = 0; are_wanted && r < m->store.report_count; r++)
        add_fresh(m, r);
    clear(m, m->longer.fresh);
}

void mongo_sums_clear(struct mongo_store *m)
{
    clear(m, m->longer.sums);
}

size_t mongo_sums_count(const struct mongo_store *m)
{
    size_t count = 0;
    for (size_t r = 0; r < m->store.report_count; r++)
        count += m->longer.sums[r].cells.count;
    return count;
}
