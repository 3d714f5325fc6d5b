#!/usr/bin/env python3
"""`tallyd backfill` in MongoDB: a report that was configured late, or not all the time, has all that was counted before, once,
whenever it is killed.

The judge is a recount of all lines by Python, and `tallyd verify`. TALLYD_ROUNDS says how many random histories are played
(3 by default). The seed is printed; TALLYD_SEED repeats a run. TALLYD_MONGO names the server (tests/servers/mongo.py).
"""

import os

import mongocase

from harness import EX_NOINPUT, EX_OK, EX_TEMPFAIL, dice, draw_death, dying_at, failpoints
from mongocase import LINES_A_BATCH, MongoCase, log

ROUNDS = int(os.environ.get("TALLYD_ROUNDS") or 3)
ALONE = mongocase.CONFIG.replace(b"  pages: {by: [path]}\n", b"").replace(b'  segments: {by: ["path:1"], layout: hour}\n', b"")
LATER = "pages", "segments"


class Backfill(MongoCase):
    def setUp(self):
        super().setUp()
        self.dice = dice()
        self.write("alone.yaml", ALONE)

    def lines(self, batches):
        return log(self.dice, batches * LINES_A_BATCH)

    def import_(self, name, config):
        self.tallyd("import", "-q", "-c", config, "--store", self.store, name)

    def backfill(self, report, *arguments, **options):
        return self.tallyd("backfill", "-c", "tallyd.yaml", "--store", self.store, report, *arguments, **options)

    def test_report_that_came_later_has_all(self):
        a, b = self.lines(3), self.lines(1)
        self.write("a.log", a)
        self.import_("a.log", "alone.yaml")
        self.append("a.log", b)
        self.import_("a.log", "tallyd.yaml")
        before = list(self.base.books.find())
        for report in LATER:
            self.assertIn(f"a.log: bytes 0 to {len(a):,}", self.backfill(report, "--dry-run"))
            self.tallyd("query", report, "--store", self.store, "--from", "2025-12-01", "--to", "2026-02-01", "--step", "day")
            self.assertIn("`tallyd backfill` counts what", self.err)
        self.assertEqual(before, list(self.base.books.find()))
        for report in LATER:
            said = self.backfill(report)
            self.assertIn(f"{3 * LINES_A_BATCH} lines", said)
            self.assertIn("has counted all", said)
        self.check_at_rest()
        self.check(a, b, files=["a.log"])
        after = list(self.base.books.find())
        self.backfill("pages")
        self.assertEqual(after, list(self.base.books.find()))
        # Counting goes on, behind what was filled in; and the file may be forgotten whole.
        self.append("a.log", a)
        self.import_("a.log", "tallyd.yaml")
        self.check(a, b, a, files=["a.log"])
        self.tallyd("forget", "-c", "tallyd.yaml", "--store", self.store, "a.log")
        self.assertTrue(all(stored == {} for _, _, stored in self.compared({})))

    def test_gaps_of_any_history_are_filled(self):
        """Files grow, and reports come and go; what backfills is killed."""
        kills = 0
        for n in range(ROUNDS):
            self.anew()
            names, whole = [f"{n}-a.log", f"{n}-b.log"], []
            for _ in range(self.dice.randrange(2, 5)):
                name, lines = self.dice.choice(names), self.lines(self.dice.randrange(1, 4))
                whole.append(lines)
                self.append(name, lines)
                self.import_(name, self.dice.choice(["alone.yaml", "tallyd.yaml"]))
                if self.dice.random() < 0.3:
                    kills += self.kill_backfill()
            for _ in range(self.dice.randrange(1, 4)):
                kills += self.kill_backfill()
            files = [name for name in names if os.path.exists(self.path(name))]
            self.import_(files[0], "tallyd.yaml")  # finishes open batches, and registers the reports
            for report in LATER:
                self.backfill(report, *files)
            self.check(*whole, files=files)
        print(f"{ROUNDS} histories, {kills} kills")

    def kill_backfill(self):
        place = draw_death(self.dice, failpoints("mongo."), 4)
        times = ["--from", f"2026-01-{self.dice.randrange(4, 8):02}"] if self.dice.random() < 0.5 else []
        self.backfill(self.dice.choice(LATER), "-q", *times, env=dying_at(place), status=None)
        self.assertIn(self.status, (EX_OK, EX_NOINPUT, -9), f"{place}\n{self.err}")
        return self.status == -9

    def test_killed_at_each_place(self):
        a = self.lines(3)
        self.write("a.log", a)
        for place in failpoints("mongo."):
            with self.subTest(place):
                self.anew()
                self.import_("a.log", "alone.yaml")
                self.write("none.log", b"")
                self.import_("none.log", "tallyd.yaml")
                self.backfill("pages", status=-9, env=dying_at(place))
                self.backfill("pages")
                self.backfill("segments")
                self.check(a, files=["a.log"])

    def test_living_writer(self):
        self.write("a.log", self.lines(1))
        self.import_("a.log", "alone.yaml")
        self.write("run.yaml", b"sources: {access: {path: b.log}}\nhttp: {listen: '127.0.0.1:0'}\n" + mongocase.CONFIG)
        self.write("b.log", self.lines(1))
        daemon = self.start("run", "-c", "run.yaml", "--store", self.store)
        self.wait_until(lambda: "b.log" in self.nexts())
        self.backfill("pages", status=EX_TEMPFAIL)
        self.assertIn("stop all that count first", self.err)
        daemon.terminate()
        daemon.communicate()
        self.backfill("pages")
        self.backfill("segments")
        self.check(self.read("a.log"), self.read("b.log"), files=["a.log", "b.log"])


if __name__ == "__main__":
    mongocase.main()
