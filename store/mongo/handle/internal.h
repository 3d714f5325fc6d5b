/* What the files of the MongoDB store share; see mongo.h. */
#pragma once

#include "base/civil.h"
#include "base/clock.h"
#include "base/radix.h"
#include "store/mongo/handle/kind.h"
#include "store/mongo/handle/limits.h"
#include "store/mongo/handle/log.h"
#include "store/mongo/handle/names.h"
#include "store/mongo/wire/client.h"
#include "store/series_map.h"
#include "store/store.h"

#define MONGO_NAME_BYTES     (REPORT_NAME_BYTES + 24) /* of a collection: "pages~2.month" */
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

struct mongo_collection; /* mongo/catalog/catalog.h */

/* What the server may have ended: mongo/job/ttl.h. */
struct mongo_ttl {
    int64_t age_ms[SPAN_COUNT]; /* slots that are older; 0: none */
    int64_t since_ms;           /* when an index was changed last, by the server's clock; 0: never */
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

/* LOGGING: nothing is sealed yet, and the batch may still be dropped. */
enum mongo_step { STEP_NONE, STEP_LOGGING, STEP_SEALING, STEP_APPLYING };

struct mongo_store {
    struct store store; /* first: a struct mongo_store is a struct store */
    struct mongo_client *client;
    char *uri;
    struct report *reports;
    struct mongo_report *more; /* of each report */
    bool with_weeks;           /* of a writer: it stamps them; of others: they are in the catalog */
    enum weekday week_start;   /* of a writer's */
    bool with_ttl;             /* of a writer: the server is to end documents */
    bool goes_by_clock;        /* of a reader: it takes for gone what the server may have ended */

    /* of a writer */
    char identity[MONGO_IDENTITY_BYTES]; /* of the database that it counts into, "": it has seen none; … */
    int64_t epoch;                       /* … raised when that is restored: mongo/ledger/identity.c */
    struct err refused; /* code 0: it is still that; else it is no more, and nothing is done */
    struct store_writer writer;
    int64_t since_ms;                   /* it was let in: mongo/ledger/peers.h; 0: not yet */
    char slot[MONGO_SLOT_BYTES];        /* "": none yet, or it was lost */
    int64_t inc, sealed, number;        /* of the last seal; the last number used */
    int64_t before;                     /* of the seal before that of the batch under way */
    bool is_done;                       /* the ledger says so of the last seal, too */
    int64_t applied_at_ms;              /* the last one, by the monotonic clock */
    int64_t kept_ms;                    /* when the slot was looked after, monotonic */
    int64_t logs_deleted;               /* before this number */
    struct mongo_partition *partitions; /* whatever it ever claimed, … */
    size_t partition_count, partition_capacity;
    int batches_to_ask;                 /* since the last claim: mongo/writer/torn.c */
    struct mongo_names partition_names; /* … by source and partition: of these, numbers from 1 */

    /* of its connections beside `client`, made when they are needed first */
    struct mongo_client *others[MONGO_CONNECTIONS_MAX - 1];
    size_t connections; /* in all */
    struct mongo_limits limits;
    size_t expire_next;  /* the report that mongo_expire() is to begin with */
    size_t expire_clean; /* so many in a row had nothing to let go; all of them: it has come to an end */

    /* of what it makes before it is needed; the store's figures are those after a batch is applied */
    struct prealloc prealloc;
    struct prealloc_pace pace;
    struct prealloc_figures figures;

    /* of events that are kept as they are: mongo/raw/raw.h */
    struct mongo_raw *raws; /* by number of their source */
    size_t raw_count;
    bool has_indexes; /* they are to be made */

    /* the batch under way */
    enum mongo_step step;
    struct mongo_log log;
    bson_t *seal_filter, *seal_update; /* kept for sending it again */
    struct range *ranges;              /* of it */
    size_t range_count;

    /* scratch */
    struct radix_item *items, *scratch;
    struct radix_item *documents; /* by what is done to them */
    struct mongo_ahead *ahead;    /* of the kind of documents that is being written */
    size_t ahead_count, ahead_capacity;
    const struct cell **cells;
    size_t item_capacity;
    struct text id;
    int64_t *rows; /* MONGO_ROWS_MAX × columns */
    uint8_t *row_is_there;
    struct mongo_written written[MONGO_TARGETS]; /* with counts of the batch, of a report */
    struct mongo_periods periods;                /* likewise */

    /* of a worker */
    struct mongo_look *looks; /* at months that wait: mongo/job/roll.c */
    size_t look_count, look_capacity;
};

/* NULL: of `other`. */
static inline const struct slice *mongo_key(const struct mongo_report *more, uint32_t series)
{
    return series == STORE_SERIES_OTHER ? NULL : &mongo_names_at(&more->names, series)->key;
}

static inline struct mongo_store *mongo_of(struct store *st)
{
    return (struct mongo_store *)st;
}

/* ---- mongo/open.c */

/* A handle that knows no report yet; nothing was asked of the server. */
struct mongo_store *mongo_new(const char *uri, bool primary, struct err *e);
/* Copied. */
bool mongo_add_report(struct mongo_store *m, const struct report *r, struct err *e);
void mongo_free(struct mongo_store *m);
/* How much is sent at once. */
bool mongo_take_limits(struct mongo_store *m, struct err *e) MUST_CHECK;

/* ---- mongo/doc/document.c: what documents are called and hold */

/* The collection of a report: "pages.day". */
const char *mongo_collection(const struct mongo_store *m, size_t report, const char *kind,
                             char buf[MONGO_NAME_BYTES]);
/* Percent-encodes what a field's name (or `_id`) must not hold. */
void mongo_escape(struct text *out, struct slice s, const char *which);
/* "20150517/site-1/%2Fa.html", or without `time`: "site-1/%2Fa.html". `key` NULL: of `other`. */
void mongo_id(struct text *out, const struct mongo_store *m, size_t report, const char *time,
              const struct slice *key);
/* Several of them in a filter, as { _id: { $in: [ … ] } }: what is added is copied. */
struct mongo_ids {
    bson_t in, list;
    uint32_t count;
};
void mongo_ids_begin(struct mongo_ids *ids, bson_t *filter);
void mongo_ids_add(struct mongo_ids *ids, struct slice id);
void mongo_ids_end(struct mongo_ids *ids, bson_t *filter);
/* The metadata of a series: its dimensions; of `other`: nulls, and other: true. As "metadata.path" into a
 * filter. */
void mongo_add_metadata(bson_t *to, const struct mongo_store *m, size_t report, const struct slice *key);
/* The one document of a series that begins then, into a filter: { _id, metadata }. Its `_id` is in m->id. */
void mongo_add_document(bson_t *filter, struct mongo_store *m, size_t report, enum span span, int64_t date_ms,
                        const struct slice *key);
/* { applied: { $not: { $gte: number } } } into a filter: so much was not done yet. `applied` is a path. */
void mongo_add_guard(bson_t *filter, const char *applied, int64_t number);
/* A document's `metadata` as a key. False: it is none of this report. */
bool mongo_key_of(const struct mongo_store *m, size_t report, const bson_iter_t *metadata, struct text *key,
                  bool *is_other);
/* The value of a measure at `path` of a document that is updated, into $inc, $min and $max. */
void mongo_add_value(bson_t *inc, bson_t *min, bson_t *max, const struct measure *m, const char *path,
                     const int64_t *columns);
/* … and back. */
void mongo_read_value(const struct measure *m, const bson_iter_t *value, int64_t *columns);

/* ---- mongo/writer/update.c: a batch becomes a log of updates */

bool mongo_resolve(struct mongo_store *m, const struct batch *batch, struct err *e);
void mongo_write_updates(struct mongo_store *m, const struct batch *batch, struct mongo_log *log);
/* The series of the batch are in the database now. */
void mongo_note_stored(struct mongo_store *m);

/* ---- mongo/writer/prealloc.c: documents before they are needed */

/* A document that the batch counts in, those of a series in order of time. */
struct mongo_touch {
    uint32_t series;
    int64_t start_ms, last_ms; /* of its span; of its last cell */
    int64_t hits;
    bool is_last; /* of its series, in the batch */
};

/* Notes in m->ahead whether the next document of the series is due. True: this one is most likely there. */
bool mongo_touch(struct mongo_store *m, size_t report, size_t kind, const struct mongo_touch *t);
/* Makes what is noted: no more is. */
void mongo_write_ahead(struct mongo_store *m, size_t report, size_t kind, int64_t now_ms,
                       struct mongo_log *log);

/* ---- mongo/ledger/ledger.c */

/* A member of a document by its path. */
bool mongo_find_member(const bson_t *document, const char *path, bson_iter_t *found);
int64_t mongo_number_at(const bson_t *document, const char *path, int64_t otherwise);
/* As the primary has it; empty where there is none. The caller destroys it. */
bool mongo_read_ledger(struct mongo_store *m, bson_t *ledger, struct err *e);
/* The same of another. */
bool mongo_read_document(struct mongo_store *m, const char *collection, const char *id, bson_t *document,
                         struct err *e);
/* findAndModify: *found false where `query` does not hold. `after` is the document as it is then; the caller
 * destroys it. */
bool mongo_modify(struct mongo_store *m, const char *collection, const bson_t *query, const bson_t *update,
                  bool *found, bson_t *after, struct err *e);
/* What is open in a slot; false: nothing. */
bool mongo_open_of(const bson_t *ledger, const char *slot, struct mongo_open *o);
/* … in all of them; how many. */
size_t mongo_all_open(const bson_t *ledger, struct mongo_open open[MONGO_SLOTS]);
bool mongo_read_open(struct mongo_store *m, const char *slot, struct mongo_open *o, struct err *e);
/* Adds a condition to a query of the ledger: nothing is at `path`; … */
void mongo_match_nothing(bson_t *query, const char *path);
/* … or the number there is this one, if one is there. */
void mongo_match_number(bson_t *query, const char *path, int64_t number, bool is_there);
/* The number of a slot's last batch. */
int64_t mongo_seq_of(const bson_t *ledger, const char *slot);

/* Another has it, as the ledger says: it is not ours any more. Returns false. */
bool mongo_lose_slot(struct mongo_store *m, const bson_t *ledger, struct err *e);
/* Of the batch under way. */
void mongo_prepare_seal(struct mongo_store *m, int64_t seq);
/* False where nobody knows: call it again. Else *sealed, or *e says why the ledger has another mind. */
bool mongo_seal(struct mongo_store *m, bool *sealed, struct err *e);
bool mongo_done(struct mongo_store *m, const struct mongo_open *o, struct err *e);

/* ---- mongo/writer/partition.c */

/* NULL: it is not claimed. */
/* "" where there is none; valid as long as the document is. */
const char *mongo_text_at(const bson_t *document, const char *path);

struct mongo_partition *mongo_find_partition(struct mongo_store *m, const struct range *range);
/* They are to be claimed anew. */
void mongo_forget_partitions(struct mongo_store *m);
void mongo_free_partitions(struct mongo_store *m);
/* "partitions.kafka:access/0.next"; valid until the next one. */
const char *mongo_partition_member(struct mongo_store *m, const struct mongo_partition *p, const char *name);
/* Make them ours, and finish for whoever had them what is sealed of them. */
bool mongo_claim(struct store *st, struct range *ranges, size_t count, struct err *e);
/* Those of a batch's partitions that are not. */
bool mongo_claim_for(struct mongo_store *m, const struct batch *batch, struct err *e);
bool mongo_positions(struct store *st, position_fn *fn, void *context, struct err *e);

/* ---- mongo/ledger/identity.c: is it still the database that this handle counts into? */

/* The ledger is there, and has an identity. */
bool mongo_begin_ledger(struct mongo_store *m, struct err *e);
/* { _id, identity, epoch } of the ledger that this handle has seen first. */
void mongo_add_ledger(const struct mongo_store *m, bson_t *filter);
bool mongo_is_same_ledger(const struct mongo_store *m, const bson_t *ledger);
/* The same one, and nothing of this writer's slot went back in it; else EX_DATAERR. */
bool mongo_check_ledger(struct mongo_store *m, const bson_t *ledger, struct err *e);
/* A partition that it claimed again goes on from where it was; else EX_DATAERR. */
bool mongo_check_partition(struct mongo_store *m, const struct mongo_partition *was,
                           const struct mongo_partition *now, struct err *e);
/* The database is not what it was: EX_DATAERR, whatever is asked of the handle. Returns false. */
bool mongo_refuse(struct mongo_store *m, struct err *e, const char *format, ...) PRINTF_LIKE(3, 4);
/* A document whose number of `of`'s slot is above `of->prev`: is it that of a batch which the ledger knows?
 * EX_DATAERR: no. */
bool mongo_check_applied(struct mongo_client *client, const struct mongo_open *of, const char *collection,
                         const char *id, int64_t applied, struct err *e);
/* No: EX_DATAERR. Returns false. */
bool mongo_refuse_document(const struct mongo_client *client, const char *collection, const char *id,
                           int64_t applied, const char *slot, int64_t seq, struct err *e);

/* ---- mongo/writer/torn.c */

#define MONGO_BATCHES_ASKED 16 /* after a claim, so many batches */
/* EX_DATAERR: a document that the log is about has a number of any slot that the ledger never gave. */
bool mongo_check_torn(struct mongo_store *m, struct slice packed, struct err *e);

/* ---- mongo/doc/months.c */

/* Several months: those that are rolled up from the documents of their years. */
bool mongo_scan_months(struct mongo_store *m, const struct scan *scan, scan_fn *fn, void *context,
                       struct scan_stats *stats, struct err *e);

/* ---- mongo/writer/slot.c */

/* Where there is none: take one that is free, and finish what is open in it. */
bool mongo_need_slot(struct mongo_store *m, struct err *e);
/* Until when the slot is ours in the eyes of those who look for one; 0 gives it back. No more than that: what
 * a slow writer may still do is decided by `inc`. */
bool mongo_set_lease(struct mongo_store *m, int64_t lease_ms, struct err *e);
/* Now and then: renews it, and finishes what writers that are gone have left open, if that can be done. */
bool mongo_keep_slot(struct mongo_store *m, struct err *e);
/* Does a writer that is not this process live in it, as far as one can tell? */
bool mongo_slot_is_others(const bson_t *ledger, const char *slot);
/* What is open in others' slots whose writers are gone. `goes_on`: where a log is damaged, or the server
 * refuses it, that is a warning. */
bool mongo_recover_abandoned(struct mongo_store *m, const bson_t *ledger, bool goes_on, struct err *e);
/* Is a writer heard of? Its slot. */
bool mongo_find_living(const bson_t *ledger, char slot[MONGO_SLOT_BYTES]);
/* There are no snapshots; so nothing may be under way. */
bool mongo_hold(struct store *st, struct err *e);

/* ---- mongo/writer/apply.c */

bool mongo_apply(struct store *st, const struct batch *batch, struct err *e);
bool mongo_tidy(struct store *st, bool all, struct err *e);
/* Apply an open batch from its log, and mark it done. */
bool mongo_recover(struct mongo_store *m, const struct mongo_open *o, struct err *e);

/* The log of an open batch, as much of it as is there. */
bool mongo_read_log(struct mongo_store *m, const struct mongo_open *o, struct text *packed, struct err *e);
/* What a document of `batches` holds of a log, behind what is there. */
void mongo_log_add_part(const bson_t *document, struct text *packed);

/* ---- mongo/send/send.c */

/* Carry out the log of a batch, over several connections of the handle. On failure some of it has been. */
bool mongo_send(struct mongo_store *m, const struct mongo_open *of, struct slice packed, struct err *e);
/* One of the handle's connections, made where it is needed first; 0 is `client`. */
bool mongo_connection(struct mongo_store *m, size_t i, struct mongo_client **client, struct err *e);
void mongo_send_fini(struct mongo_store *m);

/* ---- mongo/catalog/index.c */

enum mongo_index { INDEX_MISSING, INDEX_IS_THERE, INDEX_DIFFERS };
/* At start: of all collections; one that differs is told, and left alone. */
bool mongo_create_indexes(struct mongo_store *m, struct err *e);
/* One. *state afterwards: it is there, or another one differs, as *e says. */
struct mongo_index_of {
    const char *name;
    const char *why; /* for a person */
    int64_t ttl_s;   /* documents go so long after their date; 0: they stay */
};
struct mongo_index_wanted {
    const char *database; /* NULL: that of the handle */
    const char *collection, *name;
    const bson_t *key;
    int64_t ttl_s; /* documents go so long after their date; 0: they stay */
};
bool mongo_create_index(struct mongo_store *m, const struct mongo_index_wanted *wanted,
                        enum mongo_index *state, struct err *e);

/* ---- mongo/catalog/validator.c */

enum mongo_validator { VALIDATOR_IS_THERE, VALIDATOR_NO_COLLECTION, VALIDATOR_DIFFERS, VALIDATOR_FOREIGN };
/* At start. */
bool mongo_set_validators(struct mongo_store *m, enum store_validation validation, struct err *e);
/* One, of a collection that has a schema: how it is, … */
bool mongo_find_validator(struct mongo_store *m, const struct mongo_collection *c, enum store_validation v,
                          enum mongo_validator *state, struct err *e);
/* … make it so, `create`: with its collection, … */
bool mongo_make_validator(struct mongo_store *m, const struct mongo_collection *c, enum store_validation v,
                          bool create, struct err *e);
/* … and by which command. */
void mongo_validator_command(const struct mongo_store *m, const struct mongo_collection *c,
                             enum store_validation v, bool create, bool whole, bson_t *command);

/* ---- mongo/send/saturate.c */

/* An update that the server refuses, because a sum would be beyond int64: *done, or it is refused for another
 * reason. */
bool mongo_saturate(struct mongo_client *client, const struct mongo_open *of, const char *collection,
                    const bson_t *logged, bool *done, struct err *e);

/* ---- mongo/doc/series.c */

/* The number of the series that a document is of, which the database is known to have from now on; false: of
 * none of the report. `key` is for its text. */
bool mongo_take_name(struct mongo_store *m, size_t report, const bson_t *document, struct text *key,
                     uint32_t *series);
bool mongo_series_find(struct store *st, size_t report, struct slice key, uint32_t *series, bool *found,
                       struct err *e);
bool mongo_series_key(struct store *st, size_t report, uint32_t series, struct text *key, struct err *e);
bool mongo_series_each(struct store *st, size_t report, series_fn *fn, void *context, struct err *e);
bool mongo_series_like(struct store *st, size_t report, const struct slice *values, series_fn *fn,
                       void *context, struct err *e);
bool mongo_values(struct store *st, size_t report, size_t dimension, struct slice prefix, size_t limit,
                  value_fn *fn, void *context, struct err *e);
/* Take the names of all series that are stored. */
bool mongo_read_names(struct mongo_store *m, size_t report, struct err *e);

/* ---- mongo/job/expire.c */

#define MONGO_KNOWN_MS 2000 /* after so long, all who read know what `reports` says of expiry */
/* As the database has them. */
bool mongo_marks(struct store *st, size_t report, struct marks *marks, struct err *e);
enum span mongo_goes_by(const struct report *r, enum span span);
/* { $max: { "expired.minute": …, … } } of those of `marks` that are behind `before`, if any is. */
void mongo_append_dates(bson_t *update, const char *member, const struct marks *before,
                        const struct marks *marks);
/* All of them, into the handle. */
bool mongo_refresh_marks(struct mongo_store *m, struct err *e);
bool mongo_newest(struct store *st, size_t report, int64_t before_ms, struct newest *newest, struct err *e);
/* The end of the last document that begins before a time, though it was made ahead and has no counts; of
 * documents of months nothing is said. 0: there is none. */
bool mongo_documents_end(struct mongo_store *m, size_t report, int64_t before_ms, int64_t *end_ms,
                         struct err *e);
bool mongo_move_back(struct store *st, size_t report, int64_t now_ms, struct err *e);
bool mongo_expire(struct store *st, int64_t now_ms, bool trusts_clock, struct expired *expired,
                  struct err *e);

/* ---- mongo/doc/read.c */

bool mongo_scan(struct store *st, const struct scan *scan, scan_fn *fn, void *context,
                struct scan_stats *stats, struct err *e);
enum span mongo_copy(const struct store *st, size_t report, enum span slot, size_t n);
bool mongo_scan_copy(struct store *st, const struct scan *scan, size_t n, scan_fn *fn, void *context,
                     struct scan_stats *stats, struct err *e);
/* All series, by their keys (NULL: of `other`): the handle learns no names. Each has a slot once. False
 * ends the scan, which is no failure. */
typedef bool mongo_key_fn(void *context, const struct slice *key, int64_t slot_ms, const int64_t *values);
bool mongo_scan_keys(struct mongo_store *m, const struct scan *scan, mongo_key_fn *fn, void *context,
                     struct scan_stats *stats, struct err *e);
/* From documents of one kind. */
bool mongo_scan_kind(struct mongo_store *m, const struct mongo_kind *kind, const struct scan *scan,
                     scan_fn *fn, void *context, struct scan_stats *stats, struct err *e);
/* The months with documents that [from_ms, to_ms) touches, one after the other. */
typedef bool mongo_month_fn(void *context, int64_t month_ms, struct err *e); /* false ends the walk */
bool mongo_each_month(struct mongo_store *m, size_t report, int64_t from_ms, int64_t to_ms,
                      mongo_month_fn *fn, void *context, struct err *e);
bool mongo_books(struct store *st, book_fn *fn, void *context, struct err *e);

/* ---- mongo/admin/check.c */

/* Is the ledger of the same moment as the documents? */
bool mongo_check(struct store *st, check_fn *problem, void *context, struct err *e);

/* ---- mongo/admin/backup.c */

/* Is any under way? A writer's logs are to stay then. */
bool mongo_backup_holds(struct mongo_store *m, bool *holds, struct err *e) MUST_CHECK;

/* ---- mongo/admin/restore.c */

/* EX_TEMPFAIL: the ledger says that a restore is under way, or was not ended. */
bool mongo_check_restored(struct mongo_store *m, const bson_t *ledger, struct err *e) MUST_CHECK;
/* … it does not, into a filter. */
void mongo_add_restored(bson_t *filter);
