#include "ingest/float_text.h"

#include <stdio.h>
#include <stdlib.h>

size_t float_text_print(double number, bool is_small, char *out)
{
    int len = snprintf(out, FLOAT_TEXT_BYTES, "%.*g", is_small ? 7 : 15, number);
    double back = strtod(out, NULL);
    if (is_small ? (float)back != (float)number : back != number)
        len = snprintf(out, FLOAT_TEXT_BYTES, "%.*g", is_small ? 9 : 17, number);
    return (size_t)len;
}
