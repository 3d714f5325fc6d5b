/* answer.h - the answer to a query, and its three forms. query_run() and ranking_run() fill it.
 * Nothing here fails.
 *
 *   table  for a person: aligned, with the range in a first line
 *   csv    time,value                       path,value             one measure is called "value"; with all
 *          2015-05-17T00:00:00Z,31          /favicon.ico,807       measures each has its own name
 *   json   {"report":"pages","measures":["hits"],"step":"day","from":"2015-05-17T00:00:00Z","to":…,
 *           "values":[["2015-05-17T00:00:00Z",31],…]}                                    a row per step
 *          in a zone other than UTC, after the step: "tz":"Europe/Berlin"
 *          with a note, before the rows: "notes":["pages was not configured when …"]
 *          {"report":…, "top":[{"series":{"path":"/favicon.ico"},"values":[807]},…]}     a row per series
 *
 * Rows   : steps of time (one row without a step); or series, with their keys.
 * Values : as decimal fractions; exact, but for quantiles and distinct counts (figure.h). Without an event,
 *          min, max, last and mean are absent: `-` in a table, empty in CSV, null in JSON.
 * Times  : in the time zone; CSV and JSON add its offset: 2015-05-17T00:00:00+02:00.
 */
#pragma once

#include "query/figure.h"
#include "query/query.h"

#define ANSWER_FIGURES_MAX (REPORT_MEASURES_MAX * FIGURE_USUAL)

struct answer {
    const struct report *report;
    size_t measures[REPORT_MEASURES_MAX]; /* the answered measures, as indexes in the report, in order */
    size_t measure_count;
    size_t first[REPORT_MEASURES_MAX]; /* the first column of each answered measure in a row */
    size_t column_count;               /* columns of a row: of all answered measures */
    size_t sketch_count;               /* sketches of a row: of those measures that have one */
    struct figure
        figures[ANSWER_FIGURES_MAX]; /* a column of the text each; `measure` is the index in `measures` */
    size_t figure_count;
    bool has_names; /* whether the query asked for several figures, so that each has a name in CSV */
    bool has_step;
    struct step step;
    const struct zone *zone;
    int64_t from_ms, to_ms;
    int64_t *starts;    /* rows of time: the start of each; the caller frees it */
    bool of_series;     /* whether rows are series, else steps of time */
    struct slice *keys; /* rows of series: the key of each; the caller frees the array */
    size_t row_count;
    enum span longest;      /* resolution of the longest time buckets read: histograms have their buckets */
    struct missed missed;   /* records that the report did not count, if that may be why rows are empty */
    int64_t *columns;       /* [row × column_count + first[measure]]; the caller frees it */
    union sketch *sketches; /* [row × sketch_count + …], in the order of `measures`; the caller frees it */
    int128
        *told; /* [row]: the only figure, as a cached ranking has it; NULL: compute it. The caller frees it */
};

/* Add a figure to be answered, and its measure unless that is answered already. */
void answer_add_figure(struct answer *a, const struct figure *figure);
/* Merge a row of all the report's columns into a row of the answer. */
void answer_merge(const struct answer *a, int64_t *row, const int64_t *columns);
/* Merge a sketch of the report into the sketches of a row. Their memory is in `arena`, of at most `bytes_max`
 * bytes; 0: no limit. EX_DATAERR: it is damaged. EX_UNAVAILABLE: it is too much. */
bool answer_merge_sketch(const struct answer *a, union sketch *row, struct arena *arena, size_t sketch,
                         struct slice packed, uint64_t bytes_max, struct err *e) MUST_CHECK;
/* The value of a figure, by the columns and sketches of a row; false: absent. */
bool answer_figure(const struct answer *a, const int64_t *columns, const union sketch *sketches,
                   size_t figure, int128 *value);
/* The value of a figure in a row; false: absent. */
bool answer_value(const struct answer *a, size_t row, size_t figure, int128 *value);
/* The value of a figure in a row, as text; `absent` if it is absent. */
const char *answer_text(const struct answer *a, size_t row, size_t figure, const char *absent,
                        char buf[NUMBER_BYTES]);
/* Adds the answer's text to `out`, until `out` has more than `bytes_max` bytes. Returns the number of rows
 * within the limit: row_count if the whole answer is. */
size_t answer_write(const struct answer *a, enum query_format format, bool bars, size_t bytes_max,
                    struct text *out);
/* The row of a time bucket, and the start of a row. */
size_t answer_row(const struct answer *a, int64_t bucket_ms);
int64_t answer_time(const struct answer *a, size_t row);
/* The text of a dimension in a row's key; STORE_OTHER_KEY in every dimension of the series `other`. */
struct slice answer_dimension(const struct answer *a, size_t row, size_t dimension);
/* Adds the series of a row: {"path":"/favicon.ico"}. */
void answer_series(const struct answer *a, size_t row, struct text *out);
/* The histograms whose buckets tell a figure of the answer, a bit by measure of the report. */
uint32_t answer_histograms(const struct answer *a);
/* Adds the member `notes` of JSON, with a comma before it; nothing if there is no note. */
void answer_notes(const struct answer *a, struct text *out);
/* Does the work of answer_write() for tables (answer_table.c). */
size_t answer_table(const struct answer *a, bool bars, size_t bytes_max, struct text *out);
