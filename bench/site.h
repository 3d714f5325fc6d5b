/* site.h - an imaginary web site and its visitors, which writes its own access log.
 *
 * Why      : the benchmark and the demo need traffic of realistic shape that is the same for the same seed.
 * Shape    : 100,000 paths drawn by Zipf's law (exponent 1), 50,000 clients with an agent each, and weighted
 *            lists of methods, statuses and referrers; everything is drawn in O(1) by the alias method.
 * Limits   : a line is at most SITE_LINE_BYTES_MAX bytes, its newline included.
 * Owner    : the caller frees the site by site_free().
 * Errors   : out of memory aborts; nothing else can fail.
 */
#ifndef BENCH_SITE_H
#define BENCH_SITE_H

#include <stddef.h>
#include <stdint.h>

enum {
    SITE_PATHS = 100000,
    SITE_CLIENTS = 50000,
    SITE_LINE_BYTES_MAX = 1024,
};

struct site;

struct site *site_new(uint64_t seed);
void site_free(struct site *st);

/* The next 64 random bits of this site's own sequence (splitmix64). */
uint64_t site_random(struct site *st);

/* Writes one line of Apache's combined format for a request at `at_s` (seconds since the epoch, UTC) to
 * `out`, which has room for SITE_LINE_BYTES_MAX. Returns its length. */
size_t site_encode(struct site *st, int64_t at_s, char *out);

#endif
