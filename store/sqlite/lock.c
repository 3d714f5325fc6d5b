/* Keeps a file to one writer, whatever names the file has. Checks that names still lead to the opened files.
 *
 * The writer locks PATH-lock by flock(2), and the database file itself: a hard link in another directory
 * has another PATH-lock. flock does not conflict with SQLite's own locks, which are fcntl's. But closing any
 * descriptor of the file takes all of SQLite's locks away from the process. So such a descriptor is closed
 * only when the process has no store open. Network file systems turn flock into fcntl locks: there only
 * PATH-lock is locked.
 */
#include "base/check.h"
#include "base/log.h"
#include "base/mem.h"
#include "store/sqlite/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#define FILE_MODE 0640 /* of new files; SQLite gives its own beside the store the same */

#define LOCK_MS 2000

static struct {
    pthread_mutex_t mutex;
    int *fds; /* descriptors to close with the last store */
    size_t count, capacity, stores;
} left = {.mutex = PTHREAD_MUTEX_INITIALIZER};

void sqlite_enter(void)
{
    pthread_mutex_lock(&left.mutex);
    left.stores++;
    pthread_mutex_unlock(&left.mutex);
}

static void leave_open(int fd)
{
    flock(fd, LOCK_UN);
    pthread_mutex_lock(&left.mutex);
    left.fds = xgrow(left.fds, &left.capacity, left.count + 1, sizeof *left.fds);
    left.fds[left.count++] = fd;
    pthread_mutex_unlock(&left.mutex);
}

void sqlite_leave(struct sqlite_store *st)
{
    if (st->file_fd >= 0)
        leave_open(st->file_fd);
    if (st->lock_fd >= 0)
        close(st->lock_fd);
    pthread_mutex_lock(&left.mutex);
    ASSERT(left.stores > 0);
    if (--left.stores == 0) {
        while (left.count > 0)
            close(left.fds[--left.count]);
        free(left.fds);
        left.fds = NULL;
        left.capacity = 0;
    }
    pthread_mutex_unlock(&left.mutex);
}

const char *sqlite_beside(const struct sqlite_store *st, const char *suffix, char path[SQLITE_PATH_BYTES])
{
    char *real = realpath(st->path, NULL);
    snprintf(path, SQLITE_PATH_BYTES, "%s%s", real != NULL ? real : st->path, suffix);
    free(real);
    return path;
}

/* Wait up to LOCK_MS, since a writer that was just killed may hold its lock for a moment. */
static bool lock_patiently(int fd)
{
    bool locked = flock(fd, LOCK_EX | LOCK_NB) == 0;
    for (int waited_ms = 0; !locked && waited_ms < LOCK_MS; waited_ms += 50) {
        nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
        locked = flock(fd, LOCK_EX | LOCK_NB) == 0;
    }
    return locked;
}

static bool lock_name(struct sqlite_store *st, struct err *e)
{
    char path[SQLITE_PATH_BYTES];
    st->lock_fd =
        open(sqlite_beside(st, "-lock", path), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, FILE_MODE);
    if (st->lock_fd < 0 && errno == ELOOP)
        return err_set(e, EX_NOPERM, "%s is a symbolic link, through which tallyd does not write: remove it",
                       path);
    if (st->lock_fd < 0)
        return err_set(e, errno == EACCES || errno == EROFS ? EX_NOPERM : EX_CANTCREAT,
                       "cannot create %s: %s; the store's directory must be writable", path, strerror(errno));
    if (lock_patiently(st->lock_fd)) {
        if (ftruncate(st->lock_fd, 0) != 0 || dprintf(st->lock_fd, "%ld\n", (long)getpid()) < 0)
            return err_set(e, EX_IOERR, "cannot write %s: %s", path, strerror(errno));
        return true;
    }
    char holder[32] = "";
    ssize_t n = pread(st->lock_fd, holder, sizeof holder - 1, 0);
    holder[n > 0 ? strcspn(holder, "\n") : 0] = '\0';
    return err_set_retryable(
        e, EX_TEMPFAIL,
        "%s is being written by another tallyd (process %s): one writer per file. Stop it first. A daemon "
        "takes files to import from its own user and root, and answers questions over HTTP",
        st->path, holder);
}

static bool is_remote(int fd)
{
    static const uint32_t kinds[] = {0x6969 /* NFS */, 0x517b /* SMB */, 0xff534d42 /* CIFS */,
                                     0xfe534d42 /* SMB2 */};
    struct statfs system;
    bool found = false;
    for (size_t i = 0; fstatfs(fd, &system) == 0 && i < COUNT_OF(kinds); i++)
        found |= (uint32_t)system.f_type == kinds[i];
    return found;
}

bool sqlite_check_names(const struct sqlite_store *st, const struct stat *status, struct err *e)
{
    return status->st_nlink <= 1 ||
           err_set(e, EX_CONFIG,
                   "%s has %lu names (hard links). Each name has its own log, so one writer does not see "
                   "what another wrote. Remove all names but one (find DIRECTORY -samefile %s)",
                   st->path, (unsigned long)status->st_nlink, st->path);
}

static bool lock_file(struct sqlite_store *st, struct err *e)
{
    struct stat status;
    st->file_fd = open(st->path, O_RDWR | O_CREAT | O_CLOEXEC, FILE_MODE);
    if (st->file_fd < 0 || fstat(st->file_fd, &status) != 0) /* SQLite reports the reason */
        return true;
    if (!is_remote(st->file_fd) && !lock_patiently(st->file_fd))
        return err_set_retryable(
            e, EX_TEMPFAIL,
            "%s is being written by another tallyd under another name (a hard link), or %s-lock "
            "was removed: one writer per file",
            st->path, st->path);
    return sqlite_check_names(st, &status, e);
}

bool sqlite_take_lock(struct sqlite_store *st, struct err *e)
{
    struct stat status;
    if (stat(st->path, &status) != 0 && errno == ENOENT) { /* like SQLite, follow a link that dangles */
        int fd = open(st->path, O_RDWR | O_CREAT | O_CLOEXEC, FILE_MODE);
        if (fd >= 0)
            close(fd);
    }
    return lock_name(st, e) && lock_file(st, e);
}

/* ---- the open files */

static const char *const suffixes[SQLITE_FILE_COUNT] = {"", "-wal", "-shm"};

static struct sqlite_file identify(const struct sqlite_store *st, int file, nlink_t *names)
{
    char path[SQLITE_PATH_BYTES];
    struct stat status;
    snprintf(path, sizeof path, "%s%s", file == 0 ? st->path : st->real_path, suffixes[file]);
    if (stat(path, &status) != 0)
        return (struct sqlite_file){0};
    *names = status.st_nlink;
    return (struct sqlite_file){status.st_dev, status.st_ino};
}

static bool is_same(const struct sqlite_file *a, const struct sqlite_file *b)
{
    return a->device == b->device && a->inode == b->inode;
}

static bool refuse(const struct sqlite_store *st, int file, bool is_gone, struct err *e)
{
    return err_set(
        e, EX_DATAERR,
        "%s%s was %s while it was open: what is counted now would be lost with it. Nothing more is counted; "
        "put the right file back, or remove %s, %s-wal and %s-shm for a new store, and start again",
        st->path, suffixes[file], is_gone ? "removed" : "replaced", st->path, st->path, st->path);
}

bool sqlite_know_files(struct sqlite_store *st, struct err *e)
{
    struct stat status;
    nlink_t names;
    st->real_path = xstrdup(sqlite3_db_filename(st->db, "main"));
    for (int i = 0; i < SQLITE_FILE_COUNT; i++)
        st->files[i] = identify(st, i, &names);
    const struct sqlite_file none = {0}, locked = fstat(st->file_fd, &status) == 0
                                                      ? (struct sqlite_file){status.st_dev, status.st_ino}
                                                      : none;
    int has_moved = 0;
    sqlite3_file_control(st->db, "main", SQLITE_FCNTL_HAS_MOVED, &has_moved);
    if (has_moved == 0 && (st->file_fd < 0 || is_same(&st->files[0], &locked)))
        return true;
    return refuse(st, 0, is_same(&st->files[0], &none), e);
}

bool sqlite_check_files(struct sqlite_store *st, struct err *e)
{
    static const struct sqlite_file none;
    nlink_t names = 1, ignored;
    for (int i = 0; i < SQLITE_FILE_COUNT; i++) {
        struct sqlite_file now = identify(st, i, i == 0 ? &names : &ignored);
        if (!is_same(&now, &st->files[i]))
            return refuse(st, i, is_same(&now, &none), e);
    }
    if (names > 1)
        log_limited(LOG_LEVEL_WARN, "store_has_names",
                    "file=%s names=%lu next=\"remove the other hard links: a program that opens one does not "
                    "see the log\"",
                    st->path, (unsigned long)names);
    return true;
}
