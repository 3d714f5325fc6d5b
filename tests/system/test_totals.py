#!/usr/bin/env python3
"""Counters and classic histograms that Prometheus sends by remote write over a real Kafka, kept as totals: rate(), increase() and
histogram_quantile() are what the engine of Prometheus says of the same samples.

If targets are scraped once a minute, Prometheus has all samples; if more often, the last one of each minute, as tallyd has. Needs Go (to
build the judge, once). TALLYD_ROUNDS is the number of random expressions. The seed is printed; TALLYD_SEED repeats a run.
"""

import json

import kafkacase
import totalscase
from harness import dice
from totalscase import MINUTE_MS


class Totals(totalscase.TotalsCase, kafkacase.KafkaCase):
    def setUp(self):
        super().setUp()
        self.dice = dice()

    def test_scraped_once_a_minute(self):
        """Prometheus has all samples that were sent. What is named by the metric's own name has that name; so have the lists."""
        world = self.count(MINUTE_MS)
        end = self.check(world, True)
        self.assertIn("does not: it is max(value)", self.ask("rate(memory:most[5m])", end)[0])
        names = self.listed("label/__name__/values")
        self.assertIn("http_requests_total:total", names)
        self.assertNotIn("http_requests_total", names)
        self.assertEqual(["200", "404"], self.listed("label/code/values?match[]=http_requests_total"))
        series = self.listed("series?match[]=http_requests_total")
        self.assertEqual({"http_requests_total"}, {labels["__name__"] for labels in series})
        self.assertEqual(6, len(series))
        self.assertEqual([], self.listed("series?match[]=memory"))  # it has two measures
        self.stop()
        self.check_books()
        self.verify()

    def listed(self, what):
        return json.loads(self.get(f"/prometheus/api/v1/{what}"))["data"]

    def test_opentelemetry(self):
        """Cumulative sums of OTLP are totals, too."""
        self.check(self.count(MINUTE_MS, step="otlp"), True)

    def test_example_is_good(self):
        self.tallyd("check", "-c", totalscase.EXAMPLE)

    def test_scraped_every_15_seconds(self):
        self.check(self.count(15000), False)


if __name__ == "__main__":
    totalscase.main(kafkacase.main)
