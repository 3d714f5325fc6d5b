/* sqlite.h - the embedded store: counts, offsets and books in one SQLite file. backend/open.c opens it for
 * URLs "sqlite:PATH"; all else goes through store.h, which lists the errors.
 *
 * Layout  : a *row* holds one time bucket of one block of 128 series; its body is a run of
 *           (series, slot → values), see body.h. Per report N:
 *
 *             fresh_N   one row per (minute, block)    counts of the last flushes, not folded yet
 *             hour_N    one row per (hour, block)      60 minute slots
 *             day_N     one row per (day, block)       24 hour slots
 *             month_N   one row per (month, block)     31 day slots
 *             year_N    one row per (year, block)      12 month slots
 *             recent_N  one row per (day, series), if the report keeps its newest events: recent.c
 *             series_N  one row per block    the dictionary: the block's keys, one a line; numbers are
 *                                            dense, from 1, so series that appear together share blocks
 *             lookup_N  one row per 1/4096 of the hashes     from a key's hash to its number
 *
 *           Rowid `at` = (bucket's index since 1970) << 24 | block, so rows lie clustered by time.
 *           Other tables: `report` (name, generation, definition), `position` (how far each source is
 *           counted), `witness` (records to compare), `book`, `format` (a number, and the first tallyd that
 *           knows this format, for the messages of older ones). A whole batch commits in one transaction.
 * Invariant: every count is either in fresh_N or folded. Folding a fresh row adds it to its hour, day, month
 *           and year row and deletes it, in one transaction. So a reader adds the two. No clock decides which
 *           rows are closed, and late events need no rule of their own.
 * Cost    : a flush of a live second writes rows of the minutes that it touches. It costs the same at the end
 *           of an hour as at its start. Rows of whole hours or days would be rewritten at full length.
 *           Measured with 100,000 events/s over 100,000 paths: 780 rows of 0.66 KB a minute touched, about
 *           1 MB of WAL. With 1 % of the events up to 120 s late, four minutes are touched: 5 MB. An hour is
 *           folded once, some blocks at a time. A batch that covers more than FRESH_MINUTES_MAX minutes (an
 *           import) is folded at once and never touches fresh_N.
 *           docs/ARCHITECTURE.md#store has the bytes of an import.
 * Expiry  : the expiry watermarks (store.h) are entries of `book`. Rows before a watermark are deleted some
 *           at a time; a batch and the fold do not write such rows, except rows of years. SQLite uses free
 *           pages again. Beyond 1/8 of the file they are given back to the file system. Files created by
 *           older versions cannot give pages back: they keep their size.
 * Damage  : every page has a checksum, compared when the page is read (sqlite/vfs.h). A log that a crash
 *           left is checked before SQLite recovers it (sqlite/log.c). The writer rewrites a file of an older
 *           format, and keeps a copy of it as PATH-formatN (sqlite/upgrade.c).
 * Files   : PATH, PATH-wal, PATH-shm, and PATH-lock. The one writer locks PATH-lock and, against hard links,
 *           PATH itself by flock(2). Before each commit it checks that PATH, PATH-wal and PATH-shm are still
 *           the files that it opened. If not, it fails with EX_DATAERR and stops counting (sqlite/lock.c).
 * Durable : WAL with synchronous=FULL: a commit is on disk. Only the writer checkpoints (SQLite 3.40 has
 *           the WAL-reset bug: a checkpoint must not race a writer).
 */
#pragma once

#include "store/backup.h"
#include "store/store.h"

#define SQLITE_APPLICATION_ID 0x74616c79 /* "taly" */

/* PRAGMA user_version (SQLITE_FORMAT is one of sqlite3.h's errors). A store gets the newest format when a
 * report with histograms or distinct counts is first counted in it: then its rows have tight ones (tight.h),
 * which older versions cannot read. */
#define SQLITE_STORE_FORMAT  6
#define SQLITE_SEALED_FORMAT 5       /* the oldest whose pages have checksums; of all other stores */
#define SQLITE_FORMAT_SINCE  "0.1.0" /* the first version that knows these formats */

/* The format of an unfinished copy (fill.h). No version ever opens it. */
#define SQLITE_UNFINISHED_FORMAT 1

/* Does it name a file? SQLite takes ":memory:" for no file, and a text that begins with "file:" for a URI. */
bool sqlite_is_path(struct slice path);
struct store *sqlite_open(const char *path, enum store_mode mode, const struct report *reports,
                          size_t report_count, struct err *e) MUST_CHECK;
/* Open a new file, or what an unfinished copy left, for STORE_FILL. `watermarks`: those of each report. */
struct store *sqlite_open_fill(const char *path, const struct watermarks *watermarks,
                               const struct report *reports, size_t report_count, struct err *e) MUST_CHECK;

#define SQLITE_WRITER_CACHE_KIB 32768
#define SQLITE_READER_CACHE_KIB 8192

/* Bytes of series keys that the writer caches per report. Beyond them it empties the cache after a batch, and
 * reads the file. */
#define DICT_KEY_BYTES_MAX ((size_t)48 << 20)
/* About the memory of a writer whose page cache, dictionaries and buffers of rows are full, in bytes. */
size_t sqlite_bytes_max(const struct report *reports, size_t report_count);
void sqlite_limit_dictionary(struct store *base, size_t key_bytes_max);

/* Bring the file to the present format, as its next writer would; `dry`: only say how. EX_TEMPFAIL +
 * retryable: another program writes it. EX_CANTCREAT: there is no room; it stays as it is. */
bool sqlite_upgrade(const char *path, bool dry, struct text *said, struct err *e) MUST_CHECK;

bool sqlite_backup(const char *store, const struct backup *b, struct text *said, struct err *e) MUST_CHECK;
bool sqlite_restore(const char *store, const struct backup *b, struct text *said, struct err *e) MUST_CHECK;
