/* backend.h - opens, backs up and restores a store by its URL, which names its kind. Each function may fail.
 *
 * It is the only code of store/ that knows every kind: sqlite:PATH (sqlite/sqlite.h), mongodb://HOST/DATABASE
 * (mongo/mongo.h) and mem: (mem.h, for tests). All else goes through the operations of store.h.
 */
#pragma once

#include "store/backup.h"
#include "store/store.h"

/* Open a store. STORE_WRITE creates it if it is missing, and counts `reports` in this order; the array may be
 * freed afterwards. STORE_READ ignores `reports` and finds its reports in the store. */
struct store *store_open(const char *url, enum store_mode mode, const struct report *reports,
                         size_t report_count, struct err *e) MUST_CHECK;
/* Open a store with options. */
struct store *store_open_with(const char *url, enum store_mode mode, const struct store_options *options,
                              const struct report *reports, size_t report_count, struct err *e) MUST_CHECK;

/* Copy a store, or put its copy back (backup.h). `said` receives a report of the work, for a person. */
bool store_backup(const struct backup *b, struct text *said, struct err *e) MUST_CHECK;
/* Bring a store to the present format, as its next writer would; `dry`: only say how. */
bool store_upgrade(const char *url, bool dry, struct text *said, struct err *e) MUST_CHECK;
bool store_restore(const struct backup *b, struct text *said, struct err *e) MUST_CHECK;
