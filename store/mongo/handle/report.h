/* mongo/handle/report.h - what a handle knows of one report: how it is called in the database, its series,
 * and how far it has expired. */
#pragma once

#include "store/mongo/handle/kind.h"
#include "store/mongo/handle/names.h"
#include "store/series_map.h"
#include "store/store.h"

#define MONGO_NAME_BYTES  (REPORT_NAME_BYTES + 24) /* of a collection: "pages~2.month" */
#define MONGO_OWNER_BYTES 32

/* What the server may have ended: mongo/job/ttl.h. */
struct mongo_ttl {
    int64_t age_ms[SPAN_COUNT]; /* slots that are older; 0: none */
    int64_t since_ms;           /* when an index was changed last, by the server's clock; 0: never */
};

/* Which months are in the documents of years, or weeks in theirs: mongo/doc/stamps.h. */
struct mongo_stamp {
    int64_t start_ms; /* of the month, or week */
    int64_t written, rolled;
};

struct mongo_stamps {
    int64_t read_ms; /* monotonic: when they were asked for */
    bool has_begun;  /* all periods with counts are stamped */
    bool is_stale;   /* see `stale` */
    char start[16];  /* of weeks: a weekday's name, or "" */
    int64_t fence;
    int64_t last_run_ms, until_ms; /* of the lease */
    char owner[MONGO_OWNER_BYTES];
    struct mongo_stamp *list; /* by time */
    size_t count, capacity;
};

struct mongo_report {
    char key[MONGO_NAME_BYTES]; /* "pages", "pages~2" */
    struct mongo_names names;
    int plain; /* the measure whose counts need no name of their own, or -1 */
    char fields[REPORT_MEASURES_MAX][MEASURE_NAME_BYTES + 2]; /* "bytes." */
    char dimensions[REPORT_DIMENSIONS_MAX]
                   [3 * sizeof(((struct dimension *)0)->name) + 16]; /* "metadata.path" */
    struct series_map map;
    int64_t series_found; /* how many series the database had when it was asked first; -1: not asked yet */
    bool has_all_names;   /* all of them are in `names` */
    bool has_zeros;       /* there may be documents with slots that nothing was counted in, each of zeros */
    uint32_t first_written[MONGO_KINDS_MAX]; /* of each kind, the first bucket, as mongo_name.written */
    struct marks marks;          /* as this handle knows them: what it writes leaves out what is before */
    int64_t known_ms;            /* since when, monotonic */
    int64_t asked_ms;            /* … and when they were asked for last; 0: not yet */
    struct mongo_stamps *rolled; /* for reading: mongo/doc/months.c; NULL: not yet */
    struct mongo_top_look *top_looks; /* of a worker, at rankings that wait: mongo/job/top_job.c */
    size_t top_look_count;
    struct mongo_ttl ttl; /* as the database had it when the marks were read */
    bool ttl_waits;       /* of a writer: `ttl` may become another one when time has passed */
    bool ttl_is_told;     /* that the server ends nothing */
    struct marks swept; /* before these, spans are out of documents that stay, but for those of stragglers */
    struct text sweep_at[MONGO_KINDS_MAX +
                         MONGO_TARGETS]; /* the last document that a sweep has done; empty: it begins */
};

/* "pages", "pages~2" */
void mongo_report_key(const struct report *r, char key[MONGO_NAME_BYTES]);
/* `has_zeros`: its documents may have slots of zeros. */
void mongo_report_init(struct mongo_report *more, const struct report *r, bool has_zeros);
void mongo_report_fini(struct mongo_report *more);

/* NULL: of `other`. */
static inline const struct slice *mongo_key(const struct mongo_report *more, uint32_t series)
{
    return series == STORE_SERIES_OTHER ? NULL : &mongo_names_at(&more->names, series)->key;
}
