/* query.h - a query about one report, and its answer. `tallyd query` and /api/v1/query both call it.
 *
 *   parameters → struct query → series (match.h), steps (step.h) → scans (plan.h, tiles.h) → answer.h → text
 *
 * Answers : with a step, one row per step of the range; with `top`, the series with the greatest values;
 *           with `newest`, events (recent.h); else one row over the whole range. Without events, counts and
 *           sums are 0, other measures absent (answer.h). A row is always a whole step: `from` is moved down,
 *           and `to`, which is exclusive, up to the start of a step. Without a step, they move to the
 *           report's cells: minutes or seconds.
 * Zones   : steps, and times without an offset, are in the time zone `tz`. They are exact, since parts of
 *           days are read as hours, parts of hours as minutes. A step that begins within a minute is refused.
 * Expiry  : if time buckets have expired, longer ones answer, provided that rows consist of whole ones. Else
 *           the answer is refused; it never leaves expired counts out.
 * Notes   : an answer of estimates says so (estimate.h). An answer that is empty at some time says if the
 *           report did not count all, as far as that may be why (missed.h): in JSON by a member `notes`,
 *           beside a table by query_note().
 * Owner   : a query borrows the text of its parameters.
 * Memory  : all but the text is taken from the store handle's share of memory (quota.h).
 * Errors  : EX_USAGE: the query is wrong; the text is for the user. EX_UNAVAILABLE: the answer passes a limit
 *           or needs expired time buckets (with a hint), or is not exact in the zone. Others are the store's.
 */
#pragma once

#include "base/civil.h"
#include "base/err.h"
#include "base/text.h"
#include "query/missed.h"
#include "query/step.h"
#include "store/reader.h"

/* QUERY_CSV is safe to open in a spreadsheet (text_csv_cell()), QUERY_CSV_RAW has the names as they are. */
enum query_format { QUERY_TABLE, QUERY_CSV, QUERY_CSV_RAW, QUERY_JSON };

/* `query.*` of the configuration. */
struct query_limits {
    uint64_t rows_max;     /* rows read from the store */
    uint64_t points_max;   /* steps in the answer */
    uint64_t series_max;   /* series in the answer */
    uint64_t bytes_max;    /* bytes of the answer's text; 0: no limit */
    uint64_t sketches_max; /* bytes of histograms and distinct counts that one answer adds up; 0: no limit */
    uint64_t memory_max;   /* bytes of memory of all questions by HTTP under way; see quota.h */
    enum weekday week_start; /* first day of a week, unless the query names one */
    int64_t timeout_ms;      /* time for one question by HTTP; 0: no limit */
};

/* A dimension and the settled text it must have. */
struct query_filter {
    struct slice dimension, value;
};

#define QUERY_WHERE_MAX 8

struct query {
    struct query_limits limits;
    int64_t now_ms;
    struct slice report,
        measure; /* names; measure: a figure (figure.h); "": the report's first; "all": all */
    struct query_filter filters[REPORT_DIMENSIONS_MAX];
    size_t filter_count;
    struct slice where[QUERY_WHERE_MAX]; /* conditions on dimensions: where.h */
    size_t where_count;
    const struct zone *zone;
    struct slice from, to;  /* texts as given, since the zone may be given after them */
    int64_t from_ms, to_ms; /* from_ms -1: an hour before `to`; to_ms -1: now */
    bool has_step;
    struct step step;
    enum weekday week_start; /* first day of a week, for a step of weeks */
    uint64_t top;            /* number of series to rank; 0: no ranking */
    bool with_median;        /* a ranking by another quantile has p50, too; no cached ranking has both */
    uint64_t newest;         /* number of events to show (recent.h); 0: counts are asked for */
    enum query_format format;
    bool bars;                   /* whether a table draws the values, too */
    struct missed_cache *missed; /* borrowed; NULL: each answer with a hole asks the store */
};

#define QUERY_READS_MAX 9

/* One scan: the time buckets of a range. Some may be left out (tiles.h). */
struct query_read {
    enum span resolution;
    int64_t from_ms, to_ms;
    struct scan_stats stats;
};

/* The work of a query. */
struct query_stats {
    size_t scan_count;
    struct query_read reads[QUERY_READS_MAX]; /* the first scans, up to QUERY_READS_MAX */
    struct scan_stats total;                  /* rows and bytes of all scans */
    bool every_series;                        /* whether there was no filter */
    uint64_t series_matched;                  /* series that the filters matched; 0: nothing was read */
    const struct report *report;              /* of the store handle; NULL: the query did not get so far */
    uint32_t histograms;                      /* that were answered from their buckets, a bit by measure */
    enum span longest;                        /* resolution of the longest time buckets that were read */
    struct missed missed;                     /* known only if the answer is empty at some time */
};

void query_init(struct query *q, int64_t now_ms, const struct query_limits *limits);

/* Set one parameter, named as on the command line and in a URL: report, measure, filter (dimension=value)
 * and where (a condition), which may be repeated, from, to, step, week_start (monday), tz (a time zone),
 * top, newest, format, bars (yes or no). */
bool query_set(struct query *q, struct slice name, struct slice value, struct err *e) MUST_CHECK;
/* Set the parameter `limit` of rankings and values: the most series or values wanted. A limit above
 * query.series_max is lowered to it. */
bool query_set_limit(struct query *q, struct slice value, struct err *e) MUST_CHECK;
/* The names that query_set() takes. NULL at the end. */
extern const char *const query_parameters[];

/* Adds the answer to `out`; on false `out` is as it was. */
bool query_run(struct store *st, const struct query *q, struct text *out, struct query_stats *stats,
               struct err *e) MUST_CHECK;
/* Adds the plan of a query that was run, in lines for a person. */
void query_explain(const struct query *q, const struct query_stats *stats, struct text *out);
/* Adds the note of a query that was run, in a line for a person; nothing if there is none. */
void query_note(const struct query *q, const struct query_stats *stats, struct text *out);
