#!/usr/bin/env python3
"""A store is copied into another one by `tallyd admin copy`: every answer stays the same, and counting goes on where it was.

Events have every kind of measure, and are so old that some time buckets have expired in each resolution. TALLYD_ROUNDS (10 by
default) says how often a copy is killed at a random moment. The seed is printed; TALLYD_SEED repeats a run, as far as the
moments of a machine can be repeated.
"""

import contextlib
import json
import os
import shutil
import sqlite3
import time
import unittest

from harness import (EX_CANTCREAT, EX_DATAERR, EX_NOINPUT, EX_OK, EX_TEMPFAIL, EX_USAGE, Case, DaemonCase, dice, dying_at,
                     failpoints, traffic)

ROUNDS = int(os.environ.get("TALLYD_ROUNDS") or 10)
KILLED = -9
HOUR, DAY = 3600, 86400
MEASURES = ("{n: count, total: sum(value), low: min(value), high: max(value), now: last(value), avg: mean(value), "
            "load: mean(load), spread: 'histogram(value, hour=3, day=1, month=-1)'}")
CONFIG = """\
sources: {metrics: {%(path)sdecode: [metric]}}
reports:
  all: {measures: %(measures)s, %(keep)s}
  gauges: {by: [name, userid], layout: hour, measures: %(measures)s, %(keep)s}
  few: {by: [userid], series_max: 3, measures: {hits: count, names: distinct(name)}, %(keep)s}
"""
KEEP = "keep: {minute: 3h, hour: 2d, day: 40d}"


def iso(at):
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(at))


class Copying:
    """Events, the stores that count them, and all that they answer."""

    def make_store(self, lines, store="sqlite:tallyd.db"):
        """All is there at first; then some keep is configured, and the next import expires."""
        self.dice = dice()
        self.now = int(time.time())
        self.write("a.log", self.events(lines))
        self.configure("")
        self.count(store)
        self.configure(KEEP)
        self.append("a.log", self.events(lines // 10))
        self.count(store)
        self.configure("")

    def configure(self, keep):
        self.write("tallyd.yaml", (CONFIG % {"measures": MEASURES, "keep": keep, "path": ""}).encode())

    def events(self, lines, users=5):
        return b"".join(self.event(users) for _ in range(lines))

    def event(self, users):
        back = self.dice.choice((HOUR, 6 * HOUR, 5 * DAY, 60 * DAY, 500 * DAY))
        value = self.dice.choice((0, 1, 2.5, -7, 1e12, 0.000001, self.dice.randrange(10**6) / 1000))
        tags = {"userid": f"user {self.dice.randrange(users)}/%.$"}
        if self.dice.random() < 0.5:
            tags["load"] = self.dice.choice((0.25, 3, "n/a"))
        line = {"name": self.dice.choice(("session", "temperature")), "ts": self.now - self.dice.randrange(back),
                "value": value, "tags": tags}
        return b"no event\n" if self.dice.random() < 0.02 else json.dumps(line).encode() + b"\n"

    def count(self, store, **options):
        return self.tallyd("import", "-c", "tallyd.yaml", "--decode", "metric", "--store", store, "a.log", **options)

    def copy(self, origin, target, *arguments, **options):
        return self.tallyd("admin", "copy", *arguments, origin, target, **options)

    def verify(self, store):
        for more in ["--decode", "metric", "a.log"], ["--store-only"]:
            self.tallyd("verify", "-c", "tallyd.yaml", "--store", store, *more)

    def answers(self, store):
        """The bytes of every answer; some are refusals, since the buckets have expired."""
        said = []
        for report in "all", "gauges", "few":
            for step, back in (("minute", 2 * HOUR), ("minute", 30 * HOUR), ("hour", 40 * HOUR), ("hour", 4 * DAY),
                               ("day", 30 * DAY), ("day", 100 * DAY), ("month", 600 * DAY), ("year", 600 * DAY)):
                said.append(self.ask(store, report, back, "--step", step))
        for report in "gauges", "few":
            for back in HOUR, 40 * HOUR, 30 * DAY, 600 * DAY:
                said.append(self.ask(store, report, back - back % DAY, "--top", "100"))
            said.append(self.ask(store, report, 30 * DAY, "--step", "day", "--filter", "userid=user 1/%.$"))
        return said

    def ask(self, store, report, back, *arguments):
        what = [] if "--top" in arguments else ["--measure", "all"]
        end = self.now // HOUR * HOUR + HOUR
        begin = (self.now - back) // DAY * DAY if back % DAY == 0 else end - back
        out = self.tallyd("query", report, "--store", store, "--from", iso(begin), "--to", iso(end), "--format", "csv-raw",
                          *what, *arguments, status=None)
        return report, arguments, back, self.status, out

    def assert_same(self, expected, store):
        for was, answer in zip(expected, self.answers(store)):
            self.assertEqual(was, answer)

    def check_goes_on(self, origin, *targets):
        """Later lines count in all of them as in the origin."""
        self.append("a.log", self.events(200, users=9))
        for store in origin, *targets:
            self.assertNotIn("nothing new", self.count(store))
        expected = self.answers(origin)
        for store in targets:
            self.assert_same(expected, store)
            self.verify(store)

    def state_after_kill(self, target, expected):
        """The state that a killed copy left: nothing, an unfinished copy, or a whole one."""
        self.tallyd("query", "all", "--store", target, status=None)
        state = {EX_OK: "whole", EX_NOINPUT: "nothing", EX_TEMPFAIL: "unfinished"}[self.status]
        if state == "unfinished":
            for arguments in (["import", "-c", "tallyd.yaml", "--decode", "metric", "a.log"], ["verify", "a.log"],
                              ["verify", "--store-only"]):
                self.tallyd(*arguments, "--store", target, status=EX_TEMPFAIL)
                self.assertIn("unfinished copy", self.err)
            self.tallyd("admin", "backup", "--store", target, "copy-of-copy", status=None)
            self.assertIn(self.status, (EX_TEMPFAIL, EX_NOINPUT))
            self.copy(target, "sqlite:other.db", status=EX_TEMPFAIL)
        elif state == "whole":
            self.assert_same(expected, target)
        return state

    def play_kills(self, origin, targets, rounds):
        """Kill copies at random moments; a copy that is repeated is whole. {state: how often a kill left it}. It is by time, since
        a copy passes few failpoints; another test kills it at each."""
        expected, states = self.answers(origin), {"nothing": 0, "unfinished": 0, "whole": 0}
        whole_s = 0
        for number, target in zip(range(rounds), targets):
            begun = time.monotonic()
            if number > 0:
                process = self.start("admin", "copy", origin, target)
                time.sleep(self.dice.random() * whole_s * 1.1)
                process.kill()
                process.communicate()
                states[self.state_after_kill(target, expected)] += 1
            self.copy(origin, target, status=None)
            self.assertIn(self.status, (EX_OK, EX_CANTCREAT), self.err)
            whole_s = whole_s or time.monotonic() - begun
            self.assert_same(expected, target)
        print(f"{rounds - 1} kills left {states}")
        return states


class Tables:
    def tables(self, name):
        """All but those of counts, whose rows follow the numbers of series."""
        with contextlib.closing(sqlite3.connect(self.path(name))) as store:
            names = [name for name, in store.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
            return {name: sorted(map(repr, store.execute(f"SELECT * FROM {name}")))
                    for name in names if not name.startswith(("fresh", "hour", "day", "month", "year"))}


class Embedded(Copying, Tables, Case):
    STORE, COPY = "sqlite:tallyd.db", "sqlite:copy.db"

    def setUp(self):
        super().setUp()
        self.make_store(2000)

    def test_same_answers_and_counting_goes_on(self):
        expected = self.answers(self.STORE)
        self.assertIn("3 reports with", self.copy(self.STORE, self.COPY))
        self.assert_same(expected, self.COPY)
        self.assertEqual(self.tables("tallyd.db"), self.tables("copy.db"))
        self.verify(self.COPY)
        self.check_goes_on(self.STORE, self.COPY)

    def test_dry_run_writes_nothing(self):
        self.assertRegex(self.copy(self.STORE, self.COPY, "--dry-run"), r"would copy .* 3 reports with \d+ series")
        self.assertEqual([], [name for name in os.listdir(self.dir) if name.startswith("copy")])
        self.copy(self.STORE, self.COPY)
        self.copy(self.STORE, self.COPY, "--dry-run", status=EX_CANTCREAT)

    def test_killed_at_random_moments(self):
        names = [f"sqlite:copy-{number}.db" for number in range(ROUNDS + 1)]
        states = self.play_kills(self.STORE, names, ROUNDS + 1)
        self.assertGreater(states["unfinished"], 0, "the kills came too early or too late to test anything")

    def test_killed_at_every_step(self):
        expected = self.answers(self.STORE)
        for place in failpoints("copy."):
            with self.subTest(failpoint=place):
                target = f"sqlite:{place}.db"
                self.copy(self.STORE, target, env=dying_at(place), status=KILLED)
                self.assertEqual("unfinished", self.state_after_kill(target, expected))
                self.copy(self.STORE, target)
                self.assert_same(expected, target)
                self.verify(target)

    def test_what_is_no_target_and_no_origin(self):
        self.copy(self.STORE, self.COPY)
        before = self.read("copy.db")
        self.copy(self.STORE, self.COPY, status=EX_CANTCREAT)
        self.assertIn("copy.db holds something already", self.err)
        self.assertEqual(before, self.read("copy.db"))
        with contextlib.closing(sqlite3.connect(self.path("other.db"))) as other:
            other.execute("CREATE TABLE t (x)")
        self.copy(self.STORE, "sqlite:other.db", status=EX_CANTCREAT)
        self.write("text.db", b"no database\n" * 1000)
        self.copy(self.STORE, "sqlite:text.db", status=EX_DATAERR)
        self.copy("sqlite:nowhere.db", "sqlite:new.db", status=EX_NOINPUT)
        self.assertFalse(os.path.exists(self.path("new.db")))
        shutil.copy(self.path("copy.db"), self.path("damaged.db"))
        with open(self.path("damaged.db"), "r+b") as file:
            file.seek(os.path.getsize(self.path("damaged.db")) // 2 // 8192 * 8192)
            file.write(b"\xff" * 64)
        self.copy("sqlite:damaged.db", "sqlite:new.db", status=EX_DATAERR)
        self.assertIn("damaged.db is damaged", self.err)

    def test_what_is_no_question(self):
        for arguments in (["copy"], ["copy", self.STORE], ["copy", self.STORE, self.COPY, "x"],
                          ["copy", self.STORE, self.COPY, "--force"], ["copy", self.STORE, self.STORE],
                          ["copy", self.STORE, "mem:"], ["copy", "tallyd.db", "copy.db"], ["backup", "x", "--dry-run"],
                          ["copy", "--store", self.STORE, self.STORE, self.COPY]):
            with self.subTest(arguments=arguments):
                self.tallyd("admin", *arguments, status=EX_USAGE)


class Beside(Tables, DaemonCase):
    def test_a_daemon_counts_meanwhile(self):
        """The copy is of one moment, and goes on from there."""
        log = traffic(40000)
        self.write("tallyd.yaml", b"sources: {access: {path: a.log}}\naggregate: {flush: 100ms, batch_size: 64KiB}\n"
                                  b"http: {listen: \"127.0.0.1:0\"}\n")
        self.write("a.log", log[:len(log) // 2])
        self.launch("-c", "tallyd.yaml")
        self.append("a.log", log[len(log) // 2:])
        self.wait_for_log("event=source_opened")
        self.wait_for(lambda: os.path.exists(self.path("tallyd.db")) and self.query("site"), bool)
        self.tallyd("admin", "copy", "sqlite:tallyd.db", "sqlite:copy.db")
        self.stop()
        self.tallyd("admin", "copy", "sqlite:tallyd.db", "sqlite:later.db")
        tables = self.tables("later.db")
        self.assertEqual(self.tables("tallyd.db"), tables)
        self.assertTrue(tables["witness"], "a daemon notes witnesses of its files")
        for store in "sqlite:tallyd.db", "sqlite:copy.db":
            self.tallyd("import", "-c", "tallyd.yaml", "--store", store, "a.log")
        self.tallyd("verify", "-c", "tallyd.yaml", "--store", "sqlite:copy.db", "a.log")
        self.assertEqual(self.answers(), self.answers("copy.db"))


if __name__ == "__main__":
    unittest.main()
