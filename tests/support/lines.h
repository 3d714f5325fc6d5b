/* lines.h - random log lines: good ones of every shape, and some bad ones. */
#pragma once

#include "base/text.h"
#include "tests/support/dice.h"

#include <stdint.h>

/* Adds a line and its line feed: mostly good, its time within `spread_ms` before `at_ms`. */
void lines_add(struct text *out, struct dice *d, int64_t at_ms, int64_t spread_ms);
/* Adds such a line, always a good one. */
void lines_add_good(struct text *out, struct dice *d, int64_t at_ms, int64_t spread_ms);
