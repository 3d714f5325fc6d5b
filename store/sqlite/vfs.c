#include "store/sqlite/vfs.h"

#include "base/check.h"
#include "base/load.h"
#include "store/sqlite/sqlite.h"

#define XXH_INLINE_ALL
#include <endian.h>
#include <pthread.h>
#include <sqlite3.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <xxhash.h>

#define PAGE          SQLITE_VFS_PAGE
#define SUMMED        (PAGE - SQLITE_VFS_RESERVED)
#define HEADER_BYTES  100 /* SQLite reads the file's header before it has a lock */
#define LOG_HEADER    32
#define FRAME_HEADER  24
#define FRAME         (FRAME_HEADER + PAGE)
#define WRITTEN_NEVER INT64_MAX

struct file {
    sqlite3_file base; /* first: a struct file is an sqlite3_file */
    sqlite3_file *real;
    enum { FILE_OTHER, FILE_DATABASE, FILE_LOG } kind;
    bool is_sealed;       /* database: whether its pages have checksums */
    int64_t written_from; /* log: offset from which this handle wrote since its last sync; read unchecked */
};

static struct sqlite3_vfs vfs, *parent;
static _Thread_local struct {
    const char *what;
    long long number;
} damage;

const char *sqlite_vfs_damage(char buf[SQLITE_VFS_DAMAGE_BYTES])
{
    snprintf(buf, SQLITE_VFS_DAMAGE_BYTES, damage.what != NULL ? damage.what : "a page", damage.number);
    return buf;
}

static int damaged(const char *what, int64_t number)
{
    damage.what = what;
    damage.number = (long long)number;
    return SQLITE_IOERR_DATA;
}

static struct file *file_of(sqlite3_file *f)
{
    return (struct file *)f;
}

static sqlite3_file *real_of(sqlite3_file *f)
{
    return file_of(f)->real;
}

static int read_real(struct file *f, void *buf, int n, int64_t at)
{
    return f->real->pMethods->xRead(f->real, buf, n, at);
}

/* ---- pages of the database */

/* The checksum of page 1 leaves out the counters of changes in its header. Programs that copy the file page
 * by page (`sqlite3 FILE .backup`) raise them. No answer depends on these bytes: SQLite only compares them
 * with the values that it read before. */
static uint64_t first_page_sum(const unsigned char *page)
{
    unsigned char copy[SUMMED];
    memcpy(copy, page, sizeof copy);
    memset(copy + 24, 0, 4); /* counter of changes */
    memset(copy + 40, 0, 4); /* counter of changes of the schema */
    memset(copy + 92, 0, 8); /* SQLite version that wrote last, and its counter of changes */
    return XXH3_64bits(copy, sizeof copy);
}

/* The checksum of a page. It is never 0, since 0 stands for a page without a checksum. */
static uint64_t page_sum(const unsigned char *page, int64_t number)
{
    uint64_t hash = number == 1 ? first_page_sum(page) : XXH3_64bits(page, SUMMED);
    uint64_t sum = hash ^ (uint64_t)number * UINT64_C(0x9e3779b97f4a7c15);
    return sum != 0 ? sum : 1;
}

/* Two numbers of the header decide, so that damage to one of them does not turn checksums off. */
static bool header_says_sealed(const unsigned char *header)
{
    uint32_t application = load_be32(header + 68);
    bool is_reserved = header[20] == SQLITE_VFS_RESERVED;
    return application == SQLITE_APPLICATION_ID
               ? is_reserved || load_be32(header + 60) >= SQLITE_SEALED_FORMAT
               : is_reserved && application == 0; /* being created */
}

/* Compare a page's checksum, and replace it by zeros for SQLite. */
static int check_page(unsigned char *page, int64_t at)
{
    int64_t number = at / PAGE + 1;
    uint64_t sum;
    memcpy(&sum, page + SUMMED, sizeof sum);
    memset(page + SUMMED, 0, SQLITE_VFS_RESERVED);
    return sum == 0 || le64toh(sum) == page_sum(page, number) ? SQLITE_OK : damaged("page %lld", number);
}

/* Read a part of a page. If it crosses the end of a page, the page size in the header is damaged. */
static int read_part(struct file *f, void *buf, int n, int64_t at)
{
    unsigned char page[PAGE];
    int64_t from = at % PAGE;
    if (from + n > PAGE)
        return damaged("page %lld", at / PAGE + 1);
    int rc = read_real(f, page, PAGE, at - from);
    if (rc == SQLITE_OK)
        rc = check_page(page, at - from);
    memcpy(buf, page + from, (size_t)n);
    return rc;
}

static int read_database(struct file *f, void *buf, int n, int64_t at)
{
    bool is_header = at < HEADER_BYTES && at + n <= HEADER_BYTES; /* read without a lock, maybe torn */
    if (f->is_sealed && !is_header && (n != PAGE || at % PAGE != 0))
        return read_part(f, buf, n, at);
    int rc = read_real(f, buf, n, at);
    if (rc != SQLITE_OK)
        return rc;
    if (at == 0 && n >= HEADER_BYTES)
        f->is_sealed |= header_says_sealed(buf);
    return !f->is_sealed || is_header ? rc : n == PAGE ? check_page(buf, at) : read_part(f, buf, n, at);
}

static int write_database(struct file *f, const void *buf, int n, int64_t at)
{
    unsigned char page[PAGE];
    if (at == 0 && n >= HEADER_BYTES)
        f->is_sealed = header_says_sealed(buf);
    if (!f->is_sealed || n != PAGE)
        return f->real->pMethods->xWrite(f->real, buf, n, at);
    uint64_t sum = htole64(page_sum(buf, at / PAGE + 1));
    memcpy(page, buf, SUMMED);
    memcpy(page + SUMMED, &sum, sizeof sum);
    return f->real->pMethods->xWrite(f->real, page, n, at);
}

/* ---- frames of the log */

void sqlite_vfs_add_to_sum(uint32_t sum[2], const unsigned char *bytes, size_t len, int is_big_endian)
{
    uint32_t s0 = sum[0], s1 = sum[1], pair[2];
    ASSERT(len % sizeof pair == 0);
    for (size_t i = 0; i < len; i += sizeof pair) {
        memcpy(pair, bytes + i, sizeof pair);
        s0 += (is_big_endian ? be32toh(pair[0]) : le32toh(pair[0])) + s1;
        s1 += (is_big_endian ? be32toh(pair[1]) : le32toh(pair[1])) + s0;
    }
    sum[0] = s0;
    sum[1] = s1;
}

/* The frame's checksum continues that of the frame before, or of the log's header. */
static int read_frame(struct file *f, void *buf, int64_t at)
{
    unsigned char frame[FRAME], before[8], magic[4];
    int64_t index = (at - LOG_HEADER) / FRAME, start = LOG_HEADER + index * FRAME;
    int rc = read_real(f, frame, FRAME, start);
    if (rc == SQLITE_OK)
        rc = read_real(f, before, sizeof before, index == 0 ? LOG_HEADER - 8 : start - FRAME + 16);
    if (rc == SQLITE_OK)
        rc = read_real(f, magic, sizeof magic, 0);
    memcpy(buf, frame + FRAME_HEADER, PAGE);
    if (rc != SQLITE_OK)
        return rc;
    uint32_t sum[2] = {load_be32(before), load_be32(before + 4)};
    sqlite_vfs_add_to_sum(sum, frame, 8, magic[3] & 1);
    sqlite_vfs_add_to_sum(sum, frame + FRAME_HEADER, PAGE, magic[3] & 1);
    bool good = sum[0] == load_be32(frame + 16) && sum[1] == load_be32(frame + 20);
    return good ? SQLITE_OK : damaged("frame %lld of its log (-wal)", index + 1);
}

/* ---- functions that SQLite calls */

static int file_read(sqlite3_file *base, void *buf, int n, sqlite3_int64 at)
{
    struct file *f = file_of(base);
    if (f->kind == FILE_DATABASE)
        return read_database(f, buf, n, at);
    if (f->kind == FILE_LOG && n == PAGE && (at - LOG_HEADER) % FRAME == FRAME_HEADER && at < f->written_from)
        return read_frame(f, buf, at);
    return read_real(f, buf, n, at);
}

static int file_write(sqlite3_file *base, const void *buf, int n, sqlite3_int64 at)
{
    struct file *f = file_of(base);
    if (f->kind == FILE_DATABASE)
        return write_database(f, buf, n, at);
    if (f->kind == FILE_LOG && at < f->written_from)
        f->written_from = at;
    return f->real->pMethods->xWrite(f->real, buf, n, at);
}

static int file_sync(sqlite3_file *base, int flags)
{
    struct file *f = file_of(base);
    int rc = f->real->pMethods->xSync(f->real, flags);
    if (rc == SQLITE_OK)
        f->written_from = WRITTEN_NEVER;
    return rc;
}

static int file_close(sqlite3_file *f)
{
    return real_of(f)->pMethods->xClose(real_of(f));
}

static int file_truncate(sqlite3_file *f, sqlite3_int64 size)
{
    return real_of(f)->pMethods->xTruncate(real_of(f), size);
}

static int file_size(sqlite3_file *f, sqlite3_int64 *size)
{
    return real_of(f)->pMethods->xFileSize(real_of(f), size);
}

static int file_lock(sqlite3_file *f, int lock)
{
    return real_of(f)->pMethods->xLock(real_of(f), lock);
}

static int file_unlock(sqlite3_file *f, int lock)
{
    return real_of(f)->pMethods->xUnlock(real_of(f), lock);
}

static int file_check_lock(sqlite3_file *f, int *is_reserved)
{
    return real_of(f)->pMethods->xCheckReservedLock(real_of(f), is_reserved);
}

static int file_control(sqlite3_file *f, int op, void *arg)
{
    return real_of(f)->pMethods->xFileControl(real_of(f), op, arg);
}

static int file_sector_size(sqlite3_file *f)
{
    return real_of(f)->pMethods->xSectorSize(real_of(f));
}

static int file_characteristics(sqlite3_file *f)
{
    return real_of(f)->pMethods->xDeviceCharacteristics(real_of(f));
}

static int file_shm_map(sqlite3_file *f, int page, int bytes, int extend, void volatile **at)
{
    return real_of(f)->pMethods->xShmMap(real_of(f), page, bytes, extend, at);
}

static int file_shm_lock(sqlite3_file *f, int offset, int n, int flags)
{
    return real_of(f)->pMethods->xShmLock(real_of(f), offset, n, flags);
}

static void file_shm_barrier(sqlite3_file *f)
{
    real_of(f)->pMethods->xShmBarrier(real_of(f));
}

static int file_shm_unmap(sqlite3_file *f, int delete_it)
{
    return real_of(f)->pMethods->xShmUnmap(real_of(f), delete_it);
}

/* Version 2 has no xFetch: SQLite would read mapped pages unchecked. */
static const sqlite3_io_methods methods = {
    .iVersion = 2,
    .xClose = file_close,
    .xRead = file_read,
    .xWrite = file_write,
    .xTruncate = file_truncate,
    .xSync = file_sync,
    .xFileSize = file_size,
    .xLock = file_lock,
    .xUnlock = file_unlock,
    .xCheckReservedLock = file_check_lock,
    .xFileControl = file_control,
    .xSectorSize = file_sector_size,
    .xDeviceCharacteristics = file_characteristics,
    .xShmMap = file_shm_map,
    .xShmLock = file_shm_lock,
    .xShmBarrier = file_shm_barrier,
    .xShmUnmap = file_shm_unmap,
};

static int vfs_open(sqlite3_vfs *self, const char *name, sqlite3_file *base, int flags, int *out_flags)
{
    struct file *f = file_of(base);
    (void)self;
    *f = (struct file){.real = (sqlite3_file *)(void *)(f + 1), .written_from = WRITTEN_NEVER};
    f->kind = (flags & SQLITE_OPEN_MAIN_DB) != 0 ? FILE_DATABASE
              : (flags & SQLITE_OPEN_WAL) != 0   ? FILE_LOG
                                                 : FILE_OTHER;
    int rc = parent->xOpen(parent, name, f->real, flags, out_flags);
    f->base.pMethods = f->real->pMethods != NULL ? &methods : NULL;
    return rc;
}

static void register_vfs(void)
{
    parent = sqlite3_vfs_find(NULL);
    ASSERT(parent != NULL);
    vfs = *parent;
    vfs.zName = "tallyd";
    vfs.szOsFile = (int)sizeof(struct file) + parent->szOsFile;
    vfs.xOpen = vfs_open;
    int rc = sqlite3_vfs_register(&vfs, 0);
    ASSERT(rc == SQLITE_OK);
}

const char *sqlite_vfs_name(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    int rc = pthread_once(&once, register_vfs);
    ASSERT(rc == 0);
    return vfs.zName;
}
