#include "prom/different.h"

#include "base/mem.h"
#include "base/text.h"
#include "prom/functions.h"

#include <stdlib.h>

#define MERGE_POINTS 100 /* a union with one piece costs about as much as so many values */

bool different_check(const struct reading *rd, struct err *e)
{
    const enum function f = rd->function;
    const struct node *around = rd->around.aggregate;
    const char *name = rd->metric->name;
    if (f == FUNCTION_RATE || f == FUNCTION_SUM)
        return err_set(e, EX_USAGE,
                       "%s() would count a text of %s once a cell: ask for increase(%s[5m]), the number of "
                       "different ones in the range",
                       functions_name(f), name, name);
    return around == NULL || around->aggregate != AGGREGATE_SUM ||
           err_set(e, EX_USAGE,
                   "sum() would count a text of %s once a series: ask for a report with the dimensions that "
                   "are to be told apart, or for max, avg or topk",
                   name);
}

bool different_by_cell(enum function f)
{
    return f != FUNCTION_NONE && f != FUNCTION_INCREASE && f != FUNCTION_PRESENT &&
           f != FUNCTION_ABSENT_RANGE && f != FUNCTION_TIMESTAMP;
}

void different_count_pieces(struct reading *rd)
{
    for (size_t i = 0; i < rd->row_count * rd->windows.piece_count; i++)
        rd->columns[i * rd->width] = distinct_count(&rd->sketches[i].distinct);
}

/* The packed sketches of a row's pieces. */
struct packed {
    struct text text;
    size_t *ends; /* by piece */
};

static struct slice piece_of(const struct packed *p, size_t piece)
{
    const size_t begin = piece > 0 ? p->ends[piece - 1] : 0;
    return slice_of(p->text.ptr + begin, p->ends[piece] - begin);
}

static void pack_row(const struct reading *rd, size_t row, struct packed *p)
{
    const size_t pieces = rd->windows.piece_count;
    text_clear(&p->text);
    for (size_t i = 0; i < pieces; i++) {
        distinct_pack(&rd->sketches[row * pieces + i].distinct, &p->text);
        p->ends[i] = p->text.len;
    }
}

static double count_window(const struct packed *p, struct window window, struct sketch_work *work)
{
    struct arena *arena = sketch_work_ready(work);
    struct distinct all = {0};
    for (size_t i = window.first; i < window.end; i++) {
        const bool is_sound = piece_of(p, i).len == 0 || distinct_merge(&all, arena, piece_of(p, i));
        ASSERT(is_sound); /* pack_row() made it */
    }
    return (double)distinct_count(&all);
}

static double value_of(const struct reading *rd, double count)
{
    if (count == 0 && !rd->is_always)
        return vector_absent();
    return rd->function == FUNCTION_PRESENT || rd->function == FUNCTION_ABSENT_RANGE ? 1 : count;
}

bool different_count_windows(const struct reading *rd, const struct vector *out, struct err *e)
{
    const struct windows *w = &rd->windows;
    struct packed packed = {.ends = xmalloc((w->piece_count + 1) * sizeof *packed.ends)};
    struct sketch_work work = {0};
    bool good = true;
    for (size_t row = 0; good && row < rd->row_count; row++) {
        pack_row(rd, row, &packed);
        for (size_t i = 0; good && i < w->ask.count; i++) {
            const struct window window = w->list[i];
            const uint64_t merges = window.end - window.first;
            good = budget_take(rd->fetch->budget, BUDGET_POINTS, merges * MERGE_POINTS, e);
            if (good)
                vector_row(out, row)[i] = value_of(rd, count_window(&packed, window, &work));
        }
    }
    sketch_work_fini(&work);
    text_fini(&packed.text);
    free(packed.ends);
    return good;
}
