#!/usr/bin/env python3
"""PromQL against the engine of Prometheus 3.16 itself, over the same events: an answer is equal, or refused with a reason.

Needs Go (to build the judge, once) and takes the number of random expressions from TALLYD_ROUNDS. The queries of Prometheus'
compliance tests are read from a file of their repository: TALLYD_COMPLIANCE=promql-test-queries.yml. `make bench-prom`
runs them, and 30,000 random expressions.
"""

import collections
import itertools
import os
import re
import time
import unittest

import promcase
from harness import dice
from promcase import HISTOGRAMS, MINUTE_S, NEAR, NEAR_VARIANCE, PromCase, difference
from promexprs import Expressions

ROUNDS = int(os.environ.get("TALLYD_ROUNDS") or 300)
COMPLIANCE = os.environ.get("TALLYD_COMPLIANCE")
# Reasons for which docs/PROMETHEUS.md says that a question is refused which Prometheus answers.
REFUSED = re.compile("expects the name of a label|is not answered here|is of gauges, and|counts, and .* does not|other options zero=")

# What the compliance queries put in place of their variables.
VARIANTS = {
    "range": ("1s", "15s", "1m", "5m", "15m", "1h"), "offset": ("1m", "5m", "10m"),
    "simpleAggrOp": ("sum", "avg", "max", "min", "count", "stddev", "stdvar"),
    "simpleTimeAggrOp": ("sum", "avg", "max", "min", "count", "stddev", "stdvar", "absent", "last"),
    "topBottomOp": ("topk", "bottomk"), "quantile": ("-0.5", "0.1", "0.5", "0.75", "0.95", "0.90", "0.99", "1", "1.5"),
    "arithBinOp": ("+", "-", "*", "/", "%", "^"), "compBinOp": ("==", "!=", "<", ">", "<=", ">="),
    "binOp": ("+", "-", "*", "/", "%", "^", "==", "!=", "<", ">", "<=", ">="),
    "simpleMathFunc": ("abs", "ceil", "floor", "exp", "sqrt", "ln", "log2", "log10", "round"),
    "extrapolatedRateFunc": ("delta", "rate", "increase"), "clampFunc": ("clamp_min", "clamp_max"),
    "instantRateFunc": ("idelta", "irate"),
    "dateFunc": ("day_of_month", "day_of_week", "days_in_month", "hour", "minute", "month", "year"),
}
METRICS = {"demo_memory_usage_bytes": "mem:v", "demo_num_cpus": "cpus:v", "demo_disk_usage_bytes": "disk:v",
           "demo_batch_last_success_timestamp_seconds": "batch:v", "demo_intermittent_metric": "rare:v",
           "demo_cpu_usage_seconds_total": "cpu:s", "demo_api_request_duration_seconds_bucket": "api:s",
           "demo_api_request_duration_seconds_.+": "api:.+"}


def compliance_queries(path):
    import yaml  # only here: Debian's python3-yaml
    with open(path, encoding="utf-8") as file:
        cases = yaml.safe_load(file)["test_cases"]
    for case in cases:
        names = case.get("variant_args") or []
        for values in itertools.product(*(VARIANTS[name] for name in names)):
            query = case["query"]
            for name, value in zip(names, values):
                query = query.replace("{{." + name + "}}", value)
            yield query


def as_asked(query):
    for theirs, ours in METRICS.items():
        query = query.replace(theirs, ours)
    return query


def as_judged(query):
    """By the rules of docs/PROMETHEUS.md: ranges are anchored and at least a minute, a counter alone is its last minute."""
    query = re.sub(r"\[1?[15]s\]", "[1m]", as_asked(query))
    query = re.sub(r"\b(rate|increase)\((cpu:s)\[(\w+)\]\)", r"(\1(\2:total[\3] anchored) > 0)", query)
    return re.sub(r"api:s\)", "last_over_time(api:s[1m]))", query)


class Judged(PromCase):
    def setUp(self):
        super().setUp()
        self.dice = dice()
        self.end = int(time.time()) // MINUTE_S * MINUTE_S - 3600
        self.world = self.begin(self.dice, self.end)
        self.found = collections.Counter()

    def check(self, asked, judged, *times):
        error, here = self.ask(asked, *times)
        judge_error, there = self.judged(judged, *times)
        if error is not None:
            kind = "refused" if REFUSED.search(error) else "both refused" if judge_error is not None else "wrong"
            text = error
        elif judge_error is not None:
            kind, text = "wrong", f"the judge refuses: {judge_error}"
        else:
            cancels = "std" in asked or (") - (" in asked and any(name in asked for name in HISTOGRAMS))
            text = difference(here, there, NEAR_VARIANCE if cancels else NEAR)
            kind = "equal" if text is None else "wrong"
        self.found[kind] += 1
        if kind == "refused" or kind == "both refused":
            self.found[f"{kind}: {re.sub(r'[0-9]+:[0-9]+: ', '', error)[:70]}"] += 1
        if kind == "wrong":
            print(f"{asked}\n  judged: {judged}\n  {times}: {text}", flush=True)

    def finish(self):
        for kind, count in self.found.most_common():
            print(f"{count:6} {kind}")
        self.assertEqual(0, self.found["wrong"])

    def check_random(self, draw):
        for _ in range(ROUNDS):
            asked, judged = draw()
            at = self.dice.randrange(self.end - 90 * MINUTE_S, self.end - 15 * MINUTE_S)
            at -= self.dice.choice((0, at % MINUTE_S))
            step = self.dice.choice((None, 15, 60, 90, 120))
            times = (at,) if step is None else (at, at + step * self.dice.randrange(1, 6), step)
            self.check(asked, judged, *times)
        self.finish()
        self.assertGreater(self.found["equal"], ROUNDS // 2)

    def expressions(self):
        return Expressions(self.dice, self.end - 90 * MINUTE_S, self.end)

    def test_random_expressions(self):
        self.check_random(self.expressions().draw)

    def test_random_histograms(self):
        expressions = self.expressions()
        self.check_random(lambda: expressions.of_histogram(2))

    @unittest.skipUnless(COMPLIANCE, "TALLYD_COMPLIANCE is not set")
    def test_compliance(self):
        for query in compliance_queries(COMPLIANCE):
            self.check(as_asked(query), as_judged(query), self.end - 1200, self.end - 600, 10)
        self.finish()
        self.assertGreaterEqual(self.found["equal"], 400)


if __name__ == "__main__":
    promcase.main()
