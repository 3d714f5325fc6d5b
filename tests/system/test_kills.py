#!/usr/bin/env python3
"""SIGKILLs of whatever changes a whole store: upgrade, backfill, forget and copy, one after the other on one store of an older
format, each until it ends; after every kill and at each end, all counts are those of a recount by Python.

TALLYD_KILLS says how many kills are played (8 by default; `make kills` plays 200). The seed is printed; TALLYD_SEED repeats a run,
as far as the moments of a machine can be repeated.
"""

import collections
import gzip
import os
import time
import unittest

from harness import EX_CANTCREAT, EX_NOINPUT, EX_OK, EX_TEMPFAIL, ROOT, Case, dice, draw_death, dying_at, failpoints

GOLDEN = os.path.join(ROOT, "tests/golden/stores")
KILLS = int(os.environ.get("TALLYD_KILLS") or 8)
COUNTED = 300  # lines of the log, by the stores
SPAN = ("2026-01-01", "2026-02-01")
DAYS = 31
KEEP = "keep: {minute: 48h}"
OLD = f"reports:\n  site: {{{KEEP}}}\n  pages: {{by: [path], {KEEP}}}\naggregate: {{cells_max: 1024, series_max: 1024}}\n"
NEW = OLD.replace("aggregate", "  late: {by: [path], where: [status>=400], measures: {hits: count, bytes: sum(bytes)}}\naggregate")
KILLED = -9


def golden(name):
    with gzip.open(os.path.join(GOLDEN, name)) as file:
        return file.read()


def line(random):
    at = time.strftime("%d/%b/%Y:%H:%M:%S +0000", time.gmtime(1767225600 + random.randrange(DAYS * 86400)))
    path, size = int(random.paretovariate(0.6)) % 800, random.choice(["-", random.randrange(10**6)])
    return f'192.0.2.1 - - [{at}] "GET /page/{path}.html HTTP/1.1" {random.choice([200, 200, 404, 500])} {size} "-" "x"\n'.encode()


def recount(lines):
    """{report: {series: [hits, bytes]}} by path, and of `site` by hour."""
    counts = collections.defaultdict(lambda: collections.defaultdict(lambda: [0, 0]))
    for text in lines.decode().splitlines():
        fields = text.split()
        path, status, size = fields[6].split("?")[0], int(fields[8]), 0 if fields[9] == "-" else int(fields[9])
        hour = time.strftime("%Y-%m-%dT%H:00:00Z", time.strptime(fields[3][1:], "%d/%b/%Y:%H:%M:%S"))
        for report, series in [("site", hour), ("pages", path)] + ([("late", path)] if status >= 400 else []):
            counts[report][series][0] += 1
            counts[report][series][1] += size
    return counts


class Kills(Case):
    def setUp(self):
        super().setUp()
        self.dice = dice()
        self.kills = collections.Counter()  # by what was killed
        self.ended = collections.Counter()  # before its death came

    # ---- the judge

    def counts(self, store, report):
        arguments = ["--step", "hour", "--measure", "hits"] if report == "site" else ["--top", "1000", "--measure", "hits"]
        key = "time" if report == "site" else "path"
        return {row[key]: int(row["value"]) for row in self.query(report, *arguments, span=SPAN, store=store) if row["value"] != "0"}

    def holds(self, lines, *reports, store="tallyd.db"):
        expected = recount(lines)
        return all({series: hits for series, (hits, _) in expected[report].items()} == self.counts(store, report) for report in reports)

    def check(self, lines, *reports, store="tallyd.db"):
        """All of these reports have these lines, and nothing else."""
        for report in reports:
            expected = {series: hits for series, (hits, _) in recount(lines)[report].items()}
            self.assertEqual(expected, self.counts(store, report), report)
        self.tallyd("verify", "--store-only", "--store", f"sqlite:{store}")

    # ---- killing

    def on_store(self, command, *arguments, config="new.yaml"):
        return command, "-c", config, "--store", "sqlite:tallyd.db", *arguments

    def kill(self, what, places, passes, *arguments, statuses=(EX_OK,)):
        """Run it, killed at one of these failpoints, or at a random moment if there is none. True: it was killed."""
        if places:
            place = draw_death(self.dice, places, passes)
            self.tallyd(*arguments, env=dying_at(place), status=None)
            status, said = self.status, f"{place}\n{self.err}"
        else:
            process = self.start(*arguments)
            time.sleep(self.dice.random() * 0.06)
            process.kill()
            said = process.communicate()[1]
            status = process.returncode
        self.assertIn(status, (*statuses, KILLED), said)
        self.kills[what] += status == KILLED
        self.ended[what] += status != KILLED
        return status == KILLED

    def deaths(self):
        return range(self.dice.randrange(1, 4))

    def upgrade(self, a):
        version = self.dice.choice([3, 4])
        self.write("tallyd.db", golden(f"sqlite-{version}.gz"))
        for _ in self.deaths():
            places = self.dice.choice([failpoints("upgrade."), None])
            self.kill("upgrade", places, 1, "admin", "upgrade", "--store", "sqlite:tallyd.db")
            self.check(a, "site", "pages")
        self.tallyd("admin", "upgrade", "--store", "sqlite:tallyd.db")
        self.assertIn("nothing to do", self.tallyd("admin", "upgrade", "--store", "sqlite:tallyd.db"))
        self.check(a, "site", "pages")
        self.check(a, "site", "pages", store=f"tallyd.db-format{version}")

    def backfill(self, whole):
        """Of a range of time first, sometimes."""
        for _ in self.deaths():
            days = sorted(self.dice.sample(range(1, DAYS + 1), 2))
            times = ["--from", f"2026-01-{days[0]:02}", "--to", f"2026-01-{days[1]:02}"] if self.dice.random() < 0.5 else []
            self.kill("backfill", failpoints("store."), 2, *self.on_store("backfill", "-q", *times, "late", "a.log", "b.log"),
                      statuses=(EX_OK, EX_NOINPUT))
            self.check(whole, "site", "pages")
        self.tallyd(*self.on_store("backfill", "-q", "late", "a.log", "b.log"))
        self.check(whole, "site", "pages", "late")

    def forget(self, a, whole):
        """And count the file again."""
        is_done = False
        for _ in self.deaths():
            self.kill("forget", failpoints("forget."), 1, *self.on_store("forget", "b.log"), statuses=(EX_NOINPUT,) if is_done else (EX_OK,))
            is_done = is_done or self.holds(a, "site")
            self.check(a if is_done else whole, "site", "pages", "late")
        if not is_done:
            self.tallyd(*self.on_store("forget", "b.log"))
        self.check(a, "site", "pages", "late")
        self.tallyd(*self.on_store("import", "-q", "b.log"))
        self.check(whole, "site", "pages", "late")

    def copy(self, whole):
        arguments = "admin", "copy", "sqlite:tallyd.db", "sqlite:copy.db"
        for _ in self.deaths():
            self.kill("copy", self.dice.choice([failpoints("copy."), None]), 1, *arguments, statuses=(EX_OK, EX_CANTCREAT))
            self.check(whole, "site", "pages", "late")
            self.tallyd("query", "site", "--store", "sqlite:copy.db", status=None)
            self.assertIn(self.status, (EX_OK, EX_NOINPUT, EX_TEMPFAIL), self.err)
            if self.status == EX_OK:
                self.check(whole, "site", "pages", "late", store="copy.db")
        self.tallyd(*arguments, status=None)
        self.assertIn(self.status, (EX_OK, EX_CANTCREAT), self.err)
        self.check(whole, "site", "pages", "late", store="copy.db")

    def play(self):
        a = b"".join(golden("access.log.gz").splitlines(keepends=True)[:COUNTED])
        b = b"".join(line(self.dice) for _ in range(self.dice.randrange(500, 5000)))
        for name in os.listdir(self.dir):
            os.remove(self.path(name))
        for name, data in ("a.log", a), ("b.log", b), ("old.yaml", OLD.encode()), ("new.yaml", NEW.encode()):
            self.write(name, data)
        self.upgrade(a)
        self.tallyd(*self.on_store("import", "-q", "b.log", config="old.yaml"))
        self.backfill(a + b)
        self.forget(a, a + b)
        self.copy(a + b)
        for store in "tallyd.db", "copy.db":
            self.tallyd("verify", "-c", "new.yaml", "--store", f"sqlite:{store}", "a.log", "b.log")

    def test_all_counts_are_exact(self):
        rounds = 0
        while self.kills.total() < KILLS:
            rounds += 1
            self.play()
            self.assertLess(rounds, 100 + KILLS, "the kills came too late to test anything")
        print(f"{self.kills.total()} kills in {rounds} rounds: {dict(self.kills)}; ended before their death: {dict(self.ended)}")


if __name__ == "__main__":
    unittest.main()
