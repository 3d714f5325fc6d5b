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
sources:
  requests: {decode: [json], time: /ts, fields: {path: /path, host: /host, duration: /took}}
reports:
  pages:
    by: [path]
    measures: {hits: count, latency: histogram(duration), visitors: distinct(host)}
  site:
    measures: {latency: histogram(duration), visitors: distinct(host)}
  bounds:
    by: [path]
    measures: {latency: histogram(duration), latency_count: count}
"""


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
        self.feed("".join(json.dumps({"ts": at, "path": path, "host": host, "took": took}) + "\n"
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
                      "histogram_quantile(0.9, increase(pages:latency_bucket[7m]))"):
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
        self.refused("pages:latency", "pages:latency_bucket")
        self.refused("increase(pages:latency[5m])", "is a histogram")
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
        for name in ("pages:visitors", "pages:latency_bucket", "pages:latency_count", "pages:latency_sum"):
            self.assertIn(name, names)
        self.assertNotIn("pages:latency", names)
        self.assertIn("le", self.get_api("labels")[1])
        self.assertEqual(["+Inf"], self.get_api("label/le/values")[1])
        self.assertEqual([{"__name__": "site:latency_bucket", "le": "+Inf"}],
                         self.get_api("series", **{"match[]": "site:latency_bucket"})[1])
        metadata = self.get_api("metadata")[1]
        self.assertEqual(("histogram", "gauge", "counter"), tuple(metadata[f"pages:{m}"][0]["type"] for m in ("latency", "visitors", "hits")))


if __name__ == "__main__":
    unittest.main()
