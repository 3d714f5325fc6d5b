#!/usr/bin/env python3
"""`tallyd verify` with some of the files that were counted: what they say must be in the store, whatever else is there; what was
not given is named. Also if reports are full, resolutions have expired and numbers are below zero.

The seed is printed; TALLYD_SEED repeats a run.
"""

import gzip
import json
import os
import unittest

from harness import DaemonCase, dice, dying_at, traffic
from test_audit import GAUGES, Audit
from test_expire import KEEP, Expiring, config

DIFFERENCES, NOT_GIVEN = 1, 2
METRICS = b"""
sources: {m: {decode: [metric]}}
reports:
  gauges: {by: [name], series_max: 3, measures: {n: count, sum: sum(value), low: min(value), high: max(value), mean: mean(value), now: last(value)}}
"""


class FilesCase(Audit):
    def judge(self, status, *files):
        return self.tallyd("verify", "-c", "tallyd.yaml", *files, status=status)

    def count(self, *files):
        self.tallyd("import", "-c", "tallyd.yaml", *files)


NOT_COUNTED = 4


class Logs(FilesCase, DaemonCase):
    """Lines that nobody counted are listed, though all that was counted agrees."""

    def setUp(self):
        super().setUp()
        self.write("tallyd.yaml", b"sources: {access: {path: access.log}}\nreports: {site: {}}\naggregate: {flush: 100ms}\n"
                                  b"http: {listen: '127.0.0.1:0'}\n")

    def age(self, name, seconds):
        at = os.stat(self.path(name)).st_mtime - seconds
        os.utime(self.path(name), (at, at))

    def follow(self, name, count, seed):
        self.append(name, traffic(count, seed=seed))
        self.launch("-c", "tallyd.yaml")
        self.wait_for_consumed(count)
        self.stop()

    def test_tails_neighbours_and_history(self):
        self.write("access.log.2", traffic(20, seed=2))
        self.age("access.log.2", 7200)
        self.follow("access.log", 100, 1)
        self.assertRegex(self.judge(0), r"(?m)/access\.log\.2 +0 +[0-9,]+  never counted: older than what was$")
        self.append("access.log", traffic(5, seed=3))
        self.judge(0)  # a daemon may be about to count them
        self.age("access.log", 3600)
        self.assertRegex(self.judge(NOT_COUNTED), r"(?m)/access\.log +[0-9,]+ +[0-9,]+  lines behind are not counted$")
        os.rename(self.path("access.log"), self.path("access.log.1"))
        self.write("access.log.0", traffic(30, seed=4))
        said = self.judge(NOT_COUNTED)
        self.assertRegex(said, r"(?m)/access\.log\.1 +[0-9,]+ +[0-9,]+  lines behind are not counted$")
        self.assertRegex(said, r"(?m)/access\.log\.0 +0 +[0-9,]+  never counted$")

    def test_a_file_that_is_written_to_after_the_log_is_no_history(self):
        self.follow("access.log", 100, 1)
        self.write("access.1.log", traffic(30, seed=4))
        self.assertRegex(self.judge(0), r"(?m)/access\.1\.log +0 +[0-9,]+  never counted: older than what was$")
        self.age("access.log", 3600)
        self.assertRegex(self.judge(NOT_COUNTED), r"(?m)/access\.1\.log +0 +[0-9,]+  never counted$")

    def test_what_was_never_counted_is_listed(self):
        self.follow("access.log", 100, 1)
        self.write("tallyd.yaml", self.read("tallyd.yaml").replace(b"access.log", b"'*.log'"))
        self.write("other.log", traffic(30, seed=4))
        self.judge(0)  # a daemon may be about to count it
        self.age("other.log", 3600)
        self.assertRegex(self.judge(NOT_COUNTED), r"(?m)/other\.log +0 +[0-9,]+  lines behind are not counted$")
        self.assertRegex(self.judge(NOT_COUNTED, "access.log", "other.log"), r"(?m)/other\.log +0 +-  never counted$")

    def test_a_packed_file_that_is_counted_in_part_is_listed(self):
        with gzip.open(self.path("access.log.gz"), "wb") as log:
            log.write(traffic(5000))
        self.write("tallyd.yaml", self.read("tallyd.yaml").replace(b"{flush: 100ms}", b"{batch_size: 64KiB}"))
        importing = "import", "-c", "tallyd.yaml", "access.log.gz"
        self.tallyd(*importing, env=dying_at("store.after_commit:2"), status=-9)
        self.age("access.log.gz", 3600)
        said = self.judge(NOT_COUNTED, "access.log.gz")
        self.assertRegex(said, r"(?m)/access\.log\.gz +[1-9][0-9,]+ +-  lines behind are not counted$")
        self.tallyd(*importing)
        self.judge(0, "access.log.gz")

    def test_a_loss_is_listed(self):
        self.follow("access.log", 100, 1)
        os.remove(self.path("access.log"))
        self.append("access.log", traffic(10, seed=5))
        self.launch("-c", "tallyd.yaml")
        self.wait_for_log("event=file_lost")
        self.wait_for_consumed(10)
        self.assertIn("tallyd_files_lost_total 1", self.get("/metrics"))
        self.stop()
        self.launch("-c", "tallyd.yaml")  # it is told once
        self.wait_for_log("event=caught_up")
        self.stop()
        self.assertNotIn(b"event=file_lost", self.read("log"))
        said = self.judge(NOT_GIVEN)
        self.assertRegex(said, r"(?m)/access\.log \(file:.*\) +[0-9,]+ +gone  lines that came after it, or behind, were lost$")
        self.assertIn("no file of this log has it any more", said)


class Files(FilesCase):
    def test_file_that_is_gone_is_named_and_the_rest_is_judged(self):
        self.write("tallyd.yaml", (GAUGES % 100000).encode())
        self.write("a.log", traffic(2000))
        self.write("b.log", traffic(1000, seed=2))
        self.count("a.log", "b.log")
        self.judge(0, "a.log", "b.log")
        self.assertRegex(self.judge(NOT_GIVEN, "a.log"), r"(?m)/b.log .* nothing +1,000  not given: it is neither among the FILEs nor in the configuration$")
        os.remove(self.path("b.log"))
        said = self.judge(NOT_GIVEN, "a.log")
        self.assertRegex(said, r"(?m)/b.log .* nothing +1,000  not given: it no longer exists$")
        self.assertIn("site: 1000 events are of records that are gone", said)
        self.assertIn("2,000 events of 1 sources recounted", said)
        whole = self.read("tallyd.db")
        for sql, words in (("DELETE FROM hour_2 WHERE at = (SELECT min(at) FROM hour_2)", "hits .* by minute: stored 0, recounted"),
                           ("DELETE FROM day_3", "low .* by hour: stored nothing, recounted"),
                           ("DELETE FROM month_3", "last .* by day: stored nothing, recounted"),
                           ("DELETE FROM year_1", "its months have .* events more than what is left"),
                           ("UPDATE book SET value = 1999 WHERE entry = 'parsed' AND report = 1 AND value = 2000", "do not balance|parsed is 1999"),
                           ("UPDATE book SET value = 990 WHERE value = 1000", "events more than what is left")):
            with self.subTest(sql=sql):
                self.change(sql)
                self.assertRegex(self.judge(DIFFERENCES, "a.log"), words)
                self.write("tallyd.db", whole)

    def test_full_reports(self):
        self.dice = dice()
        for series in 1, 20, 300:
            with self.subTest(series=series):
                for name in os.listdir(self.dir):
                    os.remove(self.path(name))
                self.write("tallyd.yaml", (GAUGES % series).encode())
                for name in "a.log", "b.log", "c.log":
                    self.write(name, traffic(self.dice.randrange(100, 2000), seed=self.dice.randrange(1000)))
                    self.count(name)
                for files in ("a.log",), ("b.log", "c.log"), ("c.log",):
                    self.judge(NOT_GIVEN, *files)
                self.healthy()
                self.change("DELETE FROM day_2 WHERE at >> 24 = (SELECT min(at) >> 24 FROM day_2)")
                self.judge(DIFFERENCES, "b.log", "c.log")

    def test_numbers_below_zero(self):
        self.dice = dice()
        self.write("tallyd.yaml", METRICS)
        for name in "a.log", "b.log":
            self.write(name, b"".join(json.dumps({
                "name": self.dice.choice("stuvw"), "ts": 1767607200 + self.dice.randrange(200000),
                "value": self.dice.randrange(-10**6, 10**6) / 1000}).encode() + b"\n" for _ in range(1500)))
            self.tallyd("import", "-c", "tallyd.yaml", "--decode", "metric", name)
        for name in "a.log", "b.log":
            self.tallyd("verify", "-c", "tallyd.yaml", "--decode", "metric", name, status=NOT_GIVEN)
        self.healthy()


class LetGo(Expiring, FilesCase):
    def test_spans_that_were_let_go(self):
        for name, keep in (("a.log", ""), ("b.log", KEEP.replace("}", ", month: 400d}")), ("c.log", "")):
            self.write(name, self.make_log(1000))
            self.write("tallyd.yaml", config(keep))
            self.count(name)
        for files in ("a.log",), ("b.log",), ("a.log", "c.log"):
            self.judge(NOT_GIVEN, *files)
        self.healthy()


if __name__ == "__main__":
    unittest.main()
