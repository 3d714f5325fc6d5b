#include "ingest/float_text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

double float_of_bits(uint64_t bits, bool is_small)
{
    double number;
    if (is_small) {
        const uint32_t narrow = (uint32_t)bits;
        float small;
        memcpy(&small, &narrow, sizeof small);
        return (double)small;
    }
    memcpy(&number, &bits, sizeof number);
    return number;
}

size_t float_text_print(double number, bool is_small, char *out)
{
    int len = snprintf(out, FLOAT_TEXT_BYTES, "%.*g", is_small ? 7 : 15, number);
    double back = strtod(out, NULL);
    if (is_small ? (float)back != (float)number : back != number)
        len = snprintf(out, FLOAT_TEXT_BYTES, "%.*g", is_small ? 9 : 17, number);
    return (size_t)len;
}
