#include "ingest/float_text.h"

#include <math.h>
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

struct slice float_text_of(struct arena *memory, uint64_t bits)
{
    const double number = float_of_bits(bits, false);
    char text[FLOAT_TEXT_BYTES];
    if (!isfinite(number))
        return slice_text(isnan(number) ? "NaN" : number > 0 ? "Infinity" : "-Infinity");
    if (number == 0)
        return slice_text("0");
    return arena_copy(memory, slice_of(text, float_text_print(number, false, text)));
}
