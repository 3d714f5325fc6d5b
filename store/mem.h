/* mem.h - a store in memory: the reference model of store.h, and what `import --dry-run` counts into.
 *
 * Shape  : per report, one cell per (series, minute) in order of first sight, found by hash; every
 *          coarser slot is summed from minutes when it is read.
 * Expiry : marks move, and scans before them are refused; the cells stay.
 * Limits : none but memory; a scan looks at every cell of its report.
 * Owner  : nobody else can open it, so STORE_READ finds nothing (EX_NOINPUT) and closing forgets all.
 */
#pragma once

#include "store/store.h"

/* As store_open() of "mem:". */
struct store *mem_open(enum store_mode mode, const struct report *reports, size_t report_count,
                       struct err *e) MUST_CHECK;
