/* reader.h - reads a store: counts, series, positions, books and expiry watermarks. Queries, checks and the
 * writer itself call it, on a handle of any mode (store.h). Only store_copy() never fails.
 *
 * Values : rows of a report's columns (measure.h), merged by report_merge().
 * Marks  : expiry watermarks. A scan must not begin before the one of its resolution (watermarks.h).
 */
#pragma once

#include "aggregate/batch.h"
#include "aggregate/rank_by.h"
#include "base/text.h"
#include "store/store.h"

/* One partition of a source, as far as it has been counted. */
struct position {
    struct range range; /* from = 0, to = next */
};

/* The series that a scan wants. */
struct series_set {
    enum { SERIES_ALL, SERIES_ONE, SERIES_SET } kind;
    uint32_t one;         /* SERIES_ONE: the series number */
    const uint64_t *bits; /* SERIES_SET: bit per series number */
    uint32_t bits_max;    /* SERIES_SET: exclusive limit of the series numbers in `bits` */
};

static inline bool series_set_has(const struct series_set *set, uint32_t series)
{
    if (set->kind == SERIES_ALL)
        return true;
    if (set->kind == SERIES_ONE)
        return series == set->one;
    return series < set->bits_max && (set->bits[series / 64] >> (series % 64) & 1);
}

/* A packed sketch (aggregate/sketch.h) of a time bucket, by its index among the report's sketches. It comes
 * behind the scan_fn's call for the bucket, if it is not empty. False ends the scan with *e. It may be of a
 * part of the time bucket, in the narrower buckets of a shorter resolution: the caller merges it by
 * measure_merge_sketch() of the scan's resolution or a longer one. */
typedef bool sketch_fn(void *context, uint32_t series, int64_t bucket_ms, size_t sketch, struct slice packed,
                       struct err *e);

struct scan {
    size_t report;          /* index in store.reports */
    enum span resolution;   /* resolution of the time buckets to read */
    int64_t from_ms, to_ms; /* both at starts of time buckets */
    struct series_set series;
    uint64_t rows_max; /* limit of rows read; beyond it EX_UNAVAILABLE, "too many rows" */
    uint32_t measures; /* bit per measure that the caller reads; other columns may be 0; none: all */
    sketch_fn *sketch; /* gets the sketches of these measures; NULL: they are not wanted */
};

/* A request for the rankings of hours, days or months of UTC. */
struct store_top {
    size_t report, measure;
    enum rank_by by;        /* a figure of the measure */
    enum span span;         /* length of the ranked periods */
    int64_t from_ms, to_ms; /* starts of periods */
    /* The end of the range. Before to_ms: only one period may be asked for, and it is found only if nothing
     * is counted in it from end_ms on. */
    int64_t end_ms;
    uint64_t limit; /* number of series wanted; 0: only the total is wanted, also of minutes */
};

/* Gets a series of a ranking: the columns of a count or sum, as a scan_fn does; of a measure with a
 * sketch no columns but that of its events, and the figure's `value`. */
typedef void top_fn(void *context, uint32_t series, int64_t period_ms, const int64_t *values, int128 value);

/* The state of a measure over all series and periods of rankings. */
struct top_total {
    int64_t columns[MEASURE_COLUMNS_MAX];
    union sketch sketch;  /* of a measure that has one, in the buckets of the resolution `longest` */
    struct arena *memory; /* the sketch's */
    enum span longest;    /* the longest time bucket of the answer */
};

#define STORE_LEARN_MAX 1000

/* Work of scans; each scan adds to it. */
struct scan_stats {
    uint64_t rows;  /* rows (documents) read */
    uint64_t bytes; /* bytes of their bodies */
};

/* May be called several times for one (series, bucket); the caller merges the values. */
typedef void scan_fn(void *context, uint32_t series, int64_t bucket_ms, const int64_t *values);
/* Does the caller want the report's sketch of this index? */
static inline bool scan_wants_sketch(const struct scan *scan, const struct report *r, size_t sketch)
{
    return scan->sketch != NULL && (scan->measures == 0 || (scan->measures >> r->sketched[sketch] & 1) != 0);
}

/* Pass the sketches of a time bucket on. */
static inline bool scan_sketches(const struct scan *scan, const struct report *r, void *context,
                                 uint32_t series, int64_t bucket_ms, const struct slice *sketches,
                                 struct err *e)
{
    for (size_t i = 0; i < r->sketch_count; i++) {
        if (scan_wants_sketch(scan, r, i) && sketches[i].len > 0 &&
            !scan->sketch(context, series, bucket_ms, i, sketches[i], e))
            return false;
    }
    return true;
}

typedef bool series_fn(void *context, uint32_t series, struct slice key); /* false ends the walk */
typedef bool value_fn(void *context, struct slice value);                 /* false ends the walk */
typedef bool position_fn(void *context, const struct position *position); /* false ends the walk */
/* `report` is "" for entries of the source itself; `source` is "" for entries of the report itself. Entries
 * beside those of books.h:
 *   report, source  since, until    the offsets between which the report counts this source
 *                   gap.FROM        the offset up to which it did not count, from FROM: not configured then
 *                   filled.FROM.MS.MS   the offset up to which it counted, from FROM, the events between both
 *                                   times, in ms; other events only as the other entries say
 *                   kept.FROM.MS.MS the same, of counts of another generation (store/splice.h)
 *   report          other           events counted in the series `other` (store_cell_count())
 *                   expired.SPAN    the expiry watermark of a resolution, in ms
 *                   kept.MS         the time in ms up to which, from MS on, counts are of another generation
 *                   kept.events     the events that these counts have more than its own of these times had
 *                   late.SPAN       events that came after their time bucket of the resolution had expired
 *   source          since           of a topic: the offset from which its own books count; not in each store
 *   source          state           of a followed file: enum range_state (aggregate/batch.h)
 *   source          latest.FROM.MS  from FROM up to this offset, events later than MS were rejected as in
 *                                   the future; the entry exists only if there were some
 *   both            geo.FROM.SECONDS, asn.FROM.SECONDS, agents.FROM.HASH: builds.h */
#define STORE_STATE_ENTRY "state"
typedef bool book_fn(void *context, const char *source, const char *partition, const char *report,
                     const char *entry, int64_t value);

/* Expiry watermarks of a report. Watermarks of shorter resolutions are not before those of longer ones. Each
 * is a start of the next longer resolution (keep_from()), or of the longer period that a store deletes as a
 * whole. */
struct watermarks {
    int64_t before_ms[SPAN_COUNT]; /* time buckets that begin before this have expired; 0: none has */
};

/* The newest time bucket in which a report has counts: an hour, or a day or month if the store knows no
 * hours. */
struct newest {
    enum span span;
    int64_t start_ms;  /* start of the bucket; -1: the report has no counts */
    int64_t before_ms; /* start of the newest earlier bucket that has counts; -1: there is none */
};

/* Receives one problem, as a line for a person; borrowed. */
typedef void check_fn(void *context, const char *problem);

/* The reading operations of a kind of store. */
struct store_reader_ops {
    bool (*watermarks)(struct store *st, size_t report, struct watermarks *watermarks, struct err *e);
    bool (*newest)(struct store *st, size_t report, int64_t before_ms, struct newest *newest, struct err *e);
    /* The length of the periods in which time buckets of a resolution expire. NULL: as keep_from() says. */
    enum span (*goes_by)(const struct report *r, enum span span);
    bool (*hold)(struct store *st, struct err *e);
    /* NULL: a locked snapshot is of one moment, and readers can read all of it. */
    bool (*moment)(struct store *st, struct text *moment, struct text *left_out, struct err *e);
    bool (*scan)(struct store *st, const struct scan *scan, scan_fn *fn, void *context,
                 struct scan_stats *stats, struct err *e);
    /* NULL: the store keeps no newest events. */
    bool (*recent)(struct store *st, const struct scan *scan, void *context, struct scan_stats *stats,
                   struct err *e);
    /* NULL, both: each time bucket is stored in one place. */
    enum span (*copy)(const struct store *st, size_t report, enum span resolution, size_t n);
    bool (*scan_copy)(struct store *st, const struct scan *scan, size_t n, scan_fn *fn, void *context,
                      struct scan_stats *stats, struct err *e);
    /* NULL: the store caches no rankings. */
    bool (*top)(struct store *st, const struct store_top *what, top_fn *fn, void *context,
                struct top_total *total, struct scan_stats *stats, bool *found, struct err *e);
    /* NULL: it needs no hints. */
    void (*learn)(struct store *st, size_t report, size_t measure, const uint32_t *series, size_t count);
    bool (*series_find)(struct store *st, size_t report, struct slice key, uint32_t *series, bool *found,
                        struct err *e);
    bool (*series_key)(struct store *st, size_t report, uint32_t series, struct text *key, struct err *e);
    bool (*series_each)(struct store *st, size_t report, series_fn *fn, void *context, struct err *e);
    /* NULL: a walk over all series is as good. */
    bool (*series_like)(struct store *st, size_t report, const struct slice *values, series_fn *fn,
                        void *context, struct err *e);
    /* values_walk() (values.h), if the store has nothing better. */
    bool (*values)(struct store *st, size_t report, size_t dimension, struct slice prefix, size_t limit,
                   value_fn *fn, void *context, struct err *e);
    bool (*positions)(struct store *st, position_fn *fn, void *context, struct err *e);
    bool (*books)(struct store *st, book_fn *fn, void *context, struct err *e);
    /* NULL: there is nothing to check. */
    bool (*check)(struct store *st, check_fn *problem, void *context, struct err *e);
};

bool store_watermarks(struct store *st, size_t report, struct watermarks *watermarks,
                      struct err *e) MUST_CHECK;
/* The newest bucket with counts, among those that begin before `before_ms`. */
bool store_newest(struct store *st, size_t report, int64_t before_ms, struct newest *newest,
                  struct err *e) MUST_CHECK;

/* Lock a snapshot: until this STORE_READ handle is closed, its reads do not see later commits. The writer's
 * log grows meanwhile. In a server: EX_TEMPFAIL while a batch is under way; batches that begin later may be
 * seen. */
bool store_hold(struct store *st, struct err *e) MUST_CHECK;
/* Append to `moment` a text that changes with every batch. Call it before and after reading a whole store:
 * if both texts are equal, all was read as of one moment. EX_TEMPFAIL + retryable: a writer is alive.
 * `left_out` receives a line for each kind of content that this header cannot read. */
bool store_moment(struct store *st, struct text *moment, struct text *left_out, struct err *e) MUST_CHECK;

bool store_scan(struct store *st, const struct scan *scan, scan_fn *fn, void *context,
                struct scan_stats *stats, struct err *e) MUST_CHECK;
/* Read the newest events of days (aggregate/recent.h): scan->sketch gets those of each series and day,
 * packed, as the sketch r->sketch_count. Pre: the report keeps some; the scan is of days. EX_UNAVAILABLE:
 * this kind of store keeps none. */
bool store_recent(struct store *st, const struct scan *scan, void *context, struct scan_stats *stats,
                  struct err *e) MUST_CHECK;
/* A store may have time buckets of a resolution in other places than the one that store_scan() reads. Returns
 * the resolution with whose buckets the n-th such place, from 0, expires; SPAN_COUNT: there is none. These
 * places have the measures without a sketch. */
enum span store_copy(const struct store *st, size_t report, enum span resolution, size_t n);
/* Scan the n-th place of store_copy(). The scan wants no sketches, and names its measures. */
bool store_scan_copy(struct store *st, const struct scan *scan, size_t n, scan_fn *fn, void *context,
                     struct scan_stats *stats, struct err *e) MUST_CHECK;
/* Read rankings without a scan: cached ones, or that of one period that is open. `fn` receives the largest
 * series of each period by the figure, then by key, each with the start of the period; the periods come in
 * any order. The totals of the periods are merged into `total`. *found false: not every period has a
 * ranking that is up to date and long enough; `total` is then partly changed. `fn` was not called for
 * those without; use store_scan(). */
bool store_top(struct store *st, const struct store_top *what, top_fn *fn, void *context,
               struct top_total *total, struct scan_stats *stats, bool *found, struct err *e) MUST_CHECK;
/* Tell the handle the largest series that a scan of a period that goes on found by a count or sum, the
 * largest first, at most STORE_LEARN_MAX. They replace those told before, and help store_top() to find the
 * next answer; nothing depends on them. */
void store_top_learn(struct store *st, size_t report, size_t measure, const uint32_t *series, size_t count);
/* Does it need them? */
bool store_top_learns(const struct store *st);
bool store_series_find(struct store *st, size_t report, struct slice key, uint32_t *series, bool *found,
                       struct err *e) MUST_CHECK;
/* Adds the key of a series to `key`: STORE_OTHER_KEY for `other`; EX_DATAERR: there is no such series. */
bool store_series_key(struct store *st, size_t report, uint32_t series, struct text *key,
                      struct err *e) MUST_CHECK;
/* Walk all series but `other`, in any order. */
bool store_series_each(struct store *st, size_t report, series_fn *fn, void *context,
                       struct err *e) MUST_CHECK;
/* Walk at least the series with these texts, by dimension (a NULL pointer: any). `fn` may get others, too. */
bool store_series_like(struct store *st, size_t report, const struct slice *values, series_fn *fn,
                       void *context, struct err *e) MUST_CHECK;
/* Walk the texts of a dimension that begin with `prefix`: the first `limit` of them, sorted by byte, each
 * once. The series `other` has none. */
bool store_values(struct store *st, size_t report, size_t dimension, struct slice prefix, size_t limit,
                  value_fn *fn, void *context, struct err *e) MUST_CHECK;
bool store_positions(struct store *st, position_fn *fn, void *context, struct err *e) MUST_CHECK;
bool store_books(struct store *st, book_fn *fn, void *context, struct err *e) MUST_CHECK;

/* Check everything that is stored against the store's own checksums and structure. It reads the whole
 * store. `problem` receives each damage as a line, and the call still succeeds. It fails if the store cannot
 * be read at all. */
bool store_check(struct store *st, check_fn *problem, void *context, struct err *e) MUST_CHECK;
