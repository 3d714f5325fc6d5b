#!/usr/bin/env python3
"""`tallyd verify --store-only`: a store that was changed behind its back is found out without any source, and one that was not
is never suspected, whatever shape it has: resolutions that expired, late events, generations, what went to `other`, rows that are not
folded yet.

The seed is printed; TALLYD_SEED repeats a run.
"""

import contextlib
import os
import sqlite3
import unittest

from harness import EX_NOINPUT, EX_USAGE, Case, DaemonCase, dice, traffic
from test_expire import Expiring, config

GAUGES = """
reports:
  site: {}
  pages: {by: [path], series_max: %d}
  gauges: {by: [status], measures: {low: min(bytes), high: max(bytes), mean: mean(bytes), last: last(bytes)}}
"""
# Changes to tables, and the words that must report each: `pages` is report 2.
DAMAGE = (("DELETE FROM hour_2 WHERE at = (SELECT min(at) FROM hour_2)", "by hour: it has [1-9][0-9]*, but its minutes have 0"),
          ("DELETE FROM day_2 WHERE at = (SELECT max(at) FROM day_2)", "by hour: it has 0, but its minutes have [1-9]"),
          ("DELETE FROM day_2", "by day: it has [1-9][0-9]*, but its hours have 0"),
          ("DELETE FROM month_2", "by day: it has 0, but its hours have [1-9]"),
          ("DELETE FROM month_2", "by month: it has [1-9][0-9]*, but its days have 0"),
          ("DELETE FROM year_2", "by month: it has 0, but its days have [1-9]"),
          ("DELETE FROM year_2", "pages: counted: the books have 3000 events, its months 0"),
          ("DELETE FROM day_3", "gauges .* low .* by hour: it has nothing, but its minutes have [1-9]"),
          ("INSERT INTO hour_2 SELECT at + (1 << 30), body FROM hour_2 ORDER BY at LIMIT 1", "by hour: it has 0, but its minutes"),
          ("UPDATE hour_2 SET body = substr(body, 1, length(body) - 1)", "does not decode"),
          ("DELETE FROM series_2 WHERE block = 0", "which is not among its series"),
          ("DELETE FROM lookup_2", "but queries do not find it"),
          ("UPDATE book SET value = value + 1 WHERE entry = 'consumed'", "do not balance: consumed 3001, parsed 3000 "),
          ("UPDATE book SET value = value - 1 WHERE entry = 'counted' AND report = 2", "books of pages do not balance"),
          ("UPDATE book SET value = value - 1 WHERE entry IN ('counted', 'parsed')", "counted: the books have 2999 events, its "),
          ("UPDATE book SET value = value + 1 WHERE entry = 'parsed' AND report = 2", "pages was given 3001 events, of only 3000"),
          ("UPDATE book SET value = value + 3 WHERE entry = 'other'", "in the series"),
          ("UPDATE position SET next = next - 100", "the records between would be counted twice"),
          ("DELETE FROM position", "the store does not know how far it is counted"))


class Audit(Case):
    def audit(self, status=0):
        return self.tallyd("verify", "--store-only", status=status)

    def change(self, sql):
        with contextlib.closing(sqlite3.connect(self.path("tallyd.db"))) as base:
            base.execute(sql)
            base.commit()
            base.execute("VACUUM")  # pages have checksums: whoever changes it says that it is meant

    def healthy(self):
        self.audit()


class Embedded(Audit):
    def test_whatever_is_changed_is_found(self):
        self.write("tallyd.yaml", (GAUGES % 200).encode())
        self.write("a.log", traffic(3000))
        self.tallyd("import", "-c", "tallyd.yaml", "a.log")
        self.healthy()
        whole = self.read("tallyd.db")
        for sql, words in DAMAGE:
            with self.subTest(sql=sql, words=words):
                self.write("tallyd.db", whole)
                self.change(sql)
                self.assertRegex(self.audit(status=1), words)
        self.write("tallyd.db", whole)
        self.healthy()

    def test_what_was_not_looked_at_is_said(self):
        self.write("tallyd.yaml", (GAUGES % 200).encode())
        self.write("a.log", traffic(100))
        self.tallyd("import", "-c", "tallyd.yaml", "a.log")
        said = self.audit()
        self.assertIn("gauges: minutes, hours, days, months; no measure is a count, so the books cannot be compared\n", said)
        self.assertIn("not checked: earlier generations of reports\n", said)

    def test_it_takes_no_source(self):
        self.write("a.log", traffic(100))
        self.tallyd("verify", "--store-only", status=EX_NOINPUT)
        self.tallyd("verify", "--store-only", "a.log", status=EX_USAGE)

    def test_second_generation_of_a_report(self):
        self.write("a.log", traffic(500))
        self.write("b.log", traffic(500, seed=2))
        for name, generation in (("a.log", 1), ("b.log", 2)):
            self.write("tallyd.yaml", f"reports: {{pages: {{by: [path:{generation}], generation: {generation}}}}}\n".encode())
            self.tallyd("import", "-c", "tallyd.yaml", name)
            self.healthy()


class LetGo(Expiring, Audit):
    def test_what_was_let_go_is_no_difference(self):
        """Also where it goes in two steps, and events come late in between."""
        self.write("a.log", self.make_log(3000))
        self.write("b.log", self.make_log(3000))
        for name, keep in (("a.log", ""), ("b.log", "keep: {minute: 3h, hour: 2d, day: 40d, month: 400d}"), ("a.log", "")):
            self.write("tallyd.yaml", config(keep))
            self.tallyd("import", "-c", "tallyd.yaml", name)
            self.healthy()
        self.assertRegex(self.audit(), "site: minutes from 2.*, hours from 2.*, days from 2.*, months from 2")
        self.change("DELETE FROM day_1 WHERE at = (SELECT max(at) FROM day_1)")
        self.assertIn("by hour: it has 0, but its minutes have", self.audit(status=1))


class Live(Audit, DaemonCase):
    def test_beside_a_daemon(self):
        """Rows that are not folded yet count as any."""
        self.dice = dice()
        self.write("tallyd.yaml", b'sources: {in: {path: "-"}}\naggregate: {flush: 100ms}\nhttp: {listen: "127.0.0.1:0"}\n')
        self.launch("-c", "tallyd.yaml")
        log = traffic(4000)
        lines = log.splitlines(keepends=True)
        for i in range(0, len(lines), 400):
            self.feed(b"".join(lines[i:i + 400]))
            if os.path.exists(self.path("tallyd.db")):
                self.healthy()
        self.wait_for_consumed(len(lines))
        self.healthy()
        self.process.kill()
        self.process.wait()
        self.healthy()


if __name__ == "__main__":
    unittest.main()
