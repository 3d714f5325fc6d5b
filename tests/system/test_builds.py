#!/usr/bin/env python3
"""The books say by which build of a database, or of the list of agents, each line was counted: also after kills, restarts and a copy.

Every build has a country and a family of its own. So the lines in the stretches of a build, which all have one length, must be the
hits of its country. TALLYD_ROUNDS says how often the import is killed (10 by default). The seed is printed; TALLYD_SEED repeats a run.
"""

import collections
import contextlib
import datetime
import os
import signal
import sqlite3
import time
import unittest

from harness import EX_OK, Case, DaemonCase, dice, draw_death, dying_at, failpoints, store_url
from test_fields import AGENTS, mmdb

ROUNDS = int(os.environ.get("TALLYD_ROUNDS") or 10)
LINE = b'10.0.0.1 - - [29/Oct/2010:13:55:%02d +0000] "GET / HTTP/1.0" 200 5 "-" "x%s"\n'
SPAN = ("2010-10-29", "2010-10-30")
FIRST, KILLED = 1300000000, -9


class Building:
    """Logs that are counted by one build after another."""

    PLACES = ("store.",)

    def write_build(self, number):
        """Database and list number `number`, of the country C0 for 0, and the family F0."""
        for name, data in ("country.mmdb", mmdb("Test-Country", FIRST + number, {"10.0.0.0/8": {"country": {"iso_code": f"C{number}"}}})), \
                          ("own.yaml", (AGENTS % f"F{number}").encode()):
            self.write("new", data)
            os.rename(self.path("new"), self.path(name))
        self.build = number

    def configure(self, more=b""):
        self.write("tallyd.yaml", b"derive: {geo: country.mmdb, agents: own.yaml}\naggregate: {batch_size: 64KiB}\n"
                                  b"reports:\n  all: {by: [country, agent_family]}\n" + more)

    def lines(self, count):
        return b"".join(LINE % (self.dice.randrange(60), b"y" * 2000) for _ in range(count))

    def run_import(self, store, *files, **options):
        return self.tallyd("import", "-q", "-c", "tallyd.yaml", "--store", store_url(store), *files, **options)

    def stretches(self, store, report=""):
        """[(kind, build, from, to)] as the store has it."""
        with contextlib.closing(sqlite3.connect(self.path(store))) as base:
            rows = list(base.execute("SELECT entry, value FROM book LEFT JOIN report ON report.id = book.report "
                                     "WHERE ifnull(name, '') = ?", (report,)))
        return self.parsed(rows)

    @staticmethod
    def parsed(entries):
        names = [(entry.split("."), to) for entry, to in entries if entry.startswith(("geo.", "asn.", "agents."))]
        return sorted((kind, build, int(begin), to) for (kind, begin, build), to in names)

    def check(self, store, report="all", of="", is_one_file=True):
        """Each line is in one stretch of each kind, and was counted by its build."""
        size = len(LINE % (0, b"y" * 2000))
        hits = {(row["country"], row["agent_family"]): int(row["value"])
                for row in self.query(report, "--top", "1000", span=SPAN, store=store)}
        lines, seen = collections.Counter(), {"geo": [], "agents": []}
        for kind, build, begin, to in self.stretches(store, of):
            self.assertEqual((0, 0), (begin % size, to % size))
            seen[kind].append((begin, to, build))
            if kind == "geo":
                number = int(build) - FIRST
                lines[f"C{number}", f"F{number}"] += (to - begin) // size
        self.assertEqual(hits, dict(lines))
        for kind in seen.values() if is_one_file else ():  # one behind the other
            self.assertEqual([begin for begin, _, _ in sorted(kind)], [0] + [to for _, to, _ in sorted(kind)][:-1])
        self.assertEqual(sorted(one[:2] for one in seen["geo"]), sorted(one[:2] for one in seen["agents"]))
        return sum(lines.values())

    def check_kills(self, store, rounds):
        self.dice = dice()
        self.configure()
        self.write_build(0)
        self.write("a.log", self.lines(300))
        deaths, changed, total = 0, 0, 300
        for number in range(1, rounds + 1):
            death = draw_death(self.dice, failpoints(*self.PLACES), 2)
            self.run_import(store, "a.log", env=dying_at(death), status=None)
            self.assertIn(self.status, (EX_OK, KILLED), self.err)
            deaths += self.status == KILLED
            if self.dice.random() < 0.5:
                self.write_build(number)
                changed += 1
            more = self.dice.choice([0, 5, 200])
            total += more
            self.append("a.log", self.lines(more))
        self.run_import(store, "a.log")
        self.assertEqual(total, self.check(store))
        self.assertLessEqual(len(self.stretches(store)), 2 * (changed + 1))  # a restart begins none
        print(f"{rounds} rounds, {deaths} killed, {changed} builds, {len(self.stretches(store))} stretches")

    def check_copy(self, store, other):
        self.tallyd("admin", "copy", store_url(store), store_url(other))
        self.assertEqual(self.stretches(store), self.stretches(other))
        self.append("a.log", self.lines(7))
        self.run_import(other, "a.log")
        self.check(other)


    def check_backfill(self, store):
        self.dice = dice()
        self.configure()
        self.write_build(0)
        self.write("a.log", self.lines(100))
        self.run_import(store, "a.log")
        self.configure(b"  later: {by: [country, agent_family]}\n")
        self.write_build(1)
        self.tallyd("backfill", "later", "-c", "tallyd.yaml", "--store", store_url(store), "a.log")
        self.check(store)
        self.assertEqual(100, self.check(store, "later", of="later"))
        self.assertEqual({str(FIRST + 1)}, {build for kind, build, *_ in self.stretches(store, "later") if kind == "geo"})


class Builds(Building, Case):
    def test_each_line_is_in_a_stretch_of_its_build(self):
        self.check_kills("s.db", ROUNDS)
        self.check_copy("s.db", "other.db")

    def test_verify_tells_them(self):
        self.dice = dice()
        self.configure()
        self.write_build(0)
        self.write("a.log", self.lines(10))
        self.run_import("s.db", "a.log")
        for options in ("a.log", "--store-only"):
            said = self.tallyd("verify", "-c", "tallyd.yaml", "--store", "sqlite:s.db", options)
            self.assertIn("counted by derive.geo of 2011-03-13T07:06:40Z: 1 partition\n", said)
        self.write_build(1)
        self.append("a.log", self.lines(1))
        self.run_import("s.db", "a.log")
        said = self.tallyd("verify", "-c", "tallyd.yaml", "--store", "sqlite:s.db", "a.log", status=1)
        size = len(LINE % (0, b"y" * 2000))
        self.assertIn(f"counted by derive.geo of 2011-03-13T07:06:40Z: 1 partition\n  {self.path('a.log')}, offsets 0 to {10 * size:,}\n", said)
        self.assertIn("counted by derive.geo of 2011-03-13T07:06:41Z: 1 partition\ncounted by derive.agents", said)

    def test_a_backfill_has_its_own(self):
        self.check_backfill("s.db")

    def test_a_file_that_is_forgotten_has_none(self):
        self.dice = dice()
        self.configure()
        self.write_build(0)
        self.write("a.log", self.lines(100))
        self.run_import("s.db", "a.log")
        self.tallyd("forget", "-c", "tallyd.yaml", "--store", "sqlite:s.db", "a.log")
        self.assertEqual([], self.stretches("s.db"))

    def test_nothing_is_noted_where_nothing_is_made(self):
        self.dice = dice()
        self.write("tallyd.yaml", b"reports: {all: {by: [host_net, route, hour_of_day]}}\n")
        self.write("a.log", self.lines(10))
        self.run_import("s.db", "a.log")
        self.assertEqual([], self.stretches("s.db"))


class Daemon(Building, DaemonCase):
    def test_a_reload_begins_a_stretch_of_each_file(self):
        """Two files of one source share all that makes fields; lines come all the time."""
        self.dice = dice()
        self.configure(b"sources: {a: {path: [a.log, b.log]}}\naggregate: {flush: 100ms}\n")
        self.write("tallyd.yaml", self.read("tallyd.yaml").replace(b"aggregate: {batch_size: 64KiB}\n", b""))
        self.write_build(0)
        for name in ("a.log", "b.log"):
            self.write(name, b"")
        self.launch("-c", "tallyd.yaml", "--listen", "127.0.0.1:0")
        total = 0
        for number in range(1, ROUNDS + 1):
            for _ in range(self.dice.randrange(1, 30)):
                more = self.dice.randrange(1, 5)
                self.append(self.dice.choice(["a.log", "b.log"]), self.lines(more))
                total += more
                time.sleep(self.dice.random() * 0.01)
            self.write_build(number)
            self.process.send_signal(signal.SIGHUP)
            if self.dice.random() < 0.5:
                at = datetime.datetime.fromtimestamp(FIRST + number, datetime.timezone.utc).strftime("%FT%TZ")
                self.wait_for_log(rf"event=database is=.*Test-Country of {at}")
        self.wait_for_consumed(total)
        self.stop()
        self.assertEqual(total, self.check("tallyd.db", is_one_file=False))
        self.assertGreater(len(self.stretches("tallyd.db")), 2)


if __name__ == "__main__":
    unittest.main()
