/* keep.h - how long a report keeps the slots of each span, and which of them may go.
 *
 *   keep: {minute: 48h, hour: 62d}        days and months for ever
 *
 * Units  : what goes is a whole period of the next longer span: minutes by hours, hours by days, days by
 *          months, months by years (of UTC), so that whatever a store keeps together goes together. Slots
 *          are kept up to one such period longer than they must be, never shorter.
 * Order  : a longer span is kept at least as long as a shorter one. So what is gone of a span can be asked
 *          for by a longer one, until that is gone, too.
 * Status : not part of a report's identity; it may change from one start to the next.
 */
#pragma once

#include "aggregate/report.h"

/* `text` is "48h": a number and s, m, h or d; or "forever". Each span at most once is whoever calls's affair.
 * EX_CONFIG. */
bool keep_set(struct report *r, struct slice span, struct slice text, struct err *e) MUST_CHECK;
/* After the last: are longer spans kept as long as shorter ones? EX_CONFIG. */
bool keep_check(const struct report *r, struct err *e) MUST_CHECK;
/* "48h" or "forever". */
#define KEEP_BYTES 24
const char *keep_text(int64_t keep_ms, char buf[KEEP_BYTES]);
/* Is any span of the report not kept for ever? */
bool keep_is_limited(const struct report *r);

/* Slots of the span that begin before this need not be kept at `now_ms`: a start of the next longer span (of
 * years for months); 0: all are kept. */
int64_t keep_from(const struct report *r, enum span span, int64_t now_ms);
/* The same of slots that are kept for so long; 0: for ever. */
int64_t keep_edge(int64_t keep_ms, enum span span, int64_t now_ms);
