#!/usr/bin/env python3
"""`sample: 1/N`: a report counts one event in N, N times: the same events whenever they are counted, and every answer says so.

The judge draws by Python (samplecase.py) and recounts the lines that it drew. The seed is printed; TALLYD_SEED repeats a run.
"""

import collections
import csv
import json
import math
import sqlite3
import time
import unittest
import urllib.parse

from harness import EX_CONFIG, EX_OK, EX_USAGE, DaemonCase, draw_death, dying_at, failpoints
from recountcase import RecountCase, log, log_line, recount
from samplecase import drawn_lines

KILLED = -9
ONE_IN = {"few": 20, "rare": 400, "site": 3}
LAST = {"from": "-2h"}
SPAN = ("2026-01-01", "2030-01-01")
ALONE = b"reports: {whole: {}}\n"
CONFIG = """\
query: {series_max: 100000}
aggregate: {cells_max: 1024, series_max: 1024}
reports:
  whole: {}
  few: {by: [path], sample: 1/20, measures: {hits: count, bytes: sum(bytes), size: mean(bytes)}}
  rare: {by: [path], where: [status>=400], sample: 1/400}
  site: {sample: 1/3}
"""


class SampleCase(RecountCase):
    def setUp(self):
        super().setUp()
        self.write("tallyd.yaml", CONFIG.encode())

    def source(self, store="tallyd.db"):
        """What the store calls its only file."""
        with sqlite3.connect(self.path(store)) as base:
            (name,), = base.execute("SELECT DISTINCT source FROM position").fetchall()
        return name

    def expected(self, log, source):
        """{report: {path: [hits, bytes]}}, scaled."""
        found = {}
        for report, one_in in ONE_IN.items():
            found[report] = collections.defaultdict(lambda: [0, 0])
            of = {"site": "site", "few": "pages", "rare": "errors"}[report]
            for (name, _, series), (hits, size) in recount(drawn_lines(source, log, one_in)).items():
                if name == of:
                    cell = found[report][series[0] if series else ""]
                    cell[0] += one_in * hits
                    cell[1] += one_in * size
        return {report: dict(cells) for report, cells in found.items()}

    def check_sampled(self, log, store="tallyd.db", config="tallyd.yaml", files=("a.log",)):
        expected = self.expected(log, self.source(store))
        for report, cells in expected.items():
            rows = self.rows(report, *(["--top", "100000"] if report != "site" else []), "--measure", "all", store=store,
                             span=SPAN)
            self.assertEqual(cells, {row.get("path", ""): [int(row["hits"]), int(row["bytes"])] for row in rows}, report)
            for row in rows:
                error = math.sqrt(int(row["hits"]) * (ONE_IN[report] - 1))
                self.assertLessEqual(abs(int(row["error(hits)"]) - error), 0.5 + 1e-9)
        for more in files, ["--store-only"]:
            self.tallied("verify", *more, store=store, config=config)
        return expected


class Sample(SampleCase):
    def test_what_is_drawn(self):
        """By an import and by one in pieces, by kills, by a daemon that follows, by a backfill and by a copy."""
        a = log(self.dice, 30000)
        self.write("a.log", a)
        self.tallied("import", "-q", "a.log")
        self.check_sampled(a)
        whole = self.dump()
        self.assertGreater(len(self.expected(a, self.source())["rare"]), 3)

        self.tallied("import", "-q", "a.log", store="again.db")
        self.assertEqual(self.expected(a, self.source()), self.check_sampled(a, store="again.db"))

        kills, store = 0, "killed.db"
        for _ in range(12):
            self.tallied("import", "-q", "a.log", store=store, status=None,
                         env=dying_at(draw_death(self.dice, failpoints("store."), 4)))
            self.assertIn(self.status, (EX_OK, KILLED), self.err)
            kills += self.status == KILLED
        self.tallied("import", "-q", "a.log", store=store)
        self.check_sampled(a, store=store)

        self.write("alone.yaml", ALONE)
        self.tallied("import", "-q", "a.log", store="late.db", config="alone.yaml")
        for report in ONE_IN:
            self.tallied("backfill", "-q", report, "--from", "2026-01-07", "--to", "2026-01-20", store="late.db")
            self.tallied("backfill", "-q", report, store="late.db")
        self.check_sampled(a, store="late.db")

        self.tallyd("admin", "copy", "sqlite:tallyd.db", "sqlite:copy.db")
        self.check_sampled(a, store="copy.db")
        self.append("a.log", a)
        self.tallied("import", "-q", "a.log", store="copy.db")
        self.check_sampled(a + a, store="copy.db")
        self.tallied("forget", "a.log", store="copy.db")
        for report in ONE_IN:
            self.assertEqual([], [row for row in self.rows(report, "--top", "9", store="copy.db") if row["hits"] != "0"])
        self.assertEqual(whole, self.dump())
        print(f"{kills} kills")

    def test_verify_finds_an_event_that_was_not_drawn(self):
        a = log(self.dice, 3000)
        self.write("a.log", a)
        self.tallied("import", "-q", "a.log")
        self.write("other.yaml", CONFIG.replace("1/20", "1/21").encode())
        self.tallied("verify", "a.log")
        with sqlite3.connect(self.path("tallyd.db")) as base:
            definition, = base.execute("SELECT definition FROM report WHERE name = 'few'").fetchone()
            base.execute("UPDATE report SET definition = ? WHERE name = 'few'", (definition.replace("1/20", "1/21"),))
        self.tallied("verify", "a.log", config="other.yaml", status=None)
        self.assertNotEqual(EX_OK, self.status)

    def test_another_sample_is_another_generation(self):
        a = log(self.dice, 2000)
        self.write("a.log", a)
        self.tallied("import", "-q", "a.log")
        for sample in "1/21", "1/1":
            self.write("other.yaml", CONFIG.replace("1/20", sample).encode())
            self.tallied("import", "-q", "a.log", config="other.yaml", status=EX_CONFIG)
            self.assertIn("generation", self.err)
        self.write("other.yaml", CONFIG.replace("sample: 1/20", "sample: 1/1, generation: 2").encode())
        self.append("a.log", a)
        self.tallied("import", "-q", "a.log", config="other.yaml")
        self.tallied("backfill", "-q", "few", config="other.yaml")
        self.tallied("verify", "a.log", config="other.yaml")
        hits = sum(int(row["value"]) for row in self.rows("few", "--top", "100000"))
        self.assertEqual(sum(hits for (name, *_), (hits, _) in recount(a + a).items() if name == "site"), hits)

    def test_what_a_sample_cannot_say_is_refused(self):
        for measures, word in (("{n: count, most: max(bytes)}", "max(bytes)"), ("{n: count, d: distinct(host)}", "distinct(host)"),
                               ("{bytes: sum(bytes)}", "count")):
            self.write("bad.yaml", f"reports: {{few: {{sample: 1/10, measures: {measures}}}}}\n".encode())
            self.tallyd("check", "-c", "bad.yaml", status=EX_CONFIG)
            self.assertIn(word, self.err)
        for sample in "0", "1/0", "10", "1/1000000", "1%":
            self.write("bad.yaml", f"reports: {{few: {{sample: {sample}}}}}\n".encode())
            self.tallyd("check", "-c", "bad.yaml", status=EX_CONFIG)
            self.assertIn("1/100000", self.err)
        self.write("a.log", log(self.dice, 100))
        self.tallied("import", "-q", "a.log")
        self.tallyd("query", "few", "--measure", "error(bytes)", status=EX_USAGE)
        self.tallyd("query", "whole", "--measure", "error(hits)", status=EX_USAGE)

    def test_table_and_explain_say_it(self):
        self.write("a.log", log(self.dice, 1000))
        self.tallied("import", "-q", "a.log")
        for report in "few", "whole":
            self.tallyd("query", report, "--from", SPAN[0], "--to", SPAN[1])
            self.assertEqual(report == "few", "one event in 20" in self.err, self.err)
        line = log_line(0, "/x", 200, 1)
        self.assertIn("1/20", self.tallyd("explain", "-c", "tallyd.yaml", line.strip()))
        found = {one["name"]: one for one in json.loads(self.tallyd("explain", "-c", "tallyd.yaml", "--json", line.strip()))["reports"]}
        self.assertEqual((20, False), (found["few"]["sample"], "sample" in found["whole"]))


class Served(SampleCase, DaemonCase):
    """A daemon that follows, is killed, and answers."""

    def ask(self, path, **words):
        return json.loads(self.get(path + "?" + urllib.parse.urlencode(words)))

    def test_followed_and_answered(self):
        now = int(time.time()) // 60 - 29453760 - 30  # minutes since 2026, half an hour ago
        a = b"".join(log(self.dice, 500, (now, now + 20), 6) for _ in range(4))
        self.write("a.log", b"")
        self.write("run.yaml", (CONFIG + "sources: {a: {path: a.log}}\nhttp: {listen: '127.0.0.1:0'}\n").encode())
        at = 0
        while at < len(a):
            self.launch("-c", "run.yaml")
            size = min(len(a) - at, self.dice.randrange(20000, 60000))
            self.append("a.log", a[at:at + size])
            at += size
            if at == len(a):
                break
            self.wait_for(lambda: json.loads(self.get("/api/v1/status"))["consumed"], lambda found: found > 0)
            self.process.kill()
            self.process.wait()
        self.wait_for(lambda: json.loads(self.get("/api/v1/query?report=whole&from=-2h"))["values"][0][1],
                      lambda found: found == recounted(a))
        self.check_answers(a)
        self.stop()
        self.check_sampled(a, config="run.yaml")

    def test_top_shows_all_notes(self):
        """Its figures are estimates, and the report was configured when the file was counted already."""
        self.write("alone.yaml", ALONE)
        now = int(time.time()) // 60 - 29453760 - 30
        self.write("a.log", log(self.dice, 100, (now, now + 20), 6))
        self.tallyd("import", "-q", "-c", "alone.yaml", "a.log")
        self.write("run.yaml", (CONFIG + "sources: {a: {path: a.log}}\nhttp: {listen: '127.0.0.1:0'}\n").encode())
        self.launch("-c", "run.yaml")
        notes = self.ask("/api/v1/query", report="few", **{"from": "-1h"})["notes"]
        self.assertEqual(2, len(notes), notes)
        said = [line for line in self.tallyd("top", "--url", self.url, "--report", "few").splitlines() if line.startswith("few ")]
        self.assertEqual(2, len(said), said)
        self.assertEqual([note[:len(line)] for note, line in zip(notes, said)], said)  # a terminal has 80 columns

    def check_answers(self, a):
        expected = self.expected(a, self.source())
        hits = sum(cell[0] for cell in expected["few"].values())
        error = round(math.sqrt(19 * hits))
        said = "one event in 20"
        reports = {one["name"]: one for one in self.ask("/api/v1/reports")}
        self.assertEqual((20, None, ["hits", "bytes", "size"]),
                         (reports["few"]["sample"], reports["whole"].get("sample"), reports["few"]["measures"]))
        answer = self.ask("/api/v1/query", report="few", **LAST)
        self.assertEqual([["hits", "error(hits)"], [hits, error]], [answer["measures"], answer["values"][0][1:]])
        self.assertIn(said, answer["notes"][0])
        self.assertNotIn("notes", self.ask("/api/v1/query", report="whole", **LAST))
        answer = self.ask("/api/v1/query", report="few", measure="bytes", **LAST)
        self.assertEqual([["bytes"], sum(cell[1] for cell in expected["few"].values())], [answer["measures"], answer["values"][0][1]])
        self.assertIn(said, answer["notes"][0])
        answer = self.ask("/api/v1/top", report="few", limit=3, **LAST)
        self.assertIn(said, answer["notes"][0])
        self.assertEqual({path: cell[0] for path, cell in expected["few"].items() if cell[0] >= answer["series"][-1]["value"]},
                         {one["series"]["path"]: one["value"] for one in answer["series"]}
                         | {path: cell[0] for path, cell in expected["few"].items() if cell[0] == answer["series"][-1]["value"]})
        for one in answer["series"]:
            self.assertEqual(round(math.sqrt(19 * one["value"])), one["error"])
        rows = list(csv.DictReader(self.get("/api/v1/top?report=few&from=-2h&format=csv").splitlines()))
        self.assertEqual([round(math.sqrt(19 * int(row["value"]))) for row in rows], [int(row["error"]) for row in rows])
        for path in "query", "query_range":
            times = {"time": time.time()} if path == "query" else {"start": time.time() - 600, "end": time.time(), "step": 60}
            for expression, notes in ("sum(few:hits)", [said]), ("sum(few:bytes)", [said]), ("sum(whole:hits)", []), \
                                     ("sum(few:hits) / sum(rare:hits)", [said, "one event in 400"]):
                found = self.ask(f"/prometheus/api/v1/{path}", query=expression, **times).get("warnings", [])
                self.assertEqual(len(notes), len([text for text in found if "estimates" in text]), (expression, found))
                self.assertTrue(all(any(note in text for text in found) for note in notes), found)


def recounted(a):
    return sum(hits for (name, *_), (hits, _) in recount(a).items() if name == "site")


if __name__ == "__main__":
    unittest.main()
