/* tight.h - sketches in fewer bits than packed ones (aggregate/sketch.h): two thirds of the bytes. body.c
 * writes them into rows and reads them. The numbers are as bits.h writes them:
 *
 *   histogram   gamma: buckets; gamma: shift of counts + 1; if there are two buckets, 4 bits: shift of gaps
 *               each bucket: the first one's zigzag slot in 12 bits, or rice: gap; rice: count - 1
 *   fine        the same; the first slot is TIGHT_SLOT_ESCAPE, and 17 bits follow
 *   entries     gamma: entries
 *               each entry: rice: gap of its 26 bits, shift: 25 - log2(entries); unary: rank - 1
 *   registers   gamma: DISTINCT_ENTRIES_MAX + 1; 6 bits: the least rank; 1 bit: shift
 *               each register: rice: rank - the least
 *   others      gamma: TIGHT_OTHER, then the packed sketch as it is, from the next byte on; so are histograms
 *               of TIGHT_OTHER buckets or more
 *
 * Why     : 10,000 events of a day are seven a minute. A text's entry takes some 27 bits then, and 37 as a
 *           varint; a bucket with its count takes 9, and 16 as two.
 * Same    : a sketch has one form, so unpacking gives back the bytes that were packed.
 */
#pragma once

#include "aggregate/sketch.h"
#include "base/varint.h"

#define TIGHT_OTHER      4095
#define TIGHT_BYTES_MORE 3 /* that a sketch may take beyond its packed ones */
/* The most that tight_join() writes, which joins no fine histograms: a gap takes two bytes as a varint, or
 * five in a distinct count. */
#define TIGHT_JOINED_MAX (2 * HISTOGRAM_SLOTS * (2 + VARINT_BYTES_MAX))

/* Writes a sketch. Returns how many bytes it takes, up to tight_room(); an empty one takes none. `work` is
 * for sketches that are shorter as they are packed. */
size_t tight_put(enum sketch_kind kind, const union sketch *s, uint8_t *to, struct text *work);

static inline size_t tight_room(enum sketch_kind kind, const union sketch *s)
{
    size_t numbers = HISTOGRAM_FEW * 2;
    if (kind == SKETCH_DISTINCT && s->distinct.mask == DISTINCT_MANY)
        return DISTINCT_PACKED_MAX + TIGHT_BYTES_MORE;
    if (kind == SKETCH_DISTINCT)
        numbers = s->distinct.count;
    else if (s->histogram.counts != NULL)
        numbers = (size_t)histogram_places(&s->histogram) * 2;
    return 1 + numbers * VARINT_BYTES_MAX + TIGHT_BYTES_MORE;
}

/* Writes the union of tight bytes and a sketch, as tight_put() would write it, up to TIGHT_JOINED_MAX bytes.
 * 0: the caller must make it by tight_merge(), which also tells whether the bytes are damaged. */
size_t tight_join(enum sketch_kind kind, struct slice tight, const union sketch *more, uint8_t *to);
/* Merges it into a sketch. False: it is damaged; `to` is then partly changed. */
bool tight_merge(enum sketch_kind kind, struct slice tight, union sketch *to, struct arena *arena,
                 struct text *work) MUST_CHECK;
/* Appends the packed sketch. False: it is damaged. It may be another sketch then, or decode to none. */
bool tight_get(enum sketch_kind kind, struct slice tight, struct text *packed) MUST_CHECK;
