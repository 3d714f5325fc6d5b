#include "store/sqlite/body.h"

#include "base/check.h"
#include "base/mem.h"
#include "base/varint.h"
#include "store/sqlite/tight.h"
#include "store/sqlite/tight_one.h"

#include <stdlib.h>

/* One series' entry in an existing body. */
struct entry {
    uint32_t series;
    const uint8_t *slots, *slots_end;
};

/* Read the entry at *p; false: it is damaged. `before` is the previous entry's series, -1 at first. */
static bool entry_get(const uint8_t **p, const uint8_t *end, int64_t before, struct entry *entry)
{
    uint64_t gap, len;
    const uint8_t *q = varint_get(*p, end, &gap);
    if (q == NULL || gap >= BODY_SERIES || (q = varint_get(q, end, &len)) == NULL || len == 0 ||
        len > (uint64_t)(end - q))
        return false;
    int64_t series = before + 1 + (int64_t)gap;
    if (series >= BODY_SERIES)
        return false;
    *entry = (struct entry){(uint32_t)series, q, q + len};
    *p = q + len;
    return true;
}

/* Read the slot number at `p`, and whether its sketches are tight. If `above` is BODY_SLOTS, it is the first
 * of an entry; else it is a gap down from `above`. NULL: it is damaged. */
static const uint8_t *slot_number_get(const uint8_t *p, const uint8_t *end, uint32_t above, uint32_t *slot,
                                      bool *is_tight)
{
    uint64_t v;
    p = varint_get(p, end, &v);
    if (p == NULL)
        return NULL;
    *is_tight = v >= BODY_SLOTS;
    v -= *is_tight ? BODY_SLOTS : 0;
    if (v >= above)
        return NULL;
    *slot = above == BODY_SLOTS ? (uint32_t)v : above - 1 - (uint32_t)v;
    return p;
}

/* The counts of one slot. */
struct counts {
    int64_t values[REPORT_COLUMNS_MAX];
    struct slice sketches[REPORT_MEASURES_MAX];
    bool is_tight; /* whether the sketches are */
};

/* Read the counts behind a slot's number, which has set c->is_tight. */
static const uint8_t *counts_get(const uint8_t *p, const uint8_t *end, const struct report *r,
                                 struct counts *c)
{
    uint64_t v;
    if (c->is_tight && r->sketch_count == 0)
        return NULL;
    for (size_t i = 0; i < r->column_count; i++) {
        p = varint_get(p, end, &v);
        if (p == NULL)
            return NULL;
        c->values[i] = varint_unzigzag(v);
    }
    for (size_t i = 0; i < r->sketch_count; i++) {
        p = varint_get(p, end, &v);
        if (p == NULL || v > (uint64_t)(end - p))
            return NULL;
        c->sketches[i] = slice_of((const char *)p, (size_t)v);
        p += v;
    }
    return p;
}

static struct slice part_of(const struct text *t, size_t from, size_t to)
{
    return from < to ? slice_of(t->ptr + from, to - from) : slice_of(NULL, 0);
}

/* Make the wanted sketches loose again. False: one is damaged. */
static bool loosen(const struct report *r, struct counts *c, uint64_t wanted, struct text *loose)
{
    size_t from[REPORT_MEASURES_MAX + 1] = {0};
    if (!c->is_tight || wanted == 0)
        return true;
    text_clear(loose);
    for (size_t i = 0; i < r->sketch_count; i++) {
        if ((wanted >> i & 1) != 0 && c->sketches[i].len > 0 &&
            !tight_get(measure_sketch_kind(report_sketched(r, i)), c->sketches[i], loose))
            return false;
        from[i + 1] = loose->len;
    }
    for (size_t i = 0; i < r->sketch_count; i++)
        c->sketches[i] = part_of(loose, from[i], from[i + 1]);
    c->is_tight = false;
    return true;
}

static uint8_t *slot_number_put(uint8_t *p, uint32_t above, uint32_t slot, bool is_tight)
{
    ASSERT(slot < above);
    return varint_put(p, (above == BODY_SLOTS ? slot : above - 1 - slot) + (is_tight ? BODY_SLOTS : 0));
}

static uint8_t *bytes_put(uint8_t *p, const uint8_t *bytes, size_t len)
{
    p = varint_put(p, len);
    if (len > 0)
        memmove(p, bytes, len);
    return p + len;
}

/* Write the length of the bytes at p + 1 before them. Pre: there is room for VARINT_BYTES_MAX more. */
static uint8_t *length_put(uint8_t *p, size_t len)
{
    uint8_t bytes[VARINT_BYTES_MAX];
    const size_t size = varint_size(len);
    if (size > 1)
        memmove(p + size, p + 1, len);
    (void)varint_put(bytes, len);
    memcpy(p, bytes, size);
    return p + size + len;
}

/* Write a sketch packed or tight. Pre: there is room for VARINT_BYTES_MAX and tight_room() bytes. */
static uint8_t *sketch_put(struct body_buffer *b, uint8_t *p, enum sketch_kind kind, const union sketch *s)
{
    if (b->packs_tight)
        return length_put(p, tight_put(kind, s, p + 1, &b->packed));
    text_clear(&b->packed);
    sketch_pack(kind, s, &b->packed);
    return bytes_put(p, (const uint8_t *)b->packed.ptr, b->packed.len);
}

/* Make room behind `at`, for the bytes from `*data` on. Returns `at`, which may have moved. */
static uint8_t *make_room(uint8_t **data, size_t *capacity, uint8_t *at, size_t bytes)
{
    const size_t used = *data != NULL ? (size_t)(at - *data) : 0;
    *data = xgrow(*data, capacity, used + bytes, 1);
    return *data + used;
}

void body_buffer_fini(struct body_buffer *b)
{
    free(b->data);
    free(b->slots);
    text_fini(&b->loose);
    text_fini(&b->packed);
    sketch_work_fini(&b->work);
    *b = (struct body_buffer){0};
}

static uint8_t *entry_put(struct body_buffer *b, uint8_t *p, int64_t before, uint32_t series,
                          const uint8_t *slots, size_t len)
{
    ASSERT((int64_t)series > before && series < BODY_SERIES);
    p = make_room(&b->data, &b->capacity, p, 2 * VARINT_BYTES_MAX + len);
    p = varint_put(p, (uint64_t)((int64_t)series - before - 1));
    return bytes_put(p, slots, len);
}

/* State of merging the slots of one series, newest first. */
struct merge {
    const uint8_t *old, *old_end; /* old slots not read yet; NULL: none */
    uint32_t old_above;           /* last old slot read; BODY_SLOTS: none */
    uint8_t *out;
    uint32_t out_above;
    const struct report *report;
    struct body_buffer *buffer;
};

static inline void merge_room(struct merge *m, size_t bytes)
{
    m->out = make_room(&m->buffer->slots, &m->buffer->slots_capacity, m->out, bytes);
}

static inline uint8_t *columns_put(struct merge *m, uint32_t slot, bool is_tight, const int64_t *values)
{
    uint8_t *p = slot_number_put(m->out, m->out_above, slot, is_tight);
    for (size_t i = 0; i < m->report->column_count; i++)
        p = varint_put(p, varint_zigzag(values[i]));
    m->out_above = slot;
    return p;
}

/* Write a slot with sketches that were read. */
static void merge_put_read(struct merge *m, uint32_t slot, const struct counts *c)
{
    const struct report *r = m->report;
    size_t room = (1 + r->column_count) * VARINT_BYTES_MAX;
    for (size_t i = 0; i < r->sketch_count; i++)
        room += VARINT_BYTES_MAX + c->sketches[i].len;
    merge_room(m, room);
    m->out = columns_put(m, slot, c->is_tight, c->values);
    for (size_t i = 0; i < r->sketch_count; i++)
        m->out = bytes_put(m->out, (const uint8_t *)c->sketches[i].ptr, c->sketches[i].len);
}

/* Write a slot. */
static inline void merge_put(struct merge *m, uint32_t slot, const int64_t *values,
                             const union sketch *sketches)
{
    const struct report *r = m->report;
    const bool is_tight = r->sketch_count > 0 && m->buffer->packs_tight;
    merge_room(m, (1 + r->column_count) * VARINT_BYTES_MAX + r->sketch_count * (1 + TIGHT_ONE_MAX));
    m->out = columns_put(m, slot, is_tight, values);
    for (size_t i = 0; i < r->sketch_count; i++) {
        const enum sketch_kind kind = measure_sketch_kind(report_sketched(r, i));
        const size_t len = is_tight ? tight_put_one(kind, &sketches[i], m->out + 1) : 0;
        if (LIKELY(len > 0)) {
            *m->out = (uint8_t)len;
            m->out += 1 + len;
            continue;
        }
        merge_room(m, VARINT_BYTES_MAX + tight_room(kind, &sketches[i]) +
                          (r->sketch_count - i) * (1 + TIGHT_ONE_MAX));
        m->out = sketch_put(m->buffer, m->out, kind, &sketches[i]);
    }
}

/* Read a sketch of `c`. Its memory is m->buffer->work. False: it is damaged. */
static bool sketch_read(struct merge *m, const struct counts *c, size_t i, union sketch *sketch)
{
    const enum sketch_kind kind = measure_sketch_kind(report_sketched(m->report, i));
    struct arena *arena = sketch_work_ready(&m->buffer->work);
    *sketch = (union sketch){0};
    if (c->is_tight && c->sketches[i].len > 0)
        return tight_merge(kind, c->sketches[i], sketch, arena, &m->buffer->packed);
    return sketch_merge(kind, sketch, arena, c->sketches[i]);
}

/* Write the union of a sketch of `c` and that of an item. False: it is damaged. */
static bool sketch_put_both(struct merge *m, const struct counts *c, size_t i, const union sketch *more)
{
    const enum sketch_kind kind = measure_sketch_kind(report_sketched(m->report, i));
    union sketch both;
    if (c->is_tight && c->sketches[i].len > 0 && m->buffer->packs_tight) {
        merge_room(m, VARINT_BYTES_MAX + TIGHT_JOINED_MAX);
        const size_t len = tight_join(kind, c->sketches[i], more, m->out + 1);
        if (len > 0) {
            m->out = length_put(m->out, len);
            return true;
        }
    }
    if (!sketch_read(m, c, i, &both))
        return false;
    sketch_unite(kind, &both, &m->buffer->work.arena, more, HISTOGRAM_SCHEMA_MAX);
    merge_room(m, VARINT_BYTES_MAX + tight_room(kind, &both));
    m->out = sketch_put(m->buffer, m->out, kind, &both);
    return true;
}

/* Write a slot whose counts are `c` and those of an item. False: a sketch is damaged. */
static bool merge_put_both(struct merge *m, struct counts *c, const struct body_item *item)
{
    const struct report *r = m->report;
    report_merge(r, c->values, item->value);
    merge_room(m, (1 + r->column_count) * VARINT_BYTES_MAX);
    m->out = columns_put(m, item->slot, r->sketch_count > 0 && m->buffer->packs_tight, c->values);
    for (size_t i = 0; i < r->sketch_count; i++) {
        if (!sketch_put_both(m, c, i, &item->sketches[i]))
            return false;
    }
    return true;
}

/* Copy the remaining old slots unread, except the first one's number, which becomes a gap. */
static bool merge_copy_old(struct merge *m)
{
    uint32_t slot;
    bool is_tight;
    if (m->old == m->old_end)
        return true;
    const uint8_t *values = slot_number_get(m->old, m->old_end, m->old_above, &slot, &is_tight);
    if (values == NULL || slot >= m->out_above)
        return false;
    merge_room(m, VARINT_BYTES_MAX + (size_t)(m->old_end - values));
    m->out = slot_number_put(m->out, m->out_above, slot, is_tight);
    memcpy(m->out, values, (size_t)(m->old_end - values));
    m->out += m->old_end - values;
    return true;
}

/* Copy old slots down to `slot`, then write the item, merged with an old slot of the same number. */
static bool merge_item(struct merge *m, const struct body_item *item)
{
    struct counts counts;
    while (m->old < m->old_end) {
        uint32_t old_slot;
        const uint8_t *p = slot_number_get(m->old, m->old_end, m->old_above, &old_slot, &counts.is_tight);
        if (p == NULL)
            return false;
        if (old_slot < item->slot)
            break;
        m->old = counts_get(p, m->old_end, m->report, &counts);
        m->old_above = old_slot;
        if (m->old == NULL)
            return false;
        if (old_slot == item->slot)
            return merge_put_both(m, &counts, item);
        merge_put_read(m, old_slot, &counts);
    }
    merge_put(m, item->slot, item->value, item->sketches);
    return true;
}

/* Merge all items of one series with its old slots (NULL: none). False: the old slots are damaged. */
static bool merge_series(const struct entry *old, const struct body_item *items, size_t count,
                         const struct report *r, struct body_buffer *b, size_t *slots_len)
{
    struct merge m = {
        .out = b->slots, .old_above = BODY_SLOTS, .out_above = BODY_SLOTS, .report = r, .buffer = b};
    if (old != NULL) {
        m.old = old->slots;
        m.old_end = old->slots_end;
    }
    while (count-- > 0) {
        if (!merge_item(&m, &items[count]))
            return false;
    }
    if (!merge_copy_old(&m))
        return false;
    *slots_len = (size_t)(m.out - b->slots);
    return true;
}

static size_t items_of_series(const struct body_item *items, size_t count)
{
    size_t n = 1;
    while (n < count && items[n].series == items[0].series)
        n++;
    return n;
}

bool body_merge(struct slice old, const struct body_item *items, size_t count, const struct report *r,
                struct body_buffer *out)
{
    ASSERT(r->column_count <= REPORT_COLUMNS_MAX);
    const uint8_t *p = (const uint8_t *)old.ptr, *end = (const uint8_t *)slice_end(old);
    int64_t before_old = -1, before_out = -1;
    struct entry entry;
    bool has_entry = false;
    uint8_t *to = make_room(&out->data, &out->capacity, out->data, old.len);
    while (has_entry || p < end || count > 0) {
        if (!has_entry && p < end) {
            if (!entry_get(&p, end, before_old, &entry))
                return false;
            before_old = entry.series;
            has_entry = true;
        }
        if (has_entry && (count == 0 || entry.series < items->series)) {
            to = entry_put(out, to, before_out, entry.series, entry.slots,
                           (size_t)(entry.slots_end - entry.slots));
            before_out = entry.series;
            has_entry = false;
            continue;
        }
        bool both = has_entry && entry.series == items->series;
        size_t slots_len, taken = items_of_series(items, count);
        if (!merge_series(both ? &entry : NULL, items, taken, r, out, &slots_len))
            return false;
        to = entry_put(out, to, before_out, items->series, out->slots, slots_len);
        before_out = items->series;
        items += taken;
        count -= taken;
        has_entry = has_entry && !both;
    }
    out->len = (size_t)(to - out->data);
    return true;
}

/* Take a sketch out of another one. False: it was not merged into it, or that cannot be told. */
static bool take_sketch(struct merge *m, enum sketch_kind kind, union sketch *from, const union sketch *what)
{
    struct text *packed = &m->buffer->packed;
    if (sketch_is_empty(kind, what))
        return true;
    if (kind != SKETCH_HISTOGRAM)
        return false;
    text_clear(packed);
    sketch_pack(kind, what, packed);
    return histogram_take(&from->histogram, &m->buffer->work.arena, text_slice(packed));
}

/* Write a slot whose counts are `c` without those of an item, if any is left. */
static bool take_counts(struct merge *m, struct counts *c, const struct body_item *item)
{
    const struct report *r = m->report;
    union sketch rest;
    if (!report_take(r, c->values, item->value))
        return false;
    const bool is_left = !report_is_zero(r, c->values);
    merge_room(m, (1 + r->column_count) * VARINT_BYTES_MAX);
    if (is_left)
        m->out = columns_put(m, item->slot, r->sketch_count > 0 && m->buffer->packs_tight, c->values);
    for (size_t i = 0; i < r->sketch_count; i++) {
        const enum sketch_kind kind = measure_sketch_kind(report_sketched(r, i));
        if (!sketch_read(m, c, i, &rest) || !take_sketch(m, kind, &rest, &item->sketches[i]))
            return false;
        merge_room(m, VARINT_BYTES_MAX + tight_room(kind, &rest));
        if (is_left)
            m->out = sketch_put(m->buffer, m->out, kind, &rest);
    }
    return true;
}

/* Take all items of one series out of its slots, newest first. */
static enum body_taken take_series(const struct entry *old, const struct body_item *items, size_t count,
                                   const struct report *r, struct body_buffer *b, size_t *slots_len)
{
    struct counts counts;
    struct merge m = {.out = b->slots, .out_above = BODY_SLOTS, .report = r, .buffer = b};
    uint32_t above = BODY_SLOTS;
    for (const uint8_t *p = old->slots; p < old->slots_end;) {
        uint32_t slot;
        if ((p = slot_number_get(p, old->slots_end, above, &slot, &counts.is_tight)) == NULL ||
            (p = counts_get(p, old->slots_end, r, &counts)) == NULL)
            return BODY_IS_DAMAGED;
        above = slot;
        if (count > 0 && items[count - 1].slot > slot)
            return BODY_LACKS_ITEM;
        if (count == 0 || items[count - 1].slot != slot) {
            if (!report_is_zero(r, counts.values))
                merge_put_read(&m, slot, &counts);
        } else if (!take_counts(&m, &counts, &items[--count])) {
            return BODY_LACKS_ITEM;
        }
    }
    *slots_len = (size_t)(m.out - b->slots);
    return count == 0 ? BODY_TAKEN : BODY_LACKS_ITEM;
}

enum body_taken body_take(struct slice old, const struct body_item *items, size_t count,
                          const struct report *r, struct body_buffer *out)
{
    const uint8_t *p = (const uint8_t *)old.ptr, *end = (const uint8_t *)slice_end(old);
    int64_t before_old = -1, before_out = -1;
    struct entry entry;
    uint8_t *to = make_room(&out->data, &out->capacity, out->data, old.len);
    while (p < end) {
        if (!entry_get(&p, end, before_old, &entry))
            return BODY_IS_DAMAGED;
        before_old = entry.series;
        size_t len = (size_t)(entry.slots_end - entry.slots), taken = 0;
        const uint8_t *kept = entry.slots;
        if (count > 0 && items->series < entry.series)
            break;
        if (count > 0 && items->series == entry.series) {
            taken = items_of_series(items, count);
            enum body_taken result = take_series(&entry, items, taken, r, out, &len);
            if (result != BODY_TAKEN)
                return result;
            kept = out->slots;
        }
        items += taken;
        count -= taken;
        if (len > 0) {
            to = entry_put(out, to, before_out, entry.series, kept, len);
            before_out = entry.series;
        }
    }
    out->len = (size_t)(to - out->data);
    return count == 0 ? BODY_TAKEN : BODY_LACKS_ITEM;
}

/* Pass the wanted slots of an entry to `fn`. It stops at the first slot below them. */
static bool each_slot(const struct entry *entry, const struct report *r, const struct body_want *want,
                      body_fn *fn, void *context, struct text *loose)
{
    struct counts counts;
    uint32_t above = BODY_SLOTS;
    for (const uint8_t *q = entry->slots; q < entry->slots_end;) {
        uint32_t slot;
        q = slot_number_get(q, entry->slots_end, above, &slot, &counts.is_tight);
        if (q == NULL)
            return false;
        if (slot < want->first)
            return true;
        if ((q = counts_get(q, entry->slots_end, r, &counts)) == NULL)
            return false;
        if (slot < want->end && (!loosen(r, &counts, want->sketches, loose) ||
                                 !fn(context, entry->series, slot, counts.values, counts.sketches)))
            return false;
        above = slot;
    }
    return true;
}

bool body_each(struct slice body, const struct report *r, const struct body_want *want, body_fn *fn,
               void *context, struct text *loose)
{
    const uint8_t *p = (const uint8_t *)body.ptr, *end = (const uint8_t *)slice_end(body);
    int64_t before = -1;
    struct entry entry;
    while (p < end) {
        if (!entry_get(&p, end, before, &entry))
            return false;
        before = entry.series;
        if (((want->series[entry.series / 64] >> (entry.series % 64)) & 1) != 0 &&
            !each_slot(&entry, r, want, fn, context, loose))
            return false;
    }
    return true;
}
