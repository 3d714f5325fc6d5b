#!/usr/bin/env python3
"""Exponential histograms of OTLP are counted bucket by bucket, whatever their scale, and exactly once.

The judge made the points, so it knows their buckets; of what OpenTelemetry's SDK made of numbers, it knows the numbers. Lines are imported
in pieces by imports that die. The seed is printed; TALLYD_SEED repeats a run.
"""

import collections
import contextlib
import json
import math
import re
import sqlite3
import time
import unittest
import urllib.parse

from harness import EX_CONFIG, DaemonCase, dice, draw_death, dying_at, failpoints
from test_otlp import BEGIN_NS, DAY_NS, as_json, pairs_of

import otel  # beside kafka
import process

KILLED, DELTA, CUMULATIVE = -9, 1, 2
SCHEMA, MILLION = 4, 10**6
WIDE = 1, 0.01  # schema and limit of zero of the report with other buckets
MINUTE_NS = 60 * 10**9
PATHS = ("/a", "/b", "/c")
SPAN = "2026-01-05", "2026-01-06"
MEASURES = "{points: count, latency: histogram(value), all: mean(value), total: sum(value), least: min(value), most: max(value)}"


def config(more="", raw=""):
    return f"""
sources: {{otlp: {{path: otlp.jsonl, decode: otlp{raw}}}}}
reports:
  pages: {{where: [name=took], by: [path], measures: {MEASURES}}}
  site: {{where: [name=took], measures: {MEASURES}{more}}}
  wide: {{where: [name=took], measures: {{latency: "histogram(value, schema={WIDE[0]}, zero={WIDE[1]})"}}}}
aggregate: {{batch_size: 64KiB}}
store: {{validation: error}}
http: {{listen: "127.0.0.1:0"}}
""".encode()


def draw_side(rolls, side, scale):
    """Buckets between 2^-12 and 2^30. Returns {index: count}."""
    if rolls.random() < 0.2:
        return {}
    octave = 2**max(scale, 0)
    side.offset = rolls.randrange(-12 * octave, 20 * octave) if scale >= 0 else rolls.choice([-1, 0])
    most = 1 if scale < 0 else min(40, 30 * octave - side.offset)
    side.bucket_counts.extend(rolls.choice([0, 0, 1, 2, 7, 160, 10**6]) for _ in range(rolls.randrange(1, most + 1)))
    return {side.offset + i: count for i, count in enumerate(side.bucket_counts) if count}


def slots_of(counts, scale, schema=SCHEMA):
    """{index of a bucket of the schema: count}. The k-th of the n numbers of a wider bucket lies at (k + 1/2) / n of it."""
    slots = collections.Counter()
    for index, n in counts.items():
        if scale >= schema:
            slots[(index >> (scale - schema)) + 1] += n
            continue
        parts, below = 2**(schema - scale), 0
        for j in range(1, parts + 1):
            within = max(0, -((parts - 2 * n * j) // (2 * parts)))  # of all k, those with (2 k + 1) parts < 2 n j
            slots[index * parts + j] += within - below
            below = within
    return slots


def draw_point(rolls, point, path):
    """Returns its cell: {bucket: count}, as test_mongo_sketches.counted() has them, and "points"."""
    point.time_unix_nano = BEGIN_NS + rolls.randrange(DAY_NS // MINUTE_NS) * MINUTE_NS
    point.attributes.extend(pairs_of({"path": path}))
    point.scale, point.zero_count = rolls.choice([-1, 0, 1, 2, 3, 4, 4, 5, 8, 20]), rolls.choice([0, 0, 3])
    cell = collections.Counter({"points": 1, "zero": point.zero_count, "count": point.zero_count})
    for name, side in ("buckets", point.positive), ("negative", point.negative):
        counts = draw_side(rolls, side, point.scale)
        cell.update({(name, index): count for index, count in slots_of(counts, point.scale).items()})
        for index, count in slots_of(counts, point.scale, WIDE[0]).items():
            cell[WIDE, "zero" if 2**(index / 2**WIDE[0]) <= WIDE[1] else (name, index * 2**(SCHEMA - WIDE[0]))] += count
        cell["count"] += sum(counts.values())
    point.count, micro = cell["count"], rolls.randrange(-10**9, 10**9) if cell["count"] else 0
    point.sum = micro / MILLION
    cell["sum"] = micro
    if rolls.random() < 0.5:
        point.min, point.max = -1.5, 2.25
        cell["limits"] = 1
    return cell


def draw_lines(rolls, points):
    """Lines of JSON, and {(minute, path): cell} of their histograms."""
    from opentelemetry.proto.metrics.v1.metrics_pb2 import MetricsData
    lines, cells = [], collections.defaultdict(collections.Counter)
    while points > 0:
        message = MetricsData()
        scope = message.resource_metrics.add().scope_metrics.add()
        for _ in range(rolls.randrange(1, 4)):
            histogram = scope.metrics.add(name="took", unit="s").exponential_histogram
            histogram.aggregation_temporality = DELTA
            for _ in range(rolls.randrange(1, 5)):
                points -= 1
                path, point = rolls.choice(PATHS), histogram.data_points.add()
                cell = draw_point(rolls, point, path)
                cells[time.strftime("%Y-%m-%dT%H:%M", time.gmtime(point.time_unix_nano // 10**9)), path].update(cell)
        lines.append(as_json(message).replace(b"{", b'{"padding": "' + b"x" * 2000 + b'", ', 1))
    return b"".join(line + b"\n" for line in lines), cells


def sum_of(cells):
    whole = collections.Counter()
    for cell in cells:
        whole.update(cell)
    return whole


class Histograms(DaemonCase):
    def setUp(self):
        super().setUp()
        self.dice = dice()
        self.write("tallyd.yaml", config())

    def ask(self, report, measure, *how):
        said = self.tallyd("query", report, "-c", "tallyd.yaml", "--measure", measure, "--from", SPAN[0], "--to", SPAN[1], "--format", "csv-raw",
                           *how)
        rows = [line.split(",") for line in said.splitlines()[1:]]
        return {row[0]: float(row[-1]) for row in rows}

    def import_killed(self, name):
        while True:
            self.tallyd("import", "-q", "-c", "tallyd.yaml", name, status=None, env=dying_at(draw_death(self.dice, failpoints("store."), 3)))
            if self.status != KILLED:
                self.assertEqual(0, self.status, self.err)
                return

    def native(self, query):
        """{labels: (count, sum, {bucket: count})} of the whole day."""
        words = urllib.parse.urlencode({"query": query, "time": f"{SPAN[1]}T00:00:00Z"})
        found = {}
        for series in json.loads(self.get(f"/prometheus/api/v1/query?{words}"))["data"]["result"]:
            histogram = series["histogram"][1]
            buckets = {}
            for _, low, high, count in histogram.get("buckets", []):
                low, high = float(low), float(high)
                name = "zero" if low <= 0 <= high else ("buckets" if high > 0 else "negative", round(16 * math.log2(high if high > 0 else -low)))
                buckets[name] = int(float(count))
            found[series["metric"].get("path")] = float(histogram["count"]), float(histogram["sum"]), buckets
        return found

    def check(self, cells):
        whole = sum_of(cells.values())
        by_path = {path: sum_of(cell for (_, p), cell in cells.items() if p == path) for _, path in cells}
        for report, expected in ("pages", by_path), ("site", {None: whole}):
            natives = self.native(f"increase({report}:latency[1d])")
            self.assertEqual({*expected}, {*natives})
            for path, cell in expected.items():
                count, total, buckets = natives[path]
                self.assertEqual(cell["count"], count)
                self.assertAlmostEqual(cell["sum"] / MILLION, total, 4)
                self.assertEqual({key: n for key, n in cell.items() if n and (key == "zero" or isinstance(key[1], int))}, buckets)
        expected = {**collections.Counter({key[1]: n for key, n in whole.items() if isinstance(key, tuple) and key[0] == WIDE and n})}
        expected["zero"] = expected.get("zero", 0) + whole["zero"]
        (found,) = self.native("increase(wide:latency[1d])").values()
        self.assertEqual({key: n for key, n in expected.items() if n}, found[2])
        figures = {"points": "points", "count(latency)": "count", "total": "sum"}
        for figure, name in figures.items():
            (found,) = self.ask("site", figure).values()
            self.assertEqual(whole[name], round(found * (MILLION if name == "sum" else 1)), figure)
        for figure in "all", "latency":
            (mean,) = self.ask("site", "mean(latency)" if figure == "latency" else figure).values()
            self.assertAlmostEqual(whole["sum"] / MILLION / whole["count"], mean, 6)
        limited = any(cell["limits"] for cell in cells.values())
        self.assertEqual([-1.5, 2.25] if limited else [], [value for figure in ("least", "most") for value in self.ask("site", figure).values()])

    def test_points_counted_by_dying_imports(self):
        lines, cells = draw_lines(self.dice, 300)
        self.write("otlp.jsonl", lines)
        self.import_killed("otlp.jsonl")
        self.assertIn(": 0 differences", self.tallyd("verify", "-c", "tallyd.yaml", "otlp.jsonl"))
        self.tallyd("verify", "-c", "tallyd.yaml", "--store-only")
        self.launch("-c", "tallyd.yaml")
        self.check(cells)

    def test_forgotten(self):
        """The numbers of a file are taken out again, but for limits, which cannot be."""
        self.write("tallyd.yaml", config().replace(b", least: min(value), most: max(value)", b""))
        one, cells = draw_lines(self.dice, 100)
        other, _ = draw_lines(self.dice, 100)
        self.write("otlp.jsonl", one)
        self.write("other.jsonl", other)
        self.tallyd("import", "-q", "-c", "tallyd.yaml", "--decode", "otlp", "otlp.jsonl", "other.jsonl")
        self.tallyd("forget", "--yes", "-c", "tallyd.yaml", "--decode", "otlp", "other.jsonl")
        self.assertIn(": 0 differences", self.tallyd("verify", "-c", "tallyd.yaml", "otlp.jsonl"))
        self.assertEqual(sum_of(cells.values())["count"], sum(self.ask("site", "count(latency)").values()))

    def test_other_buckets_are_another_generation(self):
        """The definition has them; one with the default buckets is as it always was."""
        lines, _ = draw_lines(self.dice, 20)
        self.write("otlp.jsonl", lines)
        self.tallyd("import", "-q", "-c", "tallyd.yaml", "otlp.jsonl")
        self.write("tallyd.yaml", config().replace(f"schema={WIDE[0]}".encode(), b"schema=2"))
        self.tallyd("import", "-q", "-c", "tallyd.yaml", "otlp.jsonl", status=EX_CONFIG)
        self.assertIn("generation: 2", self.err)
        self.write("tallyd.yaml", self.read("tallyd.yaml").replace(b"wide: {", b"wide: {generation: 2, "))
        self.write("otlp.jsonl", lines + lines)
        self.tallyd("import", "-q", "-c", "tallyd.yaml", "otlp.jsonl")
        with contextlib.closing(sqlite3.connect(self.path("tallyd.db"))) as base:
            found = base.execute("SELECT name, generation, definition FROM report ORDER BY name, generation").fetchall()
        self.assertEqual([("pages", 1), ("site", 1), ("wide", 1), ("wide", 2)], [row[:2] for row in found])
        self.assertIn("measure latency histogram(value)\n", found[0][2])
        self.assertIn("measure latency histogram(value, schema=1, zero=0.01)\n", found[2][2])
        self.assertIn("measure latency histogram(value, schema=2, zero=0.01)\n", found[3][2])
        self.assertIn('latency: "histogram(value, schema=2, zero=0.01)"', self.tallyd("check", "--print", "-c", "tallyd.yaml"))

    def test_numbers_that_an_sdk_measured(self):
        """Of the numbers themselves: counts and sums are exact, buckets too if the scale allows, and quantiles within a bucket."""
        from opentelemetry.exporter.otlp.proto.common.metrics_encoder import encode_metrics
        from opentelemetry.sdk.metrics import Histogram, MeterProvider
        from opentelemetry.sdk.metrics.export import AggregationTemporality, InMemoryMetricReader
        from opentelemetry.sdk.metrics.view import ExponentialBucketHistogramAggregation
        numbers, lines, scales = [], [], []
        wide = self.dice.random() < 0.5
        reader = InMemoryMetricReader(preferred_temporality={Histogram: AggregationTemporality.DELTA},
                                      preferred_aggregation={Histogram: ExponentialBucketHistogramAggregation(max_size=160)})
        took = MeterProvider(metric_readers=[reader]).get_meter("judge").create_histogram("took")
        for _ in range(20):
            for _ in range(self.dice.randrange(1, 200)):
                numbers.append(max(1, round(self.dice.lognormvariate(0, 2 if wide else 0.3) * MILLION)))
                took.record(numbers[-1] / MILLION, {"path": "/a"})
            message = encode_metrics(reader.get_metrics_data())
            for metric in message.resource_metrics[0].scope_metrics[0].metrics:
                scales += [point.scale for point in metric.exponential_histogram.data_points]
                for point in metric.exponential_histogram.data_points:
                    point.time_unix_nano = BEGIN_NS
            lines.append(as_json(message))
        self.write("otlp.jsonl", b"\n".join(lines) + b"\n")
        self.import_killed("otlp.jsonl")
        self.assertIn(": 0 differences", self.tallyd("verify", "-c", "tallyd.yaml", "otlp.jsonl"))
        self.launch("-c", "tallyd.yaml")
        (found,) = self.native("increase(site:latency[1d])").values()
        self.assertEqual(len(numbers), found[0])
        self.assertAlmostEqual(sum(numbers) / MILLION, found[1], 4)
        self.assertEqual([min(numbers) / MILLION, max(numbers) / MILLION], [*self.ask("site", "least").values(), *self.ask("site", "most").values()])
        exact = collections.Counter(math.ceil(round(16 * math.log2(number / MILLION), 9)) for number in numbers)
        if min(scales) >= SCHEMA:
            self.assertEqual({("buckets", index): count for index, count in exact.items()}, found[2])
        width = 2**2**-min(*scales, SCHEMA)
        numbers.sort()
        for q in 0.01, 0.5, 0.9, 0.99:
            (value,) = self.ask("site", f"quantile({q}, latency)").values()
            number = numbers[max(math.ceil(q * len(numbers)), 1) - 1] / MILLION
            self.assertLess(max(value / number, number / value), width * 1.001)

    def test_broken_and_cumulative_ones_are_rejects(self):
        def point(**more):
            return {"timeUnixNano": str(BEGIN_NS), "count": 2, "sum": 1, "scale": 3, "positive": {"bucketCounts": [1, 1]}, **more}
        points = {"otlp": [point(count=3), point(scale=21), point(zeroCount=1), point(count=0, positive={})], "number": [point(positive={"offset": 320, "bucketCounts": [2]})],
                  "member": [{key: value for key, value in point().items() if key != "sum"}]}
        data = [{"aggregationTemporality": DELTA, "dataPoints": sum(points.values(), [])},
                {"aggregationTemporality": CUMULATIVE, "dataPoints": [point()]}]
        message = {"resourceMetrics": [{"scopeMetrics": [{"metrics": [{"name": "took", "exponentialHistogram": one} for one in data]}]}]}
        self.write("otlp.jsonl", json.dumps(message).encode() + b"\n")
        said = self.tallyd("import", "-c", "tallyd.yaml", "otlp.jsonl")
        counts = collections.Counter(int(count) for count in re.findall(r"rejected (\d+): ", said))
        self.assertEqual(collections.Counter([*map(len, points.values()), 1]), counts)
        self.assertEqual(0, sum(self.ask("site", "points").values()))


if __name__ == "__main__":
    process.provided(otel.provide)
    unittest.main()
