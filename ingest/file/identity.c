#include "ingest/file/identity.h"

#include "base/check.h"

#define XXH_INLINE_ALL
#include <inttypes.h>
#include <stdio.h>
#include <xxhash.h>

static const char scheme[] = "file:";

static size_t at_most(size_t len, size_t max)
{
    return len < max ? len : max;
}

struct identity identity_of(struct slice prefix)
{
    size_t len = at_most(prefix.len, IDENTITY_PREFIX_BYTES_MAX);
    ASSERT(len > 0);
    return (struct identity){(uint32_t)len, XXH3_64bits(prefix.ptr, len)};
}

char *identity_print(struct identity id, char buf[IDENTITY_TEXT_BYTES])
{
    int n = snprintf(buf, IDENTITY_TEXT_BYTES, "%s%" PRIu32 ":%016" PRIx64, scheme, id.len, id.hash);
    ASSERT(n > 0 && n < IDENTITY_TEXT_BYTES);
    return buf;
}

bool identity_parse(struct slice text, struct identity *id)
{
    char buf[IDENTITY_TEXT_BYTES], again[IDENTITY_TEXT_BYTES];
    if (text.len >= sizeof buf)
        return false;
    memcpy(buf, text.ptr, text.len);
    buf[text.len] = '\0';
    struct identity read = {0, 0};
    if (sscanf(buf, "file:%4" SCNu32 ":%16" SCNx64, &read.len, &read.hash) != 2 || read.len == 0 ||
        read.len > IDENTITY_PREFIX_BYTES_MAX)
        return false;
    if (!slice_is(text, identity_print(read, again)))
        return false;
    *id = read;
    return true;
}

bool identity_matches(struct identity id, struct slice prefix)
{
    return prefix.len >= id.len && identity_of(slice_of(prefix.ptr, id.len)).hash == id.hash;
}

uint64_t identity_tail(struct slice before, uint32_t *len)
{
    size_t n = at_most(before.len, IDENTITY_TAIL_BYTES_MAX);
    *len = (uint32_t)n;
    return XXH3_64bits(n > 0 ? before.ptr + before.len - n : "", n);
}
