#!/usr/bin/env python3
"""Histograms and distinct counts by PromQL, against the numbers and sets of the lines themselves."""

import json
import math
import os
import random
import time
import unittest
import urllib.error
import urllib.parse
import urllib.request

from harness import ROOT, TIMEOUT_S, DaemonCase

MINUTE, MINUTES = 60, 30
PATHS = ("/", "/a", "/slow")
STEP = 2 ** 0.25  # from one bound to the next
CONFIG = b"""
aggregate: {flush: 100ms}
query: {sketches_max: 1MiB}
sources:
  requests: {decode: [json], time: /ts, fields: {path: /path, host: /host, duration: /took, change: /change}}
reports:
  pages:
    by: [path]
    measures: {hits: count, latency: histogram(duration), visitors: distinct(host)}
  site:
    measures: {latency: histogram(duration), visitors: distinct(host)}
  bounds:
    by: [path]
    measures: {latency: histogram(duration), latency_count: count}
  changes:
    measures: {change: "histogram(change, zero=0.1)"}
"""


def change_of(took):
    return round(took - 0.3, 6)


def quantile(q, buckets):
    """As Prometheus' documentation says: of [(le, count up to it)], ascending, the last one +Inf."""
    total = buckets[-1][1]
    rank = q * total
    at = next(i for i, (_, count) in enumerate(buckets) if count >= rank)
    if at == len(buckets) - 1:
        return buckets[-2][0]
    if at == 0 and buckets[0][0] <= 0:
        return buckets[0][0]
    le, count = buckets[at]
    start, before = buckets[at - 1] if at > 0 else (0, 0)
    return start + (le - start) * (rank - before) / (count - before)


class Sketches(DaemonCase):
    def setUp(self):
        super().setUp()
        dice = random.Random(23)
        self.now = int(time.time()) // MINUTE * MINUTE
        self.begin = self.now - MINUTES * MINUTE
        self.events = []  # (second, path, host, duration)
        for _ in range(3000):
            path = dice.choice(PATHS)
            took = round(math.exp(dice.gauss(-2 if path != "/slow" else 1, 1)), 6)
            self.events.append((dice.randrange(self.begin, self.now), path, f"h{dice.randrange(40 if path == '/a' else 400)}", took))
        self.events.append((self.now - 90, "/", "h0", 0))
        self.write("c.yaml", CONFIG)
        self.launch("-c", "c.yaml", "--listen", "127.0.0.1:0")
        self.feed("".join(json.dumps({"ts": at, "path": path, "host": host, "took": took, "change": change_of(took)}) + "\n"
                          for at, path, host, took in sorted(self.events)).encode())
        self.wait_for_consumed(len(self.events))

    def get_api(self, path, **words):
        """(status, answer)"""
        url = f"{self.url}/prometheus/api/v1/{path}?{urllib.parse.urlencode(words)}"
        try:
            with urllib.request.urlopen(url, timeout=TIMEOUT_S) as reply:
                return reply.status, json.load(reply)["data"]
        except urllib.error.HTTPError as error:
            return error.code, json.load(error)["error"]

    def ask(self, query, at=None):
        """{labels without the name: value} at one instant"""
        status, data = self.get_api("query", query=query, time=at or self.now)
        self.assertEqual(200, status, (query, data))
        return {tuple(sorted((k, v) for k, v in series["metric"].items() if k != "__name__")): float(series["value"][1])
                for series in data["result"]}

    def refused(self, query, reason):
        status, error = self.get_api("query", query=query, time=self.now)
        self.assertEqual(422, status, query)
        self.assertIn(reason, error)

    def within(self, seconds, at=None, path=None):
        end = at or self.now
        return [e for e in self.events if end - seconds <= e[0] < end and path in (None, e[1])]

    # ---- distinct counts

    def test_different_texts_of_a_range(self):
        for seconds in (MINUTE, 5 * MINUTE, MINUTES * MINUTE):
            expected = {(("path", path),): len({e[2] for e in self.within(seconds, path=path)}) for path in PATHS}
            found = self.ask(f"increase(pages:visitors[{seconds}s])")
            self.assertEqual({k: v for k, v in expected.items() if v}, found)
            self.assertEqual({(): len({e[2] for e in self.within(seconds)})}, self.ask(f"increase(site:visitors[{seconds}s])"))
        self.assertEqual(self.ask("increase(site:visitors[1m])"), self.ask("site:visitors"))
        self.assertEqual({(("path", "/a"),): 0.0}, self.ask('increase(pages:visitors{path="/a"}[5m] offset 5h)'))
        self.assertEqual({}, self.ask("increase(pages:visitors[5m] offset 5h)"))

    def test_cells_of_different_texts(self):
        cells = [len({e[2] for e in self.within(MINUTE, self.now - i * MINUTE)}) for i in range(10)]
        for function, of in (("min", min), ("max", max), ("last", lambda c: c[0]), ("avg", lambda c: sum(c) / len(c))):
            self.assertAlmostEqual(of(cells), self.ask(f"{function}_over_time(site:visitors[10m])")[()], 9)

    def test_a_range_equals_its_instants(self):
        for query in ("increase(pages:visitors[7m])", "pages:visitors", 'increase(pages:latency_bucket{le="0.3"}[7m])',
                      "histogram_quantile(0.9, increase(pages:latency_bucket[7m]))",
                      "histogram_quantile(0.9, sum(rate(pages:latency[7m])))", "histogram_count(pages:latency)"):
            status, data = self.get_api("query_range", query=query, start=self.begin, end=self.now, step=150)
            self.assertEqual(200, status, data)
            ranged = {(at, tuple(sorted(series["metric"].items()))): value for series in data["result"]
                      for at, value in series["values"]}
            single = {}
            for at in range(self.begin, self.now + 1, 150):
                for series in self.get_api("query", query=query, time=at)[1]["result"]:
                    single[at, tuple(sorted(series["metric"].items()))] = series["value"][1]
            self.assertEqual([], sorted(single.items() ^ ranged.items()), query)

    def test_refusals(self):
        self.refused("rate(pages:visitors[5m])", "once a cell")
        self.refused("sum_over_time(pages:visitors[5m])", "once a cell")
        self.refused("sum(increase(pages:visitors[5m]))", "once a series")
        self.refused('sum without (path) (pages:visitors)', "once a series")
        for query in ("abs(pages:latency)", "pages:latency > 1", "pages:latency ^ 2", "scalar(pages:latency)", "topk(1, pages:latency)",
                      "max(pages:latency)", "quantile(0.5, pages:latency)", 'count_values("n", pages:latency)', "sort(pages:latency)",
                      "max_over_time(pages:latency[5m])", "stddev_over_time(pages:latency[5m])", "deriv(pages:latency[5m])",
                      "sum_over_time((pages:latency)[5m:1m])"):
            self.refused(query, "histogram_count(")
        self.refused("histogram_count(increase(pages:hits[5m]))", "of native histograms, and there are numbers")
        self.refused('sum({__name__=~"pages:latency(_count)?"})', "do not add up")
        self.refused('pages:latency_bucket{le="fast"}', "expected a number")

    # ---- histograms

    def buckets(self, query):
        """{other labels: [(le as text, count)]}, ascending"""
        found = {}
        for labels, value in self.ask(query).items():
            found.setdefault(tuple(l for l in labels if l[0] != "le"), []).append((dict(labels)["le"], value))
        return {labels: sorted(buckets, key=lambda b: float(b[0])) for labels, buckets in found.items()}

    def test_buckets_count_up_to_their_bounds(self):
        found = self.buckets("increase(pages:latency_bucket[20m])")
        self.assertEqual({(("path", path),) for path in PATHS}, found.keys())
        self.assertEqual(1, len({tuple(le for le, _ in buckets) for buckets in found.values()}), "all series have the same bounds")
        for ((_, path),), buckets in found.items():
            numbers = [e[3] for e in self.within(20 * MINUTE, path=path)]
            self.assertEqual([(le, sum(n <= float(le) for n in numbers)) for le, _ in buckets], buckets)
            bounds = [float(le) for le, _ in buckets[:-1] if float(le) > 0.01]
            for low, high in zip(bounds, bounds[1:]):
                self.assertAlmostEqual(STEP, high / low, 3)
        self.assertEqual("+Inf", buckets[-1][0])
        self.assertIn("1", [le for le, _ in buckets])

    def test_the_bucket_of_zeros(self):
        """Numbers from -0.1 to 0.1 count as 0, so they are not up to any number below 0."""
        numbers = [change_of(e[3]) for e in self.within(20 * MINUTE)]
        (buckets,) = self.buckets("increase(changes:change_bucket[20m])").values()
        self.assertEqual([(le, sum(n <= float(le) for n in numbers)) for le, _ in buckets], buckets)
        self.assertIn("0.1", dict(buckets))
        self.assertEqual([], [le for le, _ in buckets if -0.1 <= float(le) < 0.1])
        for le, bound in ("-0.0005", -0.100001), ("-0.1", -0.100001), ("0", 0.1), ("0.05", 0.1):
            (value,) = self.ask(f'increase(changes:change_bucket{{le="{le}"}}[20m])').values()
            self.assertEqual(sum(n <= bound for n in numbers), value, le)
            share = self.tallyd("query", "changes", "-c", "c.yaml", "--store", getattr(self, "counted_in", "sqlite:tallyd.db"),
                                "--measure", f"share(change <= {le})", "--format", "csv-raw",
                                "--from", str(self.now - 20 * MINUTE), "--to", str(self.now)).split()[-1]
            self.assertAlmostEqual(value / len(numbers), float(share.split(",")[-1]), 5)

    # ---- native histograms

    def natives(self, query, at=None):
        """{labels without the name: {"count", "sum", "buckets"}} at one instant"""
        status, data = self.get_api("query", query=query, time=at or self.now)
        self.assertEqual(200, status, (query, data))
        return {tuple(sorted((k, v) for k, v in series["metric"].items() if k != "__name__")): series["histogram"][1]
                for series in data["result"]}

    def check_native(self, found, numbers):
        """As counted by the ends that the histogram itself has; each of them is a power of 2^(1/16)."""
        self.assertEqual(str(len(numbers)), found["count"])
        self.assertAlmostEqual(math.fsum(numbers), float(found["sum"]), 6)
        buckets = found["buckets"]
        self.assertEqual(len(numbers), sum(int(count) for _, _, _, count in buckets))
        for kind, low, high, count in buckets:
            if (kind, float(high)) == (3, 0):
                self.assertEqual(int(count), numbers.count(0))
                continue
            self.assertEqual(0, kind)
            self.assertEqual(int(count), sum(float(low) < n <= float(high) for n in numbers))
            self.assertAlmostEqual(1 / 16, math.log2(float(high)) - math.log2(float(low)), 9)
            self.assertAlmostEqual(0, math.log2(float(high)) * 16 % 1 * (math.log2(float(high)) * 16 % 1 - 1), 9)

    def test_native_histograms_of_a_range(self):
        found = self.natives("increase(pages:latency[20m])")
        self.assertEqual({(("path", path),) for path in PATHS}, found.keys())
        for ((_, path),), histogram in found.items():
            self.check_native(histogram, [e[3] for e in self.within(20 * MINUTE, path=path)])
        self.check_native(self.natives("sum(increase(pages:latency[20m]))")[()], [e[3] for e in self.within(20 * MINUTE)])
        self.assertEqual(self.natives("sum(increase(pages:latency[20m]))"), self.natives("increase(site:latency[20m])"))
        minute = self.now - 7 * MINUTE
        self.check_native(self.natives("site:latency", minute)[()], [e[3] for e in self.within(MINUTE, minute)])
        empty = {"count": "0", "sum": "0"}
        self.assertEqual({(("path", "/a"),): empty}, self.natives('increase(pages:latency{path="/a"}[5m] offset 5h)'))
        self.assertEqual({}, self.natives("increase(pages:latency[5m] offset 5h)"))

    def test_numbers_of_native_histograms(self):
        for path in PATHS:
            numbers = sorted(e[3] for e in self.within(20 * MINUTE, path=path))
            of = f'increase(pages:latency{{path="{path}"}}[20m])'
            (count,), (total,), (mean,) = (self.ask(f"histogram_{f}({of})").values() for f in ("count", "sum", "avg"))
            self.assertEqual(len(numbers), count)
            self.assertAlmostEqual(math.fsum(numbers), total, 6)
            self.assertAlmostEqual(total / count, mean, 9)
            for q in (0.01, 0.5, 0.99):
                (value,) = self.ask(f"histogram_quantile({q}, {of})").values()
                exact = numbers[max(math.ceil(q * len(numbers)), 1) - 1]
                self.assertLess(max(value / exact, exact / value), 2 ** (1 / 16))
            (share,) = self.ask(f"histogram_fraction(0, 0.3, {of})").values()
            (classic,) = self.ask(f"histogram_fraction(0, 0.3, {of.replace('latency', 'latency_bucket')})").values()
            self.assertLessEqual(sum(n <= 0.3 / 1.2 for n in numbers), classic * count + 1e-9)
            self.assertLessEqual(classic * count - 1e-9, sum(n <= 0.3 * 1.2 for n in numbers))
            self.assertLessEqual(sum(n <= 0.3 / 1.045 for n in numbers), share * count + 1e-9)
            self.assertLessEqual(share * count - 1e-9, sum(n <= 0.3 * 1.045 for n in numbers))

    def test_native_histograms_of_a_chart(self):
        status, data = self.get_api("query_range", query="rate(site:latency[5m])", start=self.begin + 600, end=self.now, step=300)
        self.assertEqual(200, status, data)
        (series,) = data["result"]
        self.assertNotIn("values", series)
        for at, histogram in series["histograms"]:
            numbers = [e[3] for e in self.within(5 * MINUTE, at)]
            self.assertAlmostEqual(len(numbers) / 300, float(histogram["count"]), 9)

    def test_histograms_have_a_limit(self):
        """Those of all steps together, and what all operations make of them."""
        def status_of(query, step):
            words = {"query": query, "start": self.begin + 600, "end": self.now, "step": step}
            status, data = self.get_api("query_range", **words)
            if status != 200:
                self.assertIn("(query.sketches_max)", data)
            return status

        self.assertEqual(422, status_of("increase(pages:latency[9m])", 1))
        self.assertEqual(200, status_of("increase(pages:latency[9m])", 60))
        self.assertEqual(422, status_of("+".join(["increase(pages:latency[9m])"] * 20), 60))

    def test_sums_by_bound(self):
        (labels, buckets), = self.buckets("sum by (le) (increase(pages:latency_bucket[20m]))").items()
        numbers = [e[3] for e in self.within(20 * MINUTE)]
        self.assertEqual([(le, sum(n <= float(le) for n in numbers)) for le, _ in buckets], buckets)
        self.assertEqual((), labels)
        self.assertEqual([0, len(numbers), len(numbers)], [count for _, count in buckets[:1] + buckets[-2:]])
        self.assertLess(buckets[-3][1], len(numbers), "one bound is not below any number")
        self.assertEqual({(): buckets}, self.buckets("sum by (le) (increase(pages:latency_bucket[20m]) + 0)"))
        self.assertEqual({(): buckets}, self.buckets("increase(site:latency_bucket[20m])"))
        all_at_once = self.ask("sum(increase(pages:latency_bucket[20m]))")
        self.assertEqual({(): sum(count for _, count in buckets)}, all_at_once)

    def test_quantiles(self):
        for q in (0.5, 0.9, 0.99):
            asked = self.ask(f"histogram_quantile({q}, sum by (le, path) (increase(pages:latency_bucket[20m])))")
            for ((_, path),), value in asked.items():
                buckets = self.buckets(f'increase(pages:latency_bucket{{path="{path}"}}[20m])')[(("path", path),)]
                self.assertAlmostEqual(quantile(q, [(float(le), count) for le, count in buckets]), value, 9)
                numbers = sorted(e[3] for e in self.within(20 * MINUTE, path=path))
                exact = numbers[math.ceil(q * len(numbers)) - 1]
                self.assertLess(max(value / exact, exact / value), STEP)
            rated = self.ask(f"histogram_quantile({q}, rate(pages:latency_bucket[20m]))")
            self.assertEqual(asked.keys(), rated.keys())
            for labels, value in asked.items():
                self.assertAlmostEqual(value, rated[labels], 6)

    def test_a_bound_of_the_user(self):
        for path in PATHS:
            numbers = [e[3] for e in self.within(20 * MINUTE, path=path)]
            (value,) = self.ask(f'increase(pages:latency_bucket{{path="{path}",le="0.3"}}[20m])').values()
            self.assertLessEqual(sum(n <= 0.3 / 1.045 for n in numbers), value)
            self.assertLessEqual(value, sum(n <= 0.3 * 1.045 for n in numbers))
        self.assertEqual({(("le", "0.3"), ("path", "/a")): 0.0},
                         self.ask('increase(pages:latency_bucket{path="/a",le="0.3"}[5m] offset 5h)'))
        self.assertEqual({"+Inf"}, {dict(labels)["le"] for labels in self.ask('pages:latency_bucket{le=~".Inf"}')})

    def test_counts_and_sums(self):
        for path in PATHS:
            numbers = [e[3] for e in self.within(20 * MINUTE, path=path)]
            labels = (("path", path),)
            self.assertEqual({labels: len(numbers)}, self.ask(f'increase(pages:latency_count{{path="{path}"}}[20m])'))
            (value,) = self.ask(f'increase(pages:latency_sum{{path="{path}"}}[20m])').values()
            self.assertAlmostEqual(math.fsum(numbers), value, 6)
        self.assertEqual(len(self.within(20 * MINUTE)), self.ask("sum(increase(bounds:latency_count[20m]))")[()])

    def test_examples_of_the_document_are_answered(self):
        with open(os.path.join(ROOT, "docs/PROMETHEUS.md"), encoding="utf-8") as file:
            examples = [line for line in file if "pages:latency_" in line and line.startswith(("sum(", "histogram_quantile("))]
        self.assertEqual(4, len(examples))
        for expr in examples:
            found = self.ask(expr)
            self.assertTrue(found and all(0 < value < 100 for value in found.values()), (expr, found))

    def test_lists(self):
        names = self.get_api("label/__name__/values")[1]
        for name in ("pages:visitors", "pages:latency", "pages:latency_bucket", "pages:latency_count", "pages:latency_sum"):
            self.assertIn(name, names)
        self.assertIn("le", self.get_api("labels")[1])
        self.assertEqual(["+Inf"], self.get_api("label/le/values")[1])
        self.assertEqual([{"__name__": "site:latency_bucket", "le": "+Inf"}],
                         self.get_api("series", **{"match[]": "site:latency_bucket"})[1])
        metadata = self.get_api("metadata")[1]
        self.assertEqual(("histogram", "gauge", "counter"), tuple(metadata[f"pages:{m}"][0]["type"] for m in ("latency", "visitors", "hits")))


if __name__ == "__main__":
    unittest.main()
