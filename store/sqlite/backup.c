/* Copies the embedded store to one file beside its writer, and puts such a copy back.
 *
 * Copy   : SQLite's backup API copies within one read transaction, so the copy is of one moment. Without the
 *          transaction, each commit of the writer would begin the copy anew. The writer continues. Its WAL
 *          grows meanwhile, since a checkpoint stops at the frames that a reader still needs.
 * File   : the copy is in journal_mode DELETE, without -wal and -shm. It can be moved, and read from a
 *          read-only place. The next writer makes it WAL again.
 * Replace: the old file is closed first: SQLite moves its WAL into it and removes the WAL. That fails while
 *          any other program has it open. Otherwise SQLite would take the old WAL for the new file's own. */
#include "store/backup.h"
#include "base/mem.h"
#include "store/sqlite/internal.h"
#include "store/sqlite/vfs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define STEP_PAGES 1024 /* 8 MiB between two calls of goes_on() */

/* A file under its temporary name. */
struct fresh {
    char path[BACKUP_PATH_BYTES];
    int fd; /* descriptor of the file, locked */
    struct sqlite_store store;
};

static void fresh_end(struct fresh *f)
{
    sqlite3_close(f->store.db);
    f->store.db = NULL;
    if (f->fd >= 0)
        close(f->fd);
}

static bool fresh_begin(struct fresh *f, const char *path, mode_t mode, struct err *e)
{
    *f = (struct fresh){.fd = -1};
    f->store.path = f->path;
    if (!backup_partial(path, f->path, e))
        return false;
    f->fd = open(f->path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (f->fd < 0)
        return err_set(e, errno == EACCES || errno == EROFS ? EX_NOPERM : EX_CANTCREAT,
                       "cannot create %s: %s; check the owner and mode of its directory", f->path,
                       strerror(errno));
    if (flock(f->fd, LOCK_EX | LOCK_NB) != 0)
        return err_set_retryable(e, EX_TEMPFAIL, "%s is being written by another tallyd: wait for it",
                                 f->path);
    if (ftruncate(f->fd, 0) != 0 || fchmod(f->fd, mode & 0777) != 0)
        return err_set(e, EX_IOERR, "cannot write %s: %s", f->path, strerror(errno));
    return true;
}

static bool fresh_open(struct fresh *f, const char *pragmas, struct err *e)
{
    sqlite3_close(f->store.db);
    f->store.db = NULL;
    int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX;
    if (sqlite3_open_v2(f->path, &f->store.db, flags, sqlite_vfs_name()) == SQLITE_OK &&
        sqlite3_exec(f->store.db, pragmas, NULL, NULL, NULL) == SQLITE_OK)
        return true;
    return sqlite_fail(&f->store, e, "opening the copy");
}

/* SQLite reports every failure on the copy's connection. If a page is damaged, it is the source's. */
static bool fail_copy(const struct fresh *to, const struct sqlite_store *from, int rc, struct err *e)
{
    struct sqlite_store failed = to->store;
    if (rc == SQLITE_IOERR_DATA || (rc & 0xff) == SQLITE_CORRUPT)
        failed.path = from->path;
    return sqlite_fail(&failed, e, "copying");
}

static bool copy_pages(struct fresh *to, struct sqlite_store *from, const char *what, const struct backup *b,
                       struct err *e)
{
    sqlite3_backup *copy = sqlite3_backup_init(to->store.db, "main", from->db, "main");
    if (copy == NULL)
        return sqlite_fail(&to->store, e, "copying");
    bool goes_on = true;
    int rc = SQLITE_OK;
    while (goes_on && rc == SQLITE_OK) {
        rc = sqlite3_backup_step(copy, STEP_PAGES);
        uint64_t total = (uint64_t)sqlite3_backup_pagecount(copy);
        uint64_t left = (uint64_t)sqlite3_backup_remaining(copy);
        goes_on = b->goes_on(b->context, "pages", total - left, total);
    }
    sqlite3_backup_finish(copy);
    if (!goes_on)
        return backup_stopped(what, e);
    return rc == SQLITE_DONE || (fail_copy(to, from, rc, e), err_prefix(e, "%s", what));
}

static bool quick_check(struct sqlite_store *st, struct err *e)
{
    sqlite3_stmt *s;
    if (!sqlite_prepare(st, &s, e, "PRAGMA quick_check(1)"))
        return false;
    bool found = sqlite3_step(s) == SQLITE_ROW;
    bool good = found && strcmp(sqlite_text(s, 0), "ok") == 0;
    if (!found)
        (void)sqlite_fail(st, e, "checking");
    else if (!good)
        err_set(e, EX_DATAERR, "%s", sqlite_text(s, 0));
    sqlite3_finalize(s);
    return good;
}

/* Check the copy, leave it as one file, and make it durable. */
static bool fresh_finish(struct fresh *f, const char *of, const struct backup *b, struct err *e)
{
    if (!b->goes_on(b->context, "checking", 0, 0))
        return backup_stopped("the check of the copy", e);
    if (!fresh_open(f, "PRAGMA locking_mode=EXCLUSIVE; PRAGMA journal_mode=DELETE", e))
        return false;
    if (!quick_check(&f->store, e))
        return err_prefix(e, "%s is damaged: its copy fails PRAGMA quick_check", of);
    sqlite3_close(f->store.db);
    f->store.db = NULL;
    return backup_sync(f->path, e);
}

/* Lock a snapshot of the source. BEGIN alone does not do it yet, so read something, too. */
static bool hold_moment(struct store *source, struct err *e)
{
    struct sqlite_store *st = sqlite_of(source);
    return sqlite_hold(source, e) &&
           (sqlite3_exec(st->db, "SELECT count(*) FROM sqlite_master", NULL, NULL, NULL) == SQLITE_OK ||
            sqlite_fail(st, e, "beginning a read"));
}

/* Turn the copy's checksums on before pages are copied, since SQLite may write other pages before page 1. */
static bool begin_checksums(struct fresh *to, struct err *e)
{
    char pragmas[128];
    int reserve = SQLITE_VFS_RESERVED;
    sqlite3_file_control(to->store.db, "main", SQLITE_FCNTL_RESERVE_BYTES, &reserve);
    snprintf(pragmas, sizeof pragmas, "PRAGMA page_size=%d; PRAGMA application_id=%d; PRAGMA user_version=%d",
             SQLITE_VFS_PAGE, SQLITE_APPLICATION_ID, SQLITE_SEALED_FORMAT);
    return sqlite_execute(&to->store, pragmas, "creating the copy", e);
}

static bool copy_file(struct fresh *to, const char *from, const char *what, const struct backup *b,
                      struct err *e)
{
    struct store *source = sqlite_open(from, STORE_READ, NULL, 0, e);
    if (source == NULL)
        return false;
    bool good = hold_moment(source, e) &&
                fresh_open(to, "PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF", e) &&
                (sqlite_of(source)->is_unsealed || begin_checksums(to, e)) &&
                copy_pages(to, sqlite_of(source), what, b, e) && fresh_finish(to, from, b, e);
    sqlite_close(source);
    return good;
}

/* Give the copy its final name, durably. */
static bool fresh_rename(struct fresh *f, const char *path, struct err *e)
{
    if (rename(f->path, path) != 0)
        return err_set(e, EX_CANTCREAT, "cannot rename %s to %s: %s", f->path, path, strerror(errno));
    return backup_sync_parent(path, e);
}

static bool is_same_file(const char *a, const char *b)
{
    struct stat x, y;
    return stat(a, &x) == 0 && stat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

static bool refuse_itself(const char *store, const struct backup *b, struct err *e)
{
    return !is_same_file(store, b->path) ||
           err_set(e, EX_USAGE, "%s is the store itself: name another file", b->path);
}

static void say(struct text *said, const char *what, const char *path)
{
    struct stat status = {0};
    (void)!stat(path, &status);
    text_printf(said, "%s: %.1f MiB%s\n", path, (double)status.st_size / (1 << 20), what);
}

bool sqlite_backup(const char *store, const struct backup *b, struct text *said, struct err *e)
{
    struct fresh copy = {.fd = -1};
    struct stat status = {.st_mode = 0640};
    if (!refuse_itself(store, b, e) || !backup_may_write(b, e))
        return false;
    if (stat(store, &status) != 0)
        return err_set(e, EX_NOINPUT, "there is no store %s: %s", store, strerror(errno));
    bool locked = fresh_begin(&copy, b->path, status.st_mode, e);
    bool good = locked && copy_file(&copy, store, "the backup", b, e) && backup_may_write(b, e) &&
                fresh_rename(&copy, b->path, e);
    if (locked && !good)
        (void)!unlink(copy.path);
    fresh_end(&copy);
    if (good)
        say(said, ", checked", b->path);
    return good;
}

/* ---- putting it back */

static bool remove_beside(const char *path, struct err *e)
{
    static const char *const ends[] = {"-wal", "-shm", "-journal"};
    for (size_t i = 0; i < COUNT_OF(ends); i++) {
        char name[BACKUP_PATH_BYTES + 16];
        snprintf(name, sizeof name, "%s%s", path, ends[i]);
        if (unlink(name) != 0 && errno != ENOENT)
            return err_set(e, EX_IOERR, "cannot remove %s: %s", name, strerror(errno));
    }
    return true;
}

/* Move the WAL of the old file into it, which also proves that no other program has the file open. If the
 * old file is damaged, its WAL is only removed. */
static bool close_old(const char *path, struct err *e)
{
    struct sqlite_store old = {.path = (char *)(uintptr_t)path};
    int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX;
    int rc = sqlite3_open_v2(path, &old.db, flags, sqlite_vfs_name());
    if (rc == SQLITE_OK)
        rc = sqlite3_exec(old.db, "PRAGMA journal_mode=DELETE", NULL, NULL, NULL);
    int code = old.db != NULL ? sqlite3_extended_errcode(old.db) : rc;
    bool is_damaged =
        (rc & 0xff) == SQLITE_NOTADB || (rc & 0xff) == SQLITE_CORRUPT || code == SQLITE_IOERR_DATA;
    bool is_busy = (rc & 0xff) == SQLITE_BUSY || (rc & 0xff) == SQLITE_LOCKED;
    if (is_busy)
        err_set_retryable(e, EX_TEMPFAIL, "%s is open in another program: close it, then restore", path);
    else if (rc != SQLITE_OK)
        (void)sqlite_fail(&old, e, "closing the old store");
    sqlite3_close(old.db);
    if (rc != SQLITE_OK && !is_damaged)
        return false;
    return remove_beside(path, e) && backup_sync_parent(path, e);
}

/* Give the copy the owner of the old file, since a daemon of another user may write it. */
static bool take_owner(struct fresh *f, const struct stat *old, struct err *e)
{
    return (old->st_uid == geteuid() && old->st_gid == getegid()) ||
           fchown(f->fd, old->st_uid, old->st_gid) == 0 ||
           err_set(e, EX_NOPERM, "cannot give %s to the owner of the old store: %s; restore as that user",
                   f->path, strerror(errno));
}

static bool is_to_be_kept(const char *store, const struct backup *b, struct err *e)
{
    struct stat status;
    bool holds_something = stat(store, &status) == 0 && status.st_size > 0;
    return holds_something && !b->force &&
           !err_set(e, EX_CANTCREAT, "%s is a store already: name another one, or give --force to replace it",
                    store);
}

static bool put_back(const char *store, const char *real, const struct backup *b, struct err *e)
{
    struct fresh copy = {.fd = -1};
    struct stat old;
    if (is_to_be_kept(store, b, e))
        return false;
    if (stat(real, &old) != 0)
        return err_set(e, EX_IOERR, "cannot stat %s: %s", real, strerror(errno));
    bool locked = fresh_begin(&copy, real, old.st_mode, e);
    bool good = locked && copy_file(&copy, b->path, "the restore", b, e) && take_owner(&copy, &old, e) &&
                close_old(real, e) && fresh_rename(&copy, real, e);
    if (locked && !good)
        (void)!unlink(copy.path);
    fresh_end(&copy);
    return good;
}

bool sqlite_restore(const char *store, const struct backup *b, struct text *said, struct err *e)
{
    struct sqlite_store locked = {.path = (char *)(uintptr_t)store, .lock_fd = -1, .file_fd = -1};
    if (access(b->path, R_OK) != 0)
        return err_set(e, EX_NOINPUT, "cannot read %s: %s", b->path, strerror(errno));
    if (!refuse_itself(store, b, e) || is_to_be_kept(store, b, e))
        return false;
    sqlite_enter();
    bool good = sqlite_take_lock(&locked, e);
    char *real = good ? realpath(store, NULL) : NULL;
    if (good && real == NULL)
        good = err_set(e, EX_IOERR, "cannot stat %s: %s", store, strerror(errno));
    good = good && put_back(store, real, b, e);
    free(real);
    sqlite_leave(&locked);
    if (good)
        say(said, ", checked; the next run counts again what came after the backup", store);
    return good;
}
