#include "tests/support/batcher.h"

#include "aggregate/recent_document.h"
#include "base/check.h"
#include "base/civil.h"
#include "base/mem.h"
#include "ingest/record.h"

#include <stdio.h>
#include <stdlib.h>

/* The series a shard knows of one report, in order of number. */
struct known {
    struct series **series;
    size_t count, capacity;
};

struct batcher {
    const struct report *reports;
    size_t report_count;
    struct part *parts;
    struct part **part_pointers;
    struct known *known; /* [shard * report_count + report] */
    uint32_t shard_count;
    struct range range; /* the sealed batch */
    struct books books;
    struct batch batch;
    int64_t events;      /* added so far */
    struct arena newest; /* memory of newest events */
    struct recent_room room;
};

struct batcher *batcher_new(const struct report *reports, size_t report_count, uint32_t shard_count)
{
    struct batcher *b = xcalloc(1, sizeof *b);
    b->reports = reports;
    b->report_count = report_count;
    b->shard_count = shard_count;
    b->parts = xcalloc(shard_count, sizeof *b->parts);
    b->part_pointers = xcalloc(shard_count, sizeof(struct part *));
    b->known = xcalloc(shard_count * report_count, sizeof *b->known);
    books_init(&b->books, report_count);
    arena_init(&b->newest, 4096);
    for (uint32_t s = 0; s < shard_count; s++) {
        struct part *p = b->part_pointers[s] = &b->parts[s];
        *p = (struct part){.shard = s, .report_count = report_count};
        p->reports = xcalloc(report_count, sizeof *p->reports);
        for (size_t r = 0; r < report_count; r++)
            p->reports[r].cells.stride = report_cell_bytes(&reports[r]);
        books_init(&p->books, report_count);
    }
    return b;
}

static void forget(struct known *k)
{
    for (size_t i = 0; i < k->count; i++)
        free(k->series[i]);
    k->count = 0;
}

void batcher_free(struct batcher *b)
{
    for (uint32_t s = 0; s < b->shard_count; s++) {
        for (size_t r = 0; r < b->report_count; r++) {
            forget(&b->known[s * b->report_count + r]);
            free(b->known[s * b->report_count + r].series);
            free(b->parts[s].reports[r].cells.data);
            free(b->parts[s].reports[r].added);
        }
        free(b->parts[s].reports);
        books_fini(&b->parts[s].books);
    }
    books_fini(&b->books);
    arena_fini(&b->newest);
    recent_room_fini(&b->room);
    free(b->parts);
    free(b->part_pointers);
    free(b->known);
    free(b);
}

static struct series *series_of(struct known *k, struct part_report *pr, struct slice key)
{
    for (size_t i = 0; i < k->count; i++) {
        if (slice_equal(slice_of(k->series[i]->key, k->series[i]->key_len), key))
            return k->series[i];
    }
    struct series *s = xmalloc(sizeof *s + key.len);
    *s = (struct series){.number = (uint32_t)k->count, .key_len = (uint32_t)key.len};
    memcpy(s->key, key.ptr, key.len);
    k->series = xgrow(k->series, &k->capacity, k->count + 1, sizeof(struct series *));
    k->series[k->count++] = s;
    if (pr->added_count == 0)
        pr->first_added = s->number;
    pr->added = xgrow(pr->added, &pr->added_capacity, pr->added_count + 1, sizeof(struct series *));
    pr->added[pr->added_count++] = s;
    return s;
}

static struct cell *cell_of(struct cells *cells, uint32_t series, uint32_t time)
{
    for (size_t i = 0; i < cells->count; i++) {
        struct cell *c = cells_at(cells, i);
        if (c->series == series && c->time == time)
            return c;
    }
    cells->data = xgrow(cells->data, &cells->capacity, cells->count + 1, cells->stride);
    struct cell *c = cells_at(cells, cells->count++);
    memset(c, 0, cells->stride);
    c->series = series;
    c->time = time;
    return c;
}

static void add_newest(struct batcher *b, const struct report *r, struct cell *c, int64_t at_ms)
{
    const struct event ev = {.at_ms = at_ms, .order = record_order(b->events++, 0)};
    recent_add(&report_sketch(r, c, r->sketch_count)->recent, &b->newest, r->newest,
               recent_document(&b->room, NULL, 0, slice_text("batcher/0/"), &ev));
}

void batcher_add(struct batcher *b, uint32_t shard, size_t report, const char *key, int64_t at_ms,
                 const int64_t *values)
{
    ASSERT(shard < b->shard_count && report < b->report_count);
    struct part_report *pr = &b->parts[shard].reports[report];
    struct series *s = series_of(&b->known[shard * b->report_count + report], pr, slice_text(key));
    struct cell *c = cell_of(&pr->cells, s->number, (uint32_t)(at_ms / report_cell_ms(&b->reports[report])));
    report_merge(&b->reports[report], c->value, values);
    if (b->reports[report].newest > 0)
        add_newest(b, &b->reports[report], c, at_ms);
}

struct books *batcher_books(struct batcher *b, uint32_t shard)
{
    ASSERT(shard < b->shard_count);
    return &b->parts[shard].books;
}

void batcher_new_epoch(struct batcher *b, uint32_t shard)
{
    ASSERT(shard < b->shard_count);
    for (size_t r = 0; r < b->report_count; r++) {
        ASSERT(b->parts[shard].reports[r].cells.count == 0);
        forget(&b->known[shard * b->report_count + r]);
    }
    b->parts[shard].epoch++;
}

const struct batch *batcher_seal(struct batcher *b, const char *source, int64_t from, int64_t to)
{
    b->batch = (struct batch){.ranges = &b->range,
                              .books = &b->books,
                              .range_count = 1,
                              .parts = b->part_pointers,
                              .part_count = b->shard_count};
    b->range = (struct range){.from = from, .to = to};
    snprintf(b->range.source, sizeof b->range.source, "%s", source);
    snprintf(b->range.label, sizeof b->range.label, "/var/log/%s", source);
    books_clear(&b->books);
    for (uint32_t s = 0; s < b->shard_count; s++)
        books_add(&b->books, &b->parts[s].books);
    return &b->batch;
}

struct range *batcher_range(struct batcher *b)
{
    return &b->range;
}

void batcher_clear(struct batcher *b)
{
    for (uint32_t s = 0; s < b->shard_count; s++) {
        for (size_t r = 0; r < b->report_count; r++) {
            b->parts[s].reports[r].cells.count = 0;
            b->parts[s].reports[r].added_count = 0;
        }
        books_clear(&b->parts[s].books);
    }
    arena_reset(&b->newest);
}
