/* fault_vfs.h - gives SQLite a disk that fills up, fails or loses power when a test says so.
 *
 * Writes, syncs and truncations of all files are numbered from 1; fault_vfs.fail_at is the first that fails.
 * Nothing is really synced, since the machine does not crash: tests only pretend that it did.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct fault_vfs {
    uint64_t calls;    /* number of calls so far */
    uint64_t fail_at;  /* number of the first call that fails; 0: none */
    uint64_t failures; /* number of calls that fail from there */
    int code;          /* SQLITE_FULL, SQLITE_IOERR_… */
    uint64_t failed;   /* number of calls that failed so far */
    bool is_read_only; /* files opened from now on are read-only */
    /* Number of the write in whose middle crash() is called: the files are then as a crash leaves them. */
    uint64_t crash_at;
    void (*crash)(void *context);
    void *context;
};

extern struct fault_vfs fault_vfs;

/* Makes SQLite use it for all files opened from now on. */
void fault_vfs_register(void);
/* Removes all faults and counts calls from 1 again. */
void fault_vfs_reset(void);
