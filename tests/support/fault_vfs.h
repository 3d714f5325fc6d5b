/* fault_vfs.h - SQLite's files with a disk that fills up, fails, or loses its power, when a test says so.
 *
 * Writes, syncs and truncations of all files are numbered from 1; fault_vfs.fail_at names the first that
 * fails. Nothing is synced for real: the machine does not crash, only the tests say that it did.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct fault_vfs {
    uint64_t calls;    /* so far */
    uint64_t fail_at;  /* 0: never */
    uint64_t failures; /* how many fail from there */
    int code;          /* SQLITE_FULL, SQLITE_IOERR_… */
    uint64_t failed;   /* so far */
    bool is_read_only; /* files that are opened from now on */
    /* In the midst of write `crash_at`, half of it done: what a copy of the files then is, is what a crash
     * leaves. */
    uint64_t crash_at;
    void (*crash)(void *context);
    void *context;
};

extern struct fault_vfs fault_vfs;

/* SQLite opens files by it from now on. */
void fault_vfs_register(void);
/* No faults, and count anew. */
void fault_vfs_reset(void);
