#include "base/units.h"

#include "base/civil.h"

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

const struct unit units_durations[] = {{"ms", 1},      {"s", SECOND_MS}, {"m", MINUTE_MS},
                                       {"h", HOUR_MS}, {"d", DAY_MS},    {NULL, 0}};
const struct unit units_sizes[] = {{"B", 1},
                                   {"KiB", (int64_t)1 << 10},
                                   {"MiB", (int64_t)1 << 20},
                                   {"GiB", (int64_t)1 << 30},
                                   {"TiB", (int64_t)1 << 40},
                                   {NULL, 0}};

bool units_take_digits(struct slice *text, int64_t *value)
{
    size_t n = 0;
    *value = 0;
    for (; n < text->len && text->ptr[n] >= '0' && text->ptr[n] <= '9'; n++) {
        if (__builtin_mul_overflow(*value, 10, value) ||
            __builtin_add_overflow(*value, text->ptr[n] - '0', value))
            return false;
    }
    *text = slice_of(text->ptr + n, text->len - n);
    return n > 0;
}

int64_t units_factor(const struct unit *units, struct slice name)
{
    while (units->name != NULL && !slice_is(name, units->name))
        units++;
    return units->factor;
}

bool units_take(const struct unit *units, struct slice *text, int64_t *value)
{
    struct slice rest = *text;
    if (!units_take_digits(&rest, value))
        return false;
    while (units->name != NULL && !slice_begins(rest, slice_text(units->name)))
        units++;
    if (units->name == NULL || __builtin_mul_overflow(*value, units->factor, value))
        return false;
    *text = slice_of(rest.ptr + strlen(units->name), rest.len - strlen(units->name));
    return true;
}

bool units_parse(const struct unit *units, struct slice text, int64_t *value)
{
    return units_take(units, &text, value) && text.len == 0;
}

const struct unit *units_of(const struct unit *units, int64_t value)
{
    const struct unit *best = units;
    for (const struct unit *u = units; value != 0 && u->name != NULL; u++) {
        if (value % u->factor == 0)
            best = u;
    }
    return best;
}
