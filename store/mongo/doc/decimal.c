/* IEEE 754 decimal128, binary integer encoding: sign, 14 bits of exponent, 113 bits of coefficient. Servers
 * need not keep the exponent: 200, 2E+2 and 200.0 are the same number. */
#include "store/mongo/doc/decimal.h"

#include <math.h>

#define EXPONENT_BIAS  6176
#define EXPONENT_SHIFT 49 /* in the upper half */
#define EXPONENT_MASK  0x3FFF
#define SCALE_DIGITS   6 /* EVENT_SCALE is 10^6 */
#define SIGN           (UINT64_C(1) << 63)
#define SPECIAL        (UINT64_C(3) << 61)  /* infinity, not a number, or a coefficient above the greatest */
#define INFINITE       (UINT64_C(15) << 59) /* infinity or not a number */

__extension__ typedef unsigned __int128 uint128;

#define COEFFICIENT_MAX ((uint128)10000000000000 * 1000000000000000000) /* 10^31 */

void mongo_append_decimal(bson_t *to, const char *name, int128 number)
{
    uint128 coefficient = number < 0 ? -(uint128)number : (uint128)number;
    int exponent = -SCALE_DIGITS;
    for (; exponent < 0 && coefficient % 10 == 0; exponent++)
        coefficient /= 10;
    const bson_decimal128_t value = {.low = (uint64_t)coefficient,
                                     .high = (number < 0 ? SIGN : 0) |
                                             (uint64_t)(exponent + EXPONENT_BIAS) << EXPONENT_SHIFT |
                                             (uint64_t)(coefficient >> 64)};
    bson_append_decimal128(to, name, -1, &value);
}

bool mongo_is_infinite(const bson_iter_t *member)
{
    bson_decimal128_t value;
    if (BSON_ITER_HOLDS_DECIMAL128(member) && bson_iter_decimal128(member, &value))
        return (value.high & INFINITE) == INFINITE;
    return BSON_ITER_HOLDS_DOUBLE(member) && !isfinite(bson_iter_double(member));
}

int128 mongo_decimal(const bson_iter_t *member)
{
    bson_decimal128_t value;
    if (!BSON_ITER_HOLDS_DECIMAL128(member) || !bson_iter_decimal128(member, &value))
        return (int128)bson_iter_as_int64(member) * EVENT_SCALE;
    if ((value.high & SPECIAL) == SPECIAL)
        return 0;
    uint128 coefficient = (uint128)(value.high & ((UINT64_C(1) << EXPONENT_SHIFT) - 1)) << 64 | value.low;
    int exponent = (int)(value.high >> EXPONENT_SHIFT & EXPONENT_MASK) - EXPONENT_BIAS + SCALE_DIGITS;
    for (; exponent < 0 && coefficient > 0; exponent++)
        coefficient /= 10;
    for (; exponent > 0 && coefficient > 0 && coefficient < COEFFICIENT_MAX; exponent--)
        coefficient *= 10;
    if (coefficient > COEFFICIENT_MAX)
        coefficient = COEFFICIENT_MAX;
    return (value.high & SIGN) != 0 ? -(int128)coefficient : (int128)coefficient;
}

int64_t mongo_decimal_units(int128 number)
{
    const int128 units = number / EVENT_SCALE - (number % EVENT_SCALE < 0);
    return units > INT64_MAX ? INT64_MAX : units < INT64_MIN ? INT64_MIN : (int64_t)units;
}
