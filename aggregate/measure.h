/* measure.h - what a report keeps of its events' numbers: columns of int64 that merge in any order.
 *
 *   count     one column   events
 *   sum(F)    one          of status or bytes: stays at the ends of int64 rather than wrap
 *             two          of decimal fractions: whole units, rounded down, and what is above them, in units
 *                          of 1/EVENT_SCALE, so that it has as much room
 *   mean(F)   one more     the sum, and how many events have the number
 *   min(F)    one          the number, moved up by one where it is not negative: 0 is none
 *   max(F)    one          the same
 *   last(F)   three        at_ms + 1, order, number: of the event that is the last
 *
 * Merge   : columns are added, compared, or (of last) the greater of two triples is taken. So an event, a
 *           cell, a row and a sum over series all merge by the same rule, zeros are neutral, and neither
 *           order nor grouping changes the result: not threads, batches, folds or the step of a query.
 * Fields  : those with numbers (field_is_number()); in units of 1/field_scale().
 * Absent  : an event without the number adds to no measure of it; without any such event min, max, last and
 *           mean are absent, sum and count 0.
 */
#pragma once

#include "aggregate/batch.h"
#include "aggregate/number.h"
#include "base/err.h"
#include "ingest/event.h"

#define MEASURE_NAME_BYTES       32
#define MEASURE_EXPRESSION_BYTES (FIELD_NAME_BYTES + 8) /* "count", "mean(" and a field, ")"; its NUL */
#define MEASURE_COLUMNS_MAX      3

enum measure_kind { MEASURE_COUNT, MEASURE_SUM, MEASURE_MIN, MEASURE_MAX, MEASURE_LAST, MEASURE_MEAN };

struct measure {
    enum measure_kind kind;
    enum field field; /* of all but a count */
    size_t column;    /* its first one, in a row of its report's columns */
    char name[MEASURE_NAME_BYTES];
    char expression[MEASURE_EXPRESSION_BYTES]; /* as measure_parse() takes it */
};

/* Kind, field and expression of *m. False with EX_CONFIG, "found …, expected …". */
bool measure_parse(struct measure *m, struct slice expression, struct err *e) MUST_CHECK;
size_t measure_column_count(const struct measure *m);
/* Are its columns added up, each for itself? */
bool measure_is_additive(const struct measure *m);
/* A sum (or count, or mean), of one column or two? */
bool measure_is_sum(const struct measure *m);

/* `columns`, `to`, `from`: the measure's own, from its first. */
void measure_add(const struct measure *m, int64_t *columns, const struct event *ev);
void measure_merge(const struct measure *m, int64_t *to, const int64_t *from);
/* What they say; false: absent. */
bool measure_value(const struct measure *m, const int64_t *columns, int128 *value);

/* The column of a min or max, where 0 is free to say "none". */
static inline int64_t measure_shift(int64_t number)
{
    return number >= 0 ? number + 1 : number;
}

static inline int64_t measure_unshift(int64_t column)
{
    return column > 0 ? column - 1 : column;
}
