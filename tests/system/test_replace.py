#!/usr/bin/env python3
"""`tallyd backfill NEW --take OLD`: a report that was counted again takes the place of another one, whole or for a range of times;
whenever it is killed, a query sees the one or the other.

The judge is a recount of all lines by Python, and `tallyd verify`. TALLYD_ROUNDS says how many random ranges are taken (6 by default).
The seed is printed; TALLYD_SEED repeats a run.
"""

import collections
import contextlib
import os
import shutil
import sqlite3
import threading
import time
import unittest

from harness import EX_CONFIG, EX_DATAERR, EX_NOINPUT, EX_OK, EX_UNAVAILABLE, EX_USAGE, draw_death, dying_at, failpoints
from recountcase import BackfillCase, log, log_line, recount, stamp, within

ROUNDS = int(os.environ.get("TALLYD_ROUNDS") or 6)


class Replace(BackfillCase):
    """A report was counted with a wrong filter: it is counted again under another name, compared, and takes its place."""

    WRONG = b"reports: {errors: {by: [path], where: [status>=500], measures: {hits: count, size: mean(bytes)}}}\n"
    RIGHT = b"errors: {by: [path], where: [status>=404], measures: {hits: count, size: mean(bytes)}"

    def setUp(self):
        super().setUp()
        self.write("wrong.yaml", self.WRONG)
        self.write("both.yaml", self.WRONG.rstrip(b"}\n") + b"}}, " + self.RIGHT.replace(b"errors", b"again") + b"}}\n")
        self.write("taken.yaml", b"reports: {" + self.RIGHT + b", generation: 2}}\n")
        self.a, self.b = (log(self.dice, 3000, (60 * 24 * day, 60 * 24 * (day + 6))) for day in (0, 4))
        self.count("a.log", self.a, "wrong.yaml")
        self.count("a.log", self.b, "both.yaml")

    def take(self, *arguments, **options):
        return self.tallied("backfill", "again", "--take", "errors", *arguments, config="both.yaml", **options)

    def days(self, least):
        """{day: hits} with at least this status, and all."""
        days = collections.Counter()
        for (report, hour, series), (hits, _) in recount(self.a, self.b).items():
            if report == "pages" and int(series[1]) >= least:
                days[hour[:10]] += hits
        return days

    def found(self, report="errors"):
        return {row["time"][:10]: int(row["value"]) for row in self.rows(report, "--step", "day", "--measure", "hits") if row["value"] != "0"}

    def test_compared_and_taken(self):
        self.take(status=EX_NOINPUT)
        self.assertIn("again lacks", self.err)
        self.assertIn(f"offsets 0 to {len(self.a):,}, which errors counted: run `tallyd backfill again` first", self.err)
        self.tallied("backfill", "again", "--from", "2026-01-01", "--to", "2026-02-01", config="both.yaml")
        self.take(status=EX_NOINPUT)
        self.tallied("backfill", "again", config="both.yaml")
        said = self.tallied("backfill", "again", "--compare", "errors", config="both.yaml")
        was, now = self.days(500), self.days(404)
        expected = [[day, "hits", str(was[day]), str(now[day]), str(now[day] - was[day])] for day in sorted(now) if was[day] != now[day]]
        self.assertEqual(expected, [line.split() for line in said.splitlines() if " hits " in line])
        self.assertIn(f"{len(now)} days compared, {len(expected)} of them differ", said)
        self.assertEqual((was, now), (self.found(), self.found("again")))
        for place, days in ("replace.before_commit", was), ("replace.after_commit", now):
            self.take(status=-9, env=dying_at(place))
            self.assertEqual(days, self.found())
        self.take(status=EX_NOINPUT)  # it has no such report any more
        self.tallied("import", "a.log", config="both.yaml", status=EX_CONFIG)
        self.append("a.log", self.b)
        self.tallied("import", "-q", "a.log", config="taken.yaml")
        self.b += self.b
        self.assertEqual(self.days(404), self.found())
        self.tallied("verify", "a.log", config="taken.yaml")
        self.tallied("verify", "--store-only")
        self.tallied("forget", "errors~1", config="taken.yaml")
        self.assertEqual(self.days(404), self.found())

    def test_old_one_is_dropped_and_answers_are_of_one_of_them(self):
        self.tallied("backfill", "again", config="both.yaml")
        was, now = self.days(500), self.days(404)
        answers, end = [], threading.Event()

        def ask():
            while not end.is_set():
                answers.append(self.found())

        thread = threading.Thread(target=ask)
        thread.start()
        try:
            said = self.take("--drop-old")
        finally:
            while len(answers) < 3 and thread.is_alive():
                time.sleep(0.01)
            end.set()
            thread.join()
        self.assertIn("again is errors~2 now; errors~1 is dropped", said)
        self.assertTrue(answers and all(found in (was, now) for found in answers), answers)
        self.assertEqual(now, self.found())
        self.tallied("forget", "errors~1", config="taken.yaml", status=EX_NOINPUT)
        self.tallied("import", "-q", "a.log", config="taken.yaml")
        self.assertEqual(now, self.found())
        self.tallied("verify", "a.log", config="taken.yaml")

    def test_wrong_usage(self):
        for arguments in (["again", "--take", "errors", "a.log"], ["again", "--drop-old"], ["again", "--take", "errors", "--compare", "errors"],
                          ["errors", "--compare", "errors"]):
            self.tallied("backfill", *arguments, status=EX_USAGE)
        self.tallied("backfill", "none", "--compare", "errors", status=EX_NOINPUT)


class Range(BackfillCase):
    """Only a range of times was counted wrongly: the report takes the place for this range, and keeps the other counts."""

    MEASURES = b"by: [status], measures: {hits: count, size: mean(bytes), last: last(bytes), spread: 'histogram(bytes, hour=3, day=1, month=-1)', paths: distinct(path)}"
    WRONG = b"errors: {where: [status>=500], " + MEASURES
    RIGHT = b"{where: [status>=404], " + MEASURES
    DAYS = 12 * 60 * 24

    def setUp(self):
        super().setUp()
        site = b"reports: {site: {}, "
        self.write("wrong.yaml", site + self.WRONG + b"}}\n")
        self.write("both.yaml", site + self.WRONG + b"}, again: " + self.RIGHT + b"}}\n")
        self.write("taken.yaml", site + b"errors: " + self.RIGHT + b", generation: 2}}\n")
        self.write("judge.yaml", b"reports: {errors: {" + self.MEASURES + b"}}\n")

    def count_both(self, lines=2000):
        """Some lines came before the new report was configured, others later, and each of any of the days."""
        self.a, self.b = (log(self.dice, lines, (0, self.DAYS), paths=50) for _ in range(2))
        self.count("a.log", self.a, "wrong.yaml")
        self.count("a.log", self.b, "both.yaml")

    def span(self):
        """Minutes; one end may be open."""
        begin, end = sorted(self.dice.sample(range(1, self.DAYS - 600), 2))
        return self.dice.choice([(begin, end), (begin, end), (0, end), (begin, 10**9)])

    def times(self, span):
        return (["--from", stamp(span[0])] if span[0] > 0 else []) + (["--to", stamp(span[1])] if span[1] < 10**9 else [])

    def take(self, span, *arguments, config="both.yaml", **options):
        return self.tallied("backfill", "again", "--take", "errors", *self.times(span), *arguments, config=config, **options)

    def figures(self, store="tallyd.db"):
        """Of all series together by time, and of each series alone."""
        asked = [["--step", "hour", "--measure", "all"], ["--step", "day", "--measure", "p99(spread)"], ["--step", "month", "--measure", "paths"],
                 ["--top", "10", "--measure", "all"], ["--top", "10", "--measure", "p50(spread)"]]
        return [self.rows("errors", *more, store=store) for more in asked]

    def judge(self, span, later=b""):
        """The figures of a store that counted the picked lines once: those of the range by the new filter, the others by the old one."""
        for name in "judge.db", "judge.db-wal", "judge.db-shm", "judge.log":
            with contextlib.suppress(FileNotFoundError):
                os.remove(self.path(name))

        def is_counted(line):
            least = 404 if within(line, span) else 500
            return within(line, (0, 10**9)) and int(line.split()[8]) >= least

        picked = [line for line in (self.a + self.b).splitlines(keepends=True) if is_counted(line)]
        picked += [line for line in later.splitlines(keepends=True) if within(line, (0, 10**9)) and int(line.split()[8]) >= 404]
        self.write("judge.log", b"".join(picked))
        self.tallied("import", "-q", "judge.log", config="judge.yaml", store="judge.db")
        return self.figures("judge.db")

    def test_any_range_is_taken_at_once_and_the_rest_stays(self):
        for n in range(ROUNDS):
            with self.subTest(round=n):
                for name in "tallyd.db", "tallyd.db-wal", "tallyd.db-shm", "a.log":
                    with contextlib.suppress(FileNotFoundError):
                        os.remove(self.path(name))
                self.count_both()
                span = self.span()
                was, expected = self.figures(), self.judge(span)
                self.tallied("backfill", "again", "-q", *self.times(span), config="both.yaml")
                self.assertEqual(was, self.figures())
                self.take(span, env=dying_at(draw_death(self.dice, failpoints("replace."), 3)), status=None)
                self.assertIn(self.status, (EX_OK, -9), self.err)
                if self.figures() == was != expected:
                    self.take(span)
                self.assertEqual(expected, self.figures(), span)
                self.tallied("verify", "--store-only")
                said = self.tallied("verify", "a.log", config="taken.yaml")
                self.assertEqual(span[0] > 0, f"not judged: its counts from 1970-01-01T00:00:00Z to {stamp(span[0])}" in said, said)
                self.assertEqual(span[1] < self.DAYS, f"not judged: its counts from {stamp(span[1])} to" in said, said)
                # Nothing is left to count, and counting goes on by the new definition.
                after = self.dump()
                self.assertIn("has counted all", self.tallied("backfill", "errors", config="taken.yaml"))
                self.assertEqual(after, self.dump())
                more = log(self.dice, 300, (self.DAYS + 60, self.DAYS + 1000), paths=50)
                self.count("a.log", more, "taken.yaml")
                self.assertEqual(self.judge(span, later=more), self.figures())
                self.tallied("verify", "a.log", config="taken.yaml")
                self.tallied("verify", "--store-only")

    def test_verify_judges_the_range_and_what_came_later(self):
        self.count_both()
        span = (60 * 24 * 3, 60 * 24 * 6)
        self.tallied("backfill", "again", *self.times(span), config="both.yaml")
        self.take(span)
        for minute, differs in (60 * 24 * 4, True), (60 * 24 * 2, False), (60 * 24 * 7, False), (self.DAYS + 120, True):
            shutil.copy(self.path("tallyd.db"), self.path("moved.db"))
            self.append("extra.log", log_line(minute, "/extra", 500, 1).encode())
            self.tallied("import", "-q", "extra.log", config="taken.yaml", store="moved.db")
            with sqlite3.connect(self.path("moved.db")) as db:  # as if its line had never been counted
                for table in "book", "position":
                    db.execute(f"DELETE FROM {table} WHERE source = (SELECT source FROM position WHERE label LIKE '%extra.log')")
            said = self.tallied("verify", "a.log", config="taken.yaml", store="moved.db", status=1)
            self.assertEqual(differs, 'errors "500"' in said, (minute, said))
            os.remove(self.path("extra.log"))
            os.remove(self.path("moved.db"))

    def test_refused(self):
        self.count_both()
        span = (60 * 24 * 3, 60 * 24 * 6)
        self.take(span, status=EX_NOINPUT)
        self.assertIn("again lacks", self.err)
        self.tallied("backfill", "again", *self.times((span[0] + 1, span[1])), config="both.yaml")
        self.take(span, status=EX_NOINPUT)
        before = self.figures()
        self.tallied("backfill", "again", *self.times(span), config="both.yaml")
        self.write("other.yaml", self.read("both.yaml").replace(b"again: {", b"other: {layout: hour, "))
        self.append("a.log", log(self.dice, 10, (0, self.DAYS)))
        self.tallied("import", "-q", "a.log", config="other.yaml")
        self.tallied("backfill", "other", "--take", "errors", *self.times(span), "--force", config="other.yaml", status=EX_CONFIG)
        self.take(span, status=EX_NOINPUT)  # errors counted more meanwhile
        self.take(span, "--force")
        self.tallied("forget", "a.log", config="taken.yaml", status=EX_UNAVAILABLE)
        self.assertNotEqual(before, self.figures())

    def test_what_only_the_new_one_has_is_not_dropped(self):
        """Of a file that the old one lacks, the new one has more times than it takes."""
        self.count_both()
        self.write("site.yaml", b"reports: {site: {}}\n")
        self.count("c.log", log(self.dice, 500, (0, self.DAYS), paths=50), "site.yaml")
        wide, narrow = (60 * 24 * 2, 60 * 24 * 8), (60 * 24 * 3, 60 * 24 * 6)
        self.tallied("backfill", "again", *self.times(wide), config="both.yaml")
        self.take(narrow, status=EX_NOINPUT)
        self.assertIn("errors lacks", self.err)
        self.take(wide)
        self.tallied("verify", "--store-only")

    def test_what_was_taken_takes_no_other_place(self):
        self.count_both()
        span = (60 * 24 * 3, 60 * 24 * 6)
        self.tallied("backfill", "again", *self.times(span), config="both.yaml")
        self.take(span)
        self.write("third.yaml", self.read("taken.yaml").replace(b"errors: {", b"third: " + self.RIGHT + b"}, errors: {"))
        self.append("a.log", log(self.dice, 10, (0, self.DAYS)))
        self.tallied("import", "-q", "a.log", config="third.yaml")
        self.tallied("backfill", "errors", "--take", "third", *self.times(span), "--force", config="third.yaml", status=EX_CONFIG)
        self.assertIn("took another report's place", self.err)

    def test_ends_within_what_has_expired(self):
        keep = b", keep: {minute: 1d, hour: 3d}"
        for name in "wrong.yaml", "both.yaml":
            self.write(name, self.read(name).replace(self.MEASURES, self.MEASURES + keep))
        self.count_both()
        for begin, status in ("2026-01-03T10:00:00Z", EX_DATAERR), ("2026-01-11T10:30:00Z", EX_DATAERR), ("2026-01-03", EX_OK):
            times = ["--from", begin]
            self.tallied("backfill", "again", *times, config="both.yaml")
            self.tallied("backfill", "again", "--take", "errors", *times, config="both.yaml", status=status)
        self.tallied("verify", "--store-only")

    def test_what_is_gone_is_lacked_by_force(self):
        self.count_both()
        os.rename(self.path("a.log"), self.path("gone"))
        span = (60 * 24 * 3, 60 * 24 * 6)
        self.tallied("backfill", "again", *self.times(span), config="both.yaml", status=EX_NOINPUT)
        self.take(span, status=EX_NOINPUT)
        self.take(span, "--force", "--drop-old")
        a, self.a = self.a, within(self.a, (0, span[0]), (span[1], 10**9))
        self.assertEqual(self.judge(span), self.figures())
        self.tallied("query", "errors", "--from", "2026-01-04", "--to", "2026-01-05", "--step", "minute")
        self.assertIn("was not configured when", self.err)
        self.assertIn(f"bytes 0 to {len(a):,}", self.tallied("backfill", "errors", "--dry-run", config="taken.yaml"))
        # Found again, it is counted, in the range alone.
        os.rename(self.path("gone"), self.path("a.log"))
        self.tallied("backfill", "errors", config="taken.yaml")
        self.a = a
        self.assertEqual(self.judge(span), self.figures())
        self.tallied("verify", "a.log", config="taken.yaml")
        self.tallied("verify", "--store-only")


if __name__ == "__main__":
    unittest.main()
