/* sqlite/internal.h - types and functions shared by the files of the embedded store. No other file includes
 * it. Functions that return bool fail with *e, unless their comment says otherwise.
 *
 *   sqlite/open.c   the handle: reports, statements          sqlite/file.c    the file: its format
 *   sqlite/vfs.c    a checksum for each page                 sqlite/check.c   is the whole file good?
 *   sqlite/dict.c   series ↔ number                          sqlite/rows.c    sorted items into rows
 *   sqlite/apply.c  a batch, in one transaction              sqlite/fold.c    fresh rows into closed ones
 *   sqlite/read.c   scans, books, positions                  sqlite/expire.c  watermarks, and rows before
 *   sqlite/lock.c   one writer; is it still the file?        sqlite/backup.c  copies of the file
 *   sqlite/log.c    is the log of a crash good?              sqlite/newest.c  the newest time buckets
 *   sqlite/forget.c a file or a report taken out            sqlite/splice.c  a place taken for some times
 *   sqlite/fill.c   a copy of another store                  sqlite/upgrade.c older formats
 *   sqlite/recent.c the newest events of a day               sqlite/row_jobs.c rows merged by several threads
 *   sqlite/body.c   the bytes of a row                       sqlite/tight.c   its sketches in few bits
 */
#pragma once

#include "base/arena.h"
#include "base/index.h"
#include "base/radix.h"
#include "store/common/series_map.h"
#include "store/forget.h"
#include "store/reader.h"
#include "store/splice.h"
#include "store/sqlite/body.h"
#include "store/sqlite/row_jobs.h"
#include "store/sqlite/sqlite.h"
#include "store/writer.h"

#include <sqlite3.h>
#include <sys/stat.h>

#define FRESH_MINUTES_MAX 8
#define BLOCK_SHIFT       24
#define SERIES_BITS       26 /* a key is bucket (32 bits: minutes until the year 10136), series, slot (6) */
#define SERIES_MAX        ((uint32_t)1 << SERIES_BITS)

enum level { LEVEL_FRESH, LEVEL_HOUR, LEVEL_DAY, LEVEL_MONTH, LEVEL_YEAR, LEVEL_COUNT };

struct level_table {
    sqlite3_stmt *get, *put;  /* for writing: read a body by rowid; insert or replace a row */
    sqlite3_stmt *seek;       /* for reading: the first row at or after a rowid */
    sqlite3_stmt *range;      /* for reading: the rows in a range of rowids */
    sqlite3_stmt *old, *drop; /* expiry, not of fresh rows: the first rows before a rowid; delete up to one */
    sqlite3_stmt *remove;     /* delete one row; NULL: not needed yet */
    int64_t last_at;          /* for writing: the last row's rowid; -1: there is no row */
};

/* The table of a report's newest events. NULL, each: it keeps none. */
struct recent_table {
    sqlite3_stmt *get, *put,
        *drop;                  /* for writing: read or write a row; delete the first rows before a rowid */
    sqlite3_stmt *seek, *range; /* the first row at or after a rowid; the rows in a range of rowids */
};

/* Working memory: newest events of cells, by row. */
struct recent_sorting {
    struct radix_item *items, *scratch;
    const struct recent **of;
    size_t capacity, scratch_capacity, of_capacity;
};

struct dict_entry {
    const char *key;
    uint32_t key_len, number;
};

/* A cache of keys, so that the same series from a second thread costs no SQL. */
struct dict {
    struct index index;
    struct dict_entry *entries;
    size_t capacity;
    struct arena keys;
    bool complete; /* whether every series of the report is cached, so that a miss is a new series */
};

/* A new series of the current batch, not yet in the file. */
struct new_series {
    uint64_t hash;
    uint32_t number;
};

/* The lookup has 4096 rows: 200 bytes each for 100,000 series. */
#define LOOKUP_SHIFT 52

struct sqlite_report {
    int64_t id; /* the number N in the names of its tables */
    uint32_t series_count;
    struct level_table levels[LEVEL_COUNT];
    struct recent_table recent;
    sqlite3_stmt *series_get, *series_put, *lookup_get, *lookup_put, *fresh_delete;
    struct dict dict;
    struct new_series *new_series;
    size_t new_count, new_capacity;
    struct text new_keys; /* keys of `new_series`, a line each */
    struct series_map map;
    struct watermarks watermarks; /* expiry watermarks, as a writer knows them */
};

/* Deltas of one report at one level, by key: bucket, series, slot (items_key()). */
struct items {
    struct radix_item *items, *scratch;
    size_t count, capacity, scratch_capacity;
    int64_t *values; /* the values of item i begin at values[items[i].index * columns] */
    size_t values_capacity;
    union sketch *sketches; /* those of item i begin at sketches[items[i].index * sketches of the report] */
    size_t sketches_capacity;
    const union sketch **united; /* working memory: those that make one */
    size_t united_capacity;
    struct arena memory; /* of sketches that are no part's; its chunk_bytes are 0 until it is needed */
};

/* The identity of a file, whatever its name. Zeros: there is no file. */
struct sqlite_file {
    dev_t device;
    ino_t inode;
};

#define SQLITE_FILE_COUNT 3 /* the database, -wal, -shm */
#define SQLITE_PATH_BYTES (4096 + 8)

struct sqlite_store {
    struct store base;
    sqlite3 *db;
    char *path;
    char *real_path;                             /* for writing: the path as SQLite knows it */
    int lock_fd;                                 /* descriptor of PATH-lock; -1: a reader */
    int file_fd;                                 /* for writing: descriptor of the database, for its lock */
    struct sqlite_file files[SQLITE_FILE_COUNT]; /* for writing: the files that are open */
    bool is_unsealed;                            /* whether its pages have no checksums */
    int64_t version;                             /* PRAGMA data_version when a writer last read the tables */
    size_t dict_key_bytes_max;
    bool holds;               /* whether all further reads are of one transaction */
    bool gives_back;          /* whether free pages are given back to the file system */
    bool stale;               /* whether a transaction failed, so that a writer must read the tables again */
    struct watermarks *fills; /* for filling: the watermarks of each report; NULL: for all else */
    struct report *reports;
    struct sqlite_report *tables;
    sqlite3_stmt *begin, *commit, *rollback, *data_version;
    sqlite3_stmt *watermarks_get;
    sqlite3_stmt *position_get, *position_put, *witness_put;
    sqlite3_stmt *book_add, *book_set, *book_until, *book_list, *book_drop;
    struct items items[LEVEL_COUNT]; /* working memory of apply and fold */
    struct recent_sorting sorting;
    struct body_item *block_items; /* that are taken out of a row */
    size_t block_capacity;
    struct row_jobs row_jobs;
    struct body_buffer body;
};

static inline struct sqlite_store *sqlite_of(struct store *st)
{
    return (struct sqlite_store *)st;
}

/* sqlite/lock.c: each handle enters before it opens a file, and leaves after SQLite has closed the file. */
void sqlite_enter(void);
void sqlite_leave(struct sqlite_store *st);
bool sqlite_take_lock(struct sqlite_store *st, struct err *e) MUST_CHECK;
/* The path of the store's file, links resolved, plus a suffix. */
const char *sqlite_beside(const struct sqlite_store *st, const char *suffix, char path[SQLITE_PATH_BYTES]);
/* Refuse a file with hard links. */
bool sqlite_check_names(const struct sqlite_store *st, const struct stat *status, struct err *e) MUST_CHECK;
/* Note the identities of the open files. */
bool sqlite_know_files(struct sqlite_store *st, struct err *e) MUST_CHECK;
/* Do the names still lead to the open files? */
bool sqlite_check_files(struct sqlite_store *st, struct err *e) MUST_CHECK;

/* sqlite/log.c: before SQLite opens the file */
bool sqlite_check_log(const struct sqlite_store *st, enum store_mode mode, struct err *e) MUST_CHECK;

/* sqlite/file.c: a writer first takes the lock, and has it until sqlite_leave() */
bool sqlite_open_file(struct sqlite_store *st, enum store_mode mode, struct err *e) MUST_CHECK;

/* sqlite/fill.c; the functions within a transaction */
extern const struct store_fill_ops sqlite_fill_ops;
bool sqlite_fill_report(struct sqlite_store *st, size_t report, const struct batch *batch,
                        struct err *e) MUST_CHECK;
bool sqlite_put_book(struct sqlite_store *st, const struct store_book *book, struct err *e) MUST_CHECK;
/* Empty a file that an unfinished copy left; refuse one that holds anything else. Called with the lock. */
bool sqlite_clear_unfinished(struct sqlite_store *st, struct err *e) MUST_CHECK;

/* sqlite/apply.c: for sqlite/fill.c, too; within a transaction */
bool sqlite_put_position(struct sqlite_store *st, const struct range *r, struct err *e) MUST_CHECK;

/* sqlite/open.c */
bool sqlite_fail(struct sqlite_store *st, struct err *e, const char *doing);
bool sqlite_prepare(struct sqlite_store *st, sqlite3_stmt **stmt, struct err *e, const char *format, ...)
    PRINTF_LIKE(4, 5) MUST_CHECK;
/* Run a statement that returns no rows, and reset it. */
bool sqlite_run(struct sqlite_store *st, sqlite3_stmt *stmt, struct err *e, const char *doing) MUST_CHECK;
bool sqlite_execute(struct sqlite_store *st, const char *sql, const char *doing, struct err *e) MUST_CHECK;
/* Read the one number that a query returns; -1: it returns none. */
bool sqlite_read_int(struct sqlite_store *st, int64_t *value, struct err *e, const char *sql) MUST_CHECK;
void sqlite_close(struct store *base);
extern const char *const sqlite_level_names[LEVEL_COUNT];

/* Bind the first two parameters: a source, and its partition. Both must live until the statement has run. */
static inline void sqlite_bind_source(sqlite3_stmt *s, const char *source, const char *partition)
{
    sqlite3_bind_text(s, 1, source, -1, SQLITE_STATIC);
    sqlite3_bind_text(s, 2, partition, -1, SQLITE_STATIC);
}

/* A column's text; "" if damage left none. */
static inline const char *sqlite_text(sqlite3_stmt *s, int column)
{
    const char *text = (const char *)sqlite3_column_text(s, column);
    return text != NULL ? text : "";
}

/* Begin a writer's transaction. */
bool sqlite_begin(struct sqlite_store *st, struct err *e) MUST_CHECK;
/* Check that the files are still the opened ones, and commit. False: the caller must call sqlite_undo(). */
bool sqlite_commit(struct sqlite_store *st, struct err *e) MUST_CHECK;
/* Roll back. The next transaction reads again what the failed one had learnt. */
void sqlite_undo(struct sqlite_store *st);

/* sqlite/dict.c */
void dict_init(struct dict *d);
void dict_fini(struct dict *d);
void dict_clear(struct dict *d);
bool dict_resolve_added(struct sqlite_store *st, size_t report, const struct part *part,
                        struct err *e) MUST_CHECK;
/* Write the new series into the file, after the last part. */
bool dict_write_new(struct sqlite_store *st, size_t report, struct err *e) MUST_CHECK;
/* The key of a series. The caller resets series_get after it has read the key. */
bool dict_key(struct sqlite_store *st, size_t report, uint32_t number, struct slice *key, bool *found,
              struct err *e) MUST_CHECK;
bool dict_find(struct sqlite_store *st, size_t report, struct slice key, uint32_t *number, bool *found,
               struct err *e) MUST_CHECK;

/* sqlite/rows.c */
void items_reserve(struct items *it, size_t more, const struct report *r);
void items_clear(struct items *it);
void items_fini(struct items *it);
/* Merge packed sketches into those of an item. False: one is damaged. */
bool items_merge_packed(struct items *it, const struct report *r, size_t index,
                        const struct slice *sketches) MUST_CHECK;
/* Add a part's cells to st->items of a level: LEVEL_FRESH or LEVEL_HOUR. */
void rows_gather(struct sqlite_store *st, size_t report, const struct part *part, enum level level);
/* Write st->items[LEVEL_FRESH] into fresh rows. */
bool rows_write_fresh(struct sqlite_store *st, size_t report, struct err *e) MUST_CHECK;
/* Add st->items[LEVEL_HOUR] to rows of hours, and their sums to rows of days, months and years; or take them
 * out of these rows. EX_DATAERR: the rows do not contain them. */
enum rows_how { ROWS_ADD, ROWS_TAKE };
bool rows_write_folded(struct sqlite_store *st, size_t report, enum rows_how how, struct err *e) MUST_CHECK;

static inline uint64_t items_key(uint64_t bucket, uint32_t series, uint32_t slot)
{
    return bucket << (SERIES_BITS + 6) | (uint64_t)series << 6 | slot;
}

/* Add one of the reserved items. Returns the place for its values. Its sketches are empty. */
static inline int64_t *items_add(struct items *it, uint64_t key, const struct report *r)
{
    ASSERT(it->count < it->capacity && it->count * r->column_count < it->values_capacity);
    it->items[it->count] = (struct radix_item){key, (uint32_t)it->count};
    for (size_t i = 0; i < r->sketch_count; i++)
        it->sketches[it->count * r->sketch_count + i] = (union sketch){0};
    return &it->values[it->count++ * r->column_count];
}

/* The resolution of the slots in a level's rows. It has no meaning for fresh rows, which every scan reads. */
static inline enum span sqlite_span(enum level level)
{
    _Static_assert((int)LEVEL_HOUR == (int)SPAN_MINUTE && (int)LEVEL_YEAR == (int)SPAN_MONTH, "in step");
    return (enum span)level;
}

/* The number of the level's bucket that holds an instant. Its rows begin at rowid `bucket << BLOCK_SHIFT`. */
int64_t sqlite_bucket(enum level level, int64_t ms);
int64_t sqlite_bucket_start(enum level level, int64_t bucket);
/* Read a report's expiry watermarks from the file. */
bool sqlite_read_watermarks(struct sqlite_store *st, size_t report, struct watermarks *watermarks,
                            struct err *e) MUST_CHECK;

/* Write those that are not 0, within a transaction. */
bool sqlite_put_watermarks(struct sqlite_store *st, size_t report, const struct watermarks *watermarks,
                           struct err *e) MUST_CHECK;

/* Bring a file of an older format to the present one, and keep a copy of it beside it. If that fails, the
 * store continues as it is (is_unsealed), with a warning; false: it is damaged. */
bool sqlite_seal(struct sqlite_store *st, struct err *e) MUST_CHECK;

/* sqlite/recent.c; all but the last two within a transaction, and doing nothing if the report keeps no newest
 * events */
bool sqlite_recent_prepare(struct sqlite_store *st, size_t report, enum store_mode mode,
                           struct err *e) MUST_CHECK;
/* Merge the newest events of a batch's cells into their days, unless these have expired. */
bool sqlite_recent_write(struct sqlite_store *st, size_t report, const struct batch *batch,
                         struct err *e) MUST_CHECK;
/* Delete up to `limit` expired days of series. */
bool sqlite_recent_expire(struct sqlite_store *st, size_t report, size_t limit, size_t *count,
                          struct err *e) MUST_CHECK;
bool sqlite_recent_check(struct sqlite_store *st, size_t report, check_fn *problem, void *context,
                         struct err *e) MUST_CHECK;
bool sqlite_recent(struct store *base, const struct scan *scan, void *context, struct scan_stats *stats,
                   struct err *e) MUST_CHECK;
void sqlite_recent_fini(struct recent_sorting *s);
/* sqlite/read.c: end a read that began a transaction, unless a snapshot is locked. */
bool sqlite_end_reading(struct sqlite_store *st, bool good, struct err *e) MUST_CHECK;

/* Fold every fresh row, within the caller's transaction. */
bool sqlite_fold_all(struct sqlite_store *st, struct err *e) MUST_CHECK;

/* sqlite/apply.c, fold.c, expire.c, read.c, forget.c, splice.c: the operations */
bool sqlite_forget_begin(struct store *base, const struct range *of, struct err *e) MUST_CHECK;
bool sqlite_forget(struct store *base, const struct batch *batch, const bool *reports,
                   struct err *e) MUST_CHECK;
bool sqlite_forget_end(struct store *base, const struct range *of, struct err *e) MUST_CHECK;
void sqlite_forget_undo(struct store *base);
bool sqlite_drop(struct store *base, const char *report, int generation, bool dry_run,
                 struct store_dropped *dropped, struct err *e) MUST_CHECK;
bool sqlite_replace(struct store *base, const char *by, const char *report, bool drops_old,
                    struct store_replaced *done, struct err *e) MUST_CHECK;
/* Within a transaction, which it commits, or undoes if it fails. */
bool sqlite_replace_begun(struct sqlite_store *st, const char *by, const char *report, bool drops_old,
                          struct store_replaced *done, struct err *e) MUST_CHECK;
bool sqlite_splice_begin(struct store *base, const char *report, const struct watermarks *watermarks,
                         struct err *e) MUST_CHECK;
bool sqlite_splice_end(struct store *base, const struct store_book *books, size_t count, const char *by,
                       const char *report, bool drops_old, struct store_replaced *done,
                       struct err *e) MUST_CHECK;
bool sqlite_apply(struct store *base, const struct batch *batch, struct err *e) MUST_CHECK;
bool sqlite_housekeep(struct store *base, bool all, struct err *e) MUST_CHECK;
bool sqlite_expire(struct store *base, int64_t now_ms, bool trusts_clock, struct expired *expired,
                   struct err *e) MUST_CHECK;
bool sqlite_watermarks(struct store *base, size_t report, struct watermarks *watermarks,
                       struct err *e) MUST_CHECK;
bool sqlite_newest(struct store *base, size_t report, int64_t before_ms, struct newest *newest,
                   struct err *e) MUST_CHECK;
bool sqlite_move_back(struct store *base, size_t report, int64_t now_ms, struct err *e) MUST_CHECK;
bool sqlite_hold(struct store *base, struct err *e) MUST_CHECK;
bool sqlite_scan(struct store *base, const struct scan *scan, scan_fn *fn, void *context,
                 struct scan_stats *stats, struct err *e) MUST_CHECK;
bool sqlite_series_find(struct store *base, size_t report, struct slice key, uint32_t *series, bool *found,
                        struct err *e) MUST_CHECK;
bool sqlite_series_key(struct store *base, size_t report, uint32_t series, struct text *key,
                       struct err *e) MUST_CHECK;
bool sqlite_series_each(struct store *base, size_t report, series_fn *fn, void *context,
                        struct err *e) MUST_CHECK;
bool sqlite_positions(struct store *base, position_fn *fn, void *context, struct err *e) MUST_CHECK;
bool sqlite_books(struct store *base, book_fn *fn, void *context, struct err *e) MUST_CHECK;
bool sqlite_check(struct store *base, check_fn *problem, void *context, struct err *e) MUST_CHECK;
