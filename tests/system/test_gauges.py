#!/usr/bin/env python3
"""Metric events as JSON, end to end: whatever is asked of any measure is what a recount of the events says."""

import csv
import datetime
import decimal
import json
import unittest

from harness import Case, dice

SPAN = ("2010-10-01", "2010-12-01")
START_S = 1286720242  # 2010-10-10T14:17:22Z
STEPS_S = {"minute": 60, "hour": 3600, "day": 86400}
MEASURES = {"n": "count", "total": "sum(value)", "low": "min(value)", "high": "max(value)", "now": "last(value)",
            "avg": "mean(value)", "load": "mean(load)"}
CONFIG = """
sources:
  metrics:
    decode: [metric]
reports:
  gauges:
    by: [name, userid]
    where: [value>=-50.5, userid!=nobody]
    measures: {%s}
""" % ", ".join(f"{name}: {expression}" for name, expression in MEASURES.items())
CONFIG += "    series_max: %d\n"
MICRO = decimal.Decimal("0.000001")
decimal.getcontext().prec = 60


def text(value):
    """As tallyd prints a number: without zeros at the end, nothing where it is absent."""
    if value is None:
        return ""
    plain = f"{value:f}"
    plain = plain.rstrip("0").rstrip(".") if "." in plain else plain
    return "0" if plain in ("-0", "") else plain


def mean(values):
    return (sum(values) / len(values)).quantize(MICRO, decimal.ROUND_HALF_UP) if values else None


class Event:
    """One event: how it is written, and what it says. `place` is its line and its place in there."""

    def __init__(self, random, place):
        self.place = place
        wide = random.randrange(4) == 0
        self.at_ms = START_S * 1000 + random.randrange(40 * 86400_000 if wide else 300_000)
        if random.randrange(2):
            self.at_ms -= self.at_ms % 1000
        digits = random.choice([0, 0, 1, 6])
        self.value = decimal.Decimal(random.randrange(-60 * 10**digits, 60 * 10**digits)).scaleb(-digits)
        if random.randrange(60) == 0:
            self.value = decimal.Decimal(random.choice(["1000000000000", "999999999999.999999", "0.000001"]))
        self.name = random.choice(["session", "temperature"])
        self.user = random.choice(["rick", "ann", "bob", "nobody", None])
        self.load = random.choice([None, None, "n/a", 0.25, 3])

    def written(self, random):
        seconds = datetime.datetime.fromtimestamp(self.at_ms // 1000, datetime.timezone.utc)
        at = self.at_ms
        if self.at_ms % 1000 == 0 and random.randrange(2):
            at = random.choice([self.at_ms // 1000, seconds.strftime("%Y-%m-%dT%H:%M:%SZ")])
        tags = {name: tag for name, tag in (("userid", self.user), ("load", self.load)) if tag is not None}
        return json.dumps({"name": self.name, "ts": at, "value": "VALUE", "tags": tags}).replace(
            '"VALUE"', f"{self.value:f}")

    def is_counted(self):
        return self.value >= decimal.Decimal("-50.5") and self.user != "nobody"

    def key(self):
        return self.name, self.user or "-"


def measured(events):
    """The value of each measure for these events."""
    values = [e.value for e in events]
    loads = [decimal.Decimal(str(e.load)) for e in events if isinstance(e.load, (int, float))]
    last = max(events, key=lambda e: (e.at_ms, e.place), default=None)
    said = {"n": len(events), "total": sum(values), "low": min(values, default=None), "high": max(values, default=None),
            "now": last.value if last else None, "avg": mean(values), "load": mean(loads)}
    return {name: text(value) for name, value in said.items()}


class Gauges(Case):
    def make(self, random, count, first_line=0):
        """A log and its events; some lines hold several in an array."""
        lines, events = [], []
        while len(events) < count:
            some = [Event(random, (first_line + len(lines), i)) for i in range(random.choice([1, 1, 2, 7]))]
            if random.randrange(3) == 0:  # at one instant, of one series: the last of them is the last
                for event in some:
                    event.at_ms, event.name, event.user = some[0].at_ms, some[0].name, some[0].user
            written = [event.written(random) for event in some]
            lines.append(written[0] if len(some) == 1 else f"[{', '.join(written)}]")
            events += some
        return "".join(line + "\n" for line in lines).encode(), [e for e in events if e.is_counted()]

    def ask(self, *arguments, span=SPAN):
        out = self.tallyd("query", "gauges", "--store", "sqlite:tallyd.db", "--from", span[0], "--to", span[1],
                          "--format", "csv-raw", *arguments)
        return list(csv.DictReader(out.splitlines()))

    def check_steps(self, events, filters):
        for step, length_s in STEPS_S.items():
            span = ("2010-10-10T14:00", "2010-10-10T15:00") if step == "minute" else SPAN
            for row in self.ask("--step", step, "--measure", "all", *filters, span=span):
                from_ms = 1000 * int(datetime.datetime.fromisoformat(row.pop("time").replace("Z", "+00:00")).timestamp())
                expected = measured([e for e in events if from_ms <= e.at_ms < from_ms + length_s * 1000])
                self.assertEqual(expected, row, f"{step} at {from_ms}")
        whole = self.ask("--measure", "all", *filters)[0]
        whole.pop("time")
        self.assertEqual(measured(events), whole)

    def check_top(self, events):
        series = {key: measured([e for e in events if e.key() == key]) for key in {e.key() for e in events}}
        for measure in ("low", "now", "avg", "load"):
            ranked = sorted(series, key=lambda k, m=measure: (
                series[k][m] == "", -decimal.Decimal(series[k][m] or 0), "\t".join(k)))
            expected = [{"name": k[0], "userid": k[1], "value": series[k][measure]} for k in ranked]
            self.assertEqual(expected, self.ask("--top", "100", "--measure", measure))
            self.assertEqual(expected[:2], self.ask("--top", "2", "--measure", measure))

    def test_every_measure_equals_a_recount(self):
        random = dice()
        log, events = self.make(random, 600)
        more, later = self.make(random, 300, first_line=log.count(b"\n"))
        self.write("metrics.yaml", (CONFIG % 100).encode())
        self.write("log", log)
        self.tallyd("import", "-c", "metrics.yaml", "log")
        self.write("log", log + more)
        self.tallyd("import", "-c", "metrics.yaml", "log")
        self.tallyd("verify", "-c", "metrics.yaml", "log")
        events += later
        self.check_steps(events, [])
        self.check_steps([e for e in events if e.name == "session"], ["--filter", "name=session"])
        self.check_steps([e for e in events if e.key() == ("session", "-")],
                         ["--filter", "name=session", "--filter", "userid=-"])
        self.check_top(events)

    def test_verify_understands_what_went_to_other(self):
        random = dice()
        log, events = self.make(random, 400)
        self.write("metrics.yaml", (CONFIG % 2).encode())
        self.write("log", log)
        self.tallyd("import", "-c", "metrics.yaml", "log")
        self.tallyd("verify", "-c", "metrics.yaml", "log")
        self.check_steps(events, [])

    def test_absent_values_have_a_form_of_their_own(self):
        self.write("metrics.yaml", (CONFIG % 10).encode())
        self.write("log", b'{"name": "a", "ts": "2010-10-10T14:17:22Z", "value": -0.50}\n')
        self.tallyd("import", "-c", "metrics.yaml", "log")
        question = ["query", "gauges", "--from", "2010-10-10T14:17", "--to", "2010-10-10T14:19", "--step", "minute",
                    "--measure", "all", "--format"]
        self.assertEqual(["2010-10-10 14:17  1   -0.5  -0.5  -0.5  -0.5  -0.5     -",
                          "2010-10-10 14:18  0      0     -     -     -     -     -"],
                         self.tallyd(*question, "table").splitlines()[2:])
        self.assertEqual(["2010-10-10T14:17:00Z,1,-0.5,-0.5,-0.5,-0.5,-0.5,", "2010-10-10T14:18:00Z,0,0,,,,,"],
                         self.tallyd(*question, "csv").splitlines()[1:])
        self.assertEqual([["2010-10-10T14:17:00Z", 1, -0.5, -0.5, -0.5, -0.5, -0.5, None],
                          ["2010-10-10T14:18:00Z", 0, 0, None, None, None, None, None]],
                         json.loads(self.tallyd(*question, "json"))["values"])


if __name__ == "__main__":
    unittest.main()
