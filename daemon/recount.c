#include "daemon/recount.h"

#include "aggregate/batch.h"
#include "aggregate/dimension.h"
#include "base/check.h"
#include "base/mem.h"

#include <stdlib.h>

#define PLACES_MIN 1024

/* FNV-1a: another hash than the counting path has. */
static uint64_t hash_bytes(const void *bytes, size_t len)
{
    const unsigned char *p = bytes;
    uint64_t h = 0xcbf29ce484222325u;
    for (size_t i = 0; i < len; i++)
        h = (h ^ p[i]) * 0x100000001b3u;
    return h ^ h >> 32;
}

static uint64_t hash_cell(uint32_t salt, uint32_t series, int64_t slot_ms)
{
    uint64_t both[2] = {(uint64_t)salt << 32 | series, (uint64_t)slot_ms};
    return hash_bytes(both, sizeof both);
}

void recount_cells_init(struct recount_cells *t, uint32_t salt)
{
    *t = (struct recount_cells){.salt = salt, .mask = PLACES_MIN - 1};
    t->cells = xmalloc(PLACES_MIN * sizeof *t->cells);
    for (size_t i = 0; i < PLACES_MIN; i++)
        t->cells[i].slot_ms = -1;
}

void recount_cells_fini(struct recount_cells *t)
{
    free(t->cells);
    *t = (struct recount_cells){0};
}

static struct recount_cell *place_of(const struct recount_cells *t, uint32_t series, int64_t slot_ms)
{
    size_t at = hash_cell(t->salt, series, slot_ms) & t->mask;
    while (t->cells[at].slot_ms >= 0 && (t->cells[at].series != series || t->cells[at].slot_ms != slot_ms))
        at = (at + 1) & t->mask;
    return &t->cells[at];
}

static void grow_cells(struct recount_cells *t)
{
    struct recount_cells bigger = {.salt = t->salt, .mask = t->mask * 2 + 1, .count = t->count};
    bigger.cells = xmalloc((bigger.mask + 1) * sizeof *bigger.cells);
    for (size_t i = 0; i <= bigger.mask; i++)
        bigger.cells[i].slot_ms = -1;
    for (size_t i = 0; i <= t->mask; i++) {
        if (t->cells[i].slot_ms >= 0)
            *place_of(&bigger, t->cells[i].series, t->cells[i].slot_ms) = t->cells[i];
    }
    free(t->cells);
    *t = bigger;
}

struct recount_cell *recount_cells_get(struct recount_cells *t, uint32_t series, int64_t slot_ms)
{
    ASSERT(slot_ms >= 0);
    if ((t->count + 1) * 4 > (t->mask + 1) * 3)
        grow_cells(t);
    struct recount_cell *c = place_of(t, series, slot_ms);
    if (c->slot_ms < 0) {
        *c = (struct recount_cell){.series = series, .slot_ms = slot_ms};
        t->count++;
    }
    return c;
}

const struct recount_cell *recount_cells_find(const struct recount_cells *t, uint32_t series, int64_t slot_ms)
{
    const struct recount_cell *c = place_of(t, series, slot_ms);
    return c->slot_ms < 0 ? NULL : c;
}

void recount_init(struct recount *rc, const struct report *report, size_t dimension_bytes_max)
{
    *rc = (struct recount){
        .report = report, .key_mask = PLACES_MIN - 1, .dimension_bytes_max = dimension_bytes_max};
    rc->keys = xcalloc(PLACES_MIN, sizeof *rc->keys);
    rc->scratch = xmalloc(DIMENSION_KEY_BYTES(dimension_bytes_max));
    arena_init(&rc->arena, (size_t)64 << 10);
    recount_cells_init(&rc->minutes, 1);
}

void recount_fini(struct recount *rc)
{
    free(rc->keys);
    free(rc->key_of);
    free(rc->scratch);
    arena_fini(&rc->arena);
    recount_cells_fini(&rc->minutes);
}

static struct recount_key *key_place(const struct recount *rc, struct slice key)
{
    size_t at = hash_bytes(key.ptr, key.len) & rc->key_mask;
    while (rc->keys[at].text.ptr != NULL && !slice_equal(rc->keys[at].text, key))
        at = (at + 1) & rc->key_mask;
    return &rc->keys[at];
}

static void grow_keys(struct recount *rc)
{
    struct recount_key *old = rc->keys;
    size_t old_mask = rc->key_mask;
    rc->key_mask = old_mask * 2 + 1;
    rc->keys = xcalloc(rc->key_mask + 1, sizeof *rc->keys);
    for (size_t i = 0; i <= old_mask; i++) {
        if (old[i].text.ptr != NULL)
            *key_place(rc, old[i].text) = old[i];
    }
    free(old);
}

static uint32_t series_of(struct recount *rc, struct slice key)
{
    struct recount_key *k = key_place(rc, key);
    if (k->text.ptr != NULL)
        return k->series;
    *k = (struct recount_key){arena_copy(&rc->arena, key), (uint32_t)rc->series_count};
    rc->key_of = xgrow(rc->key_of, &rc->key_capacity, rc->series_count + 1, sizeof *rc->key_of);
    rc->key_of[rc->series_count++] = k->text;
    if (rc->series_count * 4 > (rc->key_mask + 1) * 3)
        grow_keys(rc);
    return (uint32_t)rc->series_count - 1;
}

uint32_t recount_series(const struct recount *rc, struct slice key)
{
    const struct recount_key *k = key_place(rc, key);
    return k->text.ptr != NULL ? k->series : UINT32_MAX;
}

bool recount_add(struct recount *rc, const struct event *ev)
{
    const struct report *r = rc->report;
    for (size_t i = 0; i < r->condition_count; i++) {
        if (!condition_holds(&r->conditions[i], ev))
            return false;
    }
    uint32_t series = series_of(rc, dimension_key(r, ev, rc->dimension_bytes_max, rc->scratch));
    struct recount_cell *c = recount_cells_get(&rc->minutes, series, span_floor(SPAN_MINUTE, ev->at_ms));
    for (size_t m = 0; m < r->measure_count; m++) {
        if (r->measures[m].kind == MEASURE_COUNT)
            c->values[m] = value_add(c->values[m], 1);
        else if (event_has(ev, r->measures[m].field))
            c->values[m] = value_add(c->values[m], ev->number[r->measures[m].field]);
    }
    return true;
}

void recount_sum(const struct recount *rc, enum span slot, struct recount_cells *into)
{
    for (size_t i = 0; i <= rc->minutes.mask; i++) {
        const struct recount_cell *from = &rc->minutes.cells[i];
        if (from->slot_ms < 0)
            continue;
        struct recount_cell *to = recount_cells_get(into, from->series, span_floor(slot, from->slot_ms));
        for (size_t m = 0; m < rc->report->measure_count; m++)
            to->values[m] = value_add(to->values[m], from->values[m]);
    }
}
