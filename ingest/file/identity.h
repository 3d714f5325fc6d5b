/* identity.h - which file is this? A file is its content: the hash of its first bytes, and how many.
 *
 *   "file:4096:9f86d081884c7d65"     XXH3-64 of the first min(4096, length at first sight) bytes
 *
 * Why    : names and inodes change when logs are rotated and compressed; their first bytes do not.
 * Match  : a file seen when it was short keeps its short identity while it grows, so a stored identity
 *          is compared with just as many bytes as it was made of, and the longest that matches is it.
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

/* Of a file that begins with `prefix`; bytes past IDENTITY_PREFIX_BYTES_MAX do not matter. Pre: not empty. */
struct identity identity_of(struct slice prefix);
char *identity_print(struct identity id, char buf[IDENTITY_TEXT_BYTES]);
/* Only the canonical spelling is taken. */
bool identity_parse(struct slice text, struct identity *id);
bool identity_matches(struct identity id, struct slice prefix);

/* Of the last IDENTITY_TAIL_BYTES_MAX bytes (or all, if fewer) of what stands before a position: when
 * counting goes on there, they must still be the same. *len says how many they are. */
uint64_t identity_tail(struct slice before, uint32_t *len);
