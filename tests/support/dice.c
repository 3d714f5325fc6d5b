#include "tests/support/dice.h"

#include "base/check.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

struct dice dice_new(const char *test)
{
    const char *given = getenv("TALLYD_SEED");
    uint64_t seed = given != NULL ? strtoull(given, NULL, 10) : (uint64_t)time(NULL) * 1000003u;
    printf("%s: TALLYD_SEED=%" PRIu64 "\n", test, seed);
    return (struct dice){seed};
}

int64_t dice_roll(struct dice *d, int64_t below)
{
    ASSERT(below > 0);
    /* splitmix64 (Steele, Lea, Flood 2014) */
    uint64_t z = d->state += 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return (int64_t)((z ^ (z >> 31)) % (uint64_t)below);
}
