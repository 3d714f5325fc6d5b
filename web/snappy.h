/* snappy.h - Snappy's block format, in which Prometheus' remote_read sends. Called by remote.c.
 *
 * Library : libsnappy, loaded with the first request; EX_OSFILE: it is not there.
 * Memory  : unpacking checks the length that the bytes claim before it takes any memory. Packing n bytes
 *           takes 32 + n + n/6 bytes at most.
 * Threads : any.
 */
#pragma once

#include "base/err.h"
#include "base/text.h"

#include <stddef.h>

/* Adds the unpacked bytes to `out`. EX_PROTOCOL: it is no Snappy block, or has more than `max` bytes. */
bool snappy_unpack(struct slice packed, size_t max, struct text *out, struct err *e) MUST_CHECK;
/* Replaces `t` by its packed bytes. */
bool snappy_pack(struct text *t, struct err *e) MUST_CHECK;
