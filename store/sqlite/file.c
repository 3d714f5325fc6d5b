/* Opens the file: checks its format, and makes the connection to it. */
#include "base/log.h"
#include "store/sqlite/internal.h"
#include "store/sqlite/vfs.h"

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

/* Time for which a reader or the writer waits for the other's lock, which is held for milliseconds. */
#define BUSY_MS          5000
/* Oldest format. Files of formats 3 and 4 have no checksums; since 4 they have expiry watermarks. */
#define FORMAT_OF_BEFORE 3

/* Files of older versions lack some tables: each writer creates missing ones. */
static const char schema[] =
    "CREATE TABLE IF NOT EXISTS report (id INTEGER PRIMARY KEY, name TEXT NOT NULL,"
    "  generation INTEGER NOT NULL, definition TEXT NOT NULL, UNIQUE (name, generation));"
    "CREATE TABLE IF NOT EXISTS position (source TEXT NOT NULL, part TEXT NOT NULL, label TEXT NOT NULL,"
    "  next INTEGER NOT NULL, tail_hash INTEGER NOT NULL, tail_len INTEGER NOT NULL,"
    "  latest_ms INTEGER NOT NULL, PRIMARY KEY (source, part)) WITHOUT ROWID;"
    "CREATE TABLE IF NOT EXISTS book (source TEXT NOT NULL, part TEXT NOT NULL, report INTEGER NOT NULL,"
    "  entry TEXT NOT NULL, value INTEGER NOT NULL,"
    "  PRIMARY KEY (source, part, report, entry)) WITHOUT ROWID;"
    "CREATE TABLE IF NOT EXISTS format (number INTEGER PRIMARY KEY, tallyd TEXT NOT NULL);"
    "CREATE TABLE IF NOT EXISTS witness (source TEXT, part TEXT, list BLOB, PRIMARY KEY (source, part));";

bool sqlite_is_path(struct slice path)
{
    return path.len > 0 && path.ptr[0] != ':' && !(path.len >= 5 && memcmp(path.ptr, "file:", 5) == 0);
}

/* Decides what to do with a file of another format. A newer file says which version knows its format. */
static void advise(struct sqlite_store *st, int64_t format, struct text *advice)
{
    sqlite3_stmt *s;
    struct err ignored;
    bool is_newer = format > SQLITE_STORE_FORMAT;
    if (is_newer && sqlite_prepare(st, &s, &ignored, "SELECT tallyd FROM format WHERE number = %lld",
                                   (long long)format)) {
        if (sqlite3_step(s) == SQLITE_ROW)
            text_printf(advice, "use tallyd %s or later", sqlite_text(s, 0));
        sqlite3_finalize(s);
    }
    if (advice->len == 0)
        text_puts(advice, is_newer ? "use the later version that wrote it"
                                   : "use the version that wrote it, or import into another store");
}

static bool refuse_format(struct sqlite_store *st, int64_t format, struct err *e)
{
    struct text advice = {0};
    advise(st, format, &advice);
    err_set(e, EX_DATAERR, "%s has format %lld, this tallyd knows %d to %d: %s", st->path, (long long)format,
            FORMAT_OF_BEFORE, SQLITE_STORE_FORMAT, advice.ptr);
    text_fini(&advice);
    return false;
}

static bool check_format(struct sqlite_store *st, bool *is_new, struct err *e)
{
    int64_t application, format, tables;
    if (!sqlite_read_int(st, &application, e, "PRAGMA application_id") ||
        !sqlite_read_int(st, &format, e, "PRAGMA user_version") ||
        !sqlite_read_int(st, &tables, e, "SELECT count(*) FROM sqlite_master"))
        return false;
    *is_new = application == 0 && format == 0 && tables == 0;
    bool is_known = format >= FORMAT_OF_BEFORE && format <= SQLITE_STORE_FORMAT;
    st->is_unsealed = format < SQLITE_SEALED_FORMAT;
    if (*is_new || (application == SQLITE_APPLICATION_ID && is_known))
        return true;
    if (application == SQLITE_APPLICATION_ID && format == SQLITE_UNFINISHED_FORMAT)
        return err_set(e, EX_TEMPFAIL,
                       "%s is an unfinished copy: run the same `tallyd admin copy` again, or delete the file",
                       st->path);
    if (application != SQLITE_APPLICATION_ID)
        return err_set(e, EX_DATAERR, "%s is an SQLite file of another program: name another store",
                       st->path);
    return refuse_format(st, format, e);
}

static bool open_connection(struct sqlite_store *st, enum store_mode mode, bool is_immutable, struct err *e)
{
    int flags = mode == STORE_WRITE ? SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE : SQLITE_OPEN_READONLY;
    char *uri = sqlite3_mprintf("file:%s?immutable=1", st->path);
    sqlite3_close(st->db);
    st->db = NULL;
    flags |= SQLITE_OPEN_NOMUTEX | (is_immutable ? SQLITE_OPEN_URI : 0);
    int rc = sqlite3_open_v2(is_immutable ? uri : st->path, &st->db, flags, sqlite_vfs_name());
    sqlite3_free(uri);
    if (rc != SQLITE_OK)
        return sqlite_fail(st, e, "opening");
    sqlite3_busy_timeout(st->db, BUSY_MS);
    return true;
}

static bool has_wal(const struct sqlite_store *st, off_t bytes_min)
{
    char path[SQLITE_PATH_BYTES];
    struct stat status;
    return stat(sqlite_beside(st, "-wal", path), &status) == 0 && status.st_size >= bytes_min;
}

/* Create missing tables, and note from which version on the present formats are known. */
static bool add_tables(struct sqlite_store *st, const char *doing, struct err *e)
{
    char note[128];
    snprintf(note, sizeof note, "INSERT OR IGNORE INTO format VALUES (%d, '%s'), (%d, '%s')",
             SQLITE_SEALED_FORMAT, SQLITE_FORMAT_SINCE, SQLITE_STORE_FORMAT, SQLITE_FORMAT_SINCE);
    return sqlite_execute(st, schema, doing, e) && sqlite_execute(st, note, doing, e);
}

/* May this user read the file, if it is there, and its log? SQLite's own answer names no reason. */
static bool check_right(const struct sqlite_store *st, struct err *e)
{
    char path[SQLITE_PATH_BYTES];
    bool may = (access(st->path, R_OK) == 0 || errno != EACCES) &&
               (access(sqlite_beside(st, "-wal", path), R_OK) == 0 || errno != EACCES);
    return may || err_set(e, EX_NOPERM,
                          "%s may not be read by this user: %s; run this as the user of the daemon, or as "
                          "root, or ask the daemon by its URL",
                          st->path, strerror(EACCES));
}

/* The checks that are possible before the file is opened. */
static bool check_before(struct sqlite_store *st, enum store_mode mode, struct err *e)
{
    struct stat status;
    if (mode == STORE_READ && !check_right(st, e))
        return false;
    bool is_there = stat(st->path, &status) == 0;
    if (mode == STORE_READ && !is_there)
        return err_set(e, EX_NOINPUT, "there is no store %s; `tallyd import` or `tallyd run` creates it",
                       st->path);
    if (is_there && S_ISDIR(status.st_mode))
        return err_set(e, EX_CANTCREAT, "%s is a directory: name a file in it", st->path);
    if (mode == STORE_READ && !has_wal(st, 0) && !sqlite_check_names(st, &status, e))
        return false;
    return sqlite_check_log(st, mode, e);
}

/* Empties a log that a crash left: after a second crash, frames behind its end would look like damage. If a
 * reader still needs it, or the disk refuses, it stays: then the next write says why. */
static void empty_log(struct sqlite_store *st)
{
    struct err ignored;
    sqlite3_busy_timeout(st->db, 0);
    (void)!sqlite_execute(st, "PRAGMA wal_checkpoint(TRUNCATE)", "opening", &ignored);
    sqlite3_busy_timeout(st->db, BUSY_MS);
}

bool sqlite_open_file(struct sqlite_store *st, enum store_mode mode, struct err *e)
{
    if (!check_before(st, mode, e))
        return false;
    bool is_new;
    if (!open_connection(st, mode, false, e))
        return false;
    if (mode == STORE_WRITE && sqlite3_db_readonly(st->db, "main") == 1)
        return err_set(e, EX_NOPERM,
                       "%s cannot be written; check the owner and mode of the file and its directory",
                       st->path);
    if (!check_format(st, &is_new, e)) {
        /* Without a WAL there is no writer, and nothing changes: a reader needs no right to create a WAL. */
        bool may_retry = mode == STORE_READ && (e->code == EX_NOPERM || e->code == EX_CANTCREAT) &&
                         !has_wal(st, 1) && strpbrk(st->path, "?#%") == NULL;
        if (!may_retry || !open_connection(st, mode, true, e) || !check_format(st, &is_new, e))
            return false;
    }
    char pragmas[512];
    snprintf(pragmas, sizeof pragmas, "PRAGMA query_only=1; PRAGMA cache_size=-%d", SQLITE_READER_CACHE_KIB);
    if (mode == STORE_READ)
        return is_new ? err_set(e, EX_NOINPUT, "%s is empty: nothing was counted yet", st->path)
                      : sqlite_execute(st, pragmas, "opening", e);
    int reserve = SQLITE_VFS_RESERVED;
    if (is_new)
        sqlite3_file_control(st->db, "main", SQLITE_FCNTL_RESERVE_BYTES, &reserve);
    snprintf(pragmas, sizeof pragmas,
             "%sPRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA cache_size=-%d;"
             "PRAGMA wal_autocheckpoint=8192; PRAGMA journal_size_limit=67108864; PRAGMA temp_store=MEMORY;",
             is_new ? "PRAGMA page_size=8192; PRAGMA auto_vacuum=INCREMENTAL;" : "", SQLITE_WRITER_CACHE_KIB);
    if (!sqlite_execute(st, pragmas, "opening", e))
        return false;
    if (!is_new) {
        empty_log(st);
        return (!st->is_unsealed || sqlite_seal(st, e)) && add_tables(st, "adding tables", e);
    }
    snprintf(pragmas, sizeof pragmas, "PRAGMA application_id=%d; PRAGMA user_version=%d;",
             SQLITE_APPLICATION_ID, st->fills != NULL ? SQLITE_UNFINISHED_FORMAT : SQLITE_SEALED_FORMAT);
    return sqlite_execute(st, "BEGIN", "creating", e) && add_tables(st, "creating the tables", e) &&
           sqlite_execute(st, pragmas, "creating", e) && sqlite_execute(st, "COMMIT", "creating", e);
}
