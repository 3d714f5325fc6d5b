#!/usr/bin/env python3
"""Logs in the W3C format, whose #Fields: changes in mid-file: each line is read by the names that hold there, whether the
file is imported by threads, continued, killed, packed, followed, recounted, backfilled or forgotten. The judge is a reader
in Python. The seed is printed; TALLYD_SEED repeats a run."""

import collections
import gzip
import os
import time
import unittest

from harness import DaemonCase, dice

ROUNDS = int(os.environ.get("TALLYD_ROUNDS") or 3)
CONFIG = b"""
aggregate: {batch_size: 616KiB, flush: 100ms}
limits: {line_max: 16KiB}
sources: {iis: {path: "u_ex*.log*", decode: w3c}}
reports:
  pages: {by: [path, status], measures: {hits: count, seconds: sum(duration)}}
"""
LINE_MAX = 16384
SPAN = ("2026-01-05", "2026-01-06")
NAMES = [b"c-ip", b"cs-uri-stem", b"cs-username", b"cs(User-Agent)", b"sc-status", b"sc-win32-status", b"time-taken"]


def piece(dice, lines, is_good):
    """A #Fields: and its lines. A line that is read by the names of another piece has another path, status or time."""
    names = dice.sample(NAMES, len(NAMES))
    names = [b"date", *names, b"time"] if dice.random() < 0.5 else [b"date", b"time", *names]
    kind = 0.5 if is_good else dice.random()
    feed = dice.choice([b"\n", b"\r\n"])
    if kind < 0.1:
        names.append(b"x" * LINE_MAX)  # too long: nobody may read the lines behind it
    if kind > 0.9:
        names.remove(b"time")  # cannot be used
    out = [b"#Software: Microsoft Internet Information Services 10.0", b"#Fields: " + b" ".join(names)]
    for i in range(lines):
        second = dice.randrange(86400)
        values = {b"date": b"2026-01-05", b"time": b"%02d:%02d:%02d" % (second // 3600, second // 60 % 60, second % 60),
                  b"c-ip": b"10.0.0.%d" % dice.randrange(256), b"cs-uri-stem": b"/%d" % dice.randrange(9),
                  b"cs-username": b"/user", b"cs(User-Agent)": b"/agent+" + b"x" * dice.randrange(60),
                  b"sc-status": b"%d" % dice.choice([200, 304, 404]), b"sc-win32-status": b"%d" % dice.randrange(100, 999),
                  b"time-taken": b"%d" % dice.randrange(1000), b"x" * LINE_MAX: b"-"}
        out.append(b" ".join(values[name] for name in names))
        if dice.random() < 0.001:
            out.append(dice.choice([b"", b"nonsense", b"#Date: 2026-01-05 00:00:00"]))
    return b"".join(line + feed for line in out)


def judge(log):
    """{(path, status): [hits, ms]}, and how many lines were consumed and parsed."""
    counts = collections.defaultdict(lambda: [0, 0])
    names, parsed = None, 0
    lines = log.split(b"\n")[:-1]
    for line in lines:
        whole, line = line, line.rstrip(b"\r")
        if line.startswith(b"#"):
            parsed += len(whole) <= LINE_MAX
            if line.startswith(b"#Fields:"):
                names = line.split()[1:] if len(whole) <= LINE_MAX and b" time" in line.replace(b" time-taken", b"") else None
            continue
        values = line.split(b" ")
        if names is None or len(values) != len(names):
            continue
        parsed += 1
        found = dict(zip(names, values))
        cell = counts[found[b"cs-uri-stem"].decode(), found[b"sc-status"].decode()]
        cell[0] += 1
        cell[1] += int(found[b"time-taken"])
    return counts, len(lines), parsed


class W3c(DaemonCase):
    def setUp(self):
        super().setUp()
        self.dice = dice()
        self.write("tallyd.yaml", CONFIG)
        self.log = b"".join(piece(self.dice, self.dice.randrange(1, 6000), i == 0) for i in range(16))
        self.counts, self.consumed, self.parsed = judge(self.log)

    def check(self, name="u_ex260105.log"):
        rows = {}
        for measure in "hits", "seconds":
            for row in self.query("pages", "--measure", measure, "--top", "1000", span=SPAN):
                rows.setdefault((row["path"], row["status"]), []).append(row["value"])
        got = {key: [int(hits), round(float(seconds) * 1000)] for key, (hits, seconds) in rows.items()}
        self.assertEqual(dict(self.counts), got)
        self.assertIn(": 0 differences", self.tallyd("verify", "-c", "tallyd.yaml", name))

    def test_an_import_that_is_killed_reads_each_line_by_its_names(self):
        for _ in range(ROUNDS):
            self.write("u_ex260105.log", self.log)
            while True:
                process = self.start("import", "-q", "-c", "tallyd.yaml", "--threads", "2", "u_ex260105.log")
                time.sleep(self.dice.random() * 0.4)
                process.kill()
                if process.wait() == 0 or self.dice.random() < 0.4:
                    break
            self.tallyd("import", "-c", "tallyd.yaml", "--threads", "2", "u_ex260105.log")
            self.check()
            for name in os.listdir(self.dir):
                if name.startswith("tallyd.db"):
                    os.remove(self.path(name))

    def test_a_file_that_grows_and_is_packed_is_continued(self):
        self.write("u_ex260105.log", b"")
        at = 0
        while at < len(self.log):
            to = min(len(self.log), at + self.dice.randrange(1, 600000))
            self.append("u_ex260105.log", self.log[at:to])
            self.tallyd("import", "-c", "tallyd.yaml", "u_ex260105.log")
            at = to
            if self.dice.random() < 0.1:
                break
        self.write("u_ex260105.log.gz", gzip.compress(self.log))
        self.tallyd("import", "-c", "tallyd.yaml", "u_ex260105.log.gz")
        self.write("u_ex260105.log", self.log)
        self.check()

    def follow_while_killed(self, write):
        """A daemon follows the log, which write(from, to) continues, and is killed now and then."""
        at, end = 1 << 20, len(self.log)
        write(0, at)
        while True:
            self.launch("-c", "tallyd.yaml", "--listen", "127.0.0.1:0")
            for _ in range(4):
                to = min(end, at + self.dice.randrange(1 << 18))
                write(at, to)
                at = to
                time.sleep(self.dice.random() * 0.1)
            if at == end:
                break
            self.process.kill()
            self.process.wait()
        self.wait_for(lambda: sum(int(row["value"]) for row in self.query("pages", "--top", "1000", span=SPAN)),
                      lambda found: found == sum(hits for hits, _ in self.counts.values()))
        self.stop()
        self.check()

    def test_a_daemon_that_is_killed_reads_each_line_by_its_names(self):
        self.follow_while_killed(lambda at, to: self.append("u_ex260105.log", self.log[at:to]))

    def write_over_space(self, at, to):
        """As IIS does: it fills its file with NULs, 64 KiB at a time, and writes its lines over them."""
        with open(self.path("u_ex260105.log"), "r+b" if at else "wb") as log:
            log.seek(at)
            log.write(self.log[at:to])
            log.truncate((to >> 16) + 1 << 16)

    def test_a_daemon_that_is_killed_reads_no_space_as_lines(self):
        self.follow_while_killed(self.write_over_space)

    def test_a_file_with_space_at_its_end_stays_the_same_file(self):
        at = 0
        for to in 300, 2000, 70000, len(self.log):
            self.write_over_space(at, to)
            said = self.tallyd("import", "-c", "tallyd.yaml", "u_ex260105.log")
            self.assertNotIn("truncated", said + self.err)
            at = to
        self.check()
        self.assertIn("nothing new", self.tallyd("import", "-c", "tallyd.yaml", "u_ex260105.log"))
        self.write("u_ex260105.log.gz", gzip.compress(self.log))
        self.tallyd("import", "-c", "tallyd.yaml", "u_ex260105.log.gz")
        self.check()

    def test_books_balance_and_files_are_forgotten_and_backfilled(self):
        self.write("u_ex260105.log", self.log)
        said = self.tallyd("import", "-c", "tallyd.yaml", "u_ex260105.log")
        self.assertIn(f"consumed {self.consumed:,} = rejected {self.consumed - self.parsed:,} + parsed {self.parsed:,}", said)
        self.write("tallyd.yaml", CONFIG + b"  late: {by: [path], measures: {hits: count}}\n")
        self.tallyd("backfill", "late", "-c", "tallyd.yaml", "u_ex260105.log")
        late = {row["path"]: int(row["value"]) for row in self.query("late", "--top", "100", span=SPAN)}
        hits = collections.Counter()
        for (path, _), (count, _) in self.counts.items():
            hits[path] += count
        self.assertEqual(dict(hits), late)
        self.check()
        self.tallyd("forget", "-c", "tallyd.yaml", "u_ex260105.log")
        self.assertEqual([], self.query("pages", "--top", "100", span=SPAN))


if __name__ == "__main__":
    unittest.main()
