#!/usr/bin/env python3
"""Histograms with wider buckets in hours, days and months (`hour=`, `day=`, `month=`), however their lines were counted.

The judge: beside each such histogram the report has others of the same numbers, each with one schema at every resolution. An answer
must be that of the histogram whose schema the longest time bucket has that it is read from: bit for bit. `tallyd verify` recounts
each resolution. The log is imported by imports that die. The seed is printed; TALLYD_SEED repeats a run.
"""

import csv
import json
import os
import unittest
import urllib.parse
import urllib.request

from harness import EX_CONFIG, EX_OK, DaemonCase, dice, draw_death, dying_at, failpoints
from test_remote_read import READ, matcher, packed, query, unpacked
from test_sketches import BEGIN, DAY, HOUR, MINUTE, PATHS, iso

LINES = int(os.environ.get("TALLYD_LINES") or 1000)
DAYS = 75  # from the 5th of January: so February is whole
KILLED = -9
COARSE = "histogram(duration, hour=3, day=2, month=0)"
# The same questions of one with narrow buckets, by the twin that the other one has.
FINER = "histogram(duration, schema=8, hour=3, day=2, month=0)"
TWIN_OF_FINER = {"schem4": "schem8", "schem3": "schem3", "schem2": "schem2", "schem0": "schem0"}
TWINS = {"schem4": "histogram(duration)", "schem3": "histogram(duration, schema=3)", "schem2": "histogram(duration, schema=2)",
         "schem0": "histogram(duration, schema=0)", "schem8": "histogram(duration, schema=8)"}
FIGURES = ("min(%s)", "max(%s)", "share(%s <= 0.25)", "quantile(0.999, %s)", "mean(%s)", "count(%s)")
# How a question is asked, between which times, and the twin that has its answer.
WHOLE = BEGIN // DAY * DAY, BEGIN + DAYS * DAY
QUESTIONS = [(["--step", "minute"], (BEGIN + 7 * DAY, BEGIN + 9 * DAY), "schem4"), (["--step", "hour"], WHOLE, "schem3"),
             (["--step", "day"], WHOLE, "schem2"), (["--step", "month"], (BEGIN - 4 * DAY, BEGIN + 85 * DAY), "schem0"),
             (["--step", "year"], (BEGIN - 4 * DAY, BEGIN + 361 * DAY), "schem0"),
             (["--step", "day", "--tz", "Europe/Berlin"], (BEGIN - HOUR, BEGIN + 10 * DAY - HOUR), "schem3"),
             ([], (BEGIN + DAY + 90 * MINUTE, BEGIN + 70 * DAY + 77 * MINUTE), "schem0"),  # minutes, hours, days, and February
             ([], (BEGIN + DAY + 90 * MINUTE, BEGIN + 20 * DAY + 77 * MINUTE), "schem2"),
             ([], (BEGIN + DAY + 90 * MINUTE, BEGIN + DAY + 500 * MINUTE), "schem3"),
             ([], (BEGIN + DAY + 61 * MINUTE, BEGIN + DAY + 99 * MINUTE), "schem4")]


def config(more="", coarse=COARSE):
    measures = "hits: count, " + ", ".join(f'{name}: "{text}"' for name, text in {"coarse": coarse, "narrow": FINER, **TWINS}.items())
    return f"""
sources: {{a: {{path: a.log, decode: [logfmt]}}}}
reports:
  site: {{measures: {{{measures}}}{more}}}
  pages: {{by: [path], measures: {{{measures}}}{more}}}
aggregate: {{batch_size: 64KiB, flush: 100ms}}
http: {{listen: "127.0.0.1:0"}}
""".encode()


def lines(rolls, count, days=DAYS):
    """Half of them of two hours, so that minutes have several."""
    out = []
    for _ in range(count):
        at = BEGIN + DAY + rolls.randrange(2 * HOUR) if rolls.random() < 0.5 else BEGIN + rolls.randrange(days * DAY)
        size = rolls.choice([rolls.lognormvariate(-2, 1.5), -rolls.random(), rolls.choice([0, 0.25, 3, 1e-6, 1e9])])
        out.append(f'time={iso(at)} path="{rolls.choice(PATHS)}" duration={size:.6f} agent={"x" * 500}\n'.encode())
    return b"".join(out)


class Coarser(DaemonCase):
    def setUp(self):
        super().setUp()
        self.dice = dice()
        self.write("tallyd.yaml", config())
        self.write("a.log", lines(self.dice, LINES))

    def count(self, *more, files=("a.log",), **options):
        return self.tallyd("import", "-q", "-c", "tallyd.yaml", "--decode", "logfmt", *more, *files, **options)

    def count_killed(self):
        for places in ("store.", "fold.") * 3:
            self.count(status=None, env=dying_at(draw_death(self.dice, failpoints(places), 4)))
            self.assertIn(self.status, (EX_OK, KILLED), self.err)
        self.count()

    def rows(self, report, measure, how, span, store):
        out = self.tallyd("query", report, "-c", "tallyd.yaml", "--store", f"sqlite:{store}", "--measure", measure, "--from",
                          iso(span[0]), "--to", iso(span[1]), "--format", "csv-raw", *how)
        return list(csv.DictReader(out.splitlines()))

    def check(self, store="tallyd.db", questions=QUESTIONS, is_empty=False):
        differ = set()
        for how, span, twin in questions:
            rows = self.rows("site", "all", how, span, store)
            self.assertTrue(is_empty or any(row["p50(coarse)"] for row in rows), (how, span))
            for row in rows:
                for quantile in "p50", "p90", "p95", "p99":
                    said = {name: row[f"{quantile}({name})"] for name in ("coarse", "narrow", *TWINS)}
                    self.assertEqual(said[twin], said["coarse"], (quantile, how, span, row))
                    self.assertEqual(said[TWIN_OF_FINER[twin]], said["narrow"], (quantile, how, span, row))
                    differ |= {name for name in TWINS if said[name] != said["coarse"]}
            for figure in self.dice.sample(FIGURES, 2):
                for names in (twin, "coarse"), (TWIN_OF_FINER[twin], "narrow"):
                    self.assertEqual(*(self.rows("site", figure % name, how, span, store) for name in names), (figure, how))
            more = ["--filter", "path=/a"] if how or self.dice.random() < 0.5 else ["--top", "9"]
            self.assertEqual(*(self.rows("pages", f"p90({name})", [*how, *more], span, store) for name in (twin, "coarse")))
        self.assertTrue(is_empty or differ == {*TWINS}, "the judge cannot tell its histograms apart")

    def verify(self, store="tallyd.db", files=("a.log",)):
        for more in ["--decode", "logfmt", *files], ["--store-only"]:
            self.tallyd("verify", "-c", "tallyd.yaml", "--store", f"sqlite:{store}", *more)

    def test_counted_by_dying_imports_and_copied(self):
        self.count_killed()
        self.check()
        self.verify()
        self.append("a.log", lines(self.dice, LINES // 5))  # most of them late, into folded hours
        self.count()
        self.check()
        self.verify()
        self.tallyd("admin", "copy", "sqlite:tallyd.db", "sqlite:copy.db")
        self.check("copy.db")
        self.verify("copy.db")

    def test_forgotten_and_backfilled(self):
        self.write("tallyd.yaml", config().replace(b"  pages:", b"# pages:"))
        self.write("b.log", lines(self.dice, LINES // 3))
        self.count(files=("a.log", "b.log"))
        self.write("tallyd.yaml", config())
        self.tallyd("backfill", "-q", "-c", "tallyd.yaml", "--decode", "logfmt", "pages", "a.log", "b.log")
        self.check()
        self.verify(files=("a.log", "b.log"))
        place = draw_death(self.dice, failpoints("store."), 2)
        self.tallyd("forget", "--yes", "-c", "tallyd.yaml", "--decode", "logfmt", "b.log", status=None, env=dying_at(place))
        if self.status != EX_OK:
            self.tallyd("forget", "--yes", "-c", "tallyd.yaml", "--decode", "logfmt", "b.log")
        self.check()
        self.verify()

    def test_months_that_are_left(self):
        """Shorter time buckets have expired: late lines count in months alone, and a copy has nothing else."""
        months = [question for question in QUESTIONS if "month" in question[0] or "year" in question[0]]
        self.write("tallyd.yaml", config(", keep: {minute: 1h, hour: 1d, day: 2d}"))
        self.count()
        self.append("a.log", lines(self.dice, LINES // 5))
        self.count()
        for store in "tallyd.db", "copy.db":
            for how, span, twin in months:
                for measure in "p50(%s)", "max(%s)":
                    self.assertEqual(*(self.rows("site", measure % name, how, span, store) for name in (twin, "coarse")))
            self.verify(store)
            if store == "tallyd.db":
                self.tallyd("admin", "copy", "sqlite:tallyd.db", "sqlite:copy.db")

    def test_answers_say_that_they_are_coarser(self):
        self.count()
        arguments = "query", "site", "-c", "tallyd.yaml", "--from", iso(WHOLE[0]), "--to", iso(WHOLE[1]), "--measure"
        for measure, step, said in (("p99(coarse)", "day", "by day, where its buckets are wider: its quantiles, min and max are at most 9 % off"),
                                    ("max(coarse)", "hour", "at most 4.5 % off"), ("p99(coarse)", "month", "at most 41 % off"),
                                    ("mean(coarse)", "day", None), ("p99(schem4)", "day", None)):
            out = self.tallyd(*arguments, measure, "--step", step, "--format", "json")
            notes = json.loads(out).get("notes", [])
            if said is None:
                self.assertEqual([], notes)
                self.assertEqual("", self.err)
            else:
                self.assertIn(said, notes[0])
                self.tallyd(*arguments, measure, "--step", step)
                self.assertIn(f"note: {notes[0]}", self.err)

    def test_a_change_is_another_generation(self):
        self.count()
        for coarse in COARSE.replace("day=2", "day=1"), TWINS["schem4"]:
            self.write("tallyd.yaml", config(coarse=coarse))
            self.append("a.log", lines(self.dice, 1))
            self.count(status=EX_CONFIG)
            self.assertIn("generation", self.err)
        self.write("tallyd.yaml", config(coarse="histogram(duration, month=0, day=2, hour=3, schema=4)"))
        self.count()
        self.check()

    def test_what_is_finer_is_refused(self):
        self.write("tallyd.yaml", config(coarse="histogram(duration, day=1, month=2)"))
        said = self.tallyd("check", "-c", "tallyd.yaml", status=EX_CONFIG) + self.err
        self.assertIn("month=2 has narrower buckets than shorter time buckets have, expected at most month=1", said)
        self.assertIn("tallyd.yaml:4:", said)

    def ask(self, expression, at, name):
        text = expression.replace("NAME", name)
        answer = json.loads(self.get("/prometheus/api/v1/query?" + urllib.parse.urlencode({"query": text, "time": at})))
        found = [(one.get("histogram") or one["value"], {key: value for key, value in one["metric"].items() if key != "__name__"})
                 for one in answer["data"]["result"]]
        self.assertTrue(found, text)
        return found

    def get(self, path):
        with urllib.request.urlopen(self.url + path) as answer:
            return answer.read()

    def test_promql_has_the_schema_of_what_it_reads(self):
        self.launch("-c", "tallyd.yaml")
        self.wait_for(lambda: self.rows("site", "hits", [], WHOLE, "tallyd.db"), lambda rows: rows[0]["value"] == str(LINES))
        morning, month = BEGIN + DAY + 90 * MINUTE, BEGIN + 55 * DAY  # the first of March
        for at, length, twin in ((morning, "7m", "schem4"), (BEGIN + DAY + 2 * HOUR, "1h", "schem3"), (morning, "20h", "schem3"),
                                 (BEGIN + 9 * DAY, "3d", "schem2"), (morning, "50h", "schem2"), (month, "28d", "schem0")):
            for expression in (f"sum(increase(site:NAME[{length}]))", f"histogram_quantile(0.9, increase(pages:NAME[{length}]))",
                               f"sum by (le) (increase(pages:NAME_bucket[{length}]))",
                               f'increase(site:NAME_bucket{{le="0.3"}}[{length}])',
                               f"histogram_fraction(0, 0.3, rate(pages:NAME[{length}]))"):
                with self.subTest(expression=expression, at=iso(at)):
                    self.assertEqual(self.ask(expression, at, twin), self.ask(expression, at, "coarse"))
                    self.assertEqual(self.ask(expression, at, TWIN_OF_FINER[twin]), self.ask(expression, at, "narrow"))
        for suffix, twin in ("", "schem0"), (":increase1m", "schem4"):  # a counter begins with the months before
            self.assertEqual(*(self.read_remotely(name, suffix, morning) for name in (twin, "coarse")), suffix)
            self.assertEqual(*(self.read_remotely(name, suffix, morning) for name in (TWIN_OF_FINER[twin], "narrow")), suffix)

    def read_remotely(self, name, suffix, at):
        wanted = query((at - 9 * MINUTE) * 1000, at * 1000, matcher(0, "__name__", f"site:{name}{suffix}"))
        request = urllib.request.Request(self.url + READ, packed(wanted),
                                         {"Content-Type": "application/x-protobuf", "Content-Encoding": "snappy"})
        with urllib.request.urlopen(request) as answer:
            samples = unpacked(answer.read())
        self.assertGreater(len(samples), 300)
        return samples.replace(name.encode(), b"NAME")


if __name__ == "__main__":
    unittest.main()
