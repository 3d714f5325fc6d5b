/* body.h - the bytes of a row: the slots of up to 128 series in one bucket, sorted, as varints.
 *
 *   body   = entry*                                     series ascending
 *   entry  = series-gap  length  slots                  length: bytes of `slots`, so a reader can skip
 *   slots  = slot value{columns} (slot-gap value{columns})*         newest slot first; values zigzag
 *   series-gap: from the series before, the first from -1, minus 1; slot-gap: down from the slot before,
 * minus 1
 *
 * Newest first, because counts mostly arrive in order of time: a new slot then goes before the old bytes,
 * of which only the first one (the slot that was newest) becomes a gap; the rest is copied unread.
 * Rows of one slot only (fresh ones) use the same form with slot 0.
 *
 * Limits  : BODY_SERIES series, BODY_SLOTS slots; a body that breaks these rules is damage, a result.
 * Owner   : readers borrow the body; body_merge() appends to a buffer of its own.
 */
#pragma once

#include "aggregate/report.h"
#include "base/slice.h"

#include <stdint.h>

#define BODY_SERIES_BITS 7
#define BODY_SERIES      (1u << BODY_SERIES_BITS)
#define BODY_SLOTS       60

/* What is to be added to a body: sorted by (series, slot), no two alike. */
struct body_item {
    uint32_t series; /* within the block */
    uint32_t slot;
    const int64_t *value;
};

struct body_buffer {
    uint8_t *data;
    size_t len, capacity;
};

void body_buffer_fini(struct body_buffer *b);

/* *out = old and items, merged as rows of columns of `r`. False: `old` is damaged. */
bool body_merge(struct slice old, const struct body_item *items, size_t count, const struct report *r,
                struct body_buffer *out);

/* What to walk of a body: these series of the block, and slots from `first` up to `end`, exclusive. */
struct body_want {
    uint64_t series[BODY_SERIES / 64]; /* bit per series */
    uint32_t first, end;
};

/* Walk a body, series ascending, slots descending. False: it is damaged, as far as it was looked at. */
typedef void body_fn(void *context, uint32_t series, uint32_t slot, const int64_t *values);
bool body_each(struct slice body, size_t columns, const struct body_want *want, body_fn *fn, void *context);
