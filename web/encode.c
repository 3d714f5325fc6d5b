#include "web/encode.h"

#include "base/mem.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>
#include <zlib.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#define GZIP_FORMAT (15 + 16) /* for deflateInit2(): a window of 32 KiB, with gzip's header */

/* Takes the next item of a list with commas, without spaces around it. False: there is none. */
static bool next_item(const char **list, struct slice *item)
{
    *list += strspn(*list, ", \t");
    size_t len = strcspn(*list, ",");
    *item = slice_of(*list, len);
    *list += len;
    while (item->len > 0 && strchr(" \t", item->ptr[item->len - 1]) != NULL)
        item->len--;
    return item->len > 0;
}

/* Does an item accept the coding: "gzip", "gzip;q=0.5"? Not if q is 0. */
static bool takes(struct slice item, const char *coding)
{
    size_t len = strlen(coding);
    if (item.len < len || strncasecmp(item.ptr, coding, len) != 0)
        return false;
    struct slice rest = slice_of(item.ptr + len, item.len - len);
    if (rest.len == 0)
        return true;
    const char *weight = memchr(rest.ptr, '=', rest.len);
    if (weight == NULL || strchr("; \t", rest.ptr[0]) == NULL)
        return false;
    for (const char *p = weight + 1; p < slice_end(rest); p++) {
        if (*p >= '1' && *p <= '9')
            return true;
    }
    return false;
}

bool encode_accepts_gzip(const char *accept)
{
    struct slice item;
    while (accept != NULL && next_item(&accept, &item)) {
        if (takes(item, "gzip"))
            return true;
    }
    return false;
}

bool encode_gzip(struct slice body, enum encode_effort effort, struct text *out)
{
    z_stream z = {0};
    if (body.len > UINT_MAX ||
        deflateInit2(&z, (int)effort, Z_DEFLATED, GZIP_FORMAT, 8, Z_DEFAULT_STRATEGY) != Z_OK)
        return false;
    char *packed = xmalloc(body.len);
    z.next_in = (unsigned char *)(uintptr_t)body.ptr;
    z.avail_in = (unsigned)body.len;
    z.next_out = (unsigned char *)packed;
    z.avail_out = (unsigned)body.len;
    bool good = deflate(&z, Z_FINISH) == Z_STREAM_END;
    if (good)
        text_add(out, packed, body.len - z.avail_out);
    deflateEnd(&z);
    free(packed);
    return good;
}

void encode_tag(struct slice body, char tag[ENCODE_TAG_BYTES])
{
    snprintf(tag, ENCODE_TAG_BYTES, "\"%016" PRIx64 "\"", (uint64_t)XXH3_64bits(body.ptr, body.len));
}

bool encode_tag_is_known(const char *known, const char *tag)
{
    struct slice item;
    while (known != NULL && next_item(&known, &item)) {
        if (item.len > 2 && memcmp(item.ptr, "W/", 2) == 0)
            item = slice_of(item.ptr + 2, item.len - 2);
        if (slice_is(item, tag) || slice_is(item, "*"))
            return true;
    }
    return false;
}
