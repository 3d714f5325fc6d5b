/* sqlite/vfs.h - a layer between SQLite and its files, which gives every page of a store a checksum. The
 * embedded store opens its connections with it.
 *
 * Database: the last 8 bytes of each page are reserved; byte 20 of the file's header tells SQLite. They hold
 *           the XXH3 hash of the rest of the page, mixed with the page's number. Writing a page sets the
 *           hash; reading a page compares it.
 * Log     : SQLite writes a checksum with each frame of PATH-wal, but compares it only when it
 *           recovers the log after a crash. This layer compares it whenever a frame is read.
 * Zero    : pages in memory and in the log have zeros as their checksum. A page of the file has zeros if
 *           another program moved it from the log, or wrote it by VACUUM: such a page is read unchecked.
 *           No single flipped bit turns a checksum into zeros.
 * Others  : other programs can read the file, and copy it by SQLite's backup API: the checksum of page 1
 *           leaves out the counters in its header. A page that they change keeps its old checksum, so it
 *           counts as damaged.
 * Errors  : SQLITE_IOERR_DATA; sqlite_vfs_damage() names the damaged page or frame.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define SQLITE_VFS_PAGE     8192 /* bytes of a page of a file whose pages have checksums */
#define SQLITE_VFS_RESERVED 8

/* The name for sqlite3_open_v2(). The layer calls the VFS that was the default at the first call. */
const char *sqlite_vfs_name(void);

#define SQLITE_VFS_DAMAGE_BYTES 64
/* The damage that this thread found last: "page 17", "frame 3 of its log". */
const char *sqlite_vfs_damage(char buf[SQLITE_VFS_DAMAGE_BYTES]);

/* Extend SQLite's checksum of the log by `len` bytes, a multiple of 8. */
void sqlite_vfs_add_to_sum(uint32_t sum[2], const unsigned char *bytes, size_t len, int is_big_endian);
