/* keep.h - how long a report keeps the time buckets of each resolution, and which buckets may expire. The
 * configuration sets it; writers, stores and queries ask it.
 *
 *   keep: {minute: 48h, hour: 62d}        days and months for ever
 *
 * Units  : whole periods of the next longer resolution expire: minutes by hours, hours by days, days by
 *          months, months by years (of UTC). So buckets that a store keeps together expire together. A bucket
 *          is kept up to one such period longer than it must be, never shorter.
 * Order  : a longer resolution is kept at least as long as a shorter one. So a query whose buckets have
 *          expired can ask for a longer resolution instead, until that has expired, too.
 * Status : not part of a report's identity; it may change from one start to the next.
 */
#pragma once

#include "aggregate/report.h"

/* `text` is "48h": a number and s, m, h or d; or "forever". The caller guarantees that each span appears at
 * most once. Errors: EX_CONFIG. */
bool keep_set(struct report *r, struct slice span, struct slice text, struct err *e) MUST_CHECK;
/* Call it after the last keep_set(): are longer spans kept at least as long as shorter ones? If not,
 * EX_CONFIG. */
bool keep_check(const struct report *r, struct err *e) MUST_CHECK;
/* "48h" or "forever". */
#define KEEP_BYTES 24
const char *keep_text(int64_t keep_ms, char buf[KEEP_BYTES]);
/* Does any resolution of the report expire? */
bool keep_is_limited(const struct report *r);

/* Time buckets of the span that begin before this may expire at `now_ms`. The result is the start of a
 * bucket of the next longer span (of a year for months); 0: all are kept. */
int64_t keep_from(const struct report *r, enum span span, int64_t now_ms);
/* As keep_from(), for buckets that are kept for keep_ms; 0: for ever. */
int64_t keep_edge(int64_t keep_ms, enum span span, int64_t now_ms);
