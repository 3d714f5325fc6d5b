/* Is the log (PATH-wal) that a crash left good? SQLite takes the first damaged frame for the log's end, and
 * reports nothing. But the transactions behind that frame were durable, and would be lost.
 *
 * A frame belongs to the log if it has one of the log's two salts: a flipped bit spoils only one. The first
 * damaged frame and the frames behind it decide:
 *   no end of a transaction: the process was killed while it wrote. SQLite is right to drop the frames.
 *   one end, and no frame behind it: the machine lost its power, or the last transaction is damaged. The
 *       writer drops the transaction and counts its events again. A reader, which cannot, is refused.
 *   more frames: each transaction is on disk before the next begins, so this is damage: refused.
 *
 * SQLite writes a frame in two writes: its header, then its page. The kernel may cut the second one short
 * when the process is killed. Then the last frame's header says that the transaction ended, but its page is
 * old in part. The shared index (PATH-shm) tells such a frame from a damaged one. SQLite raises the number
 * of committed frames in it only after the last frame is written. Frames behind that number were never part
 * of the store. The index is not synced, so it cannot tell after a loss of power.
 */
#include "base/log.h"
#include "base/load.h"
#include "base/mem.h"
#include "store/sqlite/internal.h"
#include "store/sqlite/vfs.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define HEADER       32
#define FRAME_HEADER 24
#define PAGE_MAX     65536

/* The shared index begins with two copies of struct index_header (sqlite.org/walformat.html). */
#define INDEX_VERSION 3007000
struct index_header {
    uint32_t version, unused, change;
    uint8_t is_init, is_big_endian;
    uint16_t page;
    uint32_t frames, pages, frame_sum[2];
    unsigned char salts[8];
    uint32_t sum[2];
};
_Static_assert(sizeof(struct index_header) == 48, "as SQLite writes it");

struct log {
    const char *path;
    int fd;
    unsigned char header[HEADER];
    size_t page;
    uint32_t sum[2];
    unsigned char *frame;
};

enum log_end { LOG_WHOLE, LOG_TORN, LOG_DAMAGED };

static int is_big_endian(const struct log *l)
{
    return l->header[3] & 1;
}

static bool has_sum(const struct log *l, const unsigned char *p)
{
    return load_be32(p) == l->sum[0] && load_be32(p + 4) == l->sum[1];
}

/* Read the log's header. False: there is no header, or it is damaged (*end is LOG_DAMAGED). */
static bool read_header(struct log *l, enum log_end *end)
{
    static const unsigned char zeros[HEADER];
    if (pread(l->fd, l->header, HEADER, 0) != HEADER || memcmp(l->header, zeros, HEADER) == 0)
        return false;
    l->page = load_be32(l->header + 8);
    sqlite_vfs_add_to_sum(l->sum, l->header, HEADER - 8, is_big_endian(l));
    bool good = (load_be32(l->header) | 1) == 0x377f0683 && has_sum(l, l->header + HEADER - 8) &&
                l->page >= 512 && l->page <= PAGE_MAX && (l->page & (l->page - 1)) == 0;
    *end = good ? LOG_WHOLE : LOG_DAMAGED;
    return good;
}

/* Does the frame continue the frames before it? */
static bool is_good(struct log *l)
{
    sqlite_vfs_add_to_sum(l->sum, l->frame, 8, is_big_endian(l));
    sqlite_vfs_add_to_sum(l->sum, l->frame + FRAME_HEADER, l->page, is_big_endian(l));
    return memcmp(l->frame + 8, l->header + 16, 8) == 0 && load_be32(l->frame) != 0 &&
           has_sum(l, l->frame + 16);
}

static enum log_end read_frames(struct log *l, long long *damaged)
{
    const size_t bytes = FRAME_HEADER + l->page;
    bool is_torn = false, has_end = false;
    for (long long n = 0; pread(l->fd, l->frame, bytes, HEADER + n * (off_t)bytes) == (ssize_t)bytes; n++) {
        if (memcmp(l->frame + 8, l->header + 16, 4) != 0 && memcmp(l->frame + 12, l->header + 20, 4) != 0)
            break; /* the frame is of an older log in the same file */
        if (!is_torn && is_good(l))
            continue;
        if (has_end)
            return LOG_DAMAGED;
        *damaged = is_torn ? *damaged : n + 1;
        is_torn = true;
        has_end = load_be32(l->frame + 4) != 0;
    }
    return has_end ? LOG_TORN : LOG_WHOLE;
}

/* Was the file written since the machine started? The system's clocks say so: the kernel stamps files by
 * them. */
static bool is_of_this_boot(int fd)
{
    struct stat s;
    struct timespec now, up;
    return fstat(fd, &s) == 0 && clock_gettime(CLOCK_REALTIME, &now) == 0 &&
           clock_gettime(CLOCK_BOOTTIME, &up) == 0 && s.st_mtim.tv_sec > now.tv_sec - up.tv_sec;
}

/* The number of committed frames in the log, by the shared index; -1: the index cannot tell. */
static long long read_index(const struct sqlite_store *st, const struct log *l)
{
    char path[SQLITE_PATH_BYTES];
    struct index_header h[2];
    uint32_t sum[2] = {0};
    int fd = open(sqlite_beside(st, "-shm", path), O_RDONLY | O_CLOEXEC);
    bool is_read = fd >= 0 && is_of_this_boot(fd) && pread(fd, h, sizeof h, 0) == sizeof h;
    if (fd >= 0)
        close(fd);
    if (!is_read || memcmp(&h[0], &h[1], sizeof h[0]) != 0 || h->version != INDEX_VERSION || !h->is_init ||
        memcmp(h->salts, l->header + 16, sizeof h->salts) != 0)
        return -1;
    sqlite_vfs_add_to_sum(sum, (const unsigned char *)h, offsetof(struct index_header, sum),
                          __BYTE_ORDER == __BIG_ENDIAN);
    return memcmp(sum, h->sum, sizeof sum) == 0 ? (long long)h->frames : -1;
}

static bool judge(const struct log *l, enum log_end end, long long frame, enum store_mode mode, struct err *e)
{
    if (end == LOG_DAMAGED)
        return err_set(
            e, EX_DATAERR,
            "%s is damaged at frame %lld of its transactions, and others follow: restore the store from a "
            "backup, or count its sources again into another one",
            l->path, frame);
    if (end == LOG_TORN && mode == STORE_READ)
        return err_set(e, EX_DATAERR,
                       "%s: the last transaction is damaged at frame %lld, or a loss of power cut it off: "
                       "start `tallyd run` or `tallyd import`, which counts its events again",
                       l->path, frame);
    if (end == LOG_TORN)
        log_warn("store_log_torn",
                 "file=%s frame=%lld next=\"counting the events of the last transaction again\"", l->path,
                 frame);
    return true;
}

/* Keep writers out, so that the log does not change. Returns a locked descriptor; -1: there is no PATH-lock;
 * -2: a writer has the lock. */
static int lock_out_writers(const struct sqlite_store *st)
{
    char path[SQLITE_PATH_BYTES];
    int fd = open(sqlite_beside(st, "-lock", path), O_RDONLY | O_CLOEXEC);
    if (fd >= 0 && flock(fd, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
        close(fd);
        return -2;
    }
    return fd;
}

bool sqlite_check_log(const struct sqlite_store *st, enum store_mode mode, struct err *e)
{
    char path[SQLITE_PATH_BYTES];
    struct log l = {.path = sqlite_beside(st, "-wal", path)};
    enum log_end end = LOG_WHOLE;
    long long damaged = 0;
    int lock = mode == STORE_READ ? lock_out_writers(st) : -1;
    if (lock == -2) /* a writer is there, and checked the log when it began */
        return true;
    l.fd = open(path, O_RDONLY | O_CLOEXEC);
    if (l.fd >= 0 && read_header(&l, &end)) {
        l.frame = xmalloc(FRAME_HEADER + l.page);
        end = read_frames(&l, &damaged);
        free(l.frame);
        long long committed = end == LOG_WHOLE ? -1 : read_index(st, &l);
        if (committed >= 0 && damaged > committed)
            end = LOG_WHOLE;
    }
    if (l.fd >= 0)
        close(l.fd);
    if (end != LOG_WHOLE && mode == STORE_READ && lock < 0)
        lock = lock_out_writers(st); /* a writer may have created the lock and begun meanwhile */
    if (lock == -2)
        return true;
    if (lock >= 0)
        close(lock);
    return judge(&l, end, damaged, mode, e);
}
