/* measure.h - the measures of a report, such as sum(bytes). Each is stored in int64 columns that merge in any
 * order; histogram(F) and distinct(D) have a sketch, too (sketch.h). Shards, stores and queries call it.
 *
 *   count     one column   the number of events
 *   sum(F)    one          F is status or bytes: the sum, saturated at the ends of int64
 *             two          F is a decimal fraction: the sum in whole units, rounded down; and the rest, in
 *                          units of 1/EVENT_SCALE. Two columns give it the range of a sum of integers
 *   mean(F)   one more     the columns of the sum, and the number of events that have F
 *   min(F)    one          the number, plus one if it is not negative; 0: none
 *   max(F)    one          as min(F)
 *   last(F)   three        at_ms + 1, order, number: of the last event
 *   histogram(F)           the columns of mean(F); histogram(F, schema=2, zero=0.001) has other buckets, and
 *                          histogram(F, day=3, month=2) wider ones in days, and in months
 *   distinct(D)  one       the number of events that have the field of D, which is a dimension: host, path:2
 *   distinct(D, E)  one    those that have the fields of both, or of all of up to MEASURE_DIMENSIONS_MAX
 *
 * Merge   : columns are added or compared; for last(F), the greater of two triples is taken. Events, cells,
 *           rows and sums over series all merge by this rule, and zeros are neutral. So the result does
 *           not depend on threads, batches, folds or the step of a query. Status and bytes are never
 *           negative, so saturated sums merge in any order, too.
 * Spans   : the histogram of a time bucket has the buckets of its resolution; that of several time buckets
 *           has those of the longest one. measure_merge_sketch() sees to it.
 * Fields  : fields with numbers (field_is_number()), in units of 1/field_scale().
 * Many    : a value that stands for many numbers (distribution.h) adds their sum to sum and mean, their
 *           number to the events of mean and histogram, and their limits to min and max, if it has them. It
 *           is one event for count, and none for last.
 * Absent  : an event without the number adds nothing to measures of it. Without any such event min, max, last
 *           and mean are absent; sum and count are 0.
 */
#pragma once

#include "aggregate/batch.h"
#include "aggregate/dimension.h"
#include "aggregate/number.h"
#include "aggregate/sketch.h"
#include "base/civil.h"
#include "base/err.h"
#include "ingest/event.h"

#define MEASURE_NAME_BYTES       32
#define MEASURE_COLUMNS_MAX      3
#define MEASURE_DIMENSIONS_MAX   4 /* of one distinct count */
/* "count"; "histogram(", a field and its buckets, ")"; or "distinct(" and dimensions, ")"; and its NUL. */
#define MEASURE_EXPRESSION_BYTES (MEASURE_DIMENSIONS_MAX * (FIELD_NAME_BYTES + 1) + 12)

enum measure_kind {
    MEASURE_COUNT,
    MEASURE_SUM,
    MEASURE_MIN,
    MEASURE_MAX,
    MEASURE_LAST,
    MEASURE_MEAN,
    MEASURE_HISTOGRAM,
    MEASURE_DISTINCT,
    MEASURE_NEWEST /* none of a user's: a report's newest events, which have a sketch and no column */
};

struct measure {
    enum measure_kind kind;
    enum field field;                      /* the field measured; unused for a count, and for distinct */
    const struct histogram_layout *layout; /* histogram: the buckets of its field's numbers, in cells */
    /* histogram: its buckets in time buckets of a resolution, each at least as wide as the one before */
    const struct histogram_layout *layouts[SPAN_COUNT];
    bool is_fraction; /* whether it adds up units of 1/EVENT_SCALE, in two columns */
    bool is_of_field; /* distinct: of one field as it is */
    size_t column;    /* index of its first column in a row of its report */
    uint32_t newest;  /* the newest events: how many are kept */
    uint64_t fields;  /* distinct: the bits of its dimensions' fields */
    size_t dimension_count;
    struct dimension dimensions[MEASURE_DIMENSIONS_MAX]; /* distinct: whose texts are told apart; by name */
    char name[MEASURE_NAME_BYTES];
    char expression[MEASURE_EXPRESSION_BYTES]; /* as measure_parse() takes it */
};

/* Sets kind, field, dimensions and expression of *m. False: EX_CONFIG, "found …, expected …". */
bool measure_parse(struct measure *m, struct slice expression, struct err *e) MUST_CHECK;
/* False: it is of a function that no measure has, so what it is of need not be known. */
bool measure_has_function(struct slice expression);
size_t measure_column_count(const struct measure *m);
/* Has it a sketch beside its columns? */
static inline bool measure_has_sketch(const struct measure *m)
{
    return m->kind == MEASURE_HISTOGRAM || m->kind == MEASURE_DISTINCT || m->kind == MEASURE_NEWEST;
}

static inline enum sketch_kind measure_sketch_kind(const struct measure *m)
{
    return m->kind == MEASURE_HISTOGRAM  ? SKETCH_HISTOGRAM
           : m->kind == MEASURE_DISTINCT ? SKETCH_DISTINCT
                                         : SKETCH_RECENT;
}

/* The schema of its buckets in time buckets of a resolution; HISTOGRAM_SCHEMA_MAX if it is no histogram. */
static inline int measure_schema(const struct measure *m, enum span span)
{
    return m->kind == MEASURE_HISTOGRAM ? m->layouts[span]->schema : HISTOGRAM_SCHEMA_MAX;
}

/* Are its buckets wider in time buckets of a resolution than in cells? */
static inline bool measure_widens(const struct measure *m, enum span span)
{
    return m->kind == MEASURE_HISTOGRAM && m->layouts[span] != m->layout;
}

/* Merges the packed sketch of a time bucket into one of a resolution, the same or a longer one. False: it is
 * damaged; `to` is then partly changed. */
static inline bool measure_merge_sketch(const struct measure *m, enum span span, union sketch *to,
                                        struct arena *arena, struct slice packed)
{
    return sketch_merge_wide(measure_sketch_kind(m), to, arena, packed, measure_schema(m, span));
}

/* As measure_merge_sketch(), of a sketch that is not packed. It keeps no memory of it. */
static inline void measure_unite_sketch(const struct measure *m, enum span span, union sketch *to,
                                        struct arena *arena, const union sketch *from)
{
    sketch_unite(measure_sketch_kind(m), to, arena, from, measure_schema(m, span));
}

/* Does it merge by adding each column, without carries between columns? */
bool measure_is_additive(const struct measure *m);
/* Are its columns those of a count, sum or mean? */
bool measure_is_sum(const struct measure *m);

/* Is its value over one event in n, n times, an estimate of it (sample.h)? */
bool measure_is_scalable(const struct measure *m);

/* The text that a distinct count tells apart: the settled texts of its dimensions, as the key of a series has
 * them (dimension_key()). No settled text has the separator: ("a", "bc") is not ("ab", "c"). False: the event
 * lacks one of the fields. `scratch` has DIMENSION_KEY_BYTES(max_bytes) bytes. */
bool measure_told(const struct measure *m, const struct event *ev, size_t max_bytes, char *scratch,
                  struct slice *text);
/* `columns`, `to`, `from`: the measure's own columns, from its first. */
void measure_add(const struct measure *m, int64_t *columns, const struct event *ev);
void measure_merge(const struct measure *m, int64_t *to, const int64_t *from);
/* Makes of the columns of one event those of `times` such events. Pre: it is scalable, times <= SAMPLE_MAX
 * (sample.h). */
void measure_scale(const struct measure *m, int64_t *columns, int64_t times);
/* Subtracts `from`, which was merged into `to` before. False: it cannot be inverted (min, max, last, a
 * saturated sum, a count that is too small). `to` is then partly changed. */
bool measure_take(const struct measure *m, int64_t *to, const int64_t *from);
/* The value that the columns hold, in units of 1/EVENT_SCALE (number.h): of a histogram the mean, of distinct
 * the number of events. False: absent. */
bool measure_value(const struct measure *m, const int64_t *columns, int128 *value);
/* The value as a text; "nothing": absent. */
const char *measure_text(const struct measure *m, const int64_t *columns, char buf[NUMBER_BYTES]);

/* The column of a min or max, in which 0 means "none". */
static inline int64_t measure_shift(int64_t number)
{
    return number >= 0 ? number + 1 : number;
}

static inline int64_t measure_unshift(int64_t column)
{
    return column > 0 ? column - 1 : column;
}
