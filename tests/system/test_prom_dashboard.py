#!/usr/bin/env python3
"""The Grafana dashboard on a busy log, 48,109 paths in a day: each of its expressions, as Grafana asks for 1 h, 24 h and 7 d."""

import calendar
import collections
import glob
import json
import os
import unittest
import urllib.error
import urllib.parse
import urllib.request

from harness import ROOT, TIMEOUT_S, DaemonCase, recount, traffic

LINES = 300_000
END = calendar.timegm((2026, 1, 6, 0, 0, 0))  # the log has the day before
POINTS = 1000  # of a panel that is as wide
STEPS = (60, 120, 300, 600, 900, 1800, 3600)


class Dashboard(DaemonCase):
    def setUp(self):
        super().setUp()
        self.log = traffic(LINES)
        self.write("log", self.log)
        self.tallyd("import", "log")
        self.launch("--listen", "127.0.0.1:0")

    def ask(self, expr, length, step, is_instant):
        for name, value in (("$__range", f"{length}s"), ("$__rate_interval", f"{max(step + 60, 240)}s"),
                            ("$__interval", f"{step}s"), ("$path", ".*")):
            expr = expr.replace(name, value)
        self.assertNotIn("$", expr)
        times = {"time": END} if is_instant else {"start": END - length, "end": END, "step": step}
        url = f"{self.url}/prometheus/api/v1/query{'' if is_instant else '_range'}"
        try:
            with urllib.request.urlopen(url, urllib.parse.urlencode({"query": expr, **times}).encode(), timeout=TIMEOUT_S) as reply:
                result = json.load(reply)["data"]["result"]
        except urllib.error.HTTPError as error:
            self.fail(f"{expr}: {error.read().decode()}")
        return result

    def test_each_panel_is_answered(self):
        with open(glob.glob(os.path.join(ROOT, "docs/grafana/dashboards/*.json"))[0], encoding="utf-8") as file:
            targets = [target for panel in json.load(file)["panels"] for target in panel["targets"]]
        for length in (3600, 86400, 7 * 86400):
            step = next(step for step in STEPS if length <= step * POINTS)
            for target in targets:
                found = self.ask(target["expr"], length, step, target["instant"])
                if "offset" not in target["expr"]:
                    self.assertNotEqual([], found, (target["expr"], length))

    def test_busiest_pages_are_those_of_a_recount(self):
        hits = collections.Counter()
        for (_, path), (count, _) in recount(self.log).items():
            hits[path] += count
        busiest = sorted(hits.values(), reverse=True)[:5]
        expr = "increase(pages:hits[$__interval]) and topk(5, sum_over_time(pages:hits[$__range] @ end()))"
        found = [sum(int(value) for _, value in series["values"]) for series in self.ask(expr, 86400, 120, False)]
        self.assertEqual(busiest, sorted(found, reverse=True))
        # Without the second topk there are more values than fit at once, so steps are evaluated by parts.
        found = self.ask("topk(1, increase(pages:hits[$__interval]))", 86400, 600, False)
        self.assertEqual(86400 // 600, sum(len(series["values"]) for series in found))


if __name__ == "__main__":
    unittest.main()
