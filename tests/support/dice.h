/* dice.h - random numbers for property tests. dice_new() prints its seed; TALLYD_SEED repeats a run. */
#pragma once

#include <stdint.h>

struct dice {
    uint64_t state;
};

struct dice dice_new(const char *test);
/* A number from 0 to below - 1. */
int64_t dice_roll(struct dice *d, int64_t below);
