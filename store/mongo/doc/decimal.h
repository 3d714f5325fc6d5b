/* mongo/doc/decimal.h - numbers with fractions as members of documents: Decimal128, in their own unit, exact
 * under $inc, $min and $max. Code that writes or reads counts calls it. It never asks the server.
 *
 * Unit  : 1/EVENT_SCALE in memory, as in number.h. A member has no zeros at its end: 200, 0.25.
 * Range : 10^25 units of 1, which no sum of int64 columns reaches. Beyond that a number is read as that.
 */
#pragma once

#include "aggregate/number.h"

#include <bson/bson.h>

void mongo_append_decimal(bson_t *to, const char *name, int128 number);
/* Is it infinite, or not a number? */
bool mongo_is_infinite(const bson_iter_t *member);
/* The number of a member of any type, without what is smaller than the unit; 0: it is none. */
int128 mongo_decimal(const bson_iter_t *member);
/* Its whole units of 1, rounded down, saturated at the ends of int64. */
int64_t mongo_decimal_units(int128 number);
