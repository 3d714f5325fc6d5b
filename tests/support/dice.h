/* dice.h - random numbers for property tests; the seed is printed and TALLYD_SEED repeats a run. */
#pragma once

#include <stdint.h>

struct dice {
    uint64_t state;
};

struct dice dice_new(const char *test);
/* 0 … below - 1. */
int64_t dice_roll(struct dice *d, int64_t below);
