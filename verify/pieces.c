#include "verify/pieces.h"

#include "base/mem.h"
#include "base/order.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* As the only byte, it decodes as neither kind of sketch. */
#define DAMAGED     '\xff'
#define ARENA_BYTES ((size_t)64 << 10)

void pieces_fini(struct pieces *p)
{
    free(p->list);
    text_fini(&p->bytes);
    *p = (struct pieces){0};
}

void pieces_add(struct pieces *p, uint32_t series, int64_t bucket_ms, struct slice packed)
{
    p->list = xgrow(p->list, &p->capacity, p->count + 1, sizeof *p->list);
    p->list[p->count++] = (struct piece){series, bucket_ms, p->bytes.len, packed.len};
    text_add(&p->bytes, packed.ptr, packed.len);
}

static int compare_pieces(const void *a, const void *b)
{
    const struct piece *one = a, *two = b;
    int order = order_int64(one->series, two->series);
    return order != 0 ? order : order_int64(one->bucket_ms, two->bucket_ms);
}

struct slice pieces_at(const struct pieces *p, size_t i)
{
    return slice_of(p->bytes.ptr + p->list[i].at, p->list[i].len);
}

/* Join the pieces [from, to) into the first of them. */
static void join_pieces(struct pieces *p, size_t from, size_t to, enum sketch_kind kind,
                        struct sketch_work *work)
{
    struct text both = {0};
    for (size_t i = from + 1; i < to; i++) {
        text_clear(&both);
        if (!sketch_join(kind, pieces_at(p, from), pieces_at(p, i), work, &both)) {
            text_clear(&both);
            text_putc(&both, DAMAGED);
        }
        p->list[from].at = p->bytes.len;
        p->list[from].len = both.len;
        text_add(&p->bytes, both.ptr, both.len);
    }
    text_fini(&both);
}

/* Gives a piece buckets of a schema. */
static void widen_piece(struct pieces *p, struct piece *at, int schema, struct sketch_work *work)
{
    struct text wide = {0};
    if (!sketch_widen(slice_of(p->bytes.ptr + at->at, at->len), schema, work, &wide)) {
        text_clear(&wide);
        text_putc(&wide, DAMAGED);
    }
    at->at = p->bytes.len;
    at->len = wide.len;
    text_add(&p->bytes, wide.ptr, wide.len);
    text_fini(&wide);
}

void pieces_join(struct pieces *p, enum sketch_kind kind, int schema)
{
    struct sketch_work work = {0};
    size_t count = 0;
    if (p->count > 0)
        qsort(p->list, p->count, sizeof *p->list, compare_pieces);
    for (size_t i = 0, next; i < p->count; i = next) {
        for (next = i + 1; next < p->count && compare_pieces(&p->list[i], &p->list[next]) == 0; next++)
            ;
        join_pieces(p, i, next, kind, &work);
        if (schema < HISTOGRAM_SCHEMA_MAX)
            widen_piece(p, &p->list[i], schema, &work);
        p->list[count++] = p->list[i];
    }
    p->count = count;
    sketch_work_fini(&work);
}

struct slice pieces_find(const struct pieces *p, uint32_t series, int64_t bucket_ms)
{
    const struct piece wanted = {.series = series, .bucket_ms = bucket_ms};
    const struct piece *found =
        p->count == 0 ? NULL : bsearch(&wanted, p->list, p->count, sizeof *p->list, compare_pieces);
    return found == NULL ? slice_of(NULL, 0) : slice_of(p->bytes.ptr + found->at, found->len);
}

bool packed_holds(enum sketch_kind kind, struct slice all, struct slice some)
{
    struct sketch_work work = {0};
    struct text out = {0};
    bool holds = kind == SKETCH_HISTOGRAM
                     ? sketch_cut(kind, all, some, &work, &out)
                     : sketch_join(kind, all, some, &work, &out) && slice_equal(text_slice(&out), all);
    sketch_work_fini(&work);
    text_fini(&out);
    return holds;
}

static void histogram_text(const struct histogram_layout *l, const struct histogram *h,
                           char buf[PIECE_TEXT_BYTES])
{
    const int64_t count = histogram_count(h);
    char half[NUMBER_BYTES], most[NUMBER_BYTES];
    if (count == 0) {
        snprintf(buf, PIECE_TEXT_BYTES, "nothing");
        return;
    }
    (void)number_text(histogram_value(l, histogram_rank(h, count - count / 2)), half);
    (void)number_text(histogram_value(l, histogram_rank(h, count - count / 100)), most);
    snprintf(buf, PIECE_TEXT_BYTES, "p50 %s p99 %s of %" PRId64 " numbers", half, most, count);
}

const char *packed_text(const struct measure *m, enum span span, struct slice packed,
                        char buf[PIECE_TEXT_BYTES])
{
    const enum sketch_kind kind = measure_sketch_kind(m);
    struct arena arena;
    union sketch s;
    memset(&s, 0, sizeof s);
    arena_init(&arena, ARENA_BYTES);
    if (!sketch_merge(kind, &s, &arena, packed))
        snprintf(buf, PIECE_TEXT_BYTES, "a damaged sketch");
    else if (kind == SKETCH_HISTOGRAM)
        histogram_text(m->layouts[span], &s.histogram, buf);
    else
        snprintf(buf, PIECE_TEXT_BYTES, "%" PRId64 " texts", distinct_count(&s.distinct));
    arena_fini(&arena);
    return buf;
}
