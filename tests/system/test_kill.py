#!/usr/bin/env python3
"""An import killed by SIGKILL at random moments, and begun again until it is done, counts each line exactly once.

TALLYD_ROUNDS says how often (10 by default). A round's store is compared bucket by bucket by `tallyd verify`, and its
answers with those of a store that was filled without interruption. The seed is printed; TALLYD_SEED repeats a run, as
far as the moments of a machine can be repeated.
"""

import os
import sys
import time
import unittest

from harness import Case, dice, traffic

ROUNDS = int(os.environ.get("TALLYD_ROUNDS") or 10)
LINES = 60000
# Many batches, so that a moment within one is as likely as one between two.
CONFIG = b"aggregate: {batch_size: 64KiB}\n"


class Kill(Case):
    def setUp(self):
        super().setUp()
        self.dice = dice()
        self.log = traffic(LINES, seed=self.dice.randrange(1 << 32))
        self.write("a.log", self.log)
        self.write("tallyd.yaml", CONFIG)
        begun = time.monotonic()
        self.tallyd("import", "-c", "tallyd.yaml", "--store", "sqlite:whole.db", "a.log")
        self.whole_s = time.monotonic() - begun
        self.expected = self.answers("whole.db")
        self.assertEqual(LINES, self.total(store="whole.db"))

    def kill_one(self):
        """Begin or continue the import, kill it; True if it had ended before."""
        process = self.start("import", "-q", "-c", "tallyd.yaml", "a.log")
        time.sleep(self.dice.random() * self.whole_s * 1.2)
        process.kill()
        _, err = process.communicate()
        self.assertIn(process.returncode, (0, -9), err)
        if process.returncode == 0:
            self.whole_s *= 0.8  # the machine is faster than it was
        return process.returncode == 0

    def play_round(self):
        """How many kills it took, and at which byte the last run went on (None: nothing was left to do)."""
        kills = 1
        while not self.kill_one() and self.dice.random() < 0.5:
            kills += 1
        begin = self.import_start(self.tallyd("import", "-c", "tallyd.yaml", "a.log"))
        if begin == 0:
            self.whole_s *= 1.25  # it is slower: nothing was stored yet
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
