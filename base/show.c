#include "base/show.h"

#include "base/check.h"
#include "base/utf8.h"

#include <stdio.h>
#include <string.h>

#define ESCAPE_BYTES 4 /* of one byte */

bool show_is_safe(const char *p, const char *end, size_t *len)
{
    const unsigned char *u = (const unsigned char *)p;
    size_t n = utf8_len(u, (const unsigned char *)end);
    *len = n > 0 ? n : 1;
    return n > 0 && !utf8_is_control(utf8_code(u, n)) && !utf8_is_hiding(utf8_code(u, n));
}

size_t show_into(char *out, size_t room, struct slice s)
{
    const char *end = slice_end(s);
    size_t n = 0, len = 0;
    ASSERT(room > 0);
    for (const char *p = s.ptr; p < end; p += len) {
        bool is_safe = show_is_safe(p, end, &len);
        if (n + (is_safe ? len : ESCAPE_BYTES * len) >= room)
            break;
        if (is_safe)
            memcpy(out + n, p, len);
        for (size_t i = 0; i < len && !is_safe; i++)
            snprintf(out + n + ESCAPE_BYTES * i, ESCAPE_BYTES + 1, "\\x%02x", (unsigned char)p[i]);
        n += is_safe ? len : ESCAPE_BYTES * len;
    }
    out[n] = '\0';
    return n;
}

const char *show(const char *text, char buf[SHOW_BYTES])
{
    show_into(buf, SHOW_BYTES, slice_text(text));
    return buf;
}
