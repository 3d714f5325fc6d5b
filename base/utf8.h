/* utf8.h - UTF-8 as RFC 3629 has it: no surrogates, no overlong forms, nothing above U+10FFFF. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The length in bytes of the well-formed character at `p`; 0: the bytes are not UTF-8. */
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

/* The code of the character of `len` bytes at `p`. Pre: utf8_len() said so. */
static inline uint32_t utf8_code(const unsigned char *p, size_t len)
{
    uint32_t code = len == 1 ? p[0] : p[0] & (0x7fu >> len);
    for (size_t i = 1; i < len; i++)
        code = code << 6 | (p[i] & 0x3fu);
    return code;
}

/* Is it a control character, which may act on a terminal? */
static inline bool utf8_is_control(uint32_t code)
{
    return code < 0x20 || (code >= 0x7f && code < 0xa0);
}

/* Is it an invisible character that turns or hides the text around it? */
static inline bool utf8_is_hiding(uint32_t code)
{
    return code == 0x061c || (code >= 0x200b && code <= 0x200f) || (code >= 0x2028 && code <= 0x202e) ||
           (code >= 0x2060 && code <= 0x206f) || code == 0xfeff;
}
