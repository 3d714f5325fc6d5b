#include "base/base64.h"

#include <stdint.h>

int base64_sextet(char c)
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (c >= '0' && c <= '9')
        return c - '0' + 52;
    return c == '+' ? 62 : c == '/' ? 63 : -1;
}

size_t base64_decode(struct slice text, char *out, size_t bytes_max)
{
    size_t len = 0;
    uint32_t bits = 0;
    int count = 0;
    for (size_t i = 0; i < text.len && base64_sextet(text.ptr[i]) >= 0 && len < bytes_max; i++) {
        bits = bits << 6 | (uint32_t)base64_sextet(text.ptr[i]);
        count += 6;
        if (count >= 8) {
            count -= 8;
            out[len++] = (char)(bits >> count & 0xff);
        }
    }
    return len;
}
