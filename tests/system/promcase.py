"""What the tests of PromQL share: a daemon that counted metric events, and what Prometheus would have scraped of them.

A gauge of Prometheus is a measure of events here; its sample is at the end of each minute that has events. A counter is
three metrics for the judge: `m` has a sample for each minute with events, `m:zero` for each minute, and `m:total` adds up. A
histogram is two metrics, `m` and `m:zero`, whose samples are native histograms of a minute.
"""

import collections
import functools
import json
import math
import os
import re
import sys
import unittest
import urllib.error
import urllib.parse
import urllib.request

from buckets import index_of
from harness import ROOT, TIMEOUT_S, DaemonCase

sys.path.insert(0, os.path.join(ROOT, "tests", "servers"))
import process  # noqa: E402 (found only now)
import promjudge  # noqa: E402

MINUTE_S = 60
NEAR = 1e-9  # relative; Go's and C's functions of mathematics differ in their last digits
NEAR_VARIANCE = 1e-6  # of great numbers that are nearly equal, as of times; so is a difference of histograms' sums

# report: (labels, {measure: expression})
REPORTS = {
    "mem": (("instance", "job", "type"), {"v": "last(value)", "low": "min(value)", "high": "max(value)", "mid": "mean(value)"}),
    "cpu": (("instance", "job", "mode"), {"s": "sum(value)", "n": "count"}),
    "cpus": (("instance", "job"), {"v": "last(value)"}),
    "disk": (("instance", "job"), {"v": "last(value)"}),
    "batch": (("instance", "job"), {"v": "last(value)"}),
    "rare": (("instance", "job"), {"v": "last(value)"}),
    "api": (("instance", "job", "le"), {"s": "sum(value)"}),
    "up": ((), {"n": "count", "s": "sum(value)"}),
    "req": (("instance", "job", "mode"), {"d": "histogram(value)", "w": "histogram(value, schema=1)", "f": "histogram(value, schema=8)"}),
    "calm": (("instance", "job", "mode"), {"z": "histogram(value, schema=-1, zero=0.1)"}),
}
HISTOGRAMS = ("req:d", "req:w", "req:f", "calm:z")
TOTALS = ("cpu:s", "cpu:n", "api:s", "up:n", "up:s")
INSTANCES = [f"demo.promlabs.com:{port}" for port in (10000, 10001, 10002)]


def config():
    text = "sources:\n  metrics:\n    decode: [metric]\nreports:\n"
    for name, (labels, measures) in REPORTS.items():
        text += f"  {name}:\n    by: [{', '.join(labels)}]\n    where: [name={name}]\n"
        listed = ", ".join(f'{measure}: "{of}"' for measure, of in measures.items())
        text += f"    measures: {{{listed}}}\n"
    return text


class World:
    """Events of some hours, the end of which is `end_s`: a whole minute."""

    def __init__(self, dice, end_s, minutes=200):
        self.dice, self.begin_s, self.end_s = dice, end_s - minutes * MINUTE_S, end_s
        self.events = []  # (second, report, labels, value)
        for instance in INSTANCES:
            labels = {"instance": instance, "job": "demo"}
            for kind in ("buffers", "cached", "free", "used"):
                self.add_gauge("mem", {**labels, "type": kind}, lambda _: dice.randrange(10**9) / 8)
            for mode in ("idle", "system", "user"):
                self.add_counter("cpu", {**labels, "mode": mode}, {"idle": 0.9, "system": 0.3, "user": 0.02}[mode])
            for bound in ("0.1", "1", "+Inf"):
                self.add_counter("api", {**labels, "le": bound}, 0.5)
            self.add_gauge("cpus", labels, lambda _: 4)
            self.add_gauge("disk", labels, lambda at: (at - self.begin_s) * 1000 + dice.randrange(5000))
            self.add_gauge("batch", labels, lambda at: at - at % 600)
            self.add_gauge("rare", labels, lambda _: dice.randrange(100), 0.08)
            for mode, chance in (("idle", 0.05), ("system", 0.4), ("user", 0.9)):
                self.add_counter("req", {**labels, "mode": mode}, chance, self.size)
                self.add_counter("calm", {**labels, "mode": mode}, chance, self.size)
        self.add_counter("up", {}, 0.1)

    def size(self):
        """A number to be put into a bucket: many of a few octaves, some at the end of a bucket, and odd ones."""
        dice = self.dice
        return dice.choice((0, -dice.randrange(1, 64) / 8, 2.0 ** dice.randrange(-6, 9), dice.choice((1e-6, 3e9)),
                            *(round(dice.lognormvariate(-1, 1), 6) for _ in range(6))))

    def minutes(self, chance):
        return [at for at in range(self.begin_s, self.end_s, MINUTE_S) if self.dice.random() < chance]

    def add_gauge(self, report, labels, value_of, chance=1):
        for at in self.minutes(chance):  # two in each minute: so a mean of minutes is a mean of events
            self.events += [(at + self.dice.randrange(30) + half, report, labels, value_of(at)) for half in (0, 30)]

    def add_counter(self, report, labels, chance, value_of=lambda: None):
        for at in self.minutes(chance):
            for _ in range(self.dice.randrange(1, 4)):
                value = value_of()
                self.events.append((at + self.dice.randrange(60), report, labels,
                                    self.dice.randrange(1, 64) / 8 if value is None else value))

    def lines(self):
        return "".join(json.dumps({"name": report, "ts": at, "value": value, "tags": labels}) + "\n"
                       for at, report, labels, value in sorted(self.events, key=lambda event: event[0])).encode()

    def samples(self):
        """As promjudge.Judge takes them."""
        cells = {}  # (report, labels): {minute: values in the order of time}
        for at, report, labels, value in sorted(self.events, key=lambda event: event[0]):
            series = cells.setdefault((report, tuple(labels.items())), {})
            series.setdefault(at - at % MINUTE_S + MINUTE_S, []).append(value)
        of = {"last": lambda values: values[-1], "min": min, "max": max, "mean": lambda values: math.fsum(values) / len(values),
              "sum": math.fsum, "count": len}
        for (report, labels), by_minute in cells.items():
            for measure, expression in REPORTS[report][1].items():
                name = f"{report}:{measure}"
                value_of = of.get(expression.partition("(")[0]) or functools.partial(native, expression=expression)
                found = {minute: value_of(values) for minute, values in by_minute.items()}
                yield name, dict(labels), [(minute * 1000, value) for minute, value in found.items()]
                every = range(self.begin_s, self.end_s + MINUTE_S, MINUTE_S)
                if name in (*TOTALS, *HISTOGRAMS):
                    nothing = native([], expression) if name in HISTOGRAMS else 0
                    yield name + ":zero", dict(labels), [(minute * 1000, found.get(minute, nothing)) for minute in every]
                if name in TOTALS:
                    total, grown = 0, []
                    for minute in every:
                        total += found.get(minute, 0)
                        grown.append((minute * 1000, total))
                    yield name + ":total", dict(labels), grown


def expression_of(metric):
    report, _, measure = metric.partition(":")
    return REPORTS[report][1][measure]


def native(values, expression="histogram(value)"):
    """A histogram as the judge takes it."""
    options = dict(re.findall(r"(\w+)=([-.\d]+)", expression))
    schema, limit = int(options.get("schema", 4)), float(options.get("zero", 0))
    millionths, zero, width = [round(value * 1e6) for value in values], round(limit * 1e6), 2**max(0, -schema)
    positive = collections.Counter(-(-index_of(n, max(0, schema)) // width) for n in millionths if n > zero)
    negative = collections.Counter(-(-index_of(-n, max(0, schema)) // width) for n in millionths if n < -zero)
    return {"sum": sum(millionths) / 1e6, "millionths": sum(millionths), "zero": sum(abs(n) <= zero for n in millionths), "schema": schema,
            "limit": limit, "positive": sorted(positive.items()), "negative": sorted(negative.items())}


def is_same_number(left, right, near):
    a, b = float(left), float(right)
    return a == b or (math.isnan(a) and math.isnan(b)) or abs(a - b) <= near * max(abs(a), abs(b), 1e-6)


def is_same(left, right, near):
    """Of two numbers, or two histograms."""
    if isinstance(left, dict) != isinstance(right, dict):
        return False
    if not isinstance(left, dict):
        return is_same_number(left, right, near)
    numbers = [[h["count"], h["sum"], *(n for bucket in h.get("buckets", []) for n in bucket)] for h in (left, right)]
    return len(numbers[0]) == len(numbers[1]) and all(is_same_number(a, b, near) for a, b in zip(*numbers))


def label(name, value):
    """The label that count_values makes of a number differs in its last digits, too."""
    return (name, f"{float(value):.12g}") if name == "value" else (name, value)


def by_labels(result):
    """{labels: {second: value}}"""
    return {tuple(sorted(label(*pair) for pair in series["metric"].items())):
            {float(at): value for at, value in [*(series.get("values") or []), *(series.get("histograms") or [])]}
            for series in result}


def difference(left, right, near=NEAR):
    """The first difference of two by_labels(), as text; None: there is none."""
    if left.keys() != right.keys():
        return f"series differ: only {sorted(left.keys() - right.keys())[:2]} here, only {sorted(right.keys() - left.keys())[:2]} there"
    for labels, values in left.items():
        other = right[labels]
        for at in sorted(values.keys() | other.keys()):
            if at not in values or at not in other or not is_same(values[at], other[at], near):
                return f"{labels} at {at}: {values.get(at)} here, {other.get(at)} there"
    return None


class PromCase(DaemonCase):
    """A daemon that counted a World, and maybe its judge."""

    def begin(self, dice, end_s, has_judge=True, world=World):
        world = world(dice, end_s)
        self.write("c.yaml", config().encode())
        lines = world.lines()
        self.launch("-c", "c.yaml", "--listen", "127.0.0.1:0")
        self.feed(lines)
        self.wait_for_consumed(len(world.events))
        if has_judge:
            self.judge = promjudge.Judge.of_samples(self.dir, world.samples())
            self.addCleanup(self.judge.close)
        return world

    def ask(self, query, start, end=None, step=None):
        """(None, by_labels) or (error, None)"""
        form = {"query": query, "time": start} if step is None else {"query": query, "start": start, "end": end, "step": step}
        url = f"{self.url}/prometheus/api/v1/query{'' if step is None else '_range'}"
        try:
            with urllib.request.urlopen(url, urllib.parse.urlencode(form).encode(), timeout=TIMEOUT_S) as reply:
                data = json.load(reply)["data"]
        except urllib.error.HTTPError as error:
            found = json.load(error)
            self.assertIn(found["errorType"], ("bad_data", "execution"), (query, found))
            return found["error"], None
        if data["resultType"] == "scalar":
            return None, {(): {float(data["result"][0]): data["result"][1]}}
        if step is None:
            data["result"] = [{"metric": series["metric"], "values": [series.get("value") or series["histogram"]]}
                              for series in data["result"]]
        return None, by_labels(data["result"])

    def judged(self, query, start, end=None, step=None):
        """As ask(), by the judge."""
        found = self.judge.ask(query, int(start * 1000), int((start if step is None else end) * 1000), int((step or 0) * 1000))
        if "error" in found:
            return found["error"], None
        return None, {labels: {at / 1000: value for at, value in values.items()}
                      for labels, values in by_labels(found["result"]).items()}


def main():
    """unittest.main() with a judge; without one, a skip."""
    process.provided(promjudge.install)
    unittest.main()
