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
 *                   R.week   { weekly, daily.D }                20101004; rolled up, optional
 *
 * A measure with a sketch (aggregate/sketch.h) has documents for itself. Each kind holds the buckets of one
 * resolution, so a document expires as a whole, and no bucket is stored twice:
 *
 *   histogram:      R.latency.hour   { minute.M }, R.latency.day { hourly.H }, R.latency.month { daily.D },
 *                   R.latency.year   { total.M }; layout minute: R.latency.minute { second.S }, too
 *                   R.latency.week   { weekly, daily.D }; rolled up, optional
 *   of schema 5 to 8, and
 *   distinct:       R.visitors.minute { minute }, R.visitors.hour { hourly }, R.visitors.day { daily },
 *                   R.visitors.month { total }; layout minute: R.visitors.second { second }, too
 *                   R.visitors.week  { weekly }; rolled up, optional
 *   newest events:  R.newest.day { daily: { events: [ … ] } }
 *
 * Sizes: a histogram takes some 3 KiB, a distinct count at most 40 KiB and what writers add before they
 *        condense it, some 3 KiB as a rule (mongo/writer/crowd.h). So documents of a busy series stay below
 *        256 KiB. The bounds below hold for any numbers (docs/SIZING.md).
 *
 * Names: counts of a resolution have the same name in every document: second, minute, hourly, daily, total.
 *        In the document of that resolution they are one value. A longer document has one value per bucket,
 *        with a key for each resolution in between; so no level has more than 60 keys. Days and months
 *        count from 1, days of weeks from 0.
 * Time : `_id` begins with the start of the period: as many digits of YYYYMMDDhhmmss as tell two periods
 *        apart.
 */
#pragma once

#include "aggregate/report.h"
#include "base/civil.h"

#include <stddef.h>

/* The largest documents of sketches, in bytes: of a histogram with schema 4 or a lower one, whose minutes all
 * have numbers of every size, on both sides of zero; and of any other sketch. */
#define MONGO_HISTOGRAM_BYTES_MAX ((size_t)1536 << 10)
#define MONGO_SKETCH_BYTES_MAX    ((size_t)384 << 10)

struct mongo_kind {
    enum span span;   /* length of a document's period; it names the collection */
    enum span finest; /* resolution of its shortest buckets */
    bool of_sketch;   /* it holds a measure with a sketch, and buckets of `finest` only */
};

#define MONGO_KINDS_MAX        4
#define MONGO_SKETCH_KINDS_MAX 5
/* The kinds that batches write, from the shortest to the longest. If several kinds hold a time bucket, read
 * the last one: it needs the fewest documents. `count` may be NULL. */
const struct mongo_kind *mongo_kinds(const struct report *r, size_t *count);
/* The kind from which buckets of `resolution` are read: the last of mongo_kinds() that holds them. */
const struct mongo_kind *mongo_kind_for(const struct report *r, enum span resolution);
/* The n-th kind, from 0, that holds the same buckets again, such as documents of their own length. NULL:
 * none. Months are read from documents of years if these are rolled up, so documents of months are a copy. */
const struct mongo_kind *mongo_copy_kind(const struct report *r, enum span resolution, size_t n);
/* The sketches that have documents: those of the report's measures, then its newest events. */
static inline size_t mongo_sketch_count(const struct report *r)
{
    return r->sketch_count + (r->newest > 0);
}
/* As mongo_kinds() and mongo_kind_for(), of the documents that a sketch has; `sketch` is below
 * mongo_sketch_count(). Newest events have days only. */
const struct mongo_kind *mongo_sketch_kinds(const struct report *r, size_t sketch, size_t *count);
const struct mongo_kind *mongo_sketch_kind_for(const struct report *r, size_t sketch, enum span resolution);
/* The measures without a sketch, a bit each: those of mongo_kinds(). */
uint32_t mongo_plain_measures(const struct report *r);
/* The kinds that are rolled up from documents of months; and from those of the days of a sketch. */
extern const struct mongo_kind mongo_year, mongo_week, mongo_sketch_week;
struct mongo_target {
    const char *job; /* the job that sets the documents */
    const struct mongo_kind *kind;
    enum span stamped; /* the periods that batches stamp */
};
enum { MONGO_YEARS, MONGO_WEEKS, MONGO_TARGETS };
extern const struct mongo_target mongo_targets[MONGO_TARGETS];
/* span_floor(), extended to weeks that begin on `first`. */
int64_t mongo_span_floor(enum span span, enum weekday first, int64_t ms);

/* The longest resolution whose buckets are read from this kind; the next kind serves the longer ones. The
 * documents may be deleted when buckets of this resolution have expired. */
enum span mongo_longest(const struct report *r, const struct mongo_kind *k);

/* The time with which `_id` begins: "20101010". */
#define MONGO_TIME_BYTES 16
const char *mongo_time(enum span span, int64_t ms, char buf[MONGO_TIME_BYTES]);
/* The inverse; a week may begin before 1970. False: not such a time. */
bool mongo_parse_time(enum span span, const char *text, int64_t *ms);

/* The name of counts of a resolution, in all documents that have them: "minute". */
const char *mongo_member(enum span span);
/* The key of a bucket in the next longer one: 13 for the hour at 13:00. */
int mongo_key_in(enum span span, int64_t ms);
/* The path of a bucket: "minute.13.37"; "daily" for the document's own period. */
#define MONGO_PATH_BYTES 32
const char *mongo_path(const struct mongo_kind *k, enum span resolution, int64_t ms,
                       char buf[MONGO_PATH_BYTES]);

/* Time buckets of a document as rows, in order: the number of rows; the row of `key` below the row of the
 * next longer bucket (false: none); the start of a row. */
#define MONGO_ROWS_MAX        1440
#define MONGO_SKETCH_ROWS_MAX 60
size_t mongo_row_count(const struct mongo_kind *k, enum span resolution);
bool mongo_row_below(enum span span, const char *key, size_t *row);
int64_t mongo_row_ms(enum span resolution, int64_t document_ms, size_t row);
