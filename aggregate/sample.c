#include "aggregate/sample.h"

#include "base/units.h"

#include <math.h>

#define FNV_BASIS UINT64_C(0xCBF29CE484222325)
#define FNV_PRIME UINT64_C(0x100000001B3)

bool sample_parse(struct slice text, uint32_t *one_in)
{
    struct slice number = text.len > 2 ? slice_of(text.ptr + 2, text.len - 2) : (struct slice){0};
    int64_t n;
    if (number.len == 0 || memcmp(text.ptr, "1/", 2) != 0 || !units_take_digits(&number, &n) ||
        number.len > 0 || n < 1 || n > SAMPLE_MAX)
        return false;
    *one_in = (uint32_t)n;
    return true;
}

/* Hashes a text and the zero byte at its end. */
static uint64_t fnv(uint64_t hash, const char *text)
{
    do
        hash = (hash ^ (unsigned char)*text) * FNV_PRIME;
    while (*text++ != '\0');
    return hash;
}

uint64_t sample_salt(const char *source, const char *partition)
{
    return fnv(fnv(FNV_BASIS, source), partition);
}

int64_t sample_error(int64_t count, uint32_t one_in)
{
    return count > 0 ? llround(sqrt((double)count * (double)(one_in - 1))) : 0;
}
