/* mem.h - a store in memory: the reference model of store.h. `import --dry-run` counts into it.
 *
 * Shape  : per report, one cell per (series, minute) in order of first sight, found by hash. A scan merges
 *          cells into longer time buckets when it reads them.
 * Expiry : expiry watermarks move, and scans that begin before them are refused; the cells stay.
 * Limits : only memory; a scan looks at every cell of its report.
 * Owner  : no other handle can open it, so STORE_READ fails (EX_NOINPUT). Closing it deletes everything.
 */
#pragma once

#include "store/store.h"

/* Does the work of store_open() for "mem:". */
struct store *mem_open(enum store_mode mode, const struct report *reports, size_t report_count,
                       struct err *e) MUST_CHECK;
