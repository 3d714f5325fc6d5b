/* report.h - a report: a filter, dimensions and measures, compiled from text once. The configuration and the
 * stores make it; shards, stores and queries read it.
 *
 *   pages  by: [path]   where: [status<400]   measures: {hits: count, bytes: sum(bytes)}
 *
 * Identity : the canonical definition text (same meaning, same text) under a name and generation; a
 *            store keeps it, so that a report can be read back without its configuration:
 *
 *              by path
 *              where status<400
 *              measure hits count
 *              measure bytes sum(bytes)
 *              layout hour
 *              sample 1/100
 *              newest 50 host request
 *              given hour_of_day Europe/Berlin
 *
 *            one line each, dimensions and measures in the user's order (that of keys and cells),
 *            conditions sorted, each once; no line for the layout of days, nor for a sample of 1/1, nor
 *            without newest events. `given` has settings by which fields of the report are made, as text
 *            (ingest/derive/derive.h).
 * Names    : reports, sources and measures: [a-z][a-z0-9_]*; a dimension's name is its text. A measure may
 *            not have the name of a dimension.
 * Limits   : REPORT_DIMENSIONS_MAX, REPORT_MEASURES_MAX, REPORT_CONDITIONS_MAX; more is a config error.
 * Threads  : read-only once compiled; shared by all.
 */
#pragma once

#include "aggregate/filter.h"
#include "aggregate/measure.h"
#include "base/civil.h"
#include "base/err.h"
#include "base/slice.h"

#define REPORT_MEASURES_MAX   8
#define REPORT_COLUMNS_MAX    (REPORT_MEASURES_MAX * MEASURE_COLUMNS_MAX)
#define REPORT_CONDITIONS_MAX 16
#define REPORT_NAME_BYTES     64
#define REPORT_SERIES_MAX     1000000 /* default of series_max */

/* The length of its shortest documents in MongoDB (store/mongo/handle/kind.h). LAYOUT_MINUTE counts seconds,
 * the others minutes. */
enum report_layout { LAYOUT_DAY, LAYOUT_HOUR, LAYOUT_MINUTE };

struct report {
    char name[REPORT_NAME_BYTES];
    int generation;
    enum report_layout layout;
    uint32_t one_in;             /* it counts one event in so many, so many times (sample.h) */
    uint32_t newest;             /* events that it keeps of each series and day (recent.h); 0: none */
    uint32_t series_max;         /* most series; further ones count in `other`. Not part of the identity */
    int64_t keep_ms[SPAN_COUNT]; /* life of time buckets (keep.h); 0: for ever. Not part of the identity */
    size_t dimension_count, measure_count, condition_count;
    struct dimension dimensions[REPORT_DIMENSIONS_MAX];
    /* all, and behind them the newest events, if it keeps some: no loop over the measures sees these */
    struct measure measures[REPORT_MEASURES_MAX + 1];
    struct condition conditions[REPORT_CONDITIONS_MAX]; /* all must hold */
    size_t column_count;                                /* columns of all measures, in their order */
    size_t sketch_count;                                /* measures that have a sketch, too (sketch.h) */
    size_t
        sketched[REPORT_MEASURES_MAX + 1]; /* these measures, as indexes, in their order; then the newest */
    size_t newest_field_count;
    enum field newest_fields[RECENT_FIELDS_MAX]; /* that its newest events keep; none: recent.h has a list */
    bool is_additive;                            /* all measures merge by adding each column */
    bool begins_usual; /* whether its first measures are a count and a sum of integers */
    char *given;       /* lines behind "given ", owned; NULL: none */
    char *definition;  /* canonical text, owned */
};

/* Each takes one piece, so that a configuration can name the line of a wrong piece. On false the error is
 * EX_CONFIG and the report is unchanged. */
bool report_init(struct report *r, struct slice name, int generation, struct err *e) MUST_CHECK;
bool report_add_dimension(struct report *r, struct slice text, struct err *e) MUST_CHECK;
bool report_add_condition(struct report *r, struct slice text, struct err *e) MUST_CHECK;
bool report_add_measure(struct report *r, struct slice name, struct slice expression,
                        struct err *e) MUST_CHECK;
bool report_add_newest_field(struct report *r, struct slice name, struct err *e) MUST_CHECK;
/* Sets the settings of its fields: lines that each end with a line feed. Pre: it has none yet. */
void report_set_given(struct report *r, struct slice lines);
/* Call it after the last piece, when layout, one_in and newest are set: checks the whole and writes the
 * definition. Without measures the report gets hits and bytes. */
bool report_finish(struct report *r, struct err *e) MUST_CHECK;
/* Reads a stored definition; the inverse of report_finish(). False: EX_DATAERR, report_finish() writes no
 * such definition; *r is then empty. */
bool report_read(struct report *r, struct slice name, int generation, struct slice definition,
                 struct err *e) MUST_CHECK;
/* Is it what a stored definition of its name and generation says? REPORT_WITHOUT_KEY: it is, but a version
 * that wrote no fingerprint of the key of host_id stored it. The store then takes over that of *r. */
enum report_likeness { REPORT_DIFFERS, REPORT_WITHOUT_KEY, REPORT_IS_SAME };
enum report_likeness report_compare(const struct report *r, const char *definition);
void report_fini(struct report *r);

/* The resolution of its cells: the finest that queries can use. */
static inline enum span report_cell(const struct report *r)
{
    return r->layout == LAYOUT_MINUTE ? SPAN_SECOND : SPAN_MINUTE;
}

static inline int64_t report_cell_ms(const struct report *r)
{
    return r->layout == LAYOUT_MINUTE ? SECOND_MS : MINUTE_MS;
}

/* The int64 of one of its cells. */
static inline size_t report_cell_values(const struct report *r)
{
    return r->column_count + (r->sketch_count + (r->newest > 0)) * SKETCH_VALUES;
}

static inline size_t report_cell_bytes(const struct report *r)
{
    return sizeof(struct cell) + report_cell_values(r) * sizeof(int64_t);
}

/* A cell's sketch, by its index among the report's sketches; r->sketch_count: its newest events. */
static inline union sketch *report_sketch(const struct report *r, struct cell *c, size_t sketch)
{
    return (union sketch *)(void *)&c->value[r->column_count + sketch * SKETCH_VALUES];
}

/* The measure of the sketch at an index among the report's sketches; of r->sketch_count, MEASURE_NEWEST. */
static inline const struct measure *report_sketched(const struct report *r, size_t sketch)
{
    return &r->measures[r->sketched[sketch]];
}

/* -1: there is none of that name. */
int report_find_dimension(const struct report *r, struct slice name);
int report_find_measure(const struct report *r, struct slice name);
/* Does the report depend on the field, by a dimension, a condition, a measure or its newest events? */
bool report_uses(const struct report *r, enum field f);

enum report_piece { PIECE_OTHER, PIECE_DIMENSION, PIECE_CONDITION, PIECE_MEASURE, PIECE_FIELD };
/* The names of the fields that a piece uses, known or not: `userid` for "userid", "userid!=-" and
 * "sum(userid)", both of "distinct(host, userid)". None for status_class, path:2 and count, and for
 * PIECE_OTHER. Returns their number. */
size_t report_piece_fields(enum report_piece kind, struct slice text,
                           struct slice names[MEASURE_DIMENSIONS_MAX]);

/* Merges a row of columns into another: of events, cells, time buckets or whole ranges. report_merge_mixed()
 * takes any measures. */
void report_merge_mixed(const struct report *r, int64_t *to, const int64_t *from);
static inline void report_merge(const struct report *r, int64_t *to, const int64_t *from)
{
    if (!r->is_additive) {
        report_merge_mixed(r, to, from);
        return;
    }
    for (size_t i = 0; i < r->column_count; i++)
        to[i] = value_add(to[i], from[i]);
}

/* Takes a row of columns out of another, into which it was merged. False: as measure_take(); or columns would
 * be left without an event. */
bool report_take(const struct report *r, int64_t *to, const int64_t *from);
/* Is it a row of zeros, as of no event? */
bool report_is_zero(const struct report *r, const int64_t *row);

/* The texts that report_add_dimension() takes, for help texts and "did you mean": "path:N" stands for path:1
 * to path:9. NULL at the end. */
extern const char *const report_dimension_names[];
/* Names by enum report_layout; NULL at the end. */
extern const char *const report_layout_names[];
