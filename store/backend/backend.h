/* backend.h - picks the kind of store by its URL.
 *
 * It is the only code of store/ that knows every kind: sqlite:PATH (sqlite/sqlite.h), mongodb://HOST/DATABASE
 * (mongo/mongo.h) and mem: (mem.h, for tests). All else goes through the operations of store.h.
 */
#pragma once

#include "store/backup.h"
#include "store/store.h"

/* STORE_WRITE creates what is missing and takes `reports` (not kept) as what to count, in this order;
 * STORE_READ ignores them and finds its reports in the store. */
struct store *store_open(const char *url, enum store_mode mode, const struct report *reports,
                         size_t report_count, struct err *e) MUST_CHECK;
/* The same for writing, with options. */
struct store *store_open_with(const char *url, const struct store_options *options,
                              const struct report *reports, size_t report_count, struct err *e) MUST_CHECK;

/* Copies a store (backup.h). `said` receives what was done, for a person. */
bool store_backup(const struct backup *b, struct text *said, struct err *e) MUST_CHECK;
bool store_restore(const struct backup *b, struct text *said, struct err *e) MUST_CHECK;
