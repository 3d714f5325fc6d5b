/* query.h - a question about one report, and its answer: the one path of `tallyd query` and /api/v1/query.
 *
 *   parameters → struct query → series (match.h), steps (step.h) → scans (plan.h, tiles.h) → answer.h → text
 *
 * Answers : with a step, one row per step of the range; with `top`, the series with the greatest values;
 *           else one row over the whole range. Counts and sums of nothing are 0, other measures of nothing
 *           absent (answer.h). A row is always a whole step: `from` is moved down, and `to`, which is
 *           exclusive, up to the start of one (without a step, of the report's cells: minutes or seconds).
 * Zones   : steps, and times without an offset, are of the time zone `tz`: exact, since a part of a day is
 *           read as hours, a part of an hour as minutes; or refused, where a step begins within a minute.
 * Expiry  : what the store has let go is answered from longer slots, where rows are made of whole ones; else
 *           the answer is refused, never given without what is gone.
 * Owner   : a query borrows the text of its parameters.
 * Errors  : EX_USAGE: the question is wrong, in words for whoever asked; EX_UNAVAILABLE: the answer passes a
 *           limit or needs what is gone, with what to ask instead, or is not exact in the zone; others
 *           are the store's.
 */
#pragma once

#include "base/civil.h"
#include "base/err.h"
#include "base/text.h"
#include "query/step.h"
#include "store/store.h"

enum query_format { QUERY_TABLE, QUERY_CSV, QUERY_JSON };

/* `query.*` of the configuration. */
struct query_limits {
    uint64_t rows_max;   /* read from the store */
    uint64_t points_max; /* steps in the answer */
    uint64_t series_max; /* series in the answer */
    uint64_t bytes_max;  /* of the answer's text; 0: any */
    enum weekday week_start;
};

/* A dimension and the settled text it must have. */
struct query_filter {
    struct slice dimension, value;
};

struct query {
    struct query_limits limits;
    int64_t now_ms;
    struct slice report, measure; /* measure: empty is the report's first, "all" is every one */
    struct query_filter filters[REPORT_DIMENSIONS_MAX];
    size_t filter_count;
    const struct zone *zone;
    struct slice from, to;  /* as they were given, since the zone may be given after them */
    int64_t from_ms, to_ms; /* -1: an hour before `to`; now */
    bool has_step;
    struct step step;
    enum weekday week_start; /* of steps of weeks, once there is one */
    uint64_t top;            /* 0: no ranking */
    enum query_format format;
    bool bars; /* in a table: draw the values too */
};

#define QUERY_READS_MAX 9

/* One scan: slots of a range, of which some may be left out (tiles.h). */
struct query_read {
    enum span slot;
    int64_t from_ms, to_ms;
    struct scan_stats stats;
};

/* What it took. */
struct query_stats {
    size_t scan_count;
    struct query_read reads[QUERY_READS_MAX]; /* the first of the scans */
    struct scan_stats total;                  /* of all of them */
    bool every_series;                        /* no filter */
    uint64_t series_matched;                  /* by the filters; 0: never seen, so nothing was read */
};

void query_init(struct query *q, int64_t now_ms, const struct query_limits *limits);

/* One parameter, named as on the command line and in a URL: report, measure, filter (dimension=value, may
 * be repeated), from, to, step, week_start (monday), tz (a time zone), top, format, bars (yes or no). */
bool query_set(struct query *q, struct slice name, struct slice value, struct err *e) MUST_CHECK;
/* The parameter `limit` of other questions: how many series or values are wanted at most. It never exceeds
 * query.series_max. */
bool query_set_limit(struct query *q, struct slice value, struct err *e) MUST_CHECK;
/* The names that query_set() takes. NULL at the end. */
extern const char *const query_parameters[];

/* Adds the answer to `out`; on false `out` is as it was. */
bool query_run(struct store *st, const struct query *q, struct text *out, struct query_stats *stats,
               struct err *e) MUST_CHECK;
/* The plan of a query that was run, in lines for a person. */
void query_explain(const struct query *q, const struct query_stats *stats, struct text *out);
