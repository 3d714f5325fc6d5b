#!/usr/bin/env python3
"""Steps that take the named parts of a line, also of a container's: lines are counted by their fields, from a configuration and from a command
line, and recounted alike."""

import unittest

from harness import Case

CONFIG = b"""
sources:
  pairs: {path: pairs.log, decode: [logfmt]}
  columns: {path: columns.csv, decode: [{csv: [at, path, "-", cost]}], time: /at}
  box: {path: box.log, decode: [cri, logfmt]}
  odd: {path: odd.log, decode: [{regex: '(?<time>[^|]+)[|](?<path>[^|]*)[|](?<cost>.*)'}]}
reports:
  pages: {by: [path], measures: {hits: count, cost: sum(cost)}}
"""
LINES = {
    "pairs.log": b'time=2026-01-05T10:00:00Z path="/a b" cost=0.25 level=info\npath=/lost\n',
    "columns.csv": b'at,path,x,cost\n"05/Jan/2026:10:00:00 +0000","/a b",x,0.5\n',
    "box.log": b'2026-01-05T10:00:00.5Z stdout F time=2026-01-05T10:00:00Z path="/a b" cost=4\n'
               b'2026-01-05T10:00:00.5Z stdout P time=2026-01-05T10:00:00Z path="/a b" cost=4\n2026-01-05T10:00:00.5Z stdout F 00\n',
    "odd.log": b"2026/01/05 10:00:00|/a b|1.25\nodd\n",
}


class Steps(Case):
    def setUp(self):
        super().setUp()
        self.write("tallyd.yaml", CONFIG)
        for name, lines in LINES.items():
            self.write(name, lines)

    def cost(self):
        rows = self.query("pages", "--measure", "cost", "--top", "9", span=("2026-01-05", "2026-01-06"))
        return {row["path"]: float(row["value"]) for row in rows}

    def test_lines_of_all_steps_are_counted_and_recounted(self):
        self.tallyd("import", "-c", "tallyd.yaml", *LINES)
        self.assertEqual((9, 4), self.booked())
        self.assertEqual({"/a b": 6.0}, self.cost())
        self.tallyd("verify", "-c", "tallyd.yaml")

    def test_steps_are_told_on_the_command_line(self):
        steps = {"pairs.log": "logfmt", "box.log": "cri,logfmt", "columns.csv": "csv:time,path,-,cost",
                 "odd.log": "regex:(?<time>[^|]{19,})[|](?<path>[^|]*)[|](?<cost>.*)"}
        for name, step in steps.items():
            self.tallyd("import", "-c", "tallyd.yaml", "--decode", step, name)
        self.assertEqual((9, 4), self.booked())
        self.assertEqual({"/a b": 6.0}, self.cost())

    def test_what_measures_skip_is_told(self):
        """Once for each field, and not if it is a number in some event, or if no report counts the event."""
        self.write("tallyd.yaml", b"sources: {app: {path: app.log, decode: logfmt}}\nreports:\n"
                   b"  slow: {by: [path], measures: {s: sum(took), p: histogram(took), m: max(size)}}\n"
                   b"  hits: {by: [path], where: [path=/x], measures: {s: sum(took)}}\n")
        self.write("app.log", b"time=2026-01-05T10:00:00Z path=/a took=12ms size=-\ntime=2026-01-05T10:00:00Z path=/a took=1.5s size=3\n")
        self.tallyd("import", "-c", "tallyd.yaml", "--dry-run", "app.log")
        self.assertEqual('tallyd import: app.log: took is no number in any of the 2 events looked at, as "12ms": sum(took) of report slow '
                         "skips it\n", self.err.replace(self.dir + "/", ""))
        self.tallyd("import", "-c", "tallyd.yaml", "--dry-run", "-q", "app.log")
        self.assertEqual("", self.err)
        said = self.tallyd("explain", "-c", "tallyd.yaml", "-f", "app.log")
        self.assertEqual([2, 0], [said.count("; no number: sum(took) skips it\n"), said.count("; no number: max(size)")])

    def test_a_status_that_is_none_is_told(self):
        events = b'{"time":"2026-01-05T10:00:00Z","status":"ok"}\n{"time":"2026-01-05T10:00:00Z","status":200.0,"bytes":"12KB"}\n'
        self.write("tallyd.yaml", b"sources: {app: {path: app.json, decode: json}}\nreports: {codes: {by: [status], measures: {hits: count}}, all: {by: [path], measures: {hits: count}}}\n")
        self.tallyd("import", "-c", "tallyd.yaml", self.write("app.json", events))
        self.assertIn('status is no status in 1 of the 2 events looked at, as "ok": report codes counts these without it\n', self.err)
        self.assertNotIn("report all counts these", self.err)
        self.assertNotIn("no size", self.err)
        codes = {row["status"]: row["hits"] for row in self.query("codes", "--top", "9", "--measure", "all", span=("2026-01-05", "2026-01-06"))}
        self.assertEqual({"-": "1", "200": "1"}, codes)
        self.tallyd("verify", "-c", "tallyd.yaml")
        self.assertIn("decode: [json]", self.tallyd("detect", "app.json"))

    def test_events_without_a_path_are_told(self):
        for member, said in ("uri", "none of the 1 events looked at has a path: report pages counts them as path=-"), ("path", ""):
            self.tallyd("import", "--dry-run", "--decode", "json",
                        self.write("app.json", b'{"time":"2026-01-05T10:00:00Z","%s":"/a"}\n' % member.encode()))
            self.assertIn(said, self.err)
            self.assertEqual(said != "", "has a path" in self.err)


if __name__ == "__main__":
    unittest.main()
