#!/usr/bin/env python3
"""The engine of Prometheus 3.16 over samples that a daemon gives by remote_read, against the same engine over the same samples in a
database of its own: every answer is equal.

The samples of the judge are made of the events, as docs/PROMETHEUS.md says. Needs Go, as test_prom_judge.py, whose
TALLYD_COMPLIANCE and TALLYD_ROUNDS it takes.
"""

import collections
import time
import unittest

import promcase
import promjudge
from harness import dice
from promcase import HISTOGRAMS, MINUTE_S, NEAR, PromCase, by_labels, difference, native
from test_prom_judge import COMPLIANCE, ROUNDS, as_asked, compliance_queries



def added(total, more):
    """Two histograms, as the judge takes them."""
    millionths = total["millionths"] + more["millionths"]
    found = {**total, "sum": millionths / 1e6, "millionths": millionths, "zero": total["zero"] + more["zero"]}
    for side in ("positive", "negative"):
        counts = dict(total[side])
        for index, count in more[side]:
            counts[index] = counts.get(index, 0) + count
        found[side] = sorted(counts.items())
    return found


class World(promcase.World):
    """Each series of a counter has an event in each minute, since one without events in a range has no samples."""

    def add_counter(self, report, labels, chance, value_of=lambda: None):
        super().add_counter(report, labels, 1, value_of)

    def remote_samples(self):
        """Those of remote_read, as documented."""
        for name, labels, samples in self.samples():
            metric, _, kind = name.rpartition(":")
            is_sum = name in (*promcase.TOTALS, *HISTOGRAMS)
            if kind == "zero":
                yield f"{metric}:increase1m", labels, [(at - 1, value) for at, value in samples[1:]]
                yield metric, labels, self.running(samples, metric)
            elif not is_sum and kind != "total":
                yield name, labels, [(at - 1, value) for at, value in samples]

    @staticmethod
    def running(samples, metric):
        is_histogram = metric in HISTOGRAMS
        total = native([], promcase.expression_of(metric)) if is_histogram else 0
        for at, value in samples:
            total = added(total, value) if is_histogram else total + value
            yield at, total


class Remote(PromCase):
    def setUp(self):
        super().setUp()
        self.dice = dice()
        self.end = int(time.time()) // MINUTE_S * MINUTE_S - 3600
        self.world = self.begin(self.dice, self.end, has_judge=False, world=World)
        samples = [(name, labels, list(values)) for name, labels, values in self.world.remote_samples()]
        self.judge = promjudge.Judge.of_samples(self.dir, samples)
        self.addCleanup(self.judge.close)
        self.reader = promjudge.Judge(f"{self.url}/prometheus/api/v1/read")
        self.addCleanup(self.reader.close)

    def compare(self, query, near, *times):
        """None: both answer the same."""
        ms = [int(at * 1000) for at in times]
        here, there = self.reader.ask(query, *ms), self.judge.ask(query, *ms)
        if "error" in here or "error" in there:
            self.found["refused by both"] += 1
            return None if here.get("error") == there.get("error") else f"{here.get('error')} here, {there.get('error')} there"
        self.found["with values" if there["result"] else "empty"] += 1
        return difference(by_labels(here["result"]), by_labels(there["result"]), near)

    def check(self, queries, near, *times):
        self.found = collections.Counter()
        for query in queries:
            found = self.compare(query, near, *times)
            self.found["equal" if found is None else "different"] += 1
            if found is not None:
                print(f"{query}\n  {times}: {found}", flush=True)
        print(f"{len(queries)} queries: {dict(self.found)}")
        self.assertEqual(0, self.found["different"])
        self.assertGreater(self.found["with values"], len(queries) // 2)

    @unittest.skipUnless(COMPLIANCE, "TALLYD_COMPLIANCE is not set")
    def test_compliance(self):
        queries = [as_asked(query) for query in compliance_queries(COMPLIANCE)]
        self.check(queries, 0, self.end - 1200, self.end - 600, 10)

    def test_histograms(self):
        metric, times = self.dice.choice(HISTOGRAMS), (self.end - 1800, self.end - 300, 75)
        each = f"{metric}:increase1m"
        queries = [metric, each, f'{metric}{{mode="user"}}', f"{metric} - {metric} offset 10m"]
        for over in (f"sum_over_time({each}[5m])", f"avg_over_time({each}[5m])", f"increase({metric}[7m])", f"rate({metric}[10m])",
                     f"last_over_time({metric}[1m])", f"increase({metric}[5m] anchored)"):
            queries += [over, f"sum by (mode) ({over})", f"histogram_count({over})", f"histogram_sum({over})"]
            if metric != "calm:z":  # Prometheus' zero bucket depends on what other samples of its chunk have
                queries += [f"histogram_quantile({q}, {over})" for q in (0.1234, 0.9113)] + [f"histogram_fraction(0, 1, {over})"]
        queries += [f"resets({metric}[20m])", f"changes({each}[20m])", '{__name__=~"' + metric + '(:.*)?",mode="idle"}']
        self.check(queries, NEAR, *times)

    def test_counters_and_gauges(self):
        queries = []
        for _ in range(ROUNDS // 10):
            metric = self.dice.choice(("cpu:s", "cpu:n", "mem:v", "mem:low", "rare:v", "up:n", "cpu:s:increase1m"))
            over = self.dice.choice(("rate", "increase", "delta", "irate", "idelta", "deriv", "resets", "changes", "avg_over_time",
                                     "max_over_time", "quantile_over_time", "stddev_over_time", "count_over_time", "mad_over_time"))
            ranged = f"{metric}[{self.dice.choice(('1m', '90s', '5m', '1h'))}]"
            queries.append(f"{over}(0.5, {ranged})" if over == "quantile_over_time" else f"{over}({ranged})")
        self.check(queries, 0, self.end - 1200, self.end - 600, 10)


if __name__ == "__main__":
    promcase.main()
