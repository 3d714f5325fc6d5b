/* snappy.h - Snappy's block format, in which Prometheus' remote_read and remote_write send. web/remote.c and
 * remote_write.c of the decoders call it.
 *
 * Library : libsnappy, loaded with the first use; EX_OSFILE: it is not there.
 * Memory  : unpacking checks the length that the bytes claim before it takes any memory. Packing n bytes
 *           takes 32 + n + n/6 bytes at most.
 * Threads : any.
 * Source  : https://github.com/google/snappy/blob/main/format_description.txt
 */
#pragma once

#include "base/err.h"
#include "base/text.h"

#include <stddef.h>

/* Loads libsnappy. */
bool snappy_load(struct err *e) MUST_CHECK;
/* No block has more bytes unpacked than so many times its own: 3 make at most 64. */
#define SNAPPY_GROWTH 22

/* The length that the bytes claim to have unpacked. False: it is no block. Pre: snappy_load(). */
bool snappy_claims(struct slice packed, size_t *len);
/* Writes that many bytes. False: the block is damaged. Pre: snappy_claims(). */
bool snappy_unpack_to(struct slice packed, char *out, size_t len);

/* Adds the unpacked bytes to `out`. EX_PROTOCOL: it is no Snappy block, or has more than `max` bytes. */
bool snappy_unpack(struct slice packed, size_t max, struct text *out, struct err *e) MUST_CHECK;
/* Replaces `t` by its packed bytes. */
bool snappy_pack(struct text *t, struct err *e) MUST_CHECK;
