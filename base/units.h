/* units.h - numbers as people read and write them: with commas, or with a unit.
 *
 * A unit follows its number at once: 64MiB, 36h. A table lists units from the smallest on; its last name is
 * NULL. A number printed with its unit reads back as the same number.
 */
#pragma once

#include "base/slice.h"

#include <stdbool.h>
#include <stdint.h>

struct unit {
    const char *name;
    int64_t factor;
};

/* Durations in ms: ms, s, m, h, d. Sizes in bytes: B, KiB, MiB, GiB, TiB. &table[1] omits the first unit. */
extern const struct unit units_durations[], units_sizes[];

/* Takes the number at the start of `text`. False: there is none, or it is above INT64_MAX. */
bool units_take_digits(struct slice *text, int64_t *value);
/* The factor of a unit's name; 0: there is no such unit. */
int64_t units_factor(const struct unit *units, struct slice name);
/* Takes the number and the unit at the start of `text`: "1h" of "1h30m". A unit must come before the units
 * that its name begins with ("ms" before "m"). False: there is none, or the value is above INT64_MAX. */
bool units_take(const struct unit *units, struct slice *text, int64_t *value);
/* Parses a whole text, "64MiB". False: it has another form, or the value is above INT64_MAX. */
bool units_parse(const struct unit *units, struct slice text, int64_t *value);
/* The largest unit in which the value is a whole number; the smallest unit for 0. */
const struct unit *units_of(const struct unit *units, int64_t value);

/* The value of a hexadecimal digit of either case; -1: it is none. */
static inline int units_hex_digit(int c)
{
    int letter = c | 0x20;
    return c >= '0' && c <= '9' ? c - '0' : letter >= 'a' && letter <= 'f' ? letter - 'a' + 10 : -1;
}

/* "1,234,567" */
#define UNITS_NUMBER_BYTES 32
const char *units_number(int64_t n, char buf[UNITS_NUMBER_BYTES]);
