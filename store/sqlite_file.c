/* The file: its one writer's lock, its format, and the connection to it. */
#include "base/check.h"
#include "store/sqlite_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* How long a reader or the writer waits for the other's lock; both hold it for milliseconds. */
#define BUSY_MS 5000
#define LOCK_MS 2000

static const char schema[] =
    "CREATE TABLE IF NOT EXISTS report (id INTEGER PRIMARY KEY, name TEXT NOT NULL, generation INTEGER NOT "
    "NULL,"
    "  definition TEXT NOT NULL, UNIQUE (name, generation));"
    "CREATE TABLE IF NOT EXISTS position (source TEXT NOT NULL, part TEXT NOT NULL, label TEXT NOT NULL,"
    "  next INTEGER NOT NULL, tail_hash INTEGER NOT NULL, tail_len INTEGER NOT NULL, latest_ms INTEGER NOT "
    "NULL,"
    "  PRIMARY KEY (source, part)) WITHOUT ROWID;"
    "CREATE TABLE IF NOT EXISTS book (source TEXT NOT NULL, part TEXT NOT NULL, report INTEGER NOT NULL,"
    "  entry TEXT NOT NULL, value INTEGER NOT NULL, PRIMARY KEY (source, part, report, entry)) WITHOUT "
    "ROWID;";

/* Where the file is that a link leads to, too. One that is not there yet is made, as SQLite would. */
static char *find_file(const char *path)
{
    char *real = realpath(path, NULL);
    int fd = real == NULL && errno == ENOENT ? open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644) : -1;
    if (fd < 0)
        return real;
    close(fd);
    return realpath(path, NULL);
}

/* The one writer holds a lock beside the file: SQLite's own locks come and go with transactions. */
bool sqlite_take_lock(struct sqlite_store *st, struct err *e)
{
    char path[4096 + 8], *real = find_file(st->path);
    snprintf(path, sizeof path, "%s-lock", real != NULL ? real : st->path);
    free(real);
    st->lock_fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (st->lock_fd < 0)
        return err_set(e, errno == EACCES || errno == EROFS ? EX_NOPERM : EX_CANTCREAT,
                       "cannot create %s: %s; the store's directory must be writable", path, strerror(errno));
    /* A writer that was killed just now may take a moment to be gone. */
    bool locked = flock(st->lock_fd, LOCK_EX | LOCK_NB) == 0;
    for (int waited_ms = 0; !locked && waited_ms < LOCK_MS; waited_ms += 50) {
        nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
        locked = flock(st->lock_fd, LOCK_EX | LOCK_NB) == 0;
    }
    if (locked) {
        if (ftruncate(st->lock_fd, 0) != 0 || dprintf(st->lock_fd, "%ld\n", (long)getpid()) < 0)
            return err_set(e, EX_IOERR, "cannot write %s: %s", path, strerror(errno));
        return true;
    }
    char holder[32] = "";
    ssize_t n = pread(st->lock_fd, holder, sizeof holder - 1, 0);
    holder[n > 0 ? strcspn(holder, "\n") : 0] = '\0';
    return err_set_retryable(
        e, EX_TEMPFAIL,
        "%s is being written by another tallyd (process %s): one writer per file; stop it, or "
        "ask it over HTTP",
        st->path, holder);
}

static bool check_format(struct sqlite_store *st, bool *is_new, struct err *e)
{
    int64_t application, format, tables;
    if (!sqlite_read_int(st, &application, e, "PRAGMA application_id") ||
        !sqlite_read_int(st, &format, e, "PRAGMA user_version") ||
        !sqlite_read_int(st, &tables, e, "SELECT count(*) FROM sqlite_master"))
        return false;
    *is_new = application == 0 && format == 0 && tables == 0;
    bool is_known = format == SQLITE_STORE_FORMAT || format == SQLITE_STORE_FORMAT_MARKED;
    if (*is_new || (application == SQLITE_APPLICATION_ID && is_known))
        return true;
    if (application != SQLITE_APPLICATION_ID)
        return err_set(e, EX_DATAERR, "%s is an SQLite file of another program: name another store",
                       st->path);
    return err_set(e, EX_DATAERR,
                   "%s has format %lld, this tallyd knows %d and %d: use the version that wrote "
                   "it, or import into another store",
                   st->path, (long long)format, SQLITE_STORE_FORMAT, SQLITE_STORE_FORMAT_MARKED);
}

static bool open_connection(struct sqlite_store *st, enum store_mode mode, bool is_immutable, struct err *e)
{
    int flags = mode == STORE_WRITE ? SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE : SQLITE_OPEN_READONLY;
    char *uri = sqlite3_mprintf("file:%s?immutable=1", st->path);
    sqlite3_close(st->db);
    st->db = NULL;
    int rc = is_immutable ? sqlite3_open_v2(uri, &st->db, flags | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_URI, NULL)
                          : sqlite3_open_v2(st->path, &st->db, flags | SQLITE_OPEN_NOMUTEX, NULL);
    sqlite3_free(uri);
    if (rc != SQLITE_OK)
        return sqlite_fail(st, e, "opening");
    sqlite3_busy_timeout(st->db, BUSY_MS);
    return true;
}

static bool has_wal(const struct sqlite_store *st)
{
    char path[4096];
    struct stat status;
    snprintf(path, sizeof path, "%s-wal", st->path);
    return stat(path, &status) == 0 && status.st_size > 0;
}

bool sqlite_open_file(struct sqlite_store *st, enum store_mode mode, struct err *e)
{
    if (mode == STORE_READ && access(st->path, F_OK) != 0)
        return err_set(e, EX_NOINPUT, "there is no store %s; `tallyd import` or `tallyd run` creates it",
                       st->path);
    struct stat status;
    if (stat(st->path, &status) == 0 && S_ISDIR(status.st_mode))
        return err_set(e, EX_CANTCREAT, "%s is a directory: name a file in it", st->path);
    bool is_new;
    if (!open_connection(st, mode, false, e))
        return false;
    if (mode == STORE_WRITE && sqlite3_db_readonly(st->db, "main") == 1)
        return err_set(e, EX_NOPERM,
                       "%s cannot be written; check the owner and mode of the file and its directory",
                       st->path);
    if (!check_format(st, &is_new, e)) {
        /* Without a writer there is no WAL and nothing changes: then a reader needs no right to make one. */
        bool may_retry = mode == STORE_READ && (e->code == EX_NOPERM || e->code == EX_CANTCREAT) &&
                         !has_wal(st) && strpbrk(st->path, "?#%") == NULL;
        if (!may_retry || !open_connection(st, mode, true, e) || !check_format(st, &is_new, e))
            return false;
    }
    char pragmas[512];
    snprintf(pragmas, sizeof pragmas, "PRAGMA query_only=1; PRAGMA cache_size=-%d", SQLITE_READER_CACHE_KIB);
    if (mode == STORE_READ)
        return is_new ? err_set(e, EX_NOINPUT, "%s is empty: nothing was counted yet", st->path)
                      : sqlite_execute(st, pragmas, "opening", e);
    snprintf(pragmas, sizeof pragmas,
             "%sPRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA cache_size=-%d;"
             "PRAGMA wal_autocheckpoint=8192; PRAGMA journal_size_limit=67108864; PRAGMA temp_store=MEMORY;",
             is_new ? "PRAGMA page_size=8192; PRAGMA auto_vacuum=INCREMENTAL;" : "", SQLITE_WRITER_CACHE_KIB);
    if (!sqlite_execute(st, pragmas, "opening", e))
        return false;
    if (!is_new)
        return true;
    snprintf(pragmas, sizeof pragmas, "PRAGMA application_id=%d; PRAGMA user_version=%d;",
             SQLITE_APPLICATION_ID, SQLITE_STORE_FORMAT);
    return sqlite_execute(st, "BEGIN", "creating", e) &&
           sqlite_execute(st, schema, "creating the tables", e) &&
           sqlite_execute(st, pragmas, "creating", e) && sqlite_execute(st, "COMMIT", "creating", e);
}
