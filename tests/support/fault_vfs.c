#include "tests/support/fault_vfs.h"

#include "base/check.h"

#include <sqlite3.h>
#include <stddef.h>

struct fault_vfs fault_vfs;

static sqlite3_vfs *real;

struct file {
    sqlite3_file base; /* first: a struct file is an sqlite3_file */
    sqlite3_file *real;
};

static sqlite3_file *real_of(sqlite3_file *f)
{
    return ((struct file *)f)->real;
}

static bool fails(void)
{
    uint64_t n = ++fault_vfs.calls;
    bool is_failing =
        fault_vfs.fail_at > 0 && n >= fault_vfs.fail_at && n - fault_vfs.fail_at < fault_vfs.failures;
    fault_vfs.failed += is_failing;
    return is_failing;
}

static int file_close(sqlite3_file *f)
{
    return real_of(f)->pMethods->xClose(real_of(f));
}

static int file_read(sqlite3_file *f, void *buf, int n, sqlite3_int64 at)
{
    return real_of(f)->pMethods->xRead(real_of(f), buf, n, at);
}

static int file_write(sqlite3_file *f, const void *buf, int n, sqlite3_int64 at)
{
    if (fails())
        return fault_vfs.code;
    if (fault_vfs.calls == fault_vfs.crash_at) {
        int rc = real_of(f)->pMethods->xWrite(real_of(f), buf, n / 2, at);
        ASSERT(rc == SQLITE_OK);
        fault_vfs.crash(fault_vfs.context);
    }
    return real_of(f)->pMethods->xWrite(real_of(f), buf, n, at);
}

static int file_truncate(sqlite3_file *f, sqlite3_int64 size)
{
    return fails() ? fault_vfs.code : real_of(f)->pMethods->xTruncate(real_of(f), size);
}

static int file_sync(sqlite3_file *f, int flags)
{
    (void)f, (void)flags;
    return fails() ? fault_vfs.code : SQLITE_OK;
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

static int vfs_open(sqlite3_vfs *vfs, const char *name, sqlite3_file *f, int flags, int *out_flags)
{
    (void)vfs;
    struct file *file = (struct file *)f;
    file->real = (sqlite3_file *)(void *)(file + 1);
    if (fault_vfs.is_read_only && (flags & SQLITE_OPEN_MAIN_DB) != 0)
        flags = (flags & ~(SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE)) | SQLITE_OPEN_READONLY;
    int rc = real->xOpen(real, name, file->real, flags, out_flags);
    file->base.pMethods = file->real->pMethods != NULL ? &methods : NULL;
    return rc;
}

void fault_vfs_register(void)
{
    static sqlite3_vfs vfs;
    real = sqlite3_vfs_find(NULL);
    ASSERT(real != NULL);
    vfs = *real;
    vfs.zName = "fault";
    vfs.szOsFile = (int)sizeof(struct file) + real->szOsFile;
    vfs.xOpen = vfs_open;
    int rc = sqlite3_vfs_register(&vfs, 1);
    ASSERT(rc == SQLITE_OK);
    fault_vfs_reset();
}

void fault_vfs_reset(void)
{
    fault_vfs = (struct fault_vfs){0};
}
