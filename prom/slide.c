#include "prom/slide.h"

#include "aggregate/number.h"
#include "base/mem.h"
#include "prom/counter.h"
#include "prom/over.h"

#include <stdlib.h>

/* The values of one piece, or of several that adjoin. */
struct piece {
    int64_t columns[MEASURE_COLUMNS_MAX];
    int64_t events; /* of a sum's report; 0: none, or it does not count them */
    /* Exact figures of the cells that have a value: */
    int64_t count;
    int128 sum, least, most, last;
};

bool slide_is_running(const struct measure *m, enum function f)
{
    return m->kind == MEASURE_LAST && (f == FUNCTION_RATE || f == FUNCTION_INCREASE);
}

bool slide_needs_points(const struct measure *m, enum function f)
{
    return over_is_needed(f) || slide_is_running(m, f);
}

bool slide_needs_cells(const struct measure *m, enum function f)
{
    if (slide_needs_points(m, f))
        return true;
    switch (f) {
    case FUNCTION_MIN:
        return m->kind != MEASURE_MIN;
    case FUNCTION_MAX:
        return m->kind != MEASURE_MAX;
    case FUNCTION_LAST:
        return m->kind != MEASURE_LAST;
    case FUNCTION_AVG:
        return !slide_is_total(m) && m->kind != MEASURE_MEAN;
    case FUNCTION_SUM:
    case FUNCTION_COUNT:
        return !slide_is_total(m);
    default: /* present_over_time of a whole is that of its cells */
        return false;
    }
}

static struct piece piece_of(const struct slide_ask *ask, const int64_t *columns)
{
    const struct measure *m = ask->measure;
    struct piece p = {.count = 0};
    int128 value;
    memcpy(p.columns, columns, measure_column_count(m) * sizeof *columns);
    if (ask->presence != NULL)
        p.events = columns[measure_column_count(m)];
    if (measure_value(m, columns, &value)) {
        p.count = 1;
        p.sum = p.least = p.most = p.last = value;
    }
    return p;
}

/* `from` is the later piece. */
static void merge(const struct measure *m, struct piece *to, const struct piece *from)
{
    measure_merge(m, to->columns, from->columns);
    to->events += from->events;
    if (from->count == 0)
        return;
    to->least = to->count == 0 || from->least < to->least ? from->least : to->least;
    to->most = to->count == 0 || from->most > to->most ? from->most : to->most;
    to->last = from->last;
    to->sum += from->sum;
    to->count += from->count;
}

/* The function over the cells of a window, one by one. */
static double of_cells(enum function f, const struct piece *p)
{
    if (f == FUNCTION_COUNT && p->count > 0)
        return (double)p->count;
    if (p->count == 0)
        return vector_absent();
    switch (f) {
    case FUNCTION_SUM:
        return number_double(p->sum);
    case FUNCTION_AVG:
        return number_double(p->sum) / (double)p->count;
    case FUNCTION_MIN:
        return number_double(p->least);
    case FUNCTION_MAX:
        return number_double(p->most);
    default:
        return number_double(p->last);
    }
}

/* The function over a window as a whole. */
static double of_whole(const struct measure *m, enum function f, const struct windows *w, size_t window,
                       const struct piece *p)
{
    int128 value;
    size_t cells = windows_cells(w, window);
    if (cells == 0 || !measure_value(m, p->columns, &value))
        return vector_absent();
    if (f == FUNCTION_RATE)
        return number_double(value) / windows_seconds(w, window);
    if (f == FUNCTION_AVG && slide_is_total(m))
        return number_double(value) / (double)cells;
    if (f == FUNCTION_COUNT)
        return (double)cells;
    return f == FUNCTION_PRESENT || f == FUNCTION_ABSENT_RANGE ? 1 : number_double(value);
}

/* Does the window have a value? A total has one if it has events. */
static bool is_there(const struct slide_ask *ask, const struct piece *p)
{
    int128 value;
    if (ask->is_always || !slide_is_total(ask->measure))
        return true;
    if (ask->presence != NULL)
        return p->events != 0;
    return measure_value(ask->measure, p->columns, &value) && value != 0;
}

/* The points of a window: its cells that have a value. A total has one in each. */
static double of_points(const struct slide_ask *ask, const struct windows *w, const int64_t *columns,
                        size_t width, size_t window, int64_t *times, double *values)
{
    const bool is_rate = ask->function == FUNCTION_RATE || ask->function == FUNCTION_INCREASE;
    struct points p = {times, values, 0};
    for (size_t piece = w->list[window].first; piece < w->list[window].end; piece++) {
        int128 value;
        if (!measure_value(ask->measure, &columns[piece * width], &value))
            continue;
        times[p.count] = is_rate ? columns[piece * width] - 1 : w->edges[piece + 1];
        values[p.count++] = number_double(value);
    }
    const int64_t from_ms = w->edges[w->list[window].first], to_ms = w->edges[w->list[window].end];
    if (ask->function == FUNCTION_RATE)
        return counter_rate(&p, from_ms, to_ms);
    if (ask->function == FUNCTION_INCREASE)
        return counter_increase(&p, from_ms, to_ms);
    int64_t at_ms = ask->at_ms + (int64_t)window * ask->step_ms;
    return over_points(ask->function, ask->parameter != NULL ? ask->parameter[window] : 0, at_ms, &p);
}

/* The values of windows that are there already; the others are absent. */
static void slide_points(const struct slide_ask *ask, const struct windows *w, const int64_t *columns,
                         size_t width, double *values)
{
    int64_t *times = xmalloc(w->piece_count * sizeof *times);
    double *points = xmalloc(w->piece_count * sizeof *points);
    for (size_t i = 0; i < w->ask.count; i++) {
        if (!vector_is_absent(values[i]))
            values[i] = of_points(ask, w, columns, width, i, times, points);
    }
    free(times);
    free(points);
}

/* The pieces that have anything are within [first, end); of most series they are few. */
static struct window find_pieces(const struct windows *w, const int64_t *columns, size_t width)
{
    struct window all = {0, w->piece_count * width};
    while (all.end > 0 && columns[all.end - 1] == 0)
        all.end--;
    while (all.first < all.end && columns[all.first] == 0)
        all.first++;
    return (struct window){all.first / width, (all.end + width - 1) / width};
}

void slide(const struct slide_ask *ask, const struct windows *w, const int64_t *columns, double *values)
{
    const struct piece nothing = {.count = 0};
    const struct measure *m = ask->measure;
    const size_t width = measure_column_count(m) + (ask->presence != NULL);
    bool by_cell = slide_needs_cells(m, ask->function);
    const struct window filled = find_pieces(w, columns, width);
    struct piece *suffixes = xmalloc((w->piece_count + 1) * sizeof *suffixes), added = nothing;
    size_t turn = 0, done = 0; /* suffixes end at `turn`; `added` is from there to `done` */
    suffixes[0] = nothing;
    for (size_t i = 0; i < w->ask.count; i++) {
        const struct window window = w->list[i];
        if (!ask->is_always && (window.end <= filled.first || window.first >= filled.end)) {
            values[i] = vector_absent();
            continue;
        }
        if (window.first >= turn) {
            turn = done = window.end;
            added = suffixes[turn] = nothing;
            for (size_t piece = window.end; piece-- > window.first;) {
                suffixes[piece] = piece_of(ask, &columns[piece * width]);
                merge(m, &suffixes[piece], &suffixes[piece + 1]);
            }
        }
        for (; done < window.end; done++) {
            struct piece next = piece_of(ask, &columns[done * width]);
            merge(m, &added, &next);
        }
        struct piece all = suffixes[window.first];
        merge(m, &all, &added);
        if (!is_there(ask, &all))
            values[i] = vector_absent();
        else
            values[i] = by_cell ? of_cells(ask->function, &all) : of_whole(m, ask->function, w, i, &all);
    }
    free(suffixes);
    if (slide_needs_points(m, ask->function))
        slide_points(ask, w, columns, width, values);
}
