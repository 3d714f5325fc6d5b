#!/usr/bin/env python3
"""A store is copied while a daemon counts into it, and put back: whoever goes on from there counts each line once.

The judge is a recount of the logs by nothing that tallyd has. TALLYD_ROUNDS (2 by default) says how often a copy is taken at
a random moment. The seed is printed; TALLYD_SEED repeats a run, as far as the moments of a machine can be repeated.
"""

import collections
import contextlib
import os
import shutil
import sqlite3
import stat
import subprocess
import threading
import time
import unittest

from harness import (EX_CANTCREAT, EX_DATAERR, EX_NOINPUT, EX_TEMPFAIL, EX_USAGE, DaemonCase, command, dice, recount,
                     traffic)

ROUNDS = int(os.environ.get("TALLYD_ROUNDS") or 2)
CONFIG = b"""\
sources: {access: {path: a.log}}
aggregate: {flush: 100ms, batch_size: 64KiB}
http: {listen: "127.0.0.1:0"}
"""


class Embedded(DaemonCase):
    def setUp(self):
        super().setUp()
        self.dice = dice()
        self.log = traffic(40000, seed=self.dice.randrange(1 << 32))
        self.write("tallyd.yaml", CONFIG)
        self.write("a.log", b"")

    def admin(self, *arguments, **options):
        return self.tallyd("admin", *arguments, "--store", "sqlite:tallyd.db", **options)

    def names(self):
        return sorted(name for name in os.listdir(self.dir) if name not in ("a.log", "log", "tallyd.yaml"))

    def run_daemon(self):
        return self.launch("-c", "tallyd.yaml")

    def check(self, expected, store="tallyd.db"):
        """Every minute, and the busiest pages."""
        minutes, pages = collections.Counter(), collections.Counter()
        for (minute, path), (hits, _) in recount(expected).items():
            minutes[minute] += hits
            pages[path] += hits
        by_minute = self.query("site", "--step", "minute", "--measure", "hits", store=store)
        self.assertEqual(minutes, {row["time"]: int(row["value"]) for row in by_minute if row["value"] != "0"})
        by_page = self.query("pages", "--top", "1000", "--measure", "hits", store=store)
        found = {row["path"]: int(row["value"]) for row in by_page if row["path"] != "(other)"}
        self.assertEqual({path: pages[path] for path in found}, found)
        self.assertGreaterEqual(len(found), min(999, len(pages)))

    def wait_counted(self):
        size = os.path.getsize(self.path("a.log"))
        with contextlib.closing(sqlite3.connect(f"file:{self.path('tallyd.db')}?mode=ro", uri=True)) as store:
            self.wait_for(lambda: store.execute("SELECT max(next) FROM position").fetchone()[0],
                          lambda found: found == size)

    def grow(self, data, stop):
        """Append it in pieces for as long as nobody says stop, then the rest."""
        lines = data.splitlines(keepends=True)
        for at in range(0, len(lines), 200):
            self.append("a.log", b"".join(lines[at:at + 200]))
            if not stop.is_set():
                time.sleep(0.005)

    def play_round(self, number):
        """A copy at some moment while the log grows; back in its place when all is counted; and on from there."""
        lines = self.log.splitlines(keepends=True)
        share = len(lines) // (ROUNDS + 1)
        piece = b"".join(lines[number * share:(number + 1) * share])
        stop = threading.Event()
        writer = threading.Thread(target=self.grow, args=(piece, stop))
        self.run_daemon()
        writer.start()
        time.sleep(self.dice.random() * 0.4)
        self.admin("backup", f"copy-{number}.db")
        stop.set()
        writer.join()
        counted = self.read("a.log")
        self.wait_counted()
        self.admin("restore", "--force", f"copy-{number}.db", status=EX_TEMPFAIL)
        self.assertIn("is being written by another tallyd", self.err)
        self.stop(9 if self.dice.random() < 0.5 else 15)
        self.admin("restore", f"copy-{number}.db", status=EX_CANTCREAT)
        self.admin("restore", "--force", f"copy-{number}.db")
        before = sum(hits for hits, _ in recount(counted).values())
        copied = self.total() if self.query("site") else 0
        self.assertLessEqual(copied, before)
        return copied < before

    def stop(self, number=15):
        if number == 15:
            super().stop()
        else:
            self.process.kill()
            self.process.wait()

    def test_taken_while_a_daemon_counts_and_put_back(self):
        was_behind = sum(self.play_round(number) for number in range(ROUNDS))
        self.run_daemon()
        self.wait_counted()
        self.stop()
        self.check(self.read("a.log"))
        self.tallyd("verify", "-c", "tallyd.yaml", "a.log")
        self.assertEqual([], [name for name in self.names() if name.endswith("-partial")])
        print(f"{ROUNDS} rounds, {was_behind} copies were behind what was counted")

    def count(self, lines=3000):
        self.write("a.log", b"".join(self.log.splitlines(keepends=True)[:lines]))
        self.tallyd("import", "-q", "-c", "tallyd.yaml", "a.log")

    def test_a_copy_is_one_file_of_its_moment(self):
        self.count()
        os.chmod(self.path("tallyd.db"), 0o640)
        out = self.admin("backup", "copy.db")
        self.assertRegex(out, r"copy\.db: [\d.]+ MiB, checked")
        self.check(self.read("a.log"), store="copy.db")
        self.assertEqual(0o640, stat.S_IMODE(os.stat(self.path("copy.db")).st_mode))
        self.assertEqual(["copy.db"], [name for name in self.names() if name.startswith("copy")])
        with sqlite3.connect(self.path("copy.db")) as copy:
            self.assertEqual([("delete",)], copy.execute("PRAGMA journal_mode").fetchall())
        pages = self.read("copy.db")
        self.assertEqual([], [at // 8192 for at in range(0, len(pages), 8192) if pages[at + 8184:at + 8192] == bytes(8)])

    def test_a_copy_by_another_program_is_as_good(self):
        """SQLite's backup API counts on in the header of page 1, which has a checksum once it was moved from the log."""
        self.count()
        self.admin("backup", "whole.db")  # all of its pages have checksums
        with contextlib.closing(sqlite3.connect(self.path("whole.db"))) as base, \
                contextlib.closing(sqlite3.connect(self.path("copy.db"))) as copy:
            base.backup(copy)
        self.assertNotEqual(self.read("whole.db")[:8192], self.read("copy.db")[:8192])
        self.check(self.read("a.log"), store="copy.db")
        self.admin("restore", "--force", "copy.db")
        self.check(self.read("a.log"))

    def test_into_a_place_where_no_store_was(self):
        self.count()
        self.admin("backup", "copy.db")
        for name in "tallyd.db", "tallyd.db-lock":
            os.remove(self.path(name))
        self.admin("restore", "copy.db")
        self.check(self.read("a.log"))

    def test_a_log_that_a_crash_left_beside_the_store_does_not_come_back(self):
        """Frames of the old WAL would be taken for the new file's."""
        self.count()
        self.admin("backup", "copy.db")
        expected = self.read("a.log")
        self.run_daemon()
        self.append("a.log", self.log[len(expected):])
        self.wait_counted()
        self.stop(9)
        self.assertIn("tallyd.db-wal", self.names())
        self.admin("restore", "--force", "copy.db")
        self.check(expected)

    def test_a_store_that_is_damaged_is_replaced(self):
        self.count()
        self.admin("backup", "copy.db")
        expected = self.read("a.log")
        self.write("tallyd.db", b"x" * 100000)
        self.write("tallyd.db-wal", b"y" * 100000)
        self.admin("restore", "--force", "copy.db")
        self.check(expected)
        self.assertNotIn("tallyd.db-wal", self.names())

    def test_a_reader_of_the_store_holds_it_up(self):
        self.count()
        self.admin("backup", "copy.db")
        with sqlite3.connect(self.path("tallyd.db")) as reader:
            reader.execute("BEGIN")
            reader.execute("SELECT count(*) FROM report").fetchall()
            self.admin("restore", "--force", "copy.db", status=EX_TEMPFAIL)
        self.assertIn("tallyd.db is open in another program: close it", self.err)
        reader.close()
        self.admin("restore", "--force", "copy.db")

    def test_what_is_no_copy_is_refused_and_the_store_stays(self):
        self.count()
        expected = self.read("a.log")
        self.admin("backup", "copy.db")
        self.write("text.db", b"no database\n" * 1000)
        sqlite3.connect(self.path("other.db")).execute("CREATE TABLE t (x)")
        shutil.copy(self.path("copy.db"), self.path("flipped.db"))
        size = os.path.getsize(self.path("flipped.db"))
        with open(self.path("flipped.db"), "r+b") as file:  # a page of a tree, in the middle of the file
            file.seek(size // 2 // 8192 * 8192)
            file.write(b"\xff" * 64)
        for name, status in (("nowhere.db", EX_NOINPUT), ("text.db", EX_DATAERR), ("other.db", EX_DATAERR),
                             ("flipped.db", EX_DATAERR), ("tallyd.db", EX_USAGE)):
            with self.subTest(copy=name):
                self.admin("restore", "--force", name, status=status)
                self.assertIn(name, self.err)
                self.check(expected)
        self.assertEqual([], [name for name in self.names() if name.endswith("-partial")])

    def test_what_is_there_is_not_overwritten(self):
        self.count()
        self.write("copy.db", b"mine")
        self.admin("backup", "copy.db", status=EX_CANTCREAT)
        self.assertIn("--force", self.err)
        self.assertEqual(b"mine", self.read("copy.db"))
        self.admin("backup", "--force", "copy.db")
        self.check(self.read("a.log"), store="copy.db")
        self.admin("backup", "--force", "tallyd.db", status=EX_USAGE)
        self.admin("backup", "nowhere/copy.db", status=EX_CANTCREAT)

    def test_what_a_killed_backup_left_is_overwritten(self):
        self.count()
        self.write("copy.db-partial", b"half of it" * 10000)
        self.admin("backup", "copy.db")
        self.check(self.read("a.log"), store="copy.db")
        self.assertNotIn("copy.db-partial", self.names())

    def test_a_damaged_store_has_no_backup(self):
        self.count()
        size = os.path.getsize(self.path("tallyd.db"))
        with open(self.path("tallyd.db"), "r+b") as file:
            file.seek(size // 2 // 8192 * 8192)
            file.write(b"\xff" * 64)
        self.admin("backup", "copy.db", status=EX_DATAERR)
        self.assertIn("tallyd.db is damaged", self.err)
        self.assertNotIn("copy.db", self.names())

    def test_what_is_no_question(self):
        for arguments in ["backup"], ["restore"], ["backup", "a", "b"], ["backup", "a", "--apply"], ["indexes", "--force"]:
            self.admin(*arguments, status=EX_USAGE)
        self.tallyd("admin", "backup", "--store", "mem:", "copy", status=EX_USAGE)
        self.admin("backup", "copy.db", status=EX_NOINPUT)
        self.tallyd("backup", "copy.db", status=EX_USAGE)
        self.assertIn('unknown command "backup" (did you mean "admin backup"?)', self.err)
        self.tallyd("imprt", "a.log", status=EX_USAGE)
        self.assertIn('unknown command "imprt" (did you mean "import"?)', self.err)
        self.tallyd("import", "--store", "copy.db", "a.log", status=EX_USAGE)
        self.assertIn('tallyd: --store: found "copy.db", expected sqlite:PATH', self.err)
        self.assertIn('(did you mean "sqlite:copy.db"?)', self.err)
        help_text = subprocess.run([*command(), "admin", "--help"], stdout=subprocess.PIPE, check=True).stdout
        self.assertIn(b"restore PATH", help_text)


if __name__ == "__main__":
    unittest.main()
