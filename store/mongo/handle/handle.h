/* mongo/handle/handle.h - an opened database: what every part of the store needs of it, and what each part
 * keeps in it.
 *
 * Threads: one per handle; while a log is sent, each of its connections has a thread of its own.
 */
#pragma once

#include "aggregate/raw.h"
#include "base/radix.h"
#include "store/mongo/handle/limits.h"
#include "store/mongo/handle/log.h"
#include "store/mongo/handle/report.h"
#include "store/mongo/wire/client.h"
#include "store/store.h"

#define MONGO_LEDGER         "ledger"
#define MONGO_BATCHES        "batches"
#define MONGO_BOOKS          "books"
#define MONGO_REPORTS        "reports"
#define MONGO_JOBS           "jobs"
#define MONGO_TOP            "top" /* of a report */
#define MONGO_SLOTS          64
#define MONGO_CLOCK_SLACK_MS HOUR_MS /* a lease that is later by more is of a clock that was ahead */
#define MONGO_SLOT_BYTES     8
#define MONGO_SCHEMA         1
#define MONGO_IDENTITY_BYTES 33 /* of 128 bits, in hex */

/* A partition whose events this handle may seal. */
struct mongo_partition {
    char source[RANGE_SOURCE_BYTES], partition[RANGE_PARTITION_BYTES];
    char *key;       /* in the ledger's `partitions` */
    bool is_claimed; /* else what follows is what was known of it last */
    int64_t epoch, next;
    bool is_new;    /* nothing of it was ever counted */
    int64_t *until; /* per report: up to where it counts the partition; -1: nowhere yet */
};

/* A batch between its seal and the end of its application, of this slot or another's. */
struct mongo_open {
    char slot[MONGO_SLOT_BYTES];
    int64_t inc, seq; /* seq -1: nothing is open */
    int64_t prev;     /* of the slot's batch before it; -1: `seq` is a fence, and what is above it as good */
    int64_t bytes;    /* of its log */
};

/* A document that is to be made before it is needed. */
struct mongo_ahead {
    uint32_t series;
    int64_t date_ms;
};

/* Starts of months, or weeks: mongo/doc/stamps.h. */
struct mongo_written {
    int64_t *starts;
    size_t count, capacity;
};

/* Starts of hours, days or months: mongo/doc/top.h. */
#define MONGO_PERIODS_SEEN 1024 /* a power of two: so many hours are told from each other at once */
struct mongo_periods {
    int64_t *starts;
    size_t count, capacity;
    int64_t seen_ms[MONGO_PERIODS_SEEN]; /* by hour */
};

/* A source of raw events: mongo/raw/raw.h. */
struct mongo_raw {
    const struct raw *of;       /* NULL: of this source nothing is kept */
    struct raw_figures pending; /* of the batch under way */
    int64_t shown;              /* … of those refused, so many are in the log */
    int64_t newest_ms;          /* by the last look, the period that decides what is kept; its start */
    int64_t first_kept_ms;      /* of a batch: what is before this is not stored */
    int64_t *ready;             /* periods whose collection is as it should be */
    size_t ready_count, ready_capacity;
};

/* Who counts into the database: all but `who` is of the ledger, as this writer knows it. */
struct mongo_writer {
    struct store_writer who;
    char identity[MONGO_IDENTITY_BYTES]; /* of the database that it counts into, "": it has seen none; … */
    int64_t epoch;                       /* … raised when that is restored: mongo/ledger/identity.c */
    struct err refused;          /* code 0: it is still that; else it is no more, and nothing is done */
    int64_t since_ms;            /* it was let in: mongo/ledger/peers.h; 0: not yet */
    char slot[MONGO_SLOT_BYTES]; /* "": none yet, or it was lost */
    int64_t inc, sealed, number; /* of the last seal; the last number used */
    int64_t before;              /* of the seal before that of the batch under way */
    bool is_done;                /* the ledger says so of the last seal, too */
    int64_t applied_at_ms;       /* the last one, by the monotonic clock */
    int64_t kept_ms;             /* when the slot was looked after, monotonic */
    int64_t logs_deleted;        /* before this number */
    int batches_to_ask;          /* since the last claim: mongo/writer/torn.c */
    struct mongo_partition *partitions; /* whatever it ever claimed, … */
    size_t partition_count, partition_capacity;
    struct mongo_names partition_names; /* … by source and partition: of these, numbers from 1 */
};

/* LOGGING: nothing is sealed yet, and the batch may still be dropped. */
enum mongo_step { STEP_NONE, STEP_LOGGING, STEP_SEALING, STEP_APPLYING };

/* The batch under way. */
struct mongo_batch {
    enum mongo_step step;
    struct mongo_log log;
    bson_t *seal_filter, *seal_update; /* kept for sending it again */
    struct range *ranges;
    size_t range_count;
};

/* What a writer makes before it is needed. */
struct mongo_making {
    struct prealloc prealloc;
    struct prealloc_pace pace;
    struct prealloc_figures figures; /* the store's are those after a batch is applied */
    struct mongo_ahead *ahead;       /* of the kind of documents that is being written */
    size_t ahead_count, ahead_capacity;
};

/* Memory of a batch that becomes updates. */
struct mongo_sorting {
    struct radix_item *items, *scratch;
    struct radix_item *documents; /* by what is done to them */
    const struct cell **cells;
    size_t item_capacity;
    struct mongo_written written[MONGO_TARGETS]; /* with counts of the batch, of a report */
    struct mongo_periods periods;                /* likewise */
};

/* What jobs keep from one call to the next. */
struct mongo_worker {
    size_t expire_next;       /* the report that mongo_expire() is to begin with */
    size_t expire_clean;      /* so many in a row had nothing to let go; all of them: it has come to an end */
    struct mongo_look *looks; /* at months that wait: mongo/job/roll.c */
    size_t look_count, look_capacity;
};

/* The slots of one document. */
struct mongo_reader {
    int64_t *rows; /* MONGO_ROWS_MAX × columns */
    uint8_t *row_is_there;
};

struct mongo_store {
    struct store store; /* first: a struct mongo_store is a struct store */
    struct mongo_client *client;
    char *uri;
    /* connections beside `client`, made when they are needed first */
    struct mongo_client *others[MONGO_CONNECTIONS_MAX - 1];
    size_t connections; /* in all */
    struct mongo_limits limits;
    struct text id; /* scratch: of the document that is asked for or written */

    struct report *reports;
    struct mongo_report *more; /* of each report */
    bool with_weeks;           /* of a writer: it stamps them; of others: they are in the catalog */
    enum weekday week_start;   /* of a writer's */
    bool with_ttl;             /* of a writer: the server is to end documents */
    bool goes_by_clock;        /* of a reader: it takes for gone what the server may have ended */

    /* of events that are kept as they are: mongo/raw/raw.h */
    struct mongo_raw *raws; /* by number of their source */
    size_t raw_count;
    bool has_indexes; /* they are to be made */

    struct mongo_writer writer;
    struct mongo_batch batch;
    struct mongo_making making;
    struct mongo_sorting sorting;
    struct mongo_reader reader;
    struct mongo_worker worker;
};

static inline struct mongo_store *mongo_of(struct store *st)
{
    return (struct mongo_store *)st;
}

/* A handle that knows no report yet, and has no operations; nothing was asked of the server. */
struct mongo_store *mongo_new(const char *uri, bool primary, struct err *e);
void mongo_free(struct mongo_store *m);
/* It is the handle's from now on. */
void mongo_take_report(struct mongo_store *m, const struct report *r, bool has_zeros);
/* Copied. */
bool mongo_add_report(struct mongo_store *m, const struct report *r, struct err *e);
void mongo_partition_fini(struct mongo_partition *p);
/* How much is sent at once. */
bool mongo_take_limits(struct mongo_store *m, struct err *e) MUST_CHECK;
/* One of the handle's connections, made where it is needed first; 0 is `client`. */
bool mongo_connection(struct mongo_store *m, size_t i, struct mongo_client **client, struct err *e);
