#!/usr/bin/env python3
"""SIGKILLs of whatever changes a whole store in MongoDB: backfill, forget, and a copy in both directions, each at a random moment,
then until it ends; after every kill and at each end, all counts are those of a recount by Python.

TALLYD_KILLS says how many kills are played (6 by default; `make kills` plays 200). The seed is printed; TALLYD_SEED repeats a run,
as far as the moments of a machine can be repeated. TALLYD_MONGO names the server (tests/servers/mongo.py).
"""

import collections
import os
import time

import mongocase

from harness import EX_CANTCREAT, EX_NOINPUT, EX_OK, EX_TEMPFAIL, dice
from mongocase import LINES_A_BATCH, MongoCase, add_up, busy, log, recount

KILLS = int(os.environ.get("TALLYD_KILLS") or 6)
LATER = "pages", "segments"
CONFIG = mongocase.CONFIG.replace(b"  moments: {layout: minute}\n", b"")  # an SQLite store has no seconds
ALONE = CONFIG.replace(b"  pages: {by: [path]}\n", b"").replace(b'  segments: {by: ["path:1"], layout: hour}\n', b"")
SPAN = ("2026-01-01", "2026-02-01")
KILLED = -9


class Kills(MongoCase):
    def setUp(self):
        super().setUp()
        self.dice = dice()
        self.kills = collections.Counter()  # by what was killed
        self.ended = collections.Counter()  # before its death came
        self.took_s = {}  # how long each takes
        self.write("tallyd.yaml", CONFIG)
        self.write("alone.yaml", ALONE)
        self.write("none.log", b"")

    # ---- the judge

    def check_reports(self, lines, *reports):
        """The documents of these reports say exactly what the lines do."""
        for (report, kind, bucket), counts, stored in self.compared(recount(lines)):
            if report in reports:
                self.assertEqual(counts, stored, (report, kind, bucket))

    def check_all(self, lines):
        self.check_reports(lines, "site", *LATER)
        self.tallyd("verify", "--store-only", "--store", self.store)

    def check_file(self, lines):
        asked = (("pages", "path", ["--top", "1000"], "month", lambda path: path),
                 ("segments", "path:1", ["--top", "1000"], "month", mongocase.DIMENSIONS["segments"][1]),
                 ("site", "time", ["--step", "hour"], "hour", lambda path: None))
        for report, key, arguments, span, of_path in asked:
            expected = {path or f"{at}:00:00Z": cell for (at, path), cell in add_up(recount(lines), span, of_path).items()}
            rows = self.query(report, *arguments, "--measure", "all", span=SPAN, store="copy.db")
            self.assertEqual(expected, busy({row[key]: [int(row["hits"]), int(row["bytes"])] for row in rows}), report)
        self.tallyd("verify", "--store-only", "--store", "sqlite:copy.db")

    # ---- killing

    def on_store(self, command, *arguments, config="tallyd.yaml"):
        return command, "-c", config, "--store", self.store, *arguments

    def kill(self, what, *arguments, statuses=(EX_OK,)):
        """Kill it at a random moment. True: it was killed."""
        process = self.start(*arguments)
        delay_s = self.dice.random() * self.took_s.get(what, 0.5)
        time.sleep(delay_s)
        process.kill()
        said = process.communicate()[1].decode()
        self.assertIn(process.returncode, (*statuses, KILLED), said)
        is_killed = process.returncode == KILLED
        self.kills[what] += is_killed
        self.ended[what] += not is_killed
        if process.returncode == EX_OK:  # it took less; after an end with another status there was nothing to do
            self.took_s[what] = delay_s
        return is_killed

    def end(self, what, *arguments, status=EX_OK):
        begun = time.monotonic()
        self.tallyd(*arguments, status=status)
        self.took_s[what] = time.monotonic() - begun

    def deaths(self):
        return range(self.dice.randrange(1, 4 if KILLS < 100 else 7))

    def finish_batch(self):
        """What the killed one committed: the next writer has it in all documents."""
        self.tallyd(*self.on_store("import", "-q", "none.log"))

    def backfill(self, whole):
        """Of a range of time first, sometimes."""
        filled = set()
        for report in LATER:
            for _ in self.deaths():
                times = ["--from", f"2026-01-{self.dice.randrange(4, 8):02}"] if self.dice.random() < 0.3 else []
                self.kill("backfill", *self.on_store("backfill", "-q", *times, report, "a.log", "b.log"), statuses=(EX_OK, EX_NOINPUT))
                self.check_reports(whole, "site", *filled)
            self.end("backfill", *self.on_store("backfill", "-q", report, "a.log", "b.log"))
            filled.add(report)
            self.check_reports(whole, "site", *filled)
        self.check_all(whole)

    def forget(self, a, b):
        """And count the file again. Whenever it is killed, the file is counted up to its position."""
        left = len(b)
        for _ in self.deaths():
            self.kill("forget", *self.on_store("forget", "b.log"), statuses=(EX_OK, EX_NOINPUT))
            self.finish_batch()
            left = self.nexts().get("b.log", 0)
            self.check_all(a + b[:left])
        self.end("forget", *self.on_store("forget", "b.log"), status=EX_OK if left > 0 else EX_NOINPUT)
        self.check_all(a)
        self.tallyd(*self.on_store("import", "-q", "b.log"))
        self.check_all(a + b)

    def copy(self, what, origin, target, check):
        """`check` is called as soon as the copy is whole."""
        for _ in self.deaths():
            self.kill(what, "admin", "copy", origin, target, statuses=(EX_OK, EX_CANTCREAT))
            self.tallyd("query", "site", "--store", target, status=None)
            self.assertIn(self.status, (EX_OK, EX_NOINPUT, EX_TEMPFAIL), self.err)
            if self.status == EX_OK:
                check()
        begun = time.monotonic()
        self.tallyd("admin", "copy", origin, target, status=None)
        self.assertIn(self.status, (EX_OK, EX_CANTCREAT), self.err)
        if self.status == EX_OK:
            self.took_s[what] = time.monotonic() - begun
        check()

    def play(self):
        for name in os.listdir(self.dir):
            if "copy.db" in name:
                os.remove(self.path(name))
        self.anew()
        a, b = (log(self.dice, self.dice.randrange(1, 5) * LINES_A_BATCH) for _ in range(2))
        for name, lines in ("a.log", a), ("b.log", b):
            self.write(name, lines)
            self.tallyd(*self.on_store("import", "-q", name, config="alone.yaml"))
        self.finish_batch()
        self.backfill(a + b)
        self.forget(a, b)
        self.copy("copy from", self.store, "sqlite:copy.db", lambda: self.check_file(a + b))
        first = self.name
        self.anew()
        self.copy("copy to", "sqlite:copy.db", self.store, lambda: self.check_all(a + b))
        for name in self.name, first:
            self.use(name)
            self.check_all(a + b)
            self.tallyd(*self.on_store("verify", "a.log", "b.log"))

    def test_all_counts_are_exact(self):
        rounds = 0
        while self.kills.total() < KILLS:
            rounds += 1
            self.play()
            print(f"{self.kills.total()} kills in {rounds} rounds: {dict(self.kills)}; ended before their death: {dict(self.ended)}", flush=True)
            self.assertLess(rounds, 100 + KILLS, "the kills came too late to test anything")


if __name__ == "__main__":
    mongocase.main()
