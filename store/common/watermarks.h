/* watermarks.h - moves expiry watermarks (struct watermarks), and applies them to batches and scans. Each
 * kind of store calls it, and the daemon, to know where they would move. Every function with a struct err may
 * fail.
 *
 * Expiry : a report may limit how long it keeps the time buckets of each resolution (keep.h). The store has
 *          an *expiry watermark* for each resolution. First a watermark is moved, durably. From then on scans
 *          that begin before it are refused. Then older buckets are deleted, step by step. So no scan ever
 *          takes expired buckets for zeros. A watermark moves back only over time that never had any events
 *          (store_move_back()). A batch leaves out buckets before the watermarks, except those of months, so
 *          that each admitted event is counted. The caller that admits events checks the watermark of months.
 */
#pragma once

#include "store/reader.h"

/* Sets *end_ms to the end of the newest hour (day, month) with counts that begins before `before_ms`; 0:
 * there is none. */
bool store_newest_end(struct store *st, size_t report, const struct watermarks *watermarks, int64_t before_ms,
                      int64_t *end_ms, struct err *e) MUST_CHECK;
/* Lower a report's expiry watermarks to `safe_ms`, rounded up, but not below the time from which it keeps
 * buckets at `now_ms`. True: one moved. */
bool store_lower_watermarks(const struct store *st, const struct report *r, int64_t safe_ms, int64_t now_ms,
                            struct watermarks *watermarks);
/* Count a batch's events whose time bucket of each resolution has expired: they count in longer resolutions
 * only. Cells count by store_cell_count(). Events too late for months are not admitted to a batch. False:
 * there are no late events. */
bool store_late(const struct store *st, size_t report, const struct watermarks *watermarks,
                const struct batch *batch, int64_t late[SPAN_COUNT]);
/* Refuse a scan that begins before the expiry watermark of its resolution. */
bool store_check_watermark(const struct scan *scan, const struct watermarks *watermarks,
                           struct err *e) MUST_CHECK;
/* Raise a report's expiry watermarks to where they must be at `now_ms`, if it keeps time buckets of each
 * resolution for `keep_ms` (0: for ever). It lowers none. True: one moved. */
bool store_move_watermarks(const struct store *st, const struct report *r, const int64_t keep_ms[SPAN_COUNT],
                           int64_t now_ms, struct watermarks *watermarks);
