/* clf_fast.h - the fast path of decoding lines, for CPUs with AVX2: usual lines at half the cost. clf.c
 * calls it.
 *
 *   host - - [the cached minute] "GET /a?b HTTP/1.1" 200 2326 "referrer" "user agent"
 *
 * Usual  : combined or vhost_combined; any host, IPv6 too; no odd byte in any field; a size of at most eight
 *          digits, or none. 99.5 % of the lines of bench/traffic.c are usual.
 * Why    : a usual line needs no loops per byte and no reasons, so a few wide compares and stores read all of
 *          it. clf_decode_any() decodes any other line, from its beginning.
 * Cost   : some 300 instructions and 31 ns for a line of 212 bytes; clf_decode_any() takes 515 and 61 ns.
 * Twins  : both decode a usual line to the same event: tests/unit/test_clf.c, tests/fuzz/fuzz_clf.c.
 */
#pragma once

#include "ingest/decode/clf_any.h"

/* Does this CPU have the instructions? Pre of the others. */
bool clf_fast_can_run(void);

/* Decodes any line; the format is not CLF_COMMON. */
bool clf_fast_decode(struct decoder *d, struct slice line, struct event *ev, struct reject *why);
