/* mongo/handle/report.h - what a handle of MongoDB knows of one report: its name in the database, its series,
 * how far it has expired, is swept and is rolled up. The handle owns it, so one thread at a time uses it.
 */
#pragma once

#include "store/common/series_map.h"
#include "store/mongo/handle/kind.h"
#include "store/mongo/handle/names.h"
#include "store/reader.h"

#include <bson/bson.h>

/* a collection: "pages~2.month", "pages~2.latency.month" */
#define MONGO_NAME_BYTES  (REPORT_NAME_BYTES + MEASURE_NAME_BYTES + 24)
#define MONGO_OWNER_BYTES 80

/* The ages at which the server may delete documents: mongo/job/ttl.h. */
struct mongo_ttl {
    int64_t age_ms[SPAN_COUNT]; /* buckets older than this may be deleted; 0: no bucket */
    int64_t since_ms;           /* last change of an index, by the server's clock; 0: never */
};

/* The version stamps of a month or week: mongo/doc/version_stamps.h. */
struct mongo_version_stamp {
    int64_t start_ms; /* of the month or week */
    int64_t written, rolled;
};

struct mongo_version_stamps {
    int64_t read_ms; /* when they were read, by the monotonic clock */
    bool has_begun;  /* all periods with counts are stamped */
    bool is_stale;   /* `stale` of mongo/doc/version_stamps.h */
    char start[16];  /* first day of weeks, a weekday's name, or "" */
    int64_t fence;
    int64_t last_run_ms, until_ms; /* last run of the job; end of the lease */
    char owner[MONGO_OWNER_BYTES];
    struct mongo_version_stamp *list; /* sorted by time */
    size_t count, capacity;
};

#define MONGO_GROUPS 512 /* of series, by hash: mongo/live/groups.h */

/* The series that are likely the largest of an open period: mongo/live/hints.h. */
struct mongo_hints {
    uint32_t learned[STORE_LEARN_MAX]; /* from the last scan, the largest first */
    size_t learned_count;
    uint32_t *listed; /* from cached rankings, likewise */
    size_t listed_count, listed_capacity;
    int64_t asked_ms;             /* when the rankings were read, by the monotonic clock; 0: never */
    uint32_t *series;             /* all of them by group, the likeliest of a group first */
    uint32_t first[MONGO_GROUPS]; /* index in `series` of each group's first one */
    uint32_t end[MONGO_GROUPS];   /* index behind its last one */
};

/* A period that waits for a job, as this process has last seen it: mongo/job/waits.h. */
struct mongo_wait {
    enum span span;
    int64_t start_ms, end_ms;
    int64_t written;           /* its version stamp */
    int64_t first_ms, seen_ms; /* monotonic: since when it waits; since when `written` is the same */
};

struct mongo_waits {
    struct mongo_wait *list; /* sorted by resolution and time */
    size_t count, capacity;
};

struct mongo_report {
    /* Name of its collections, and its key in `reports`, `books` and `jobs`: "pages", "pages~2"; or the name
     * that it had before it took another report's place (mongo/job/replace.h). */
    char key[MONGO_NAME_BYTES];
    struct mongo_names names;
    int plain; /* the measure whose counts have no name of their own; -1: none */
    char fields[REPORT_MEASURES_MAX][MEASURE_NAME_BYTES + 2]; /* prefix of a measure's fields: "bytes." */
    char dimensions[REPORT_DIMENSIONS_MAX]
                   [3 * sizeof(((struct dimension *)0)->name) + 16]; /* "metadata.path" */
    struct series_map map;
    int64_t series_found; /* series in the database when the writer opened it; -1: not asked yet */
    bool has_all_names;   /* `names` has every series of the database */
    bool has_zeros;       /* documents may hold buckets of zeros in which nothing was counted */
    bool is_decimal;      /* numbers with fractions are decimals: mongo/doc/decimal.h */
    uint32_t first_written[MONGO_KINDS_MAX]; /* first bucket written, as in mongo_name.written */
    struct watermarks watermarks;            /* known watermarks; updates leave out buckets before them */
    int64_t known_ms;                        /* when `watermarks` last changed, by the monotonic clock */
    int64_t asked_ms;                        /* when they were last read, by the monotonic clock; 0: never */
    struct mongo_version_stamps *rolled;     /* stamps for reading: mongo/doc/months.c; NULL: not read yet */
    /* periods that wait, of a worker: for each roll-up, then for rankings */
    struct mongo_waits waits[MONGO_TARGETS + 1];
    struct mongo_hints *hints[REPORT_MEASURES_MAX]; /* of mongo/live/hints.h; NULL: none yet */
    struct mongo_ttl ttl;                           /* `ttl` of the database when the watermarks were read */
    int64_t waits_since_ms;  /* since when its watermarks wait for roll-ups, monotonic; 0: they do not */
    bool ttl_waits;          /* writer: an index has to change as soon as its age allows it (job/ttl.h) */
    bool ttl_is_told;        /* the operator was warned that the server leaves documents */
    struct watermarks swept; /* before these, a sweep has taken out all expired buckets */
    /* by the length of documents, the last `_id` that a sweep has done; empty: it begins */
    struct text sweep_at[SPAN_WEEK + 1];
};

/* The key of a report that is new in a database: "pages", "pages~2". */
void mongo_report_key(const struct report *r, char key[MONGO_NAME_BYTES]);
/* Reads a report from its document of `reports`. The caller calls report_fini(). EX_DATAERR: it is
 * damaged. */
bool mongo_read_report(const bson_t *document, struct report *r, struct err *e) MUST_CHECK;
/* `key`: the report's in the database; NULL: the report is new. `has_zeros`: documents may hold buckets of
 * zeros. */
void mongo_report_init(struct mongo_report *more, const struct report *r, const char *key, bool has_zeros,
                       bool is_decimal);
void mongo_report_fini(struct mongo_report *more);

/* NULL: the series is `other`. */
static inline const struct slice *mongo_key(const struct mongo_report *more, uint32_t series)
{
    return series == STORE_SERIES_OTHER ? NULL : &mongo_names_at(&more->names, series)->key;
}
