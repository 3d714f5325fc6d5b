/* number.h - numbers that conditions and answers show: exact decimal fractions, computed without floats.
 *
 * Unit : 1/EVENT_SCALE, in 128 bits, so that every count and sum has room.
 */
#pragma once

#include "ingest/event.h"

#include <stdbool.h>

__extension__ typedef __int128 int128;

#define NUMBER_BYTES 32 /* sign, 19 digits, point, 6 digits; its NUL */

/* "95", "95.5", "-0.000001": without zeros at the end. Pre: no more than INT64_MAX units of 1. */
const char *number_text(int128 number, char buf[NUMBER_BYTES]);
/* The nearest double; exact if it is a whole number that a double can hold. */
double number_double(int128 number);
/* sum / count, rounded half away from zero. Pre: count > 0. */
int128 number_mean(int128 sum, int64_t count);
