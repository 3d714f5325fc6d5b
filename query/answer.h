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
 * Values : exact, as decimal fractions. Without an event, min, max, last and mean are absent: `-` in a table,
 *          empty in CSV, null in JSON.
 * Times  : in the time zone; CSV and JSON add its offset: 2015-05-17T00:00:00+02:00.
 */
#pragma once

#include "query/query.h"

struct answer {
    const struct report *report;
    size_t measures[REPORT_MEASURES_MAX]; /* the answered measures, as indexes in the report, in order */
    size_t measure_count;
    size_t first[REPORT_MEASURES_MAX]; /* the first column of each answered measure in a row */
    size_t column_count;               /* columns of a row: of all answered measures */
    bool every_measure;                /* whether the query asked for "all" */
    bool has_step;
    struct step step;
    const struct zone *zone;
    int64_t from_ms, to_ms;
    int64_t *starts;    /* rows of time: the start of each; the caller frees it */
    bool of_series;     /* whether rows are series, else steps of time */
    struct slice *keys; /* rows of series: the key of each; the caller frees the array */
    size_t row_count;
    struct missed missed; /* records that the report did not count, if that may be why rows are empty */
    int64_t *columns;     /* [row × column_count + first[measure]]; the caller frees it */
};

/* Add a measure to be answered. */
void answer_add_measure(struct answer *a, size_t measure);
/* Merge a row of all the report's columns into a row of the answer. */
void answer_merge(const struct answer *a, int64_t *row, const int64_t *columns);
/* The value of a measure in a row; false: absent. */
bool answer_value(const struct answer *a, size_t row, size_t measure, int128 *value);
/* The value of a measure in a row, as text; `absent` if it is absent. */
const char *answer_text(const struct answer *a, size_t row, size_t measure, const char *absent,
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
/* Does the work of answer_write() for tables (answer_table.c). */
size_t answer_table(const struct answer *a, bool bars, size_t bytes_max, struct text *out);
