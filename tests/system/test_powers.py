#!/usr/bin/env python3
"""The ends of the buckets of histograms are exact, by whole numbers: those of aggregate/powers.c, for every schema and number."""

import math
import os
import re
import unittest

from harness import ROOT

BITS, ENTRIES = 126, 512
SCHEMA = 8  # the narrowest buckets
OCTAVES = -20, 63  # of slots


def table():
    with open(os.path.join(ROOT, "aggregate/powers.c"), encoding="utf-8") as source:
        return [int(high, 16) << 64 | int(low, 16) for high, low in re.findall(r"\{0x([0-9a-f]{16}), 0x([0-9a-f]{16})\}", source.read())]


def root(number, times):
    """The square root of the square root …, rounded down: which is exact."""
    for _ in range(times):
        number = math.isqrt(number)
    return number


class Powers(unittest.TestCase):
    def test_the_table_is_rounded_down(self):
        found = table()
        self.assertEqual(ENTRIES, len(found))
        for k, power in enumerate(found):
            self.assertTrue(power ** ENTRIES <= 2 ** (k + BITS * ENTRIES) < (power + 1) ** ENTRIES, k)

    def test_each_end_is_exact(self):
        """As powers_floor() has it: the greatest n with n^256 <= scale^256 * 2^i."""
        found, buckets = table(), 2 ** SCHEMA
        for scale in 1, 10 ** 6:
            for index in range(OCTAVES[0] * buckets, OCTAVES[1] * buckets):
                octave, k = divmod(2 * index, ENTRIES)
                end = found[k] * scale << octave >> BITS if octave >= 0 else found[k] * scale >> (BITS - octave)
                if end >= 2 ** 63:
                    break
                exact = root(scale ** buckets << index if index >= 0 else scale ** buckets >> -index, SCHEMA)
                self.assertEqual(exact, end, (scale, index))


if __name__ == "__main__":
    unittest.main()
