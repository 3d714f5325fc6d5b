/* archive_head.h - tells tar and zip archives by their first bytes: their headers would be read as a part of
 * a log's lines. input.c asks it.
 *
 * Source : POSIX pax, "ustar Interchange Format": `magic` at byte 257. PKWARE's APPNOTE, 4.3.7: the signature
 *          of a local file header.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define ARCHIVE_MAGIC_BYTES 8

/* All zeros at first. */
struct archive_head {
    char zip[ARCHIVE_MAGIC_BYTES], tar[ARCHIVE_MAGIC_BYTES];
};

/* Takes the bytes at a position of the unpacked file. Returns "tar" or "zip" once it is known to be one;
 * NULL: it is not, or not yet. */
const char *archive_head_take(struct archive_head *h, int64_t position, const char *bytes, size_t len);
