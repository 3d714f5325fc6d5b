/* store.h - the interface to stored counts. SQLite, MongoDB and an in-memory model implement it. Writers,
 * queries, jobs and checks call it. Every function with a struct err may fail (see Errors).
 *
 * Promise: store_apply() is durable, and exact whatever crashes. A batch's deltas, offsets and books are all
 *          stored, or none is. In a server, readers may see them arrive one by one, and the next writer
 *          finishes what a crashed writer began. A batch is applied only if each of its ranges continues the
 *          stored position (`from` equals the partition's `next`), so nothing is counted twice. A new
 *          partition may begin anywhere.
 * Series : a handle names each series of a report by a number, from 1, for as long as it is open. A number
 *          is valid only after a call has returned it. Number 0 is the series `other`: it takes the counts of
 *          new series once `report.series_max` exist.
 * Expiry : a report may limit how long it keeps the time buckets of each resolution (keep.h). The store has
 *          an *expiry watermark* for each resolution (struct marks). First a watermark is moved, durably.
 *          From then on scans that begin before it are refused. Then older buckets are deleted, step by step.
 *          So no scan ever takes expired buckets for zeros. A watermark moves back only over time that never
 *          had any events (store_move_back()). A batch leaves out buckets before the watermarks, except those
 *          of months, so that each admitted event is counted. The caller that admits events checks the
 *          watermark of months.
 * Values : rows of a report's columns (measure.h), merged by report_merge().
 * Threads: a handle belongs to one thread. A file has one STORE_WRITE handle (a second one is refused); in a
 *          server a source belongs to the writer that claimed it last. Any number of STORE_READ handles may
 *          read beside it, each call from one snapshot. STORE_WORK is for servers: it reads as a writer does,
 *          and carries out jobs beside any number of others.
 * Raw    : a batch's documents of raw events (batch.h) are stored before the batch, under names of their own.
 *          So a repeated batch stores none twice. Documents that a server refuses are counted as such; their
 *          events are counted all the same.
 * Spans  : resolutions are minutes to months. A report may count seconds, too (report_cell()); a store may
 *          refuse such a report.
 * Errors : EX_TEMPFAIL + retryable: another process holds the lock. EX_TEMPFAIL: another writer took over,
 *          and the batch was dropped; resume from the positions of store_claim(). EX_IOERR: disk full, I/O
 *          error (retryable). EX_DATAERR: damaged, or a range that does not continue. EX_CONFIG: another
 *          definition of a report under the same name and generation, or another writer beside which this
 *          one must not count. (EX_TEMPFAIL while it is opened: the other writer may end.) EX_NOINPUT: the
 *          store to read does not exist. EX_UNAVAILABLE + retryable, from a scan: a watermark was moved past
 *          its begin; call store_marks() again.
 */
#pragma once

#include "aggregate/batch.h"
#include "aggregate/raw.h"
#include "aggregate/report.h"
#include "base/civil.h"
#include "base/err.h"
#include "base/text.h"
#include "store/prealloc.h"

enum store_mode { STORE_READ, STORE_WRITE, STORE_WORK };

#define STORE_SERIES_OTHER 0
#define STORE_OTHER_KEY    "(other)" /* the key shown for the series `other` */

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

struct scan {
    size_t report;          /* index in store.reports */
    enum span slot;         /* resolution of the time buckets to read */
    int64_t from_ms, to_ms; /* both at starts of time buckets */
    struct series_set series;
    uint64_t rows_max; /* limit of rows read; beyond it EX_UNAVAILABLE, "too many rows" */
    uint32_t measures; /* bit per measure that the caller reads; other columns may be 0; none: all */
};

/* A request for the cached ranking of an hour, day or month of UTC. */
struct store_top {
    size_t report, measure; /* the measure is a count or a sum */
    enum span span;         /* length of the ranked periods */
    int64_t from_ms, to_ms; /* starts of periods; with a limit, exactly one period */
    uint64_t limit;         /* number of series wanted; 0: only the total is wanted */
};

/* Work of scans; each scan adds to it. */
struct scan_stats {
    uint64_t rows;  /* rows (documents) read */
    uint64_t bytes; /* bytes of their bodies */
};

/* May be called several times for one (series, slot); the caller merges the values. */
typedef void scan_fn(void *context, uint32_t series, int64_t slot_ms, const int64_t *values);
typedef bool series_fn(void *context, uint32_t series, struct slice key); /* false ends the walk */
typedef bool value_fn(void *context, struct slice value);                 /* false ends the walk */
typedef bool position_fn(void *context, const struct position *position); /* false ends the walk */
/* `report` is "" for entries of the source itself; `source` is "" for entries of the report itself. Entries
 * beside those of books.h:
 *   report, source  since, until    the offsets between which the report counts this source
 *                   gap.FROM        the offset up to which it did not count, from FROM: not configured then
 *   report          other           events counted in the series `other` (store_cell_count())
 *                   expired.SPAN    the expiry watermark of a resolution, in ms
 *                   late.SPAN       events that came after their time bucket of the resolution had expired
 *   source          latest.FROM.MS  from FROM up to this offset, events later than MS were rejected as in
 *                                   the future; the entry exists only if there were some */
typedef bool book_fn(void *context, const char *source, const char *partition, const char *report,
                     const char *entry, int64_t value);

/* Expiry watermarks of a report. Watermarks of shorter resolutions are not before those of longer ones. Each
 * is a start of the next longer resolution (keep_from()), or of the longer period that a store deletes as a
 * whole. */
struct marks {
    int64_t before_ms[SPAN_COUNT]; /* time buckets that begin before this have expired; 0: none has */
};

/* The newest time bucket in which a report has counts: an hour, or a day or month if the store knows no
 * hours. */
struct newest {
    enum span span;
    int64_t start_ms;  /* start of the bucket; -1: the report has no counts */
    int64_t before_ms; /* start of the newest earlier bucket that has counts; -1: there is none */
};

/* Work of one call of store_expire(). */
struct expired {
    uint64_t rows, bytes; /* rows (documents) deleted, and their bytes if the store can tell */
    bool more;            /* whether the call ended before all was done */
};

/* The server's answer to damaged documents from other programs. */
enum store_validation { VALIDATION_OFF, VALIDATION_WARN, VALIDATION_ERROR };

/* Identity of a writer, for other writers to the same server. Borrowed until the store is closed. */
struct store_writer {
    const char *group, *instance; /* Kafka consumer group and instance; NULL: none */
    const char *topics[RAW_SOURCES_MAX];
    size_t topic_count;
};

/* Options of a writer, which some stores support; zeros: none. */
struct store_options {
    struct store_writer writer;
    enum store_validation validation;
    size_t connections;      /* connections to a server over which a batch is applied; 0: store's choice */
    bool without_indexes;    /* whether to make only the indexes that the store itself needs */
    bool with_unsafe_writes; /* whether the server may lose acknowledged writes; else that is EX_CONFIG */
    bool ttl;                /* whether the server expires documents. MongoDB only: EX_CONFIG elsewhere */
    bool weeks;              /* whether documents of weeks are wanted */
    enum weekday week_start; /* first day of the weeks */
    struct prealloc_options prealloc;
    /* By source number: the raw events to store beside the counts; NULL: none. Borrowed. MongoDB only:
     * EX_CONFIG elsewhere. */
    const struct raw *raws[RAW_SOURCES_MAX];
    size_t raw_count;
};

struct store;

/* A job: roll periods that are over up into documents of longer periods, or rank them. */
struct store_roll {
    bool now;               /* whether to include periods that are not over, and to ignore `quiet_ms` */
    int64_t quiet_ms;       /* time for which a period must have been seen unwritten; 0: none */
    bool dry;               /* whether to report the work without doing it */
    int64_t from_ms, to_ms; /* range to do again, whether or not it was done; from_ms < 0: none */
    bool weeks;             /* whether to make documents of weeks, too, as in struct store_options */
    enum weekday week_start;
    /* Deadline, monotonic: after it no report starts another period, except its first. 0: none. */
    int64_t until_ms;
    /* True: the job ends early, without an error. NULL: never. */
    bool (*is_stopped)(void *context);
    /* Another process holds the lease on a report, so this call leaves the report out. NULL: not called. */
    void (*held)(void *context, const char *report, const char *owner);
    /* A period was done, or would be, with so many documents. SPAN_MONTH or SPAN_WEEK; for rankings any. */
    void (*done)(void *context, const char *report, enum span span, int64_t start_ms, uint64_t documents);
    void *context;
};

/* State of a job on one report. Texts are borrowed. */
struct store_job {
    const char *name, *report;
    uint64_t waiting;    /* number of periods to do */
    int64_t last_run_ms; /* time of the last run; 0: never */
    const char *owner;   /* holder of the lease; "": nobody */
};
typedef void job_fn(void *context, const struct store_job *job);
/* Receives one problem, as a line for a person; borrowed. */
typedef void check_fn(void *context, const char *problem);

struct store_ops {
    void (*close)(struct store *st);
    bool (*meet)(struct store *st, struct err *e); /* NULL: there is only one writer at a time */
    bool (*claim)(struct store *st, struct range *ranges, size_t count, struct err *e);
    bool (*apply)(struct store *st, const struct batch *batch, struct err *e);
    bool (*tidy)(struct store *st, bool all, struct err *e);
    bool (*expire)(struct store *st, int64_t now_ms, bool trusts_clock, struct expired *expired,
                   struct err *e);
    bool (*marks)(struct store *st, size_t report, struct marks *marks, struct err *e);
    bool (*newest)(struct store *st, size_t report, int64_t before_ms, struct newest *newest, struct err *e);
    bool (*move_back)(struct store *st, size_t report, int64_t now_ms, struct err *e);
    /* The length of the periods in which time buckets of a resolution expire. NULL: as keep_from() says. */
    enum span (*goes_by)(const struct report *r, enum span span);
    bool (*hold)(struct store *st, struct err *e);
    bool (*scan)(struct store *st, const struct scan *scan, scan_fn *fn, void *context,
                 struct scan_stats *stats, struct err *e);
    /* NULL: each time bucket is stored in one place. */
    enum span (*copy)(const struct store *st, size_t report, enum span slot, size_t n);
    bool (*scan_copy)(struct store *st, const struct scan *scan, size_t n, scan_fn *fn, void *context,
                      struct scan_stats *stats, struct err *e);
    /* NULL: the store caches no rankings. */
    bool (*top)(struct store *st, const struct store_top *what, scan_fn *fn, void *context, int64_t *total,
                struct scan_stats *stats, bool *found, struct err *e);
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
    /* NULL: batches do the work of jobs. */
    bool (*roll)(struct store *st, const struct store_roll *what, struct err *e);
    bool (*rank)(struct store *st, const struct store_roll *what, struct err *e);
    bool (*jobs)(struct store *st, job_fn *fn, void *context, struct err *e);
};

struct store {
    const struct store_ops *ops;
    const struct report *reports; /* reports in the store, each in its current generation; owned */
    size_t report_count;
    bool is_shared;                   /* whether writers of other partitions may count beside this one */
    struct prealloc_figures prealloc; /* a writer's figures after its last batch */
    struct raw_figures *raws; /* a writer's figures of each source with raw events, after its last batch */
    size_t raw_count;
};

void store_close(struct store *st);
/* The URL without user and password, so that it may be shown. */
#define STORE_URL_BYTES 256
const char *store_show(const char *url, char buf[STORE_URL_BYTES]);

/* May this writer continue beside the other writers of the same server? The store asks by itself now and
 * then; call it before a consumer group is joined. EX_CONFIG: no; the error names the other writer. */
bool store_meet(struct store *st, struct err *e) MUST_CHECK;
/* Make partitions, named by `source` and `partition` of their ranges, this handle's own: their former writer
 * can no longer count them. `from` and `to` become the offset up to which the partition is counted; -1: it
 * was never counted. Tail, latest_ms and label become those of the last range. Without a claim, the first
 * batch with a range of a partition makes it. */
bool store_claim(struct store *st, struct range *ranges, size_t count, struct err *e) MUST_CHECK;
/* Apply all of a batch or nothing; durable on return. Parts may be given back to their shards afterwards. */
bool store_apply(struct store *st, const struct batch *batch, struct err *e) MUST_CHECK;
/* Compaction between batches, bounded in time: fold fresh rows into rows of longer buckets; in a server,
 * delete batch logs. `all`: leave none, however long it takes. */
bool store_tidy(struct store *st, bool all, struct err *e) MUST_CHECK;

/* Move the expiry watermarks to what reports keep at `now_ms`. Delete some of the buckets before them, for
 * little longer than STORE_EXPIRE_MS. The caller that admits events must read the watermarks before the next
 * batch. Expiry is irreversible: the caller takes `now_ms` from event_time.h. Unless `trusts_clock`, the
 * caller must also keep watermarks from leaping. The store then moves the newest period of raw events by one
 * period at most. */
#define STORE_EXPIRE_MS 30
bool store_expire(struct store *st, int64_t now_ms, bool trusts_clock, struct expired *expired,
                  struct err *e) MUST_CHECK;
bool store_marks(struct store *st, size_t report, struct marks *marks, struct err *e) MUST_CHECK;
/* The newest bucket with counts, among those that begin before `before_ms`. */
bool store_newest(struct store *st, size_t report, int64_t before_ms, struct newest *newest,
                  struct err *e) MUST_CHECK;
/* Move back a report's expiry watermarks that are ahead of its events. They move to the end of the newest
 * hour or day that has events, since nothing behind it was deleted or left out yet. In a server they also
 * stay ahead of the clock by a margin, since other daemons may have read events by the old watermarks. They
 * never move before the time from which the report keeps buckets at `now_ms`. The caller must know that the
 * watermarks are wrong. */
bool store_move_back(struct store *st, size_t report, int64_t now_ms, struct err *e) MUST_CHECK;

/* Lock a snapshot: until this STORE_READ handle is closed, its reads do not see later commits. The writer's
 * log grows meanwhile. In a server: EX_TEMPFAIL while a batch is under way; batches that begin later may be
 * seen. */
bool store_hold(struct store *st, struct err *e) MUST_CHECK;

bool store_scan(struct store *st, const struct scan *scan, scan_fn *fn, void *context,
                struct scan_stats *stats, struct err *e) MUST_CHECK;
/* A store may have time buckets of a resolution in other places than the one that store_scan() reads. Returns
 * the resolution with whose buckets the n-th such place, from 0, expires; SPAN_COUNT: there is none. */
enum span store_copy(const struct store *st, size_t report, enum span slot, size_t n);
/* Scan the n-th place of store_copy(). */
bool store_scan_copy(struct store *st, const struct scan *scan, size_t n, scan_fn *fn, void *context,
                     struct scan_stats *stats, struct err *e) MUST_CHECK;
/* Read a cached ranking. `fn` receives the largest series of one period by value, then by key, each with the
 * columns of the measure. The sums over all series and periods are merged into `total`. *found false: no
 * ranking that is up to date is cached, and `fn` was not called; use store_scan(). */
bool store_top(struct store *st, const struct store_top *what, scan_fn *fn, void *context, int64_t *total,
               struct scan_stats *stats, bool *found, struct err *e) MUST_CHECK;
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

/* Roll up, on a STORE_WORK handle. Reports whose lease another process holds are left out. */
bool store_roll(struct store *st, const struct store_roll *what, struct err *e) MUST_CHECK;
bool store_roll_has_time(const struct store_roll *what);
/* Rank periods that are over, for store_top(). `done` receives the number of series. */
bool store_rank(struct store *st, const struct store_roll *what, struct err *e) MUST_CHECK;
bool store_has_jobs(const struct store *st);
bool store_jobs(struct store *st, job_fn *fn, void *context, struct err *e) MUST_CHECK;

/* The number that a cell of the series `other` adds to the book entry `other`: the cell's first count, or 1
 * in a report without counts. */
static inline int64_t store_cell_count(const struct report *r, const struct cell *c)
{
    for (size_t i = 0; i < r->measure_count; i++) {
        if (r->measures[i].kind == MEASURE_COUNT)
            return c->value[r->measures[i].column];
    }
    return 1;
}

/* Sets *end_ms to the end of the newest hour (day, month) with counts that begins before `before_ms`; 0:
 * there is none. */
bool store_newest_end(struct store *st, size_t report, const struct marks *marks, int64_t before_ms,
                      int64_t *end_ms, struct err *e) MUST_CHECK;
/* Lower a report's expiry watermarks to `safe_ms`, rounded up, but not below the time from which it keeps
 * buckets at `now_ms`. True: one moved. */
bool store_lower_marks(const struct store *st, const struct report *r, int64_t safe_ms, int64_t now_ms,
                       struct marks *marks);
/* Count a batch's events whose time bucket of each resolution has expired: they count in longer resolutions
 * only. Cells count by store_cell_count(). Events too late for months are not admitted to a batch. False:
 * there are no late events. */
bool store_late(const struct store *st, size_t report, const struct marks *marks, const struct batch *batch,
                int64_t late[SPAN_COUNT]);
/* The name of their entry in the books: "late.minute". */
#define STORE_ENTRY_BYTES 64
const char *store_late_entry(enum span span, char buf[STORE_ENTRY_BYTES]);

/* Refuse a scan that begins before the expiry watermark of its resolution. */
bool store_check_mark(const struct scan *scan, const struct marks *marks, struct err *e) MUST_CHECK;
/* Raise a report's expiry watermarks to where they must be at `now_ms`, if it keeps time buckets of each
 * resolution for `keep_ms` (0: for ever). It lowers none. True: one moved. */
bool store_move_marks(const struct store *st, const struct report *r, const int64_t keep_ms[SPAN_COUNT],
                      int64_t now_ms, struct marks *marks);

const char *store_gap_entry(int64_t from, char buf[STORE_ENTRY_BYTES]);
const char *store_latest_entry(const struct range *r, char buf[STORE_ENTRY_BYTES]);

/* The index of a report by its name; -1: there is none. */
int store_find_report(const struct store *st, struct slice name);
