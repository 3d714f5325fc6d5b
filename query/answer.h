/* answer.h - what a query found, and its three forms.
 *
 *   table  for a person: aligned, with the range in a first line
 *   csv    time,value                       path,value             one measure is called "value"; with all
 *          2015-05-17T00:00:00Z,31          /favicon.ico,807       of them each has its own name
 *   json   {"report":"pages","measures":["hits"],"step":"day","from":"2015-05-17T00:00:00Z","to":…,
 *           "values":[["2015-05-17T00:00:00Z",31],…]}                                    a row per step
 *          in a zone other than UTC, after the step: "tz":"Europe/Berlin"
 *          {"report":…, "top":[{"series":{"path":"/favicon.ico"},"values":[807]},…]}     a row per series
 *
 * Rows   : of time, by `step` (one row where there is none); or of series, with their keys.
 * Values : exact, as decimal fractions. What min, max, last and mean say where there was no event is absent:
 *          `-` in a table, empty in CSV, null in JSON.
 * Times  : of the zone, in CSV and JSON with its offset: 2015-05-17T00:00:00+02:00.
 */
#pragma once

#include "query/query.h"

struct answer {
    const struct report *report;
    size_t measures[REPORT_MEASURES_MAX]; /* which of the report's, in order */
    size_t measure_count;
    size_t first[REPORT_MEASURES_MAX]; /* the first column of each, in a row */
    size_t column_count;               /* of a row: those of all of them */
    bool every_measure;                /* asked for by "all" */
    bool has_step;
    struct step step;
    const struct zone *zone;
    int64_t from_ms, to_ms;
    int64_t *starts; /* by row, where the rows are of time; owned by who made it */
    bool of_series;
    struct slice *keys; /* by row, where the rows are of series */
    size_t row_count;
    int64_t *columns; /* [row × column_count + first[measure]] */
};

/* One more measure to be answered. */
void answer_add_measure(struct answer *a, size_t measure);
/* Merge a row of all the report's columns into one of the answer's. */
void answer_merge(const struct answer *a, int64_t *row, const int64_t *columns);
/* What a row says; false: absent. */
bool answer_value(const struct answer *a, size_t row, size_t measure, int128 *value);
/* The same as text, `absent` where it is. */
const char *answer_text(const struct answer *a, size_t row, size_t measure, const char *absent,
                        char buf[NUMBER_BYTES]);
/* Adds the text to `out`, until it has more than `bytes_max`. Returns the rows that are not beyond: all, if
 * all is well. */
size_t answer_write(const struct answer *a, enum query_format format, bool bars, size_t bytes_max,
                    struct text *out);
/* The row of a slot, and the start of a row. */
size_t answer_row(const struct answer *a, int64_t slot_ms);
int64_t answer_time(const struct answer *a, size_t row);
/* The text of a dimension in a key: STORE_OTHER_KEY in each for the series `other`. */
struct slice answer_dimension(const struct answer *a, size_t row, size_t dimension);
/* Adds the series of a row: {"path":"/favicon.ico"}. */
void answer_series(const struct answer *a, size_t row, struct text *out);
/* As a table; of answer_table.c. */
size_t answer_table(const struct answer *a, bool bars, size_t bytes_max, struct text *out);
