/* foreign_head.h - tells files that are no logs by their first bytes: archives, whose headers would be read
 * as a part of a log's lines, and files of messages, which have no lines. input.c asks it.
 *
 *   tar, zip                 unpack it
 *   OTLP in protobuf         00 00 01 2F | 0A AC 02 …       the length of each message, then the message
 *   OTLP, each packed alone  00 00 01 2F | 28 B5 2F FD …    the same, by zstd
 *
 * Source : POSIX pax, "ustar Interchange Format": `magic` at byte 257. PKWARE's APPNOTE, 4.3.7: the signature
 *          of a local file header. OpenTelemetry Collector Contrib, exporter/fileexporter/README.md, "File
 *          Format": 4 bytes of length before each message, the highest first.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define FOREIGN_MAGIC_BYTES 12

/* All zeros at first. */
struct foreign_head {
    char first[FOREIGN_MAGIC_BYTES], tar[FOREIGN_MAGIC_BYTES];
};

/* Takes the bytes at a position of the unpacked file. Returns "is a tar archive, …", and what to do, once it
 * is known to be no log; NULL: it is one, or this is not known yet. */
const char *foreign_head_take(struct foreign_head *h, int64_t position, const char *bytes, size_t len);
