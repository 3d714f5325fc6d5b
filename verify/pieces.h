/* pieces.h - packed sketches (aggregate/sketch.h) by series and time bucket, in one flat list. The recount
 * and the audit (buckets.c, audit_spans.c) fill one for each of the two places that they compare.
 *
 * Use    : add in any order, join, then find.
 * Errors : a sketch that does not decode equals no sound one, nor does one that it was joined with.
 * Memory : 32 bytes a piece, and its packed bytes.
 */
#pragma once

#include "aggregate/measure.h"

#define PIECE_TEXT_BYTES 160

struct piece {
    uint32_t series;
    int64_t bucket_ms; /* start of the time bucket */
    size_t at, len;    /* its bytes in `bytes` */
};

/* Zeros: empty. */
struct pieces {
    struct piece *list;
    size_t count, capacity;
    struct text bytes;
};

void pieces_fini(struct pieces *p);
void pieces_add(struct pieces *p, uint32_t series, int64_t bucket_ms, struct slice packed);
/* Sorts them by series and time bucket, and joins those of the same one, in buckets of a schema
 * (measure_schema()); HISTOGRAM_SCHEMA_MAX: as they are. */
void pieces_join(struct pieces *p, enum sketch_kind kind, int schema);
/* The packed sketch; empty: there is none. Pre: nothing was added since pieces_join(). */
struct slice pieces_find(const struct pieces *p, uint32_t series, int64_t bucket_ms);
struct slice pieces_at(const struct pieces *p, size_t i);

/* Has `all` everything that `some` has? Both are packed. */
bool packed_holds(enum sketch_kind kind, struct slice all, struct slice some);
/* Says what the sketch of a time bucket holds: "p50 0.12 p99 0.5 of 7 numbers", "12 texts", "nothing". */
const char *packed_text(const struct measure *m, enum span span, struct slice packed,
                        char buf[PIECE_TEXT_BYTES]);
