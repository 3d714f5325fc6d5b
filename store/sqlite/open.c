/* Opens and closes a handle: its reports, its statements, and a writer's knowledge of the tables. */
#include "base/check.h"
#include "base/civil.h"
#include "base/failpoint.h"
#include "base/log.h"
#include "base/mem.h"
#include "store/common/values.h"
#include "store/sqlite/internal.h"
#include "store/sqlite/vfs.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

const char *const sqlite_level_names[LEVEL_COUNT] = {"fresh", "hour", "day", "month", "year"};

bool sqlite_fail(struct sqlite_store *st, struct err *e, const char *doing)
{
    char where[SQLITE_VFS_DAMAGE_BYTES];
    int code = sqlite3_extended_errcode(st->db);
    const char *why = sqlite3_errmsg(st->db);
    if (code == SQLITE_IOERR_DATA)
        return err_set(
            e, EX_DATAERR,
            "%s is damaged: %s does not match its checksum (%s); restore the store from a backup. If another "
            "program changed it on purpose, `sqlite3 FILE VACUUM` accepts its present content",
            st->path, sqlite_vfs_damage(where), doing);
    switch (code & 0xff) {
    case SQLITE_FULL:
        return err_set_retryable(e, EX_IOERR, "%s: the disk is full (%s); free some space, nothing was lost",
                                 st->path, doing);
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return err_set_retryable(e, EX_TEMPFAIL, "%s is locked by another program (%s)", st->path, doing);
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
        return err_set(e, EX_DATAERR,
                       "%s is damaged or is no SQLite file (%s: %s); restore it from a backup, or try "
                       "sqlite3 with .recover",
                       st->path, doing, why);
    case SQLITE_READONLY:
    case SQLITE_PERM:
    case SQLITE_AUTH:
        return err_set(e, EX_NOPERM,
                       "%s cannot be written (%s: %s); check the owner and mode of the file and "
                       "its directory",
                       st->path, doing, why);
    case SQLITE_CANTOPEN:
        return err_set(e, EX_CANTCREAT, "%s cannot be opened (%s: %s)", st->path, doing, why);
    default:
        return err_set_retryable(e, EX_IOERR, "%s: %s: %s (SQLite %d)", st->path, doing, why, code);
    }
}

bool sqlite_prepare(struct sqlite_store *st, sqlite3_stmt **stmt, struct err *e, const char *format, ...)
{
    char sql[512];
    va_list args;
    va_start(args, format);
    int n = vsnprintf(sql, sizeof sql, format, args);
    va_end(args);
    ASSERT(n > 0 && (size_t)n < sizeof sql);
    if (sqlite3_prepare_v3(st->db, sql, -1, SQLITE_PREPARE_PERSISTENT, stmt, NULL) == SQLITE_OK)
        return true;
    return sqlite_fail(st, e, "preparing a statement");
}

bool sqlite_run(struct sqlite_store *st, sqlite3_stmt *stmt, struct err *e, const char *doing)
{
    int rc = sqlite3_step(stmt);
    if (rc != SQLITE_DONE)
        sqlite_fail(st, e, doing);
    sqlite3_reset(stmt);
    return rc == SQLITE_DONE;
}

bool sqlite_execute(struct sqlite_store *st, const char *sql, const char *doing, struct err *e)
{
    return sqlite3_exec(st->db, sql, NULL, NULL, NULL) == SQLITE_OK || sqlite_fail(st, e, doing);
}

bool sqlite_read_int(struct sqlite_store *st, int64_t *value, struct err *e, const char *sql)
{
    sqlite3_stmt *s;
    if (!sqlite_prepare(st, &s, e, "%s", sql))
        return false;
    int rc = sqlite3_step(s);
    *value = rc == SQLITE_ROW && sqlite3_column_type(s, 0) != SQLITE_NULL ? sqlite3_column_int64(s, 0) : -1;
    bool good = rc == SQLITE_ROW || rc == SQLITE_DONE || sqlite_fail(st, e, "reading the file");
    sqlite3_finalize(s);
    return good;
}

static bool create_report(struct sqlite_store *st, const struct report *r, int64_t *id, struct err *e)
{
    char sql[1024];
    sqlite3_stmt *s;
    if (!sqlite_prepare(st, &s, e, "INSERT INTO report (name, generation, definition) VALUES (?, ?, ?)"))
        return false;
    sqlite3_bind_text(s, 1, r->name, -1, SQLITE_STATIC);
    sqlite3_bind_int(s, 2, r->generation);
    sqlite3_bind_text(s, 3, r->definition, -1, SQLITE_STATIC);
    bool good = sqlite_run(st, s, e, "adding a report");
    sqlite3_finalize(s);
    if (!good)
        return false;
    *id = sqlite3_last_insert_rowid(st->db);
    long long n = (long long)*id;
    snprintf(sql, sizeof sql,
             "CREATE TABLE fresh_%lld (at INTEGER PRIMARY KEY, body BLOB NOT NULL);"
             "CREATE TABLE hour_%lld (at INTEGER PRIMARY KEY, body BLOB NOT NULL);"
             "CREATE TABLE day_%lld (at INTEGER PRIMARY KEY, body BLOB NOT NULL);"
             "CREATE TABLE month_%lld (at INTEGER PRIMARY KEY, body BLOB NOT NULL);"
             "CREATE TABLE year_%lld (at INTEGER PRIMARY KEY, body BLOB NOT NULL);"
             "CREATE TABLE series_%lld (block INTEGER PRIMARY KEY, keys TEXT NOT NULL);"
             "CREATE TABLE lookup_%lld (bucket INTEGER PRIMARY KEY, entries BLOB NOT NULL);",
             n, n, n, n, n, n, n);
    if (!sqlite_execute(st, sql, "adding a report's tables", e))
        return false;
    snprintf(sql, sizeof sql, "CREATE TABLE recent_%lld (at INTEGER PRIMARY KEY, body BLOB NOT NULL)", n);
    return r->newest == 0 || sqlite_execute(st, sql, "adding a report's tables", e);
}

/* Refuse a report that counts seconds, since the shortest rows are of minutes. */
static bool check_layout(const struct sqlite_store *st, const struct report *r, struct err *e)
{
    return report_cell(r) == SPAN_MINUTE || err_set(e, EX_CONFIG,
                                                    "report \"%s\" counts seconds (`layout: minute`), which "
                                                    "%s cannot store: use a MongoDB store, or `layout: day`",
                                                    r->name, st->path);
}

/* Take the definition of a report over, which is in the file without the fingerprint of its key. */
static bool set_definition(struct sqlite_store *st, const struct report *r, int64_t id, struct err *e)
{
    sqlite3_stmt *s;
    if (!sqlite_prepare(st, &s, e, "UPDATE report SET definition = ? WHERE id = ?"))
        return false;
    sqlite3_bind_text(s, 1, r->definition, -1, SQLITE_STATIC);
    sqlite3_bind_int64(s, 2, id);
    bool good = sqlite_run(st, s, e, "noting the key of a report");
    sqlite3_finalize(s);
    return good;
}

/* Find the report in the file, or add it; another definition under its name and generation is refused. */
static bool register_report(struct sqlite_store *st, const struct report *r, int64_t *id, struct err *e)
{
    enum report_likeness likeness = REPORT_IS_SAME;
    sqlite3_stmt *s;
    *id = -1;
    if (!sqlite_prepare(
            st, &s, e,
            "SELECT id, generation, definition FROM report WHERE name = ? ORDER BY generation DESC"))
        return false;
    sqlite3_bind_text(s, 1, r->name, -1, SQLITE_STATIC);
    bool good = true;
    int rc = sqlite3_step(s);
    if (rc == SQLITE_ROW) {
        int generation = sqlite3_column_int(s, 1);
        const char *definition = sqlite_text(s, 2);
        likeness = generation == r->generation ? report_compare(r, definition) : REPORT_DIFFERS;
        if (likeness != REPORT_DIFFERS)
            *id = sqlite3_column_int64(s, 0);
        else if (generation >= r->generation)
            good = err_set(e, EX_CONFIG,
                           "report \"%s\" is generation %d in %s and defined there as: %s; now it is defined "
                           "as: %s. Give it another name, or set `generation: %d`",
                           r->name, generation, st->path, definition, r->definition, generation + 1);
    } else if (rc != SQLITE_DONE) {
        good = sqlite_fail(st, e, "reading the reports");
    }
    sqlite3_finalize(s);
    if (good && likeness == REPORT_WITHOUT_KEY)
        return set_definition(st, r, *id, e);
    return good && (*id >= 0 || create_report(st, r, id, e));
}

static void add_report(struct sqlite_store *st, int64_t id)
{
    size_t n = st->base.report_count++;
    st->reports = xrealloc(st->reports, (n + 1) * sizeof *st->reports);
    st->tables = xrealloc(st->tables, (n + 1) * sizeof *st->tables);
    memset(&st->reports[n], 0, sizeof st->reports[n]);
    st->tables[n] = (struct sqlite_report){.id = id};
    st->base.reports = st->reports;
}

static bool open_reports(struct sqlite_store *st, const struct report *reports, size_t count, struct err *e)
{
    for (size_t i = 0; i < count; i++) {
        int64_t id;
        if (!check_layout(st, &reports[i], e) || !register_report(st, &reports[i], &id, e))
            return false;
        add_report(st, id);
        if (!report_read(&st->reports[i], slice_text(reports[i].name), reports[i].generation,
                         slice_text(reports[i].definition), e))
            return false;
        ASSERT(reports[i].series_max <= SERIES_MAX - 1);
        st->reports[i].series_max = reports[i].series_max;
        memcpy(st->reports[i].keep_ms, reports[i].keep_ms, sizeof reports[i].keep_ms);
    }
    return true;
}

/* A reader takes every report's newest generation as it stands in the file. */
static bool read_reports(struct sqlite_store *st, struct err *e)
{
    sqlite3_stmt *s;
    int rc;
    bool good = true;
    if (!sqlite_prepare(st, &s, e,
                        "SELECT id, name, max(generation), definition FROM report GROUP BY name ORDER BY id"))
        return false;
    while (good && (rc = sqlite3_step(s)) == SQLITE_ROW) {
        add_report(st, sqlite3_column_int64(s, 0));
        good = report_read(&st->reports[st->base.report_count - 1], slice_text(sqlite_text(s, 1)),
                           sqlite3_column_int(s, 2), slice_text(sqlite_text(s, 3)), e) &&
               check_layout(st, &st->reports[st->base.report_count - 1], e);
    }
    if (good && rc != SQLITE_DONE)
        good = sqlite_fail(st, e, "reading the reports");
    sqlite3_finalize(s);
    return good;
}

static bool prepare_expiry(struct sqlite_store *st, struct level_table *lt, const char *name, long long n,
                           struct err *e)
{
    return sqlite_prepare(st, &lt->old, e,
                          "SELECT at, length(body) FROM %s_%lld WHERE at < ? ORDER BY at LIMIT ?", name, n) &&
           sqlite_prepare(st, &lt->drop, e, "DELETE FROM %s_%lld WHERE at <= ?", name, n);
}

static bool prepare_report(struct sqlite_store *st, size_t report, enum store_mode mode, struct err *e)
{
    struct sqlite_report *t = &st->tables[report];
    long long n = (long long)t->id;
    for (int l = 0; l < LEVEL_COUNT; l++) {
        struct level_table *lt = &t->levels[l];
        const char *name = sqlite_level_names[l];
        if (!sqlite_prepare(st, &lt->seek, e,
                            "SELECT at, body FROM %s_%lld WHERE at >= ? ORDER BY at LIMIT 1", name, n) ||
            !sqlite_prepare(st, &lt->range, e,
                            "SELECT at, body FROM %s_%lld WHERE at BETWEEN ? AND ? ORDER BY at", name, n))
            return false;
        if (mode == STORE_WRITE && l > LEVEL_FRESH && !prepare_expiry(st, lt, name, n, e))
            return false;
        if (mode == STORE_WRITE &&
            (!sqlite_prepare(st, &lt->get, e, "SELECT body FROM %s_%lld WHERE at = ?", name, n) ||
             !sqlite_prepare(st, &lt->put, e, "INSERT OR REPLACE INTO %s_%lld (at, body) VALUES (?, ?)", name,
                             n)))
            return false;
    }
    if (mode == STORE_WRITE &&
        (!sqlite_prepare(st, &t->series_put, e,
                         "INSERT OR REPLACE INTO series_%lld (block, keys) VALUES (?, CAST(? AS TEXT))", n) ||
         !sqlite_prepare(st, &t->lookup_put, e,
                         "INSERT OR REPLACE INTO lookup_%lld (bucket, entries) VALUES (?, ?)", n) ||
         !sqlite_prepare(st, &t->fresh_delete, e, "DELETE FROM fresh_%lld WHERE at BETWEEN ? AND ?", n)))
        return false;
    return sqlite_prepare(st, &t->series_get, e, "SELECT keys FROM series_%lld WHERE block = ?", n) &&
           sqlite_prepare(st, &t->lookup_get, e, "SELECT entries FROM lookup_%lld WHERE bucket = ?", n);
}

static bool prepare_writer(struct sqlite_store *st, struct err *e)
{
    return sqlite_prepare(st, &st->position_get, e,
                          "SELECT next FROM position WHERE source = ? AND part = ?") &&
           sqlite_prepare(
               st, &st->position_put, e,
               "INSERT OR REPLACE INTO position (source, part, label, next, tail_hash, tail_len, latest_ms)"
               " VALUES (?, ?, ?, ?, ?, ?, ?)") &&
           sqlite_prepare(st, &st->witness_put, e, "INSERT OR REPLACE INTO witness VALUES (?, ?, ?)") &&
           sqlite_prepare(st, &st->book_add, e,
                          "INSERT INTO book (source, part, report, entry, value) VALUES (?, ?, ?, ?, ?)"
                          " ON CONFLICT DO UPDATE SET value = value + excluded.value") &&
           sqlite_prepare(st, &st->book_set, e,
                          "INSERT OR REPLACE INTO book (source, part, report, entry, value)"
                          " VALUES (?, ?, ?, ?, ?)") &&
           sqlite_prepare(st, &st->book_until, e,
                          "SELECT value FROM book WHERE source = ? AND part = ? AND report = ?"
                          " AND entry = 'until'") &&
           sqlite_prepare(st, &st->book_list, e,
                          "SELECT entry, value FROM book WHERE source = ? AND part = ? AND report = ?") &&
           sqlite_prepare(st, &st->book_drop, e,
                          "DELETE FROM book WHERE source = ? AND part = ? AND report = ? AND entry = ?");
}

/* Count the report's series by the last row of its dictionary. */
static bool count_series(struct sqlite_store *st, struct sqlite_report *t, struct err *e)
{
    char sql[192];
    int64_t block, lines;
    long long n = (long long)t->id;
    snprintf(sql, sizeof sql, "SELECT max(block) FROM series_%lld", n);
    if (!sqlite_read_int(st, &block, e, sql))
        return false;
    t->series_count = 0;
    if (block < 0)
        return true;
    snprintf(sql, sizeof sql,
             "SELECT length(CAST(keys AS BLOB)) - length(CAST(replace(keys, char(10), '') AS BLOB)) FROM "
             "series_%lld "
             "WHERE block = %lld",
             n, (long long)block); /* of bytes: length() of a text ends at a NUL */
    if (!sqlite_read_int(st, &lines, e, sql))
        return false;
    if (block >= SERIES_MAX / BODY_SERIES || lines < 1 || lines > BODY_SERIES)
        return err_set(e, EX_DATAERR,
                       "%s is damaged: the dictionary ends in an impossible row; restore it from a backup",
                       st->path);
    t->series_count = (uint32_t)(block * BODY_SERIES + lines - 1);
    return true;
}

/* Read (again) a writer's knowledge of the tables. */
static bool refresh(struct sqlite_store *st, struct err *e)
{
    char sql[128];
    for (size_t r = 0; r < st->base.report_count; r++) {
        struct sqlite_report *t = &st->tables[r];
        if (!count_series(st, t, e))
            return false;
        dict_clear(&t->dict);
        if (!sqlite_read_watermarks(st, r, &t->watermarks, e))
            return false;
        t->dict.complete = t->series_count == 0;
        t->new_count = 0;
        text_clear(&t->new_keys);
        for (int l = 0; l < LEVEL_COUNT; l++) {
            snprintf(sql, sizeof sql, "SELECT max(at) FROM %s_%lld", sqlite_level_names[l], (long long)t->id);
            if (!sqlite_read_int(st, &t->levels[l].last_at, e, sql))
                return false;
        }
    }
    return true;
}

void sqlite_undo(struct sqlite_store *st)
{
    struct err ignored;
    if (sqlite3_get_autocommit(st->db) == 0)
        (void)!sqlite_run(st, st->rollback, &ignored, "rolling back");
    st->stale = true;
}

static bool read_version(struct sqlite_store *st, int64_t *version, struct err *e)
{
    bool good = sqlite3_step(st->data_version) == SQLITE_ROW;
    if (good)
        *version = sqlite3_column_int64(st->data_version, 0);
    else
        sqlite_fail(st, e, "reading the file");
    sqlite3_reset(st->data_version);
    return good;
}

/* Read the tables again if another program wrote them, or if our own transaction failed. The lock keeps out
 * only programs that ask for it, by the same name of the file. Others wait for our transaction to end. */
static bool know_all(struct sqlite_store *st, struct err *e)
{
    int64_t version;
    if (!read_version(st, &version, e))
        return false;
    if (version == st->version && !st->stale)
        return true;
    if (!st->stale)
        log_limited(
            LOG_LEVEL_WARN, "store_changed",
            "file=%s next=\"another program, or another name of the file, changed it; it is read again\"",
            st->path);
    if (!refresh(st, e))
        return false;
    st->version = version;
    st->stale = false;
    return true;
}

bool sqlite_commit(struct sqlite_store *st, struct err *e)
{
    ASSERT(sqlite3_get_autocommit(st->db) == 0); /* sqlite_begin() came before, and nothing failed since */
    return sqlite_check_files(st, e) && sqlite_run(st, st->commit, e, "committing");
}

bool sqlite_begin(struct sqlite_store *st, struct err *e)
{
    ASSERT(st->base.writer != NULL && st->lock_fd >= 0);
    if (!sqlite_run(st, st->begin, e, "beginning a transaction"))
        return false;
    if (know_all(st, e))
        return true;
    sqlite_undo(st);
    return false;
}

static const struct store_forget_ops forget_ops = {.begin = sqlite_forget_begin,
                                                   .take = sqlite_forget,
                                                   .end = sqlite_forget_end,
                                                   .undo = sqlite_forget_undo,
                                                   .drop = sqlite_drop,
                                                   .replace = sqlite_replace};

static const struct store_splice_ops splice_ops = {.begin = sqlite_splice_begin, .end = sqlite_splice_end};

static const struct store_writer_ops writer_ops = {.forget = &forget_ops,
                                                   .splice = &splice_ops,
                                                   .apply = sqlite_apply,
                                                   .backfills = true,
                                                   .housekeep = sqlite_housekeep,
                                                   .expire = sqlite_expire,
                                                   .move_back = sqlite_move_back};

static const struct store_reader_ops reader_ops = {
    .watermarks = sqlite_watermarks,
    .newest = sqlite_newest,
    .hold = sqlite_hold,
    .scan = sqlite_scan,
    .recent = sqlite_recent,
    .series_find = sqlite_series_find,
    .series_key = sqlite_series_key,
    .series_each = sqlite_series_each,
    .values = values_walk,
    .positions = sqlite_positions,
    .books = sqlite_books,
    .check = sqlite_check,
};

/* Raise the format if a report has sketches, which are then written tight. A store without checksums keeps
 * what it has; the end of a copy sets it. */
static bool raise_format(struct sqlite_store *st, struct err *e)
{
    char pragma[64];
    int64_t format;
    bool has_sketches = false;
    for (size_t r = 0; r < st->base.report_count; r++)
        has_sketches |= st->reports[r].sketch_count > 0;
    if (!sqlite_read_int(st, &format, e, "PRAGMA user_version"))
        return false;
    st->body.packs_tight = has_sketches && (format >= SQLITE_SEALED_FORMAT || st->fills != NULL);
    if (!st->body.packs_tight || format != SQLITE_SEALED_FORMAT)
        return true;
    snprintf(pragma, sizeof pragma, "PRAGMA user_version=%d", SQLITE_STORE_FORMAT);
    return sqlite_execute(st, pragma, "raising the format", e);
}

static bool open_writer(struct sqlite_store *st, const struct report *reports, size_t count, struct err *e)
{
    if (!sqlite_run(st, st->begin, e, "beginning a transaction"))
        return false;
    if (!open_reports(st, reports, count, e) || !raise_format(st, e) ||
        !sqlite_run(st, st->commit, e, "committing")) {
        struct err ignored;
        (void)!sqlite_run(st, st->rollback, &ignored, "rolling back");
        return false;
    }
    int64_t vacuum;
    if (!sqlite_read_int(st, &vacuum, e, "PRAGMA auto_vacuum"))
        return false;
    st->gives_back = vacuum == 2; /* INCREMENTAL */
    return prepare_writer(st, e);
}

static bool open_all(struct sqlite_store *st, enum store_mode mode, const struct report *reports,
                     size_t count, struct err *e)
{
    if (mode == STORE_WRITE && !sqlite_take_lock(st, e))
        return false;
    if (st->fills != NULL && !sqlite_clear_unfinished(st, e))
        return false;
    if (!sqlite_open_file(st, mode, e) ||
        !sqlite_prepare(st, &st->begin, e, mode == STORE_WRITE ? "BEGIN IMMEDIATE" : "BEGIN") ||
        !sqlite_prepare(st, &st->watermarks_get, e,
                        "SELECT entry, value FROM book WHERE source = '' AND part = '' AND report = ?"
                        " AND entry >= 'expired.' AND entry < 'expired/'") ||
        !sqlite_prepare(st, &st->commit, e, "COMMIT") || !sqlite_prepare(st, &st->rollback, e, "ROLLBACK") ||
        !sqlite_prepare(st, &st->data_version, e, "PRAGMA data_version"))
        return false;
    if (!(mode == STORE_WRITE ? open_writer(st, reports, count, e) : read_reports(st, e)))
        return false;
    for (size_t r = 0; r < st->base.report_count; r++) {
        dict_init(&st->tables[r].dict);
        if (!prepare_report(st, r, mode, e) || !sqlite_recent_prepare(st, r, mode, e))
            return false;
    }
    return mode == STORE_READ ||
           (read_version(st, &st->version, e) && refresh(st, e) && sqlite_know_files(st, e));
}

static struct sqlite_store *new_handle(const char *path)
{
    struct sqlite_store *st = xcalloc(1, sizeof *st);
    st->base.close = sqlite_close;
    st->base.reader = &reader_ops;
    st->path = xstrdup(path);
    st->lock_fd = st->file_fd = -1;
    sqlite_enter();
    st->dict_key_bytes_max = DICT_KEY_BYTES_MAX;
    return st;
}

struct store *sqlite_open(const char *path, enum store_mode mode, const struct report *reports,
                          size_t report_count, struct err *e)
{
    struct sqlite_store *st = new_handle(path);
    st->base.writer = mode == STORE_WRITE ? &writer_ops : NULL;
    if (open_all(st, mode, reports, report_count, e))
        return &st->base;
    sqlite_close(&st->base);
    return NULL;
}

struct store *sqlite_open_fill(const char *path, const struct watermarks *watermarks,
                               const struct report *reports, size_t report_count, struct err *e)
{
    struct sqlite_store *st = new_handle(path);
    st->base.writer = &writer_ops; /* its transactions are those of a writer */
    st->base.fill = &sqlite_fill_ops;
    st->fills = xcalloc(report_count + 1, sizeof *st->fills);
    if (watermarks != NULL)
        memcpy(st->fills, watermarks, report_count * sizeof *watermarks);
    if (!open_all(st, STORE_WRITE, reports, report_count, e)) {
        sqlite_close(&st->base);
        return NULL;
    }
    failpoint(FAILPOINT_COPY_MARKED);
    for (size_t r = 0; r < report_count; r++)
        st->reports[r].series_max = SERIES_MAX - 1; /* the source decided what is `other` */
    return &st->base;
}

static void close_report(struct sqlite_report *t)
{
    series_map_fini(&t->map);
    free(t->new_series);
    text_fini(&t->new_keys);
    dict_fini(&t->dict);
}

void sqlite_close(struct store *base)
{
    struct sqlite_store *st = sqlite_of(base);
    sqlite3_stmt *s;
    while (st->db != NULL && (s = sqlite3_next_stmt(st->db, NULL)) != NULL)
        sqlite3_finalize(s);
    sqlite3_close(st->db);
    for (size_t i = 0; i < base->report_count; i++) {
        close_report(&st->tables[i]);
        report_fini(&st->reports[i]);
    }
    for (int l = 0; l < LEVEL_COUNT; l++)
        items_fini(&st->items[l]);
    sqlite_recent_fini(&st->sorting);
    body_buffer_fini(&st->body);
    free(st->block_items);
    row_jobs_fini(&st->row_jobs);
    free(st->fills);
    free(st->reports);
    free(st->tables);
    sqlite_leave(st);
    free(st->path);
    free(st->real_path);
    free(st);
}
