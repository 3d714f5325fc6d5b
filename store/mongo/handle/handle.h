/* mongo/handle/handle.h - an opened database: the state that every part of the store shares, and the state
 * that each part keeps. mongo/open.c makes a handle; every function of the store takes it.
 *
 * Threads: one per handle. While a log is sent, each of its connections has its own thread.
 */
#pragma once

#include "aggregate/batch.h"
#include "aggregate/raw.h"
#include "base/index.h"
#include "base/radix.h"
#include "store/backfill.h"
#include "store/mongo/handle/limits.h"
#include "store/mongo/handle/log.h"
#include "store/mongo/handle/report.h"
#include "store/mongo/wire/client.h"
#include "store/store.h"

#define MONGO_LEDGER         "ledger"
#define MONGO_BATCHES        "batches"
#define MONGO_BOOKS          "books"
#define MONGO_PAST           "past"
#define MONGO_REPORTS        "reports"
#define MONGO_JOBS           "jobs"
#define MONGO_DROPPING       "dropping" /* in `reports`: the generation is being dropped, mongo/job/drop.h */
#define MONGO_DECIMAL        "decimal"  /* in `reports`: is_decimal of the report */
#define MONGO_TOP            "top"      /* suffix of a report's collection of cached rankings */
#define MONGO_SLOTS          64
#define MONGO_CLOCK_SLACK_MS HOUR_MS /* a lease further ahead comes from a clock that was ahead */
#define MONGO_SLOT_BYTES     8
#define MONGO_SCHEMA         1  /* of documents: their member `v` */
#define MONGO_SEATS_FORMAT   5  /* since when slots have seats */
#define MONGO_FORMAT         6  /* of the database: `v` of the ledger, as a writer raises it */
#define MONGO_IDENTITY_BYTES 33 /* 128 bits in hex, and a zero byte */

/* A partition whose events this handle may commit. */
struct mongo_partition {
    char source[RANGE_SOURCE_BYTES], partition[RANGE_PARTITION_BYTES];
    char *key;       /* its key in `partitions` of ledger and seats */
    bool is_claimed; /* false: the members below are those of the last claim */
    int64_t epoch, next;
    int64_t claim;                  /* number of this writer's claim; it uses each number once */
    bool is_first;                  /* no batch of this claim is committed in the seat yet */
    bool is_settled;                /* the ledger says that no other seat has the position */
    bool is_home;                   /* the claim brought the position into the ledger */
    int64_t fills;                  /* changes of its books by batches that backfill or take out */
    int64_t counted_in;             /* number of the last batch with a range of it; 0: none since the claim */
    bool is_new;                    /* nothing of it was ever counted */
    int64_t *until;                 /* offset up to which each report counts it; -1: not counted yet */
    struct build_stretches *builds; /* those of the source itself; then those of each report's backfills */
    size_t builds_count;
};

/* A partition as a batch that backfills found it: mongo/writer/behind.h. */
struct mongo_found {
    char *key; /* as in struct mongo_partition */
    int64_t epoch, next, fills;
};

/* A batch that is committed and not applied yet, of this slot or another's. */
struct mongo_open {
    char slot[MONGO_SLOT_BYTES];
    bool is_home;     /* it is open in the ledger itself, not in the slot's seat */
    bool rolls_up;    /* it is done only when longer documents have it: mongo/writer/longer.h */
    bool is_roll_up;  /* it is none, but stands for all batches after `prev` */
    int64_t inc, seq; /* incarnation and number; seq -1: no batch is open */
    int64_t prev;     /* the slot's batch before it; -1: `seq` is a fence, and higher numbers are as good */
    int64_t bytes;    /* size of its log, packed */
    int64_t at_ms;    /* time of its log, as mongo/send/batches.h says; known while it is written */
};

/* A document to be preallocated. */
struct mongo_ahead {
    uint32_t series;
    int64_t date_ms;
};

/* A period of a fine document. The slot's batches up to `number` have counts of it that longer documents
 * lack: mongo/writer/longer.h. */
struct mongo_unrolled {
    enum span span;
    int64_t start_ms, number;
};

/* Starts of months or weeks that a batch has counts of: mongo/doc/version_stamps.h. */
struct mongo_written {
    int64_t *starts;
    size_t count, capacity;
};

/* Starts of hours, days or months that a batch has counts of: mongo/doc/top.h. */
#define MONGO_PERIODS_SEEN 1024 /* a power of two: hours in the filter of duplicates */
struct mongo_periods {
    int64_t *starts;
    size_t count, capacity;
    int64_t seen_ms[MONGO_PERIODS_SEEN]; /* the last hour added, by hour modulo MONGO_PERIODS_SEEN */
};

/* The raw events of one source: mongo/raw/raw.h. */
struct mongo_raw {
    const struct raw *of;       /* NULL: no events of this source are stored */
    struct raw_figures pending; /* figures of the batch under way */
    int64_t shown;              /* refused events of the batch that were logged one by one */
    int64_t newest_ms;          /* start of the newest period; it decides what is stored */
    int64_t first_kept_ms;      /* events of the batch before this are not stored */
    int64_t *ready;             /* starts of periods whose collection has been prepared */
    size_t ready_count, ready_capacity;
};

/* The writer that counts into the database. All members but `who` are its view of the ledger and its seat. */
struct mongo_writer {
    struct store_writer who;
    char identity[MONGO_IDENTITY_BYTES]; /* of its database; "": none seen yet */
    int64_t epoch;                       /* of its database; a restore raises it: mongo/ledger/identity.c */
    struct err refused;             /* code 0: none; else the database is not the same, and calls return it */
    int64_t since_ms;               /* when it was let in, wall clock: mongo/ledger/peers.h; 0: not yet */
    char slot[MONGO_SLOT_BYTES];    /* "": no slot yet, or it was lost */
    int64_t inc, committed, number; /* incarnation; number of the last committed batch; last number used */
    int64_t home_seq, seat_seq;     /* last batches in the ledger itself, and in the seat; 0: none */
    int64_t first;                  /* its first number; those between it and earlier ones are nobody's */
    bool is_home;          /* its last batch was committed in the ledger itself: mongo/ledger/seat.h */
    int64_t fills_from;    /* first number of a copy (mongo/admin/fill.h); 0: it is no copy */
    bool fills_again;      /* an earlier copy into the database was not finished */
    int64_t before;        /* number of the batch that was committed before the batch under way */
    bool is_done;          /* neither ledger nor seat has an open batch of the slot */
    int64_t at_ms;         /* time of its last log, or of a later one of others: mongo/send/batches.h */
    int64_t applied_at_ms; /* when the last batch was applied, by the monotonic clock */
    int64_t leased_ms;     /* when the lease was renewed last, by the monotonic clock */
    int64_t kept_ms;       /* when it was renewed and the ledger looked at, likewise */
    int64_t retired_ms;    /* when it last looked for files that have ended; 0: never */
    size_t staying;        /* files that had to stay in the ledger then */
    int64_t claims;        /* number of its last claim */
    int64_t logs_deleted;  /* logs of batches before this number are deleted */
    int batches_to_ask;    /* batches that mongo/writer/torn.c has yet to check */
    struct mongo_partition *partitions; /* those that it claimed, until their position leaves for `past` */
    size_t partition_count, partition_capacity;
    struct mongo_names partition_names; /* numbers of `partitions`, from 1, by source and partition */
};

/* LOGGING: nothing is committed yet, and the batch may still be dropped. */
enum mongo_step { STEP_NONE, STEP_LOGGING, STEP_COMMITTING, STEP_APPLYING };

/* The batch under way. */
struct mongo_batch {
    enum mongo_step step;
    struct mongo_log log, longer; /* its updates; those of longer documents, which may be applied later */
    bool rolls_up;                /* it is done only when the longer documents have it, too */
    struct mongo_unrolled *fine;  /* periods of its fine documents; `number` is not used */
    size_t fine_count, fine_capacity;
    bson_t *commit_filter, *commit_update; /* kept for a retry */
    struct range *ranges;
    size_t range_count;
    /* By report: the batch takes its one range out of the report again. NULL: the batch counts. Borrowed for
     * one call of mongo/writer/take.h. */
    const bool *taken;
    bool backfills;           /* it counts a range before the position: store/backfill.h */
    size_t report;            /* that it counts for; valid if it backfills */
    struct mongo_found found; /* its partition; valid if it backfills */
    bool was_outrun;          /* it was dropped, since the partition was not as found any more */
    bool fills;               /* batches have counts alone: mongo/job/splice.h */
    struct backfill_entry moved[BACKFILL_ENTRIES_MAX]; /* entries of the books that it moves */
    size_t moved_count;
};

/* Sums of a report by series and bucket of the shortest longer document. */
struct mongo_sums {
    struct cells cells;
    struct index index; /* numbers of `cells`, from 1 */
};

/* What the longer documents lack of the slot's batches: mongo/writer/longer.h. */
struct mongo_longer {
    struct mongo_sums *fresh; /* by report: of the batch under way */
    struct mongo_sums *sums;  /* by report: of committed batches that no roll-up has */
    int64_t rolled, stored;   /* the last batch that all longer documents have; the same as of the seat */
    int64_t since_ms;         /* when the first of `sums` came, by the monotonic clock */
    struct mongo_unrolled *unrolled; /* of the seat, as of the last commit */
    size_t unrolled_count, unrolled_capacity;
    size_t log_count, log_bytes;   /* the logs of `sums` */
    struct longer_figures rolling; /* the batches of the roll-up under way */
    /* the roll-up under way: of the batches after `rolled`, up to `to`; 0: none */
    int64_t to, begun_ms;
    struct mongo_log *pieces;
    size_t piece_count, piece_capacity, piece_updates, sent;
    bool from_logs;                  /* a roll-up failed in part: the next one reads the logs */
    int64_t failed_ms;               /* when it failed, by the monotonic clock */
    int64_t proved_ms;               /* when the seat was last as this writer left it, monotonic */
    int64_t delay_ms;                /* store_options.rollup_delay_ms; 0: none is given */
    int64_t begun_batch_ms, busy_ms; /* when the last batch began, monotonic, and how long it took */
};

/* A report that takes another one's place for a range of times: mongo/job/splice.h. */
struct mongo_splicing {
    char report[REPORT_NAME_BYTES]; /* whose place it takes */
    struct watermarks watermarks;   /* of the result */
    uint64_t others;                /* sum of all numbers of slots that other writers raise, when it began */
    bool is_made;                   /* the result is in `reports`, hidden */
    int hidden;                     /* its generation while it is hidden; 0: it is not */
    bool may_be_late;               /* an update of it failed, and may arrive yet */
};

/* A document of a distinct count: its bucket is its whole period. */
struct mongo_counted {
    size_t report, sketch;
    const struct mongo_kind *kind;
    uint32_t series;
    int64_t start_ms;
};

/* Documents of distinct counts that may have too many entries. */
struct mongo_checks {
    struct mongo_counted *list;
    size_t count, capacity;
};

/* The texts that a writer has written into documents of distinct counts: mongo/writer/crowd.h. */
struct mongo_crowd {
    struct mongo_crowd_slot *slots; /* a hash table; NULL: it is empty */
    size_t count;
    struct arena memory;
    struct mongo_checks steps; /* its own entries have come to a step */
    struct mongo_checks drawn; /* a new entry was drawn */
};

/* Documents that a writer preallocates. */
struct mongo_making {
    struct prealloc prealloc;
    struct prealloc_pace pace;
    struct prealloc_figures figures; /* the store shows a copy, taken when a batch is applied */
    struct mongo_ahead *ahead;       /* documents to be made, of the kind that is being written */
    size_t ahead_count, ahead_capacity;
};

/* Memory for turning a batch into updates. */
struct mongo_sorting {
    struct radix_item *items, *scratch;
    struct radix_item *documents; /* documents to be written, sorted by a hash of their update */
    struct cell **cells;
    size_t item_capacity;
    uint32_t newest;                             /* time of the newest cell of one report */
    struct mongo_written written[MONGO_TARGETS]; /* months and weeks with counts of one report */
    struct mongo_periods periods;                /* hours, days or months with counts of one report */
    struct sketch_work sketches;                 /* of one time bucket */
};

/* State that jobs keep from one call to the next. */
struct mongo_worker {
    size_t expire_next;  /* the report that mongo_expire() begins with */
    size_t expire_clean; /* reports in a row with nothing to delete; all: expiry is complete */
};

/* A period of fine documents that longer ones lack. */
struct mongo_lacking {
    enum span span; /* SPAN_COUNT: it may be of any */
    int64_t from_ms, to_ms;
};

/* The last reading of what longer documents lack (mongo/doc/unrolled.h). */
struct mongo_unrolled_seen {
    bool is_read;
    int64_t read_ms; /* monotonic */
    struct mongo_lacking *list;
    size_t count, capacity;
};

/* The time buckets of one document. */
struct mongo_reader {
    struct mongo_unrolled_seen unrolled;
    int64_t *rows; /* MONGO_ROWS_MAX × columns */
    uint8_t *row_is_there;
    struct sketch_work sketches; /* of one time bucket */
    struct text packed;          /* the same, packed */
};

/* Does the server take updates by a pipeline (mongo/send/together.h)? */
enum mongo_pipelines { MONGO_PIPELINES_UNKNOWN, MONGO_PIPELINES_TAKEN, MONGO_PIPELINES_REFUSED };

struct mongo_store {
    struct store store; /* first: a struct mongo_store is a struct store */
    struct mongo_client *client;
    char *uri;
    /* connections beside `client`, opened at their first use */
    struct mongo_client *others[MONGO_CONNECTIONS_MAX - 1];
    size_t connections; /* connections in all, with `client` */
    struct mongo_limits limits;
    enum mongo_pipelines pipelines; /* as a writer's batches have shown */
    bool has_told_ledger;           /* it has warned that the ledger is nearly full, */
    bool has_told_seat;             /* and that its seat is */
    struct text id;                 /* scratch: the `_id` of a document that is read or written */

    struct report *reports;
    struct mongo_report *more; /* state of each report */
    bool with_weeks;           /* writer: it stamps weeks; others: the catalog lists them */
    enum weekday week_start;   /* first day of a writer's weeks */
    bool with_ttl;             /* writer: the server deletes expired documents */
    bool goes_by_clock;        /* reader: what the server may have deleted by TTL counts as expired */

    /* raw events: mongo/raw/raw.h */
    struct mongo_raw *raws; /* by number of their source */
    size_t raw_count;
    bool has_indexes; /* indexes are to be made */

    struct mongo_writer writer;
    struct mongo_batch batch;
    struct mongo_longer longer;
    struct mongo_splicing splicing;
    struct mongo_making making;
    struct mongo_crowd crowd;
    struct mongo_sorting sorting;
    struct mongo_reader reader;
    struct mongo_worker worker;
};

static inline struct mongo_store *mongo_of(struct store *st)
{
    return (struct mongo_store *)st;
}

/* The names of slots: "w0", "w1", … */
extern const char mongo_slots[MONGO_SLOTS][MONGO_SLOT_BYTES];
/* The number of the slot "w17"; MONGO_SLOTS: it is no slot. */
size_t mongo_slot_number(const char *name);
/* The path of a member of a slot in the ledger: "writers.w17.inc". */
#define MONGO_SLOT_PATH_BYTES 64
const char *mongo_slot_path(const char *slot, const char *name, char buf[MONGO_SLOT_PATH_BYTES]);

/* A handle without reports and operations, by the system's clock. It sends nothing to the server. */
struct mongo_store *mongo_new(const char *uri, bool primary, int64_t wait_max_ms, struct err *e) MUST_CHECK;
void mongo_free(struct mongo_store *m);
/* The members of the document of a new report, for BCON_DOCUMENT(); the caller destroys them. */
bson_t *mongo_report_members(const struct report *r);
/* The handle owns `r` from now on. `key`: as of mongo_report_init(). */
void mongo_take_report(struct mongo_store *m, const struct report *r, const char *key, bool has_zeros,
                       bool is_decimal);
/* The same of a copy of `r`. */
bool mongo_add_report(struct mongo_store *m, const struct report *r, const char *key, bool has_zeros,
                      bool is_decimal, struct err *e) MUST_CHECK;
void mongo_partition_fini(struct mongo_partition *p);
/* Sets how much is sent at once: the server's limits, but no more than limits.h says. */
bool mongo_take_limits(struct mongo_store *m, struct err *e) MUST_CHECK;
/* One of the handle's connections, opened at its first use; 0 is `client`. */
bool mongo_connection(struct mongo_store *m, size_t i, struct mongo_client **client,
                      struct err *e) MUST_CHECK;
