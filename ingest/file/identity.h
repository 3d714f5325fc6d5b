/* identity.h - the identity of a file: the hash of its first bytes, and their number. daemon/source.c uses it
 * to find the file's position in the store.
 *
 *   "file:4096:9f86d081884c7d65"     XXH3-64 of the first min(4096, length at first sight) bytes
 *
 * Why    : rotation and compression change names and inodes, but not the first bytes.
 * Match  : a file that was first seen short keeps its short identity while it grows. So a stored identity is
 *          compared with as many bytes as it was made from, and the longest identity that matches is chosen.
 * Shape  : pure: bytes in, answers out. An empty file has no identity yet.
 */
#pragma once

#include "base/slice.h"

#include <stdint.h>

#define IDENTITY_PREFIX_BYTES_MAX 4096
#define IDENTITY_TAIL_BYTES_MAX   4096
#define IDENTITY_TEXT_BYTES       32 /* "file:4096:" and 16 digits, with its NUL */

struct identity {
    uint32_t len; /* 1 … IDENTITY_PREFIX_BYTES_MAX */
    uint64_t hash;
};

/* The identity of a file that begins with `prefix`; it ignores bytes past IDENTITY_PREFIX_BYTES_MAX. Pre: not
 * empty. */
struct identity identity_of(struct slice prefix);
char *identity_print(struct identity id, char buf[IDENTITY_TEXT_BYTES]);
/* Accepts only the spelling of identity_print(). */
bool identity_parse(struct slice text, struct identity *id);
bool identity_matches(struct identity id, struct slice prefix);

/* The hash of the last IDENTITY_TAIL_BYTES_MAX bytes (or all, if fewer) before a position. They must be the
 * same when counting resumes there. *len is their number. */
uint64_t identity_tail(struct slice before, uint32_t *len);
