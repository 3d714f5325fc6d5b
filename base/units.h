/* units.h - numbers as people read and write them. */
#pragma once

#include <stdint.h>

/* "1,234,567" */
#define UNITS_NUMBER_BYTES 32
const char *units_number(int64_t n, char buf[UNITS_NUMBER_BYTES]);
