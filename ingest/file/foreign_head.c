#include "ingest/file/foreign_head.h"

#include "base/load.h"

#include <stdbool.h>
#include <string.h>

#define TAR_MAGIC_AT 257

/* Copies what [position, position + len) has of the magic at `at`. */
static void copy_magic(char magic[FOREIGN_MAGIC_BYTES], int64_t at, int64_t position, const char *bytes,
                       size_t len)
{
    for (int64_t i = 0; i < FOREIGN_MAGIC_BYTES; i++) {
        int64_t from = at + i - position;
        if (from >= 0 && from < (int64_t)len)
            magic[i] = bytes[from];
    }
}

/* Is it a part of a message of OTLP, which fits into `len` bytes? All parts have the tag 1. */
static bool is_part(const unsigned char *p, const unsigned char *end, uint32_t len)
{
    uint32_t part = 0, head = 1;
    if (*p++ != 0x0A)
        return false;
    for (unsigned shift = 0; p < end && shift < 28; shift += 7, p++, head++) {
        part |= (uint32_t)(*p & 0x7F) << shift;
        if (*p < 0x80)
            return part + head + 1 <= len;
    }
    return false;
}

/* A message below 16 MiB, so that the first byte, which no text has, is 0. */
static bool is_behind_length(const char first[FOREIGN_MAGIC_BYTES], bool *is_packed)
{
    const unsigned char *p = (const unsigned char *)first;
    uint32_t len = load_be32(p);
    *is_packed = memcmp(p + 4, "\x28\xB5\x2F\xFD", 4) == 0;
    return *p == 0 && len > 0 && (*is_packed || is_part(p + 4, p + FOREIGN_MAGIC_BYTES, len));
}

const char *foreign_head_take(struct foreign_head *h, int64_t position, const char *bytes, size_t len)
{
    bool is_packed;
    if (position >= TAR_MAGIC_AT + FOREIGN_MAGIC_BYTES)
        return NULL;
    copy_magic(h->first, 0, position, bytes, len);
    copy_magic(h->tar, TAR_MAGIC_AT, position, bytes, len);
    if (memcmp(h->first, "PK\3\4", 4) == 0)
        return "is a zip archive, expected a log: unpack it first";
    /* POSIX' own with its NUL, and GNU's older one */
    if (memcmp(h->tar, "ustar", 6) == 0 || memcmp(h->tar, "ustar  ", 8) == 0)
        return "is a tar archive, expected a log: unpack it first";
    if (!is_behind_length(h->first, &is_packed))
        return NULL;
    return is_packed
               ? "has messages that are packed one by one, expected lines: in the Collector's file "
                 "exporter, remove compression, and set format: json"
               : "has messages of OTLP in protobuf, expected lines: set format: json in the Collector's "
                 "file exporter, or let it send to Kafka";
}
