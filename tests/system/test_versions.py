#!/usr/bin/env python3
"""A store of any earlier version opens in this one: it is queried as it is, upgraded at the first write, and counted on.

The stores are those of tests/golden/stores, the judge is a recount of their log. TALLYD_ROUNDS (6 by default) says how often an
upgrade is killed at a random moment. The seed is printed; TALLYD_SEED repeats a run, as far as the moments of a machine can be
repeated.
"""

import collections
import contextlib
import gzip
import os
import sqlite3
import time
import unittest

from harness import EX_CANTCREAT, EX_OK, ROOT, Case, dice, failpoints, recount, store_url

GOLDEN = os.path.join(ROOT, "tests/golden/stores")
ROUNDS = int(os.environ.get("TALLYD_ROUNDS") or 6)
SPAN = ("2026-01-01", "2026-02-01")
COUNTED = 300  # lines of the log, by all of them
FORMAT = 5  # of a store without histograms and distinct counts
CONFIG = b"""\
reports:
  site: {keep: {minute: 48h}}
  pages: {by: [path], keep: {minute: 48h}}
"""
SKETCHED = b"""\
reports:
  site: {measures: {hits: count, sizes: histogram(bytes), visitors: distinct(host)}}
  pages: {by: [path], measures: {hits: count, sizes: histogram(bytes), visitors: distinct(host)}}
"""


def golden(name):
    with gzip.open(os.path.join(GOLDEN, name)) as file:
        return file.read()


class Versions:
    def read_log(self):
        self.lines = golden("access.log.gz").splitlines(keepends=True)
        self.write("a.log", b"".join(self.lines[:COUNTED]))
        self.write("tallyd.yaml", CONFIG)

    def check(self, store, count):
        """Each hour of all, and of each page; verify says the same."""
        hours = collections.defaultdict(collections.Counter)
        for (minute, path), (hits, _) in recount(b"".join(self.lines[:count])).items():
            for key in None, path:
                hours[key][minute[:13] + ":00:00Z"] += hits
        for path, expected in hours.items():
            arguments = ["site"] if path is None else ["pages", "--filter", f"path={path}"]
            rows = self.query(*arguments, "--step", "hour", "--measure", "hits", span=SPAN, store=store)
            self.assertEqual(expected, {row["time"]: int(row["value"]) for row in rows if row["value"] != "0"})
        for more in ["a.log"], ["--store-only"]:
            self.tallyd("verify", "-c", "tallyd.yaml", "--store", store_url(store), *more)

    def count_on(self, store):
        self.write("a.log", b"".join(self.lines))
        self.assertRegex(self.tallyd("import", "-c", "tallyd.yaml", "--store", store_url(store), "a.log"), "counted 100 lines,")
        self.check(store, len(self.lines))

    def format(self):
        with contextlib.closing(sqlite3.connect(self.path("tallyd.db"))) as store:
            self.assertEqual([("ok",)], store.execute("PRAGMA quick_check").fetchall())
            return store.execute("PRAGMA user_version").fetchone()[0]


class Embedded(Versions, Case):
    def setUp(self):
        super().setUp()
        self.read_log()

    def stores(self):
        for version in range(3, FORMAT + 1):
            with self.subTest(format=version):
                yield version, golden(f"sqlite-{version}.gz")
                for name in os.listdir(self.dir):
                    if name not in ("a.log", "tallyd.yaml"):
                        os.remove(self.path(name))
                self.write("a.log", b"".join(self.lines[:COUNTED]))

    def test_queried_then_counted_on(self):
        for version, data in self.stores():
            self.write("tallyd.db", data)
            self.check("tallyd.db", COUNTED)
            self.assertEqual(data, self.read("tallyd.db"), "a reader has changed it")
            self.assertEqual(version, self.format())
            self.count_on("tallyd.db")
            self.assertEqual(FORMAT, self.format())

    def test_copied_and_backed_up(self):
        """Both without an upgrade of the store itself."""
        for version, data in self.stores():
            self.write("tallyd.db", data)
            self.tallyd("admin", "copy", "sqlite:tallyd.db", "sqlite:copy.db")
            self.tallyd("admin", "backup", "--store", "sqlite:tallyd.db", "backup.db")
            self.assertEqual(version, self.format())
            self.tallyd("admin", "restore", "--store", "sqlite:restored.db", "backup.db")
            for store in "copy.db", "restored.db":
                self.check(store, COUNTED)
                self.write("a.log", b"".join(self.lines[:COUNTED]))
                self.count_on(store)
                self.write("a.log", b"".join(self.lines[:COUNTED]))

    def admin(self, *arguments, **options):
        return self.tallyd("admin", *arguments, "--store", "sqlite:tallyd.db", **options)

    def test_upgraded_by_command_and_put_back(self):
        for version, data in self.stores():
            self.write("tallyd.db", data)
            kept = f"tallyd.db-format{version}"
            said = self.admin("upgrade", "--dry-run")
            self.assertEqual(data, self.read("tallyd.db"))
            if version == FORMAT:
                self.assertIn("nothing to do", said)
                self.assertIn("nothing to do", self.admin("upgrade"))
                continue
            self.assertRegex(said, f"would get format {FORMAT} instead of {version}: .*/{kept}")
            self.assertFalse(os.path.exists(self.path(kept)))
            self.assertRegex(self.admin("upgrade"), f"has format {FORMAT} now; .*/{kept} has it as it was")
            self.assertEqual(FORMAT, self.format())
            self.check("tallyd.db", COUNTED)
            self.count_on("tallyd.db")
            self.admin("restore", "--force", kept)
            self.assertEqual(version, self.format())
            self.check("tallyd.db", COUNTED)
            self.count_on("tallyd.db")  # what came after is counted again

    def test_no_room_for_the_copy(self):
        """The store stays as it is, and is counted on."""
        data = golden("sqlite-4.gz")
        self.write("tallyd.db", data)
        os.mkdir(self.path("tallyd.db-format4-partial"))
        self.admin("upgrade", status=EX_CANTCREAT)
        self.assertRegex(self.err, "(?s)event=store_without_checksums .*keeps format 4")
        self.count_on("tallyd.db")
        self.assertEqual(4, self.format())
        os.rmdir(self.path("tallyd.db-format4-partial"))
        self.admin("upgrade")
        self.check("tallyd.db", len(self.lines))
        self.assertEqual(FORMAT, self.format())

    def test_killed_at_each_step(self):
        places = failpoints("upgrade.")
        self.assertEqual(2, len(places))
        for place in places:
            for name in [name for name in os.listdir(self.dir) if name.startswith("tallyd.db")]:
                os.remove(self.path(name))
            self.write("tallyd.db", golden("sqlite-4.gz"))
            self.write("a.log", b"".join(self.lines[:COUNTED]))
            self.admin("upgrade", status=-9, env={**os.environ, "TALLYD_FAILPOINT": place})
            self.assertEqual(4, self.format())
            self.check("tallyd.db", COUNTED)
            self.admin("upgrade")
            self.check("tallyd.db-format4", COUNTED)
            self.count_on("tallyd.db")
            self.assertEqual(FORMAT, self.format())

    def upgrade(self, version, whole_s, random):
        """Kill it at a random moment: SQLite rewrites the file in one call, which has no failpoint. True: it had ended."""
        process = self.start("import", "-q", "-c", "tallyd.yaml", "a.log")
        time.sleep(random.random() * whole_s)
        process.kill()
        process.communicate()
        self.assertIn(self.format(), (version, FORMAT))
        if self.format() == FORMAT:
            self.check(f"tallyd.db-format{version}", COUNTED)
        return process.returncode == EX_OK

    def test_killed_while_it_is_upgraded(self):
        random = dice()
        for version, data in self.stores():
            if version == FORMAT:
                continue
            whole_s, ended = 0.1, 0
            for _ in range(ROUNDS):
                for name in os.listdir(self.dir):
                    if name.startswith("tallyd.db"):
                        os.remove(self.path(name))
                self.write("tallyd.db", data)
                self.write("a.log", b"".join(self.lines[:COUNTED]))
                if self.upgrade(version, whole_s, random):
                    ended, whole_s = ended + 1, whole_s * 0.8
                else:
                    whole_s *= 1.1
                self.check("tallyd.db", COUNTED)
                self.count_on("tallyd.db")
                self.assertEqual(FORMAT, self.format())
            print(f"format {version}: {ROUNDS} kills, {ended} came too late")
            self.assertLess(ended, ROUNDS, "the kills came too late to test anything")


class Sketches(Versions, Case):
    """Histograms and distinct counts: format 5 has them as varints, format 6 tight."""

    def setUp(self):
        super().setUp()
        self.read_log()
        self.write("tallyd.yaml", SKETCHED)

    def answers(self, store):
        return [self.tallyd("query", *report, "--store", f"sqlite:{store}", "--from", SPAN[0], "--to", SPAN[1], "--measure", measure,
                            "--format", "csv-raw") for measure in ("p50(sizes)", "p99(sizes)", "mean(sizes)", "visitors")
                for report in (["site", "--step", "hour"], ["site", "--step", "day"], ["site", "--step", "month"], ["pages", "--top", "9"])]

    def check_sketches(self, lines, *stores):
        self.write("a.log", b"".join(self.lines[:lines]))
        self.tallyd("import", "-c", "tallyd.yaml", "--store", f"sqlite:fresh{lines}.db", "a.log")
        for store in stores:
            self.assertEqual(self.answers(f"fresh{lines}.db"), self.answers(store))
            self.check(store, lines)

    def test_queried_copied_then_counted_on(self):
        for name, version in ("sqlite-5-sketches.gz", 5), ("sqlite-6.gz", 6):
            with self.subTest(name):
                self.write("tallyd.db", golden(name))
                self.assertEqual(version, self.format())
                self.tallyd("admin", "copy", "sqlite:tallyd.db", f"sqlite:copy{version}.db")
                self.check_sketches(COUNTED, "tallyd.db", f"copy{version}.db")
                self.assertEqual(golden(name), self.read("tallyd.db"), "a reader has changed it")
                for store in "tallyd.db", f"copy{version}.db":
                    self.write("a.log", b"".join(self.lines))
                    self.count_on(store)
                    self.check_sketches(len(self.lines), store)
                self.assertEqual(6, self.format())
                self.tallyd("import", "-c", "tallyd.yaml", "a.log")  # opens it once more
                os.remove(self.path("tallyd.db"))

    def test_format_stays_without_them(self):
        self.write("tallyd.yaml", CONFIG)
        self.tallyd("import", "-c", "tallyd.yaml", "a.log")
        self.assertEqual(FORMAT, self.format())
        self.write("tallyd.yaml", CONFIG + b"  sizes: {measures: {sizes: histogram(bytes)}}\n")
        self.tallyd("import", "-c", "tallyd.yaml", "a.log")
        self.assertEqual(6, self.format())
        self.tallyd("admin", "backup", "--store", "sqlite:tallyd.db", "backup.db")
        os.remove(self.path("tallyd.db"))
        self.tallyd("admin", "restore", "--store", "sqlite:tallyd.db", "backup.db")
        self.assertEqual(6, self.format())


if __name__ == "__main__":
    unittest.main()
