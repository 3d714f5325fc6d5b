/* distributions.h - makes distributions (ingest/distribution.h) for unit tests, in an arena. */
#pragma once

#include "base/arena.h"
#include "ingest/distribution.h"
#include "tests/support/dice.h"

/* One with a single bucket. */
struct distribution *distribution_of(struct arena *arena, int scale, enum distribution_sign sign,
                                     int64_t index, uint64_t count);
/* One of any scale, with up to DISTRIBUTION_COUNT_MAX numbers, as a decoder would let it through. */
struct distribution *distribution_any(struct dice *d, struct arena *arena);
