/* order.h - compares numbers as qsort() wants it: negative, 0 or positive, without overflow. */
#pragma once

#include <stdint.h>

static inline int order_int64(int64_t a, int64_t b)
{
    return (a > b) - (a < b);
}

/* For qsort() of int64_t itself. */
static inline int order_int64s(const void *a, const void *b)
{
    return order_int64(*(const int64_t *)a, *(const int64_t *)b);
}
