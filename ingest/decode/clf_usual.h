/* clf_usual.h - reads the usual line of a log at half the price, where the CPU has AVX2.
 *
 *   host - - [the cached minute] "GET /a?b HTTP/1.1" 200 2326 "referrer" "user agent"
 *
 * Usual  : combined or vhost_combined; any host, IPv6 too; nothing odd in any field; a size of at most
 *          eight digits, or none. Of the lines of bench/traffic.c 99.5 in a hundred are so.
 * Why    : such a line needs no loops per byte and no reasons, so all of it is read by a few wide
 *          compares and stores. Whatever is unusual is left to clf_decode_any(), from its beginning.
 * Cost   : some 300 instructions and 31 ns for a line of 212 bytes, where clf_decode_any() takes 515 and 61.
 * Twins  : what both can read, they read alike: tests/unit/test_clf.c, tests/fuzz/fuzz_clf.c.
 */
#pragma once

#include "ingest/decode/clf_any.h"

/* Can this CPU? */
bool clf_usual_can_run(void);

/* A decoder of any line, unless its format is CLF_COMMON. Pre: clf_usual_can_run(). */
bool clf_usual_decode(struct decoder *d, struct slice line, struct event *ev, struct reject *why);
