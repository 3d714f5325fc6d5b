#include "tests/support/hex.h"

#include "base/check.h"

#include <stdlib.h>
#include <string.h>

struct slice hex_bytes(const char *hex, char buf[HEX_BYTES_MAX])
{
    size_t len = 0;
    for (char *end; *hex != '\0'; hex = end) {
        long byte = strtol(hex, &end, 16);
        ASSERT(end > hex && len < HEX_BYTES_MAX);
        buf[len++] = (char)byte;
        end += strspn(end, " ");
    }
    return slice_of(buf, len);
}
