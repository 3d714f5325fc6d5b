/* mongo/handle/kind.h - the kinds of documents of a report: the one table by which they are written, read and
 * indexed.
 *
 *   layout day:     R.day    { daily, hourly.H, minute.H.M }    20101010
 *                   R.month  { total, daily.D }                 201010
 *   layout hour:    R.hour   { hourly, minute.M }               2010101013
 *                   R.day    { daily, hourly.H }                and R.month
 *   layout minute:  R.minute { minute, second.S }               201010101337
 *                   R.hour   { hourly, minute.M }               and R.day, R.month as of `hour`
 *   each layout:    R.year   { total.M }                        2010; rolled up: mongo/job/roll.h
 *                   R.week   { weekly, daily.D }                20101004; likewise, where it is wanted
 *
 * Rule : counts of a span have one name wherever they stand: second, minute, hourly, daily, total. In the
 *        document of that span they are one value; in one of a longer span, as many as it has of them, by
 *        a key for each span in between. So no level has more than 60 keys. Days and months count from 1,
 *        days of weeks from 0.
 * Time : `_id` begins with the bucket's, as many digits of YYYYMMDDhhmm as tell it from the next.
 */
#pragma once

#include "aggregate/report.h"
#include "base/civil.h"

#include <stddef.h>

struct mongo_kind {
    enum span span;   /* of a document; its collection is called by it */
    enum span finest; /* of its slots */
};

#define MONGO_KINDS_MAX 4
/* What batches write, from the shortest span to the longest; of each slot, the last kind that has it has it
 * in the fewest documents. */
const struct mongo_kind *mongo_kinds(const struct report *r, size_t *count);
/* That one, of those; of a span without slots, the document of that span. */
const struct mongo_kind *mongo_kind_for(const struct report *r, enum span slot);
/* The n-th, from 0, of the others that have slots of this span: those of their own length, say. NULL: none.
 * Months are read from documents of years, where they are there: so their own are others. */
const struct mongo_kind *mongo_copy_kind(const struct report *r, enum span slot, size_t n);
/* What is rolled up, each kind from documents of months. */
extern const struct mongo_kind mongo_year, mongo_week;
struct mongo_target {
    const char *job; /* that does it */
    const struct mongo_kind *kind;
    enum span stamped; /* the periods of which batches say that they wrote them */
};
enum { MONGO_YEARS, MONGO_WEEKS, MONGO_TARGETS };
extern const struct mongo_target mongo_targets[MONGO_TARGETS];
/* span_floor(), also of weeks that begin on `first`. */
int64_t mongo_span_floor(enum span span, enum weekday first, int64_t ms);

/* The longest span whose slots are read from this kind: those of the next one's finest are read there. So
 * with these slots the documents may go. */
enum span mongo_longest(const struct report *r, const struct mongo_kind *k);

/* "20101010": what `_id` begins with. */
#define MONGO_TIME_BYTES 16
const char *mongo_time(enum span span, int64_t ms, char buf[MONGO_TIME_BYTES]);
/* … and back, of a day, a week (which may begin before 1970) or a month; false: of none. */
bool mongo_parse_time(enum span span, const char *text, int64_t *ms);

/* Where counts of a span are, in all documents that have them: "minute". */
const char *mongo_member(enum span span);
/* By which key a bucket is found in the one above: 13 of the hour at 13:00. */
int mongo_key_in(enum span span, int64_t ms);
/* "minute.13.37"; of the document's own span "daily". */
#define MONGO_PATH_BYTES 32
const char *mongo_path(const struct mongo_kind *k, enum span slot, int64_t ms, char buf[MONGO_PATH_BYTES]);

/* Slots in order, as rows: how many a document can have; which one a key leads to, from the row of the bucket
 * above (false: none); and the time of one. */
#define MONGO_ROWS_MAX 1440
size_t mongo_row_count(const struct mongo_kind *k, enum span slot);
bool mongo_row_below(enum span span, const char *key, size_t *row);
int64_t mongo_row_ms(enum span slot, int64_t document_ms, size_t row);
