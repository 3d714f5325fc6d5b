#include "base/units.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>

const char *units_number(int64_t n, char buf[UNITS_NUMBER_BYTES])
{
    char digits[UNITS_NUMBER_BYTES];
    int len = snprintf(digits, sizeof digits, "%" PRId64, n);
    size_t out = 0;
    for (int i = 0; i < len; i++) {
        if (i > (digits[0] == '-') && (len - i) % 3 == 0)
            buf[out++] = ',';
        buf[out++] = digits[i];
    }
    buf[out] = '\0';
    return buf;
}
