#!/usr/bin/env python3
"""An import killed at random failpoints, and begun again until it is done, counts each line exactly once.

TALLYD_ROUNDS says how often (10 by default). A round's store is compared bucket by bucket by `tallyd verify`, and its
answers with those of a store that was filled without interruption. The seed is printed; TALLYD_SEED repeats a run: the
failpoints and their passes are drawn from it.
"""

import os
import sys
import unittest

from harness import Case, dice, draw_death, dying_at, failpoints, traffic

ROUNDS = int(os.environ.get("TALLYD_ROUNDS") or 10)
LINES = 60000
BATCHES = 45  # as many as an import has, about
# Many batches, so that a moment within one is as likely as one between two.
CONFIG = b"aggregate: {batch_size: 64KiB}\n"


class Kill(Case):
    def setUp(self):
        super().setUp()
        self.dice = dice()
        self.log = traffic(LINES, seed=self.dice.randrange(1 << 32))
        self.write("a.log", self.log)
        self.write("tallyd.yaml", CONFIG)
        self.tallyd("import", "-c", "tallyd.yaml", "--store", "sqlite:whole.db", "a.log")
        self.expected = self.answers("whole.db")
        self.assertEqual(LINES, self.total(store="whole.db"))

    def kill_one(self):
        """Begin or continue the import, which dies somewhere; True if it ended before."""
        place = draw_death(self.dice, failpoints("store."), BATCHES)
        self.tallyd("import", "-q", "-c", "tallyd.yaml", "a.log", status=None, env=dying_at(place))
        self.assertIn(self.status, (0, -9), f"{place}\n{self.err}")
        return self.status == 0

    def play_round(self):
        """How many kills it took, and at which byte the last run went on (None: nothing was left to do)."""
        kills = 1
        while not self.kill_one() and self.dice.random() < 0.5:
            kills += 1
        begin = self.import_start(self.tallyd("import", "-c", "tallyd.yaml", "a.log"))
        self.tallyd("verify", "-c", "tallyd.yaml", "a.log")
        self.assertEqual(self.expected, self.answers())
        for name in os.listdir(self.dir):
            if name.startswith("tallyd.db"):
                os.remove(self.path(name))
        return kills, begin

    def test_killed_imports_count_every_line_once(self):
        kills = within = 0
        for number in range(1, ROUNDS + 1):
            with self.subTest(round=number):
                count, begin = self.play_round()
                kills += count
                within += begin is not None and 0 < begin < len(self.log)
        print(f"{ROUNDS} rounds, {kills} kills; in {within} the last run went on within the file")
        self.assertGreaterEqual(within, ROUNDS // 5, "the kills came too early or too late to test anything")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + ["--failfast"] + sys.argv[1:])
