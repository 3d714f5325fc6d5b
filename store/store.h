/* store.h - where counts live: one seam, several stores: SQLite, MongoDB, the in-memory model.
 *
 * Promise: store_apply() is durable, and exact whatever crashes: deltas, offsets and books of a batch are
 *          all there or none is (in a server, readers may see them come one by one; whoever goes on
 *          finishes what was begun). A batch is applied only where each of its ranges continues what is
 *          stored (`from` equals the partition's `next`; of a new one it may be anything), so nothing is
 *          counted twice.
 * Series : a handle names each series of a report by a number, from 1, for as long as it is open; a
 *          number means nothing before a call has given it. 0 is the series `other`, which takes what
 *          arrives for new series once `report.series_max` exist.
 * Expiry : a report need not keep the slots of each span for ever (keep.h). How far those of a span are gone
 *          is in the store: its *marks*. First a mark is moved, durably; from then on scans
 *          that begin before it are refused; then what lies before it is deleted, step by step. So no scan
 *          ever takes what is gone for zeros. A mark moves back only over time that never had any events
 *          (store_move_back()). A batch leaves slots before the marks out, except those of
 *          months, so that what was let into it is counted: who lets events in looks at the mark of months.
 * Values : rows of a report's columns (measure.h), merged by report_merge().
 * Threads: a handle belongs to one thread. STORE_WRITE exists once per file (a second one is refused); in
 *          a server a source belongs to the writer that took it last. Any number of STORE_READ handles
 *          may read beside it, each call from one snapshot. STORE_WORK is of a server: it reads as a writer
 *          does, and carries out jobs beside any number of others.
 * Raw    : documents of events that a batch brings (batch.h) are stored before it is, under names of their
 *          own, so that a batch that is repeated stores none twice. What is refused of them is counted, and
 *          no reason not to count the events.
 * Spans  : minutes to months; seconds of a report that counts them (report_cell()). A store may refuse
 *          it.
 * Errors : EX_TEMPFAIL + retryable: locked by another; without: another writer took over, and the batch
 *          was dropped: go on from what store_claim() says; EX_IOERR: disk full, I/O error (retryable);
 *          EX_DATAERR: damaged, or a range that does not continue; EX_CONFIG: another definition of a
 *          report under the same name and generation, or another writer that this one must not count beside
 *          (EX_TEMPFAIL as it is opened: that one may end); EX_NOINPUT: a store to read that is not there;
 *          EX_UNAVAILABLE + retryable of a scan: a mark was moved past its begin, ask store_marks() again.
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
#define STORE_OTHER_KEY    "(other)" /* how it is shown */

/* One partition of a source, as far as it has been counted. */
struct position {
    struct range range; /* from = 0, to = next */
};

/* Which series a scan wants. */
struct series_set {
    enum { SERIES_ALL, SERIES_ONE, SERIES_SET } kind;
    uint32_t one;
    const uint64_t *bits; /* SERIES_SET: bit per series number, … */
    uint32_t bits_max;    /* … up to this number, exclusive */
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
    size_t report; /* index in store_reports() */
    enum span slot;
    int64_t from_ms, to_ms; /* both at starts of `slot`s */
    struct series_set series;
    uint64_t rows_max; /* more than this: EX_UNAVAILABLE, "too many rows" */
    uint32_t measures; /* bit per measure whose columns are looked at, others may be 0; none: all */
};

/* What is kept of the rankings of hours, days and months of UTC. */
struct store_top {
    size_t report, measure; /* a count or a sum */
    enum span span;
    int64_t from_ms, to_ms; /* at starts of `span`s; with a limit, of one */
    uint64_t limit;         /* so many series; 0: only the total is wanted */
};

/* A scan adds to it. */
struct scan_stats {
    uint64_t rows;  /* rows (documents) read */
    uint64_t bytes; /* of their bodies */
};

/* May be called several times for one (series, slot); the values are to be merged. */
typedef void scan_fn(void *context, uint32_t series, int64_t slot_ms, const int64_t *values);
typedef bool series_fn(void *context, uint32_t series, struct slice key); /* false ends the walk */
typedef bool value_fn(void *context, struct slice value);                 /* false ends the walk */
typedef bool position_fn(void *context, const struct position *position); /* false ends the walk */
/* `report` is "" for entries of the source itself; `source` is "" for entries of the report itself
 * (`other`: how often a measure's count went to the series `other`). Beside those of books.h there are:
 *   of a report    since, until    the offsets between which it counts this source,
 *                  gap.FROM        but not from FROM to this offset: it was not configured then
 *                  expired.SPAN   the mark of the span, of the report itself
 *                  late.SPAN      events that came when the mark was behind their slot of the span, of the
 *                                 report itself
 *   of a source    latest.FROM.MS  up to this offset, events of FROM and behind it that were later than MS
 *                                  were in the future; only where there were some */
typedef bool book_fn(void *context, const char *source, const char *partition, const char *report,
                     const char *entry, int64_t value);

/* Of each span, slots that begin before this are gone; 0: none. Marks of shorter spans are not before those
 * of longer ones; they are starts of the next longer span, as keep_from() says, or where a store
 * keeps more than that together, of that. */
struct marks {
    int64_t before_ms[SPAN_COUNT];
};

/* The newest time bucket in which a report has counts: of hours, or of days or months where the store does
 * not know better. */
struct newest {
    enum span span;
    int64_t start_ms;  /* -1: the report has no counts */
    int64_t before_ms; /* start of the newest bucket before it that has counts, too; -1: there is none */
};

/* What a call of store_expire() deleted. */
struct expired {
    uint64_t rows, bytes; /* rows (documents), and what was in them, where the store can tell */
    bool more;            /* there is more to do: it stopped because its time was over */
};

/* What a server does with documents that others have damaged. */
enum store_validation { VALIDATION_OFF, VALIDATION_WARN, VALIDATION_ERROR };

/* Who a writer is to others that count into the same server. Borrowed until it is closed. */
struct store_writer {
    const char *group, *instance; /* of Kafka; NULL: none */
    const char *topics[RAW_SOURCES_MAX];
    size_t topic_count;
};

/* What a writer may ask for of some stores; zeros: nothing. */
struct store_options {
    struct store_writer writer;
    enum store_validation validation;
    size_t connections;      /* to a server, over which a batch is applied; 0: as the store likes */
    bool without_indexes;    /* but those that it needs itself */
    bool with_unsafe_writes; /* what a server acknowledges may be lost: else EX_CONFIG */
    bool ttl;                /* the server ends documents. Only MongoDB's: EX_CONFIG elsewhere */
    bool weeks;              /* documents of weeks are wanted, … */
    enum weekday week_start; /* … which begin on this day */
    struct prealloc_options prealloc;
    /* By number of their source, what is to be kept of its events beside what is counted; NULL: nothing.
     * Borrowed. Only of MongoDB: EX_CONFIG elsewhere. */
    const struct raw *raws[RAW_SOURCES_MAX];
    size_t raw_count;
};

struct store;

/* What is to be rolled up: periods that are over into the documents of longer ones; or to be ranked. */
struct store_roll {
    bool now;               /* also periods that are not over, … */
    int64_t quiet_ms;       /* … or none before it was seen unwritten for so long; 0: at once */
    bool dry;               /* say it, and do nothing */
    int64_t from_ms, to_ms; /* again what is within, whether or not it was done; from_ms < 0: nothing */
    bool weeks;             /* also documents of weeks, as in struct store_options */
    enum weekday week_start;
    int64_t
        until_ms; /* monotonic: then each report begins nothing more, but what it did not begin; 0: never */
    /* True: it ends where it is, which is no failure. NULL: never. */
    bool (*is_stopped)(void *context);
    /* Another has a report in hand, and it is left to that. NULL: nobody wants to know. */
    void (*held)(void *context, const char *report, const char *owner);
    /* One period (SPAN_MONTH, SPAN_WEEK; of a ranking any) was done, or would be, with so many documents. */
    void (*done)(void *context, const char *report, enum span span, int64_t start_ms, uint64_t documents);
    void *context;
};

/* How a job stands, of one report. Texts are borrowed. */
struct store_job {
    const char *name, *report;
    uint64_t waiting;    /* periods */
    int64_t last_run_ms; /* 0: never */
    const char *owner;   /* who has it in hand; "": nobody */
};
typedef void job_fn(void *context, const struct store_job *job);
/* What is wrong, as a line for a person, borrowed. */
typedef void check_fn(void *context, const char *problem);

struct store_ops {
    void (*close)(struct store *st);
    bool (*meet)(struct store *st, struct err *e); /* NULL: a writer is always alone */
    bool (*claim)(struct store *st, struct range *ranges, size_t count, struct err *e);
    bool (*apply)(struct store *st, const struct batch *batch, struct err *e);
    bool (*tidy)(struct store *st, bool all, struct err *e);
    bool (*expire)(struct store *st, int64_t now_ms, bool trusts_clock, struct expired *expired,
                   struct err *e);
    bool (*marks)(struct store *st, size_t report, struct marks *marks, struct err *e);
    bool (*newest)(struct store *st, size_t report, int64_t before_ms, struct newest *newest, struct err *e);
    bool (*move_back)(struct store *st, size_t report, int64_t now_ms, struct err *e);
    /* What is kept together with slots of a span, and goes together. NULL: as keep_from() says. */
    enum span (*goes_by)(const struct report *r, enum span span);
    bool (*hold)(struct store *st, struct err *e);
    bool (*scan)(struct store *st, const struct scan *scan, scan_fn *fn, void *context,
                 struct scan_stats *stats, struct err *e);
    /* NULL where slots are in one place each. */
    enum span (*copy)(const struct store *st, size_t report, enum span slot, size_t n);
    bool (*scan_copy)(struct store *st, const struct scan *scan, size_t n, scan_fn *fn, void *context,
                      struct scan_stats *stats, struct err *e);
    /* NULL where nothing is kept. */
    bool (*top)(struct store *st, const struct store_top *what, scan_fn *fn, void *context, int64_t *total,
                struct scan_stats *stats, bool *found, struct err *e);
    bool (*series_find)(struct store *st, size_t report, struct slice key, uint32_t *series, bool *found,
                        struct err *e);
    bool (*series_key)(struct store *st, size_t report, uint32_t series, struct text *key, struct err *e);
    bool (*series_each)(struct store *st, size_t report, series_fn *fn, void *context, struct err *e);
    /* NULL where a walk over all series is as good. */
    bool (*series_like)(struct store *st, size_t report, const struct slice *values, series_fn *fn,
                        void *context, struct err *e);
    /* values_walk() (values.h) where the store has nothing better. */
    bool (*values)(struct store *st, size_t report, size_t dimension, struct slice prefix, size_t limit,
                   value_fn *fn, void *context, struct err *e);
    bool (*positions)(struct store *st, position_fn *fn, void *context, struct err *e);
    bool (*books)(struct store *st, book_fn *fn, void *context, struct err *e);
    /* NULL where there is nothing to check. */
    bool (*check)(struct store *st, check_fn *problem, void *context, struct err *e);
    /* NULL where batches do what jobs are for. */
    bool (*roll)(struct store *st, const struct store_roll *what, struct err *e);
    bool (*rank)(struct store *st, const struct store_roll *what, struct err *e);
    bool (*jobs)(struct store *st, job_fn *fn, void *context, struct err *e);
};

struct store {
    const struct store_ops *ops;
    const struct report *reports; /* what it holds, current generation of each; owned by the store */
    size_t report_count;
    bool is_shared;                   /* other writers may count beside this one, each its partitions */
    struct prealloc_figures prealloc; /* of a writer, as of the last batch applied */
    struct raw_figures *raws;         /* the same, of each source whose events are kept */
    size_t raw_count;
};

void store_close(struct store *st);
/* The URL as it may be shown: without user and password. */
#define STORE_URL_BYTES 256
const char *store_show(const char *url, char buf[STORE_URL_BYTES]);

/* May this writer go on beside those that count into the same server by now? It is asked of itself now and
 * then; ask before a consumer group is joined. EX_CONFIG: no, and who it is. */
bool store_meet(struct store *st, struct err *e) MUST_CHECK;
/* Make partitions, named by `source` and `partition` of their ranges, this handle's own: whoever had them
 * counts nothing of them any more. Of each, `from` and `to` become how far it is counted, -1 where nothing of
 * it ever was; tail, latest_ms and label are those of the last range. Without a claim, the first batch with a
 * range of a partition makes it. */
bool store_claim(struct store *st, struct range *ranges, size_t count, struct err *e) MUST_CHECK;
/* All or nothing, durable on return. Parts may be given back to their shards afterwards. */
bool store_apply(struct store *st, const struct batch *batch, struct err *e) MUST_CHECK;
/* Housekeeping between batches, bounded in time: fold fresh rows into closed ones. `all`: leave none. */
bool store_tidy(struct store *st, bool all, struct err *e) MUST_CHECK;

/* Housekeeping, too: move the marks to what reports keep at `now_ms`, and delete some of what is before them,
 * for not much longer than STORE_EXPIRE_MS. Whoever lets events in is to know the marks before the next
 * batch. Expiry is irreversible: the caller takes `now_ms` from event_time.h, and unless the clock is trusted
 * sees to it that no mark leaps; the store, that no newest period of raw events does, by more than one. */
#define STORE_EXPIRE_MS 30
bool store_expire(struct store *st, int64_t now_ms, bool trusts_clock, struct expired *expired,
                  struct err *e) MUST_CHECK;
bool store_marks(struct store *st, size_t report, struct marks *marks, struct err *e) MUST_CHECK;
/* Of buckets that begin before a time. */
bool store_newest(struct store *st, size_t report, int64_t before_ms, struct newest *newest,
                  struct err *e) MUST_CHECK;
/* Move marks of a report that are ahead of its events back to where nothing was deleted or left out yet: the
 * end of the newest hour or day that has events, in a server not before events may come that others have
 * read already. Never before what reports need not keep at `now_ms`. The caller knows that the marks are
 * wrong. */
bool store_move_back(struct store *st, size_t report, int64_t now_ms, struct err *e) MUST_CHECK;

/* All further reads of this STORE_READ handle, until it is closed, are of one snapshot: what a writer commits
 * meanwhile is not seen. Its log grows for so long. In a server: EX_TEMPFAIL while a batch is under way
 * there; what is begun later may be seen. */
bool store_hold(struct store *st, struct err *e) MUST_CHECK;

bool store_scan(struct store *st, const struct scan *scan, scan_fn *fn, void *context,
                struct scan_stats *stats, struct err *e) MUST_CHECK;
/* The n-th place, from 0, that has slots of this span beside the one that store_scan() reads: with the
 * slots of which span it goes; SPAN_COUNT: there is none. */
enum span store_copy(const struct store *st, size_t report, enum span slot, size_t n);
/* … and what is there. */
bool store_scan_copy(struct store *st, const struct scan *scan, size_t n, scan_fn *fn, void *context,
                     struct scan_stats *stats, struct err *e) MUST_CHECK;
/* The largest series of one period by value, then by key, each with the columns of the measure; and what all
 * series have counted in all periods, merged into `total`. *found false: it is not kept, or not as it is by
 * now, and nothing was handed on: store_scan() tells it. */
bool store_top(struct store *st, const struct store_top *what, scan_fn *fn, void *context, int64_t *total,
               struct scan_stats *stats, bool *found, struct err *e) MUST_CHECK;
bool store_series_find(struct store *st, size_t report, struct slice key, uint32_t *series, bool *found,
                       struct err *e) MUST_CHECK;
/* Adds the key of a series to `key`: STORE_OTHER_KEY for `other`; EX_DATAERR where there is no such series.
 */
bool store_series_key(struct store *st, size_t report, uint32_t series, struct text *key,
                      struct err *e) MUST_CHECK;
/* All but `other`, in any order. */
bool store_series_each(struct store *st, size_t report, series_fn *fn, void *context,
                       struct err *e) MUST_CHECK;
/* At least those with these texts, by dimension (a NULL pointer: any); there may be others among them. */
bool store_series_like(struct store *st, size_t report, const struct slice *values, series_fn *fn,
                       void *context, struct err *e) MUST_CHECK;
/* The texts of a dimension that begin with `prefix`: the least `limit` of them, sorted by byte, each once.
 * `other` has none. */
bool store_values(struct store *st, size_t report, size_t dimension, struct slice prefix, size_t limit,
                  value_fn *fn, void *context, struct err *e) MUST_CHECK;
bool store_positions(struct store *st, position_fn *fn, void *context, struct err *e) MUST_CHECK;
bool store_books(struct store *st, book_fn *fn, void *context, struct err *e) MUST_CHECK;

/* Check everything that is stored against the store's own checksums and structure. It reads the whole
 * store. Damage is handed to `problem`, a line each, and is no failure; a store that cannot be read at all
 * is one. */
bool store_check(struct store *st, check_fn *problem, void *context, struct err *e) MUST_CHECK;

/* Of a STORE_WORK handle. What another has in hand is left to it. */
bool store_roll(struct store *st, const struct store_roll *what, struct err *e) MUST_CHECK;
bool store_roll_has_time(const struct store_roll *what);
/* The same of rankings, for store_top(): `done` tells of how many series. */
bool store_rank(struct store *st, const struct store_roll *what, struct err *e) MUST_CHECK;
bool store_has_jobs(const struct store *st);
bool store_jobs(struct store *st, job_fn *fn, void *context, struct err *e) MUST_CHECK;

/* What a cell that goes to the series `other` adds to its report's book entry `other`: its first count,
 * or 1 in a report without one. */
static inline int64_t store_cell_count(const struct report *r, const struct cell *c)
{
    for (size_t i = 0; i < r->measure_count; i++) {
        if (r->measures[i].kind == MEASURE_COUNT)
            return c->value[r->measures[i].column];
    }
    return 1;
}

/* The end of the newest hour (day, month) with counts that begins before a time; 0: there is none. */
bool store_newest_end(struct store *st, size_t report, const struct marks *marks, int64_t before_ms,
                      int64_t *end_ms, struct err *e) MUST_CHECK;
/* Where marks are to be that are behind `safe_ms`. True: one moved. */
bool store_lower_marks(const struct store *st, const struct report *r, int64_t safe_ms, int64_t now_ms,
                       struct marks *marks);
/* Of a batch, the events that come too late for the slots of a span, since these have expired: they are
 * counted in longer spans only. Events are told as by store_cell_count(); those too late for months are not
 * let into a batch. False: there are none. */
bool store_late(const struct store *st, size_t report, const struct marks *marks, const struct batch *batch,
                int64_t late[SPAN_COUNT]);
/* Under what name books have them: "late.minute". */
#define STORE_ENTRY_BYTES 64
const char *store_late_entry(enum span span, char buf[STORE_ENTRY_BYTES]);

/* A scan that begins before the mark of its slots is refused, with these words. */
bool store_check_mark(const struct scan *scan, const struct marks *marks, struct err *e) MUST_CHECK;
/* Where the marks of a report are to be at `now_ms` if slots of each span are kept for so long, 0: for ever.
 * Never back. True: one moved. */
bool store_move_marks(const struct store *st, const struct report *r, const int64_t keep_ms[SPAN_COUNT],
                      int64_t now_ms, struct marks *marks);

const char *store_gap_entry(int64_t from, char buf[STORE_ENTRY_BYTES]);
const char *store_latest_entry(const struct range *r, char buf[STORE_ENTRY_BYTES]);

/* -1 where there is none of that name. */
int store_find_report(const struct store *st, struct slice name);
