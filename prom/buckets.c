#include "prom/buckets.h"

#include "base/mem.h"
#include "ingest/decimal.h"
#include "prom/select.h"

#include <stdlib.h>

#define ENDS          (HISTOGRAM_NTHS(0) * BUCKETS_OCTAVE) /* on each side of zero */
#define INFINITY_TEXT "+Inf"
#define WIDTH         3 /* columns of a piece: the numbers up to the bound, a sum of fractions; all numbers */

/* A bound that a selector may take: it is the end of a slot. */
struct end {
    int32_t slot;
    int64_t limit; /* the greatest number of the slot, in units of 1/scale */
};

/* The k-th end, of -ENDS to ENDS; 0: that of the zeros. False: no number is between it and the last one. */
static bool end_of(const struct histogram_layout *l, int k, struct end *end)
{
    const int32_t stride = (1 << l->unit) / BUCKETS_OCTAVE, nth = abs(k) * stride - 1, slot = nth + l->first;
    if (k == 0) {
        *end = (struct end){0, l->zero};
        return true;
    }
    *end = k > 0 ? (struct end){slot, l->last[nth]} : (struct end){-slot - 1, -l->last[nth] - 1};
    return l->last[nth] > (nth < stride ? l->zero : l->last[nth - stride]);
}

/* ---- bounds */

static bool add_bound(struct reading *rd, int32_t slot, int64_t share, struct slice text, struct err *e)
{
    bool matches;
    if (!select_label(rd->select, BUCKET_LABEL, text, &matches, e))
        return false;
    if (matches)
        rd->bounds[rd->bound_count++] = (struct bound){slot, share, arena_copy(rd->fetch->arena, text)};
    return true;
}

static bool add_end(struct reading *rd, const struct end *end, int64_t scale, struct err *e)
{
    char text[NUMBER_BYTES];
    number_text((int128)end->limit * (EVENT_SCALE / scale), text);
    return add_bound(rd, end->slot, EVENT_SCALE, slice_text(text), e);
}

/* The buckets of the histograms that were read. */
static const struct histogram_layout *layout_of(const struct reading *rd)
{
    return reading_whole(rd)->layouts[rd->longest];
}

/* The slots of the least and the greatest number. False: there is none. */
static bool find_extent(const struct reading *rd, int32_t *least, int32_t *most)
{
    const size_t count = rd->row_count * rd->windows.piece_count;
    *least = INT32_MAX;
    *most = INT32_MIN;
    for (size_t i = 0; i < count; i++) {
        struct histogram_walk w = histogram_walk(&rd->sketches[i].histogram);
        struct histogram_bucket b;
        while (histogram_next(&w, &b)) {
            *least = b.slot < *least ? b.slot : *least;
            *most = b.slot > *most ? b.slot : *most;
        }
    }
    return *least <= *most;
}

static bool add_ends(struct reading *rd, struct err *e)
{
    const struct histogram_layout *l = layout_of(rd);
    struct end before, end;
    int32_t least, most;
    bool has_before = false, good = true;
    bool is_due = find_extent(rd, &least, &most);
    for (int k = -ENDS; good && is_due && k <= ENDS; k++) {
        if (!end_of(l, k, &end))
            continue;
        if (end.slot >= least) {
            good = (!has_before || add_end(rd, &before, l->scale, e)) && add_end(rd, &end, l->scale, e);
            is_due = end.slot < most;
        }
        has_before = end.slot < least;
        before = end;
    }
    return good;
}

/* The text that a matcher wants `le` to be; NULL: none does. */
static const struct matcher *find_given(const struct selector *s)
{
    for (size_t i = 0; i < s->matcher_count; i++) {
        if (s->matchers[i].kind == MATCHER_EQUAL && slice_is(s->matchers[i].name, BUCKET_LABEL))
            return &s->matchers[i];
    }
    return NULL;
}

/* The share of a slot's numbers that are at most `number`, one of them, in units of 1/EVENT_SCALE. */
static int64_t share_of(const struct histogram_layout *l, int32_t slot, int64_t number)
{
    if (slot == 0) /* they count as 0 itself */
        return number < 0 ? 0 : EVENT_SCALE;
    const int128 most = l->last[abs(slot) - l->first], least = (int128)l->last[abs(slot) - l->first - 1] + 1;
    const int128 before = slot > 0 ? number - least : number + most;
    return (int64_t)((before + 1) * EVENT_SCALE / (most - least + 1));
}

static bool add_given(struct reading *rd, struct slice text, struct err *e)
{
    const struct histogram_layout *l = layout_of(rd);
    const int64_t unit = EVENT_SCALE / l->scale;
    int64_t limit;
    if (text.len == 0 || decimal_parse(text, &limit) != DECIMAL_OK)
        return err_set(e, EX_USAGE, "le: expected a number such as 0.3, or " INFINITY_TEXT);
    const int64_t number = limit / unit - (limit % unit < 0);
    const int32_t slot = histogram_slot(l, number);
    return add_bound(rd, slot, share_of(l, slot, number), text, e);
}

bool buckets_find(struct reading *rd, struct err *e)
{
    const struct matcher *given = find_given(rd->selector);
    rd->bounds = arena_add(rd->fetch->arena, (2 * ENDS + 2) * sizeof *rd->bounds);
    rd->bound_count = 0;
    if (given != NULL && !slice_is(given->value, INFINITY_TEXT))
        return add_given(rd, given->value, e);
    return (given != NULL || add_ends(rd, e)) &&
           add_bound(rd, INT32_MAX, EVENT_SCALE, slice_text(INFINITY_TEXT), e);
}

/* ---- values */

/* Sets the numbers of a sketch up to each bound: two columns each, those of the next `stride` behind. */
static void count_piece(const struct reading *rd, const struct histogram *h, int64_t *to, size_t stride)
{
    int64_t below = 0; /* numbers in slots before the bucket `at` */
    struct histogram_walk w = histogram_walk(h);
    struct histogram_bucket at;
    bool is_there = histogram_next(&w, &at);
    for (size_t b = 0; b < rd->bound_count; b++, to += stride) {
        const struct bound *bound = &rd->bounds[b];
        for (; is_there && at.slot < bound->slot; is_there = histogram_next(&w, &at))
            below = value_add(below, at.count);
        const int128 part = is_there && at.slot == bound->slot ? (int128)at.count * bound->share : 0;
        to[0] = value_add(below, (int64_t)(part / EVENT_SCALE));
        to[1] = (int64_t)(part % EVENT_SCALE);
    }
}

void buckets_slide(const struct reading *rd, const struct slide_ask *ask, const struct vector *out)
{
    /* A sum of fractions, so that the share of a slot in a range is that of its pieces. */
    const struct measure within = {.kind = MEASURE_SUM, .is_fraction = true};
    const size_t pieces = rd->windows.piece_count, bounds = rd->bound_count;
    int64_t *columns = xmalloc((bounds * pieces * WIDTH + 1) * sizeof *columns);
    struct slide_ask of_bounds = *ask;
    of_bounds.measure = &within;
    of_bounds.presence = rd->measure; /* all numbers are counted in the last column */
    for (size_t row = 0; row < rd->row_count; row++) {
        for (size_t piece = 0; piece < pieces; piece++) {
            const size_t from = row * pieces + piece;
            count_piece(rd, &rd->sketches[from].histogram, &columns[piece * WIDTH], pieces * WIDTH);
            for (size_t b = 0; b < bounds; b++)
                columns[(b * pieces + piece + 1) * WIDTH - 1] = rd->columns[from * rd->width];
        }
        for (size_t b = 0; b < bounds; b++)
            slide(&of_bounds, &rd->windows, &columns[b * pieces * WIDTH], vector_row(out, row * bounds + b));
    }
    free(columns);
}
