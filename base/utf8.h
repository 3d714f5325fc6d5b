/* utf8.h - the length in bytes of the well-formed UTF-8 character at `p`; 0: the bytes are not UTF-8
 * (RFC 3629: no surrogates, no overlong forms, nothing above U+10FFFF). */
#pragma once

#include <stddef.h>

static inline size_t utf8_len(const unsigned char *p, const unsigned char *end)
{
    size_t room = (size_t)(end - p);
    if (room == 0)
        return 0;
    if (p[0] < 0x80)
        return 1;
    if (p[0] < 0xC2 || p[0] > 0xF4)
        return 0;
    size_t need = p[0] < 0xE0 ? 2 : p[0] < 0xF0 ? 3 : 4;
    if (room < need)
        return 0;
    unsigned char low = 0x80, high = 0xBF;
    if (p[0] == 0xE0)
        low = 0xA0;
    else if (p[0] == 0xED)
        high = 0x9F;
    else if (p[0] == 0xF0)
        low = 0x90;
    else if (p[0] == 0xF4)
        high = 0x8F;
    if (p[1] < low || p[1] > high)
        return 0;
    for (size_t i = 2; i < need; i++) {
        if ((p[i] & 0xC0) != 0x80)
            return 0;
    }
    return need;
}
