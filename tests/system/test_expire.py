#!/usr/bin/env python3
"""Buckets that reports need not keep expire, and nothing else, wherever a tallyd is killed meanwhile.

Lines are of the last months by the computer's clock, since that is what `keep` is measured by. Answers are held against
a recount of them, and `tallyd verify` must agree. The seed is printed; TALLYD_SEED repeats a run.
"""

import collections
import errno
import json
import os
import re
import sqlite3
import sys
import time
import unittest
import urllib.error

from harness import (EX_CONFIG, EX_NOINPUT, EX_UNAVAILABLE, EX_USAGE, Case, DaemonCase, dice, dying_at, failpoints,
                     other_day, preload, store_url)

HOUR, DAY = 3600, 86400
KEEP = "keep: {minute: 3h, hour: 2d, day: 40d}"
KILLED = -9
ROWS = (("hour", "minute", HOUR), ("day", "hour", DAY))  # the level of rows, of which slots, and how long they are


def config(keep=KEEP, more=""):
    return f"""
reports:
  site: {{{keep}}}
  pages: {{by: [path], {keep}}}
http: {{listen: "127.0.0.1:0"}}
{more}""".encode()


def iso(at):
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(at))


def rows(connection, level):
    return {int(at) >> 24 for at, in connection.execute(f"SELECT at FROM {level}_2")}


class Expiring:
    """A log, and what is to be found of it."""
    store = "tallyd.db"
    pages = 300
    minutes_gone = 5 * HOUR  # so long ago there are none any more, whatever a store keeps together

    def make_log(self, lines):
        self.dice = getattr(self, "dice", None) or dice()  # another log of the same test is another one
        self.now = int(time.time())
        self.hour = self.now // HOUR * HOUR
        self.at = []
        for _ in range(lines):
            back = self.dice.choice((HOUR, 6 * HOUR, 5 * DAY, 60 * DAY, 500 * DAY))
            self.at.append(self.now - self.dice.randrange(back))
        return b"".join(self.line(at) for at in self.at)

    def line(self, at):
        when = time.strftime("%d/%b/%Y:%H:%M:%S +0000", time.gmtime(at)).encode()
        page = b"/page/%d" % self.dice.randrange(self.pages)
        return b'h - - [%s] "GET %s HTTP/1.1" 200 %d "-" "-"\n' % (when, page, self.dice.randrange(9999))

    def ask(self, begin, end, step):
        return [(row["time"], int(row["value"]))
                for row in self.query("site", "--step", step, span=(iso(begin), iso(end)), store=self.store)]

    def recount(self, begin, end, step):
        counts = collections.Counter(at // step * step for at in self.at if begin <= at < end)
        return [(iso(at), counts[at]) for at in range(begin, end, step)]

    def check(self):
        """Each span from where it surely is there, and refused where it surely is not."""
        self.assertEqual(self.recount(self.hour - HOUR, self.hour + HOUR, 60),
                         self.ask(self.hour - HOUR, self.hour + HOUR, "minute"))
        begin = self.hour - 40 * HOUR
        self.assertEqual(self.recount(begin, self.hour + HOUR, HOUR), self.ask(begin, self.hour + HOUR, "hour"))
        begin = self.now // DAY * DAY - 30 * DAY
        self.assertEqual(self.recount(begin, begin + 31 * DAY, DAY), self.ask(begin, begin + 31 * DAY, "day"))
        years = self.query("site", "--step", "year", span=(iso(self.now - 600 * DAY), iso(self.now + DAY)),
                           store=self.store)
        self.assertEqual(len(self.at), sum(int(row["value"]) for row in years))

    def check_refused(self):
        for step, back, words in (("minute", self.minutes_gone, "or by hour"), ("hour", 4 * DAY, "or by day"),
                                  ("day", 100 * DAY, "or by month")):
            self.tallyd("query", "site", "--step", step, "--from", iso(self.hour - back), "--to", iso(self.hour),
                        "--store", store_url(self.store), status=EX_UNAVAILABLE)
            self.assertIn(words, self.err)

    def left(self):
        """Rows of minutes and hours that hold but what is gone."""
        connection = sqlite3.connect(self.path("tallyd.db"))
        marks = dict(connection.execute("SELECT entry, value FROM book WHERE entry LIKE 'expired.%' AND report = 2"))
        count = sum(bucket * length * 1000 < marks["expired." + span] for level, span, length in ROWS
                    for bucket in rows(connection, level))
        connection.close()
        return count

    def check_rows(self):
        """No row is left that holds but what is gone."""
        with sqlite3.connect(self.path("tallyd.db")) as connection:
            marks = dict(connection.execute("SELECT entry, value FROM book WHERE entry LIKE 'expired.%' AND report = 2"))
            self.assertEqual({"expired.minute", "expired.hour", "expired.day"}, set(marks))
            self.assertEqual([("ok",)], connection.execute("PRAGMA integrity_check").fetchall())
        connection.close()
        self.assertEqual(0, self.left())


class Import(Expiring, Case):
    def late(self):
        """How many events were late, by report."""
        with sqlite3.connect(self.path("tallyd.db")) as connection:
            books = [value for value, in connection.execute("SELECT value FROM book WHERE entry = 'late'")]
        connection.close()
        return books

    def import_all(self, **options):
        return self.tallyd("import", "-c", "tallyd.yaml", "a.log", **options)

    def test_import_leaves_out_what_is_gone(self):
        self.write("tallyd.yaml", config())
        self.write("a.log", self.make_log(5000))
        self.import_all()
        self.assertEqual([], self.late())
        self.check()
        self.check_refused()
        self.check_rows()
        self.tallyd("verify", "-c", "tallyd.yaml", "a.log")

    def test_killed_while_it_lets_go(self):
        """All is there at first; then some keep is configured."""
        log = self.make_log(30000)
        self.write("a.log", log)
        kills = 0
        for place in failpoints("expire."):
            for name in os.listdir(self.dir):
                if name.startswith("tallyd.db"):
                    os.remove(self.path(name))
            self.write("tallyd.yaml", config(""))
            self.import_all()
            self.check()
            self.write("tallyd.yaml", config())
            times = 1
            while True:
                environment = dying_at(f"{place}:{times}")
                self.import_all(status=None, env=environment)
                status = self.status
                self.assertIn(status, (0, KILLED), self.err)
                self.check()
                self.tallyd("verify", "-c", "tallyd.yaml", "a.log")
                if status == 0:
                    break
                kills += 1
                times += self.dice.randrange(3)
            self.check_refused()
            self.check_rows()
        print(f"{kills} kills")
        self.assertGreaterEqual(kills, len(failpoints("expire.")))

    def test_let_go_by_hand(self):
        self.write("a.log", self.make_log(5000))
        self.write("tallyd.yaml", config(""))
        self.import_all()
        self.assertIn("reports keep everything", self.tallyd("job", "list", "-c", "tallyd.yaml"))
        self.assertIn("reports keep everything", self.tallyd("job", "run", "expire", "-c", "tallyd.yaml"))
        self.write("tallyd.yaml", config())
        clock = other_day(-(int(time.time()) - self.hour))  # within that hour, by which marks move
        self.assertRegex(self.tallyd("job", "list", "-c", "tallyd.yaml", env=clock), r"(?m)^expire +pages +3 ")
        out = self.tallyd("job", "run", "expire", "--dry-run", "-c", "tallyd.yaml", env=clock)
        self.assertRegex(out, rf"(?m)^pages +minute +the first +{iso(self.hour - 3 * HOUR)}$")
        self.assertNotIn("rows or documents", out)
        rows = int(re.search(r"(?m)^([\d,]+) rows or documents expired$",
                             self.tallyd("job", "run", "expire", "-c", "tallyd.yaml", env=clock))[1].replace(",", ""))
        self.assertGreater(rows, 0)
        self.check()
        self.check_refused()
        self.check_rows()
        self.assertRegex(self.tallyd("job", "list", "-c", "tallyd.yaml", env=clock), r"(?m)^expire +pages +0 ")
        self.tallyd("verify", "-c", "tallyd.yaml", "a.log")

    def test_by_hand_takes_what_it_can_use(self):
        self.tallyd("job", "run", "expire", "--rebuild", "2025-01-01", "2026-01-01", status=EX_USAGE)
        self.assertIn("takes no --rebuild", self.err)
        self.tallyd("job", "list", "--store", store_url("none.db"), status=EX_NOINPUT)
        self.assertIn("there is no store", self.err)

    def test_later_than_all_is_late(self):
        self.write("tallyd.yaml", config("keep: {minute: 3h, hour: 2d, day: 40d, month: 100d}"))
        self.write("a.log", self.make_log(3000))
        self.import_all()
        self.assertEqual([], self.late())  # nothing expired yet
        year = int(iso(self.now - 100 * DAY)[:4])
        before = sum(int(iso(at)[:4]) >= year for at in self.at)
        self.write("b.log", self.make_log(3000))
        late = sum(int(iso(at)[:4]) < year for at in self.at)
        self.assertGreater(late, 0)
        self.tallyd("import", "-c", "tallyd.yaml", "b.log")
        rows_of_years = self.query("site", "--step", "year", span=(f"{year}-01-01", iso(self.now + DAY)))
        self.assertEqual(before + len(self.at) - late, sum(int(row["value"]) for row in rows_of_years))
        self.assertEqual([late, late], self.late())
        self.tallyd("verify", "-c", "tallyd.yaml", "a.log", "b.log")

    def test_late_by_span_is_in_the_books(self):
        """Equal to a recount of what is before each watermark when it comes."""
        self.write("tallyd.yaml", config())
        self.write("a.log", self.make_log(3000))
        self.import_all()
        at = self.at
        self.write("b.log", self.make_log(3000))
        out = self.tallyd("import", "-c", "tallyd.yaml", "b.log")
        with sqlite3.connect(self.path("tallyd.db")) as connection:
            books = dict(connection.execute("SELECT entry, value FROM book WHERE report = 1 AND source = ''"))
        connection.close()
        for span in ("minute", "hour", "day"):
            late = sum(1000 * when < books["expired." + span] for when in self.at)
            self.assertGreater(late, 100)
            self.assertEqual(late, books["late." + span])
            self.assertRegex(out, rf"site +lacks the {span}s of {late:,} events")
        self.at += at
        self.check()
        self.tallyd("verify", "-c", "tallyd.yaml", "a.log", "b.log")

    def test_file_that_cannot_be_read_keeps_nothing(self):
        self.write("a.log", self.make_log(3000))
        self.write("tallyd.yaml", config(""))
        self.import_all()
        self.write("tallyd.yaml", config())
        self.tallyd("import", "-c", "tallyd.yaml", "none.log", status=EX_NOINPUT)
        self.check()
        self.check_rows()

    def test_counted_is_counted_where_letting_go_fails(self):
        """The disk is full; another import expires the rest."""
        self.write("a.log", self.make_log(3000))
        self.write("tallyd.yaml", config(""))
        self.import_all()
        self.write("tallyd.yaml", config())
        full = {"LD_PRELOAD": preload("faulty"), "FAULTY_PATH": "tallyd.db-wal",
                "FAULTY_CALLS": "write", "FAULTY_AT": "1", "FAULTY_HOW": str(errno.ENOSPC)}
        self.import_all(env={**os.environ, **full})
        self.assertIn("not everything that expired is deleted yet", self.err)
        self.import_all()
        self.check()
        self.check_rows()

    def test_file_of_before_keeps_its_size_and_takes_new_counts_in(self):
        self.write("tallyd.yaml", config(""))
        self.write("a.log", self.make_log(20000))
        self.import_all()
        connection = sqlite3.connect(self.path("tallyd.db"))  # as versions before made them
        connection.execute("PRAGMA journal_mode=DELETE")
        connection.execute("PRAGMA auto_vacuum=NONE")
        connection.execute("VACUUM")
        before = connection.execute("PRAGMA page_count").fetchone()
        connection.close()
        self.write("tallyd.yaml", config())
        self.import_all()
        self.check()
        self.check_rows()
        connection = sqlite3.connect(self.path("tallyd.db"))
        self.assertEqual(before, connection.execute("PRAGMA page_count").fetchone())
        self.assertGreater(connection.execute("PRAGMA freelist_count").fetchone()[0], before[0] // 4)
        connection.close()

    def test_what_is_no_keep_is_said(self):
        self.write("tallyd.yaml", config("keep: {hour: 2d}"))
        self.tallyd("check", "-c", "tallyd.yaml", status=EX_CONFIG)
        self.assertIn("found keep of minutes forever and of hours 2d", self.err)


class Run(Expiring, DaemonCase):
    def test_daemon_lets_go(self):
        self.write("a.log", self.make_log(20000))
        self.write("tallyd.yaml", config(""))
        self.tallyd("import", "-c", "tallyd.yaml", "a.log")
        self.write("tallyd.yaml", config(more="sources: {access: {path: a.log}}"))
        self.launch("-c", "tallyd.yaml")
        self.wait_for(lambda: self.get("/metrics"), lambda text: re.search(r"(?m)^tallyd_expired_rows_total [1-9]", text))
        metrics = self.get("/metrics")
        self.assertRegex(metrics, r"(?m)^tallyd_expired_bytes_total [1-9]")
        last = float(re.search(r"(?m)^tallyd_expire_last_run_seconds (\S+)", metrics).group(1))
        self.assertAlmostEqual(time.time(), last, delta=60)
        self.check()
        self.check_refused()
        with self.assertRaises(urllib.error.HTTPError) as refused:
            self.get(f"/api/v1/query?report=site&step=minute&from={iso(self.hour - 5 * HOUR)}&to={iso(self.hour)}")
        self.assertEqual(422, refused.exception.code)
        self.assertIn("or by hour", refused.exception.read().decode())
        with self.assertRaises(urllib.error.HTTPError) as refused:
            self.get(f"/prometheus/api/v1/query_range?query=site:hits&step=60"
                     f"&start={self.hour - 5 * HOUR}&end={self.hour}")
        self.assertEqual(422, refused.exception.code)
        self.assertIn("whole hours of UTC", refused.exception.read().decode())
        found = json.loads(self.get(f"/prometheus/api/v1/query_range?query=increase(site:hits[1h])&step=3600"
                                    f"&start={self.hour - 29 * HOUR}&end={self.hour}"))["data"]["result"][0]["values"]
        self.assertEqual([hits for _, hits in self.recount(self.hour - 30 * HOUR, self.hour, HOUR)],
                         [int(value) for _, value in found])
        self.get("/api/v1/top?report=pages")
        self.wait_for(self.left, lambda left: left == 0)  # it takes but a part of its time for that
        self.stop()
        self.check_rows()
        self.tallyd("verify", "-c", "tallyd.yaml", "a.log")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + ["--failfast"] + sys.argv[1:])
