#include "store/body.h"

#include "aggregate/batch.h"
#include "base/check.h"
#include "base/mem.h"
#include "base/varint.h"

#include <stdlib.h>

/* Room for one slot, and for one series' slots. */
#define SLOT_BYTES_MAX  ((1 + BODY_MEASURES_MAX) * VARINT_BYTES_MAX)
#define ENTRY_BYTES_MAX (2 * VARINT_BYTES_MAX + BODY_SLOTS * SLOT_BYTES_MAX)

/* One series' entry in an existing body. */
struct entry {
    uint32_t series;
    const uint8_t *slots, *slots_end;
};

/* The entry at *p, or false. `before` is the series of the entry before, -1 at first. */
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

/* One slot of an entry. */
static const uint8_t *slot_get(const uint8_t *p, const uint8_t *end, int64_t before, size_t measures,
                               uint32_t *slot, int64_t *values)
{
    uint64_t v;
    p = varint_get(p, end, &v);
    if (p == NULL || v >= BODY_SLOTS || before + 1 + (int64_t)v >= BODY_SLOTS)
        return NULL;
    *slot = (uint32_t)(before + 1 + (int64_t)v);
    for (size_t m = 0; m < measures; m++) {
        p = varint_get(p, end, &v);
        if (p == NULL)
            return NULL;
        values[m] = varint_unzigzag(v);
    }
    return p;
}

static uint8_t *slot_put(uint8_t *p, int64_t before, uint32_t slot, const int64_t *values, size_t measures)
{
    ASSERT((int64_t)slot > before && slot < BODY_SLOTS);
    p = varint_put(p, (uint64_t)((int64_t)slot - before - 1));
    for (size_t m = 0; m < measures; m++)
        p = varint_put(p, varint_zigzag(values[m]));
    return p;
}

static uint8_t *buffer_reserve(struct body_buffer *b, size_t more)
{
    b->data = xgrow(b->data, &b->capacity, b->len + more, 1);
    return b->data + b->len;
}

void body_buffer_fini(struct body_buffer *b)
{
    free(b->data);
    *b = (struct body_buffer){0};
}

static void entry_put(struct body_buffer *out, int64_t before, uint32_t series, const uint8_t *slots,
                      size_t len)
{
    uint8_t *p = buffer_reserve(out, 2 * VARINT_BYTES_MAX + len);
    p = varint_put(p, (uint64_t)((int64_t)series - before - 1));
    p = varint_put(p, len);
    memcpy(p, slots, len);
    out->len = (size_t)(p + len - out->data);
}

/* The items of one series, starting at items[0], merged with its old slots (if any). Returns how many
 * items were taken, 0 where the old slots are damaged. */
static size_t merge_series(const struct entry *old, const struct body_item *items, size_t count,
                           size_t measures, uint8_t *slots, size_t *slots_len)
{
    const uint8_t *p = old != NULL ? old->slots : NULL, *end = old != NULL ? old->slots_end : NULL;
    uint8_t *out = slots;
    int64_t before_old = -1, before_out = -1;
    uint32_t slot = UINT32_MAX;
    int64_t values[BODY_MEASURES_MAX];
    size_t taken = 0;
    while (true) {
        if (slot == UINT32_MAX && p < end) {
            p = slot_get(p, end, before_old, measures, &slot, values);
            if (p == NULL)
                return 0;
            before_old = slot;
        }
        bool has_item = taken < count && items[taken].series == items[0].series;
        if (!has_item && slot == UINT32_MAX)
            break;
        if (has_item && items[taken].slot == slot) {
            for (size_t m = 0; m < measures; m++)
                values[m] = value_add(values[m], items[taken].value[m]);
            taken++;
            continue;
        }
        if (has_item && items[taken].slot < slot) {
            out = slot_put(out, before_out, items[taken].slot, items[taken].value, measures);
            before_out = items[taken++].slot;
        } else {
            out = slot_put(out, before_out, slot, values, measures);
            before_out = slot;
            slot = UINT32_MAX;
        }
    }
    *slots_len = (size_t)(out - slots);
    return taken;
}

bool body_merge(struct slice old, const struct body_item *items, size_t count, size_t measures,
                struct body_buffer *out)
{
    ASSERT(measures <= BODY_MEASURES_MAX);
    uint8_t slots[ENTRY_BYTES_MAX];
    const uint8_t *p = (const uint8_t *)old.ptr, *end = p + old.len;
    int64_t before_old = -1, before_out = -1;
    struct entry entry;
    bool has_entry = false;
    out->len = 0;
    while (true) {
        if (!has_entry && p < end) {
            if (!entry_get(&p, end, before_old, &entry))
                return false;
            before_old = entry.series;
            has_entry = true;
        }
        if (count == 0 && !has_entry)
            return true;
        if (has_entry && (count == 0 || entry.series < items->series)) {
            entry_put(out, before_out, entry.series, entry.slots, (size_t)(entry.slots_end - entry.slots));
            before_out = entry.series;
            has_entry = false;
            continue;
        }
        bool both = has_entry && entry.series == items->series;
        size_t slots_len;
        size_t taken = merge_series(both ? &entry : NULL, items, count, measures, slots, &slots_len);
        if (taken == 0)
            return false;
        entry_put(out, before_out, items->series, slots, slots_len);
        before_out = items->series;
        items += taken;
        count -= taken;
        has_entry = has_entry && !both;
    }
}

bool body_each(struct slice body, size_t measures, const uint64_t wanted[BODY_SERIES / 64], body_fn *fn,
               void *context)
{
    const uint8_t *p = (const uint8_t *)body.ptr, *end = p + body.len;
    int64_t before = -1;
    int64_t values[BODY_MEASURES_MAX];
    while (p < end) {
        struct entry entry;
        if (!entry_get(&p, end, before, &entry))
            return false;
        before = entry.series;
        if (((wanted[entry.series / 64] >> (entry.series % 64)) & 1) == 0)
            continue;
        int64_t slot_before = -1;
        for (const uint8_t *q = entry.slots; q < entry.slots_end;) {
            uint32_t slot;
            q = slot_get(q, entry.slots_end, slot_before, measures, &slot, values);
            if (q == NULL)
                return false;
            fn(context, entry.series, slot, values);
            slot_before = slot;
        }
    }
    return true;
}
