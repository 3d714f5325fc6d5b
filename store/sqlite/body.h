/* body.h - the bytes of a row: the slots of up to 128 series in one time bucket, sorted, as varints. A slot
 * is a shorter time bucket, by its number in the row. The SQLite store reads and writes its rows by this.
 *
 *   body   = entry*                                     series ascending
 *   entry  = series-gap  length  slots                  length: bytes of `slots`, so a reader can skip
 *   slots  = slot counts (slot-gap counts)*             newest slot first
 *   counts = value{columns} (length bytes){sketches}    values zigzag; bytes: a packed sketch (sketch.h)
 *   series-gap = series - previous series - 1           the first entry's previous series is -1
 *   slot-gap   = previous slot - slot - 1
 *
 * If BODY_SLOTS is added to a slot or slot-gap, the bytes of its sketches are tight (tight.h). Stores of
 * format 5 have no such slots.
 * Slots are newest first because counts mostly arrive in order of time. A new slot then goes before the old
 * bytes. Only the first old slot number is rewritten, as a gap; the rest is copied unread.
 * Rows of one slot only (fresh rows) use the same form with slot 0.
 *
 * Limits  : BODY_SERIES series, BODY_SLOTS slots.
 * Errors  : a body that breaks these rules is damaged: functions return false.
 * Owner   : readers borrow the body; body_merge() writes to the caller's buffer.
 */
#pragma once

#include "aggregate/report.h"
#include "base/slice.h"

#include <stdint.h>

#define BODY_SERIES_BITS 7
#define BODY_SERIES      (1u << BODY_SERIES_BITS)
#define BODY_SLOTS       60

/* Values to add to a body. Items are sorted by (series, slot), and each pair occurs once. */
struct body_item {
    uint32_t series; /* number within the block: 0 to BODY_SERIES - 1 */
    uint32_t slot;
    const int64_t *value;
    const union sketch *sketches; /* those of the report's measures that have one */
};

/* A new body, and working memory. Zeros: unused. */
struct body_buffer {
    uint8_t *data;
    size_t len, capacity;
    uint8_t *slots; /* of one series */
    size_t slots_capacity;
    struct text loose;  /* tight sketches of one slot, as they were packed */
    struct text packed; /* one sketch */
    struct sketch_work work;
    bool packs_tight; /* whether the sketches that are written become tight; set by the owner */
};

void body_buffer_fini(struct body_buffer *b);

/* Set *out to `old` merged with the items, which have the columns of `r`. False: `old` is damaged. */
bool body_merge(struct slice old, const struct body_item *items, size_t count, const struct report *r,
                struct body_buffer *out);

/* Set *out to `old` without the items, none of zeros, which were merged into it before. Slots of zeros are
 * left out. If *out is empty, nothing is left. BODY_LACKS_ITEM: an item is not in it (report_take()). */
enum body_taken { BODY_TAKEN, BODY_IS_DAMAGED, BODY_LACKS_ITEM };
enum body_taken body_take(struct slice old, const struct body_item *items, size_t count,
                          const struct report *r, struct body_buffer *out);

/* The part of a body to walk. */
struct body_want {
    uint64_t series[BODY_SERIES / 64]; /* bit per wanted series of the block */
    uint32_t first, end;               /* wanted slots: [first, end) */
    uint64_t sketches;                 /* bit per wanted sketch of the report; of others any bytes come */
};

/* Walk a body, series ascending, slots descending. False: the part that was read is damaged, or `fn` found
 * that a sketch is. `sketches` points into the body or into `loose`, which is working memory. */
typedef bool body_fn(void *context, uint32_t series, uint32_t slot, const int64_t *values,
                     const struct slice *sketches);
bool body_each(struct slice body, const struct report *r, const struct body_want *want, body_fn *fn,
               void *context, struct text *loose);
