#include "ingest/file/archive_head.h"

#include <stdbool.h>
#include <string.h>

#define TAR_MAGIC_AT 257

/* Copies what [position, position + len) has of the magic at `at`. */
static void copy_magic(char magic[ARCHIVE_MAGIC_BYTES], int64_t at, int64_t position, const char *bytes,
                       size_t len)
{
    for (int64_t i = 0; i < ARCHIVE_MAGIC_BYTES; i++) {
        int64_t from = at + i - position;
        if (from >= 0 && from < (int64_t)len)
            magic[i] = bytes[from];
    }
}

const char *archive_head_take(struct archive_head *h, int64_t position, const char *bytes, size_t len)
{
    if (position >= TAR_MAGIC_AT + ARCHIVE_MAGIC_BYTES)
        return NULL;
    copy_magic(h->zip, 0, position, bytes, len);
    copy_magic(h->tar, TAR_MAGIC_AT, position, bytes, len);
    bool is_zip = memcmp(h->zip, "PK\3\4", 4) == 0;
    /* POSIX' own with its NUL, and GNU's older one */
    bool is_tar = memcmp(h->tar, "ustar", 6) == 0 || memcmp(h->tar, "ustar  ", 8) == 0;
    return is_zip ? "zip" : is_tar ? "tar" : NULL;
}
