#!/usr/bin/env python3
"""Prometheus' HTTP API of a running daemon: as its own tool asks, as Grafana does, and as the documents say.

Needs promtool (Debian: prometheus); without it the test is skipped (exit 77).
"""

import glob
import json
import os
import re
import shutil
import subprocess
import sys
import time
import unittest
import urllib.error
import urllib.parse
import urllib.request

from harness import ROOT, TIMEOUT_S, DaemonCase

MINUTE = 60
PAGES = ("/", "/a b", '/"c"\\d', "/ä")
# What Grafana puts in place of its variables, for a panel of a day.
VARIABLES = {"$__range": "86400s", "$__rate_interval": "4m0s", "$__interval": "2m", "$path": ".*"}


def line(at, path):
    stamp = time.strftime("%d/%b/%Y:%H:%M:%S +0000", time.gmtime(at))
    path = path.replace("\\", "\\\\").replace('"', '\\"')
    return f'192.0.2.1 - - [{stamp}] "GET {path} HTTP/1.1" 200 10 "-" "test"\n'.encode()


class Prometheus(DaemonCase):
    def setUp(self):
        super().setUp()
        self.launch("--listen", "127.0.0.1:0")
        self.now = int(time.time()) // MINUTE * MINUTE
        # Page i has i + 1 hits in each of the last 30 whole minutes, and as many a day before.
        lines = [line(self.now - ago - MINUTE * (1 + minute), path) for minute in range(30) for ago in (0, 86400)
                 for i, path in enumerate(PAGES) for _ in range(i + 1)]
        self.feed(b"".join(lines))
        self.wait_for_consumed(len(lines))
        self.api = self.url + "/prometheus"

    def ask(self, path, form=None, **parameters):
        """(status, answer)"""
        url = f"{self.api}/api/v1/{path}?{urllib.parse.urlencode(parameters, doseq=True)}"
        data = urllib.parse.urlencode(form).encode() if form else None
        try:
            with urllib.request.urlopen(url, data, timeout=TIMEOUT_S) as reply:
                return reply.status, json.load(reply)
        except urllib.error.HTTPError as error:
            return error.code, json.load(error)

    def data(self, path, form=None, **parameters):
        status, answer = self.ask(path, form, **parameters)
        self.assertEqual((200, "success"), (status, answer["status"]), answer)
        return answer["data"]

    def promtool(self, *arguments):
        done = subprocess.run(["promtool", "query", *arguments], capture_output=True, text=True, check=False,
                              timeout=TIMEOUT_S)
        self.assertEqual((0, ""), (done.returncode, done.stderr), arguments)
        return done.stdout

    def test_data_source_is_healthy(self):
        """What `Save & test` does."""
        two = {"resultType": "scalar", "result": [4, "2"]}
        self.assertEqual(two, self.data("query", {"query": "1+1", "time": "4"}))
        self.assertEqual(two, self.data("query", query="1+1", time="4"))
        self.assertEqual("2.24.0", self.data("status/buildinfo")["version"])
        self.assertEqual({"groups": []}, self.data("rules"))
        self.assertEqual("ok\n", self.get("/prometheus/-/healthy"))
        self.assertEqual("ok\n", self.get("/prometheus/-/ready"))

    def test_counts_are_exact(self):
        at = str(self.now)
        expected = [{"metric": {"path": path}, "value": [self.now, str(30 * (i + 1))]}
                    for i, path in reversed(list(enumerate(PAGES)))]
        found = self.data("query", {"query": "topk(9, increase(pages:hits[1h]))", "time": at})
        self.assertEqual({"resultType": "vector", "result": expected}, found)
        # Bars add up, whatever their step.
        for step in ("1m", "300s", "600s"):
            form = {"query": f"sum(increase(pages:hits[{step}]))", "start": self.now - 1800, "end": at, "step": step}
            series, = self.data("query_range", form)["result"]
            self.assertEqual(300, sum(int(value) for when, value in series["values"] if when > self.now - 1800))
        series, = self.data("query_range", query="rate(pages:hits{path='/'}[5m])", start=time.strftime(
            "%Y-%m-%dT%H:%M:%SZ", time.gmtime(self.now - 60)), end=at, step="1m")["result"]
        self.assertEqual([[self.now - 60, "0.016666666666666666"], [self.now, "0.016666666666666666"]],
                         series["values"])

    def test_totals_of_other_series_have_no_rate(self):
        """Beyond series_max, series share a row: there the fall from one total to the next is no reset."""
        self.stop()
        self.write("totals.yaml", b"sources:\n  metrics: {decode: [metric]}\nreports:\n  hits_total:\n    by: [host]\n    series_max: 1\n"
                   b"    measures: {total: last(value)}\n")
        self.launch("-c", "totals.yaml", "--store", "sqlite:totals.db", "--listen", "127.0.0.1:0")
        lines = []
        for minute in range(10):
            for i, value in enumerate((minute, 10**9 + minute, 5 * minute) if minute > 0 else (minute,)):
                at = self.now - 600 + MINUTE * minute + (i if minute % 2 else (0, 9, 2)[i])  # h1 and h2 take turns as the last
                lines.append(json.dumps({"name": "x", "ts": at, "value": value, "tags": {"host": f"h{i}"}}) + "\n")
        self.feed("".join(lines).encode())
        self.wait_for_consumed(28)
        self.api = self.url + "/prometheus"
        hosts = [series["metric"]["host"] for series in self.data("query", query="hits_total", time=self.now)["result"]]
        self.assertEqual(["(other)", "h0"], sorted(hosts))
        for query, value in (("increase(hits_total[10m])", "10"), ("sum(rate(hits_total[10m])) * 600", "10")):
            found = self.data("query", query=query, time=self.now)["result"]
            self.assertEqual([value], [series["value"][1] for series in found], query)
        self.assertEqual([], self.data("query", query='rate(hits_total{host="(other)"}[10m])', time=self.now)["result"])
        for name in ("hits_total", "hits_total:total"):
            self.assertEqual({name: [{"type": "gauge", "help": "report hits_total by host: last(value)", "unit": ""}]},
                             self.data("metadata", metric=name))

    def test_what_there_is(self):
        metrics = ["pages:bytes", "pages:hits", "site:bytes", "site:hits"]
        self.assertEqual(metrics, self.data("label/__name__/values"))
        self.assertEqual(["__name__", "path"], self.data("labels"))
        self.assertEqual(["__name__"], self.data("labels", **{"match[]": "site:hits"}))
        self.assertEqual(sorted(PAGES), self.data("label/path/values", **{"match[]": "pages:hits"}))
        self.assertEqual(["/"], self.data("label/path/values", **{"match[]": 'pages:hits{path="/"}'}))
        self.assertEqual([], self.data("label/nothing/values"))
        self.assertEqual([{"__name__": "pages:bytes", "path": "/"}, {"__name__": "pages:hits", "path": "/"}],
                         self.data("series", {"match[]": '{path="/"}'}))
        self.assertEqual(["site:bytes", "site:hits"], self.data("label/__name__/values", **{"match[]": '{path="",__name__!=""}'}))
        found = self.data("metadata")
        self.assertEqual(metrics, sorted(found))
        self.assertEqual({"type": "counter", "help": "report pages by path: count", "unit": ""}, found["pages:hits"][0])

    def test_grafana_asks(self):
        """The requests of its built-in data source beside the questions of panels: times, limits, forms."""
        times = {"start": str(self.now - 3600), "end": f"{self.now}.123"}
        named = {"match[]": "pages:hits", **times}
        everything = {"match[]": '{__name__!=""}', "limit": "40000", **times}
        self.assertEqual(["__name__", "path"], self.data("labels", named))
        self.assertEqual(["pages:bytes", "pages:hits", "site:bytes", "site:hits"],
                         self.data("label/__name__/values", **everything))
        self.assertEqual(len(PAGES) * 2 + 2, len(self.data("series", everything)))
        self.assertEqual(["pages:hits"], list(self.data("metadata", metric="pages:hits")))
        self.assertEqual({}, self.data("metadata", metric="nothing"))
        self.assertEqual([], self.data("series", {"match[]": "nothing"}))
        self.assertEqual([], self.data("labels", {"match[]": "nothing"}))
        self.assertEqual([], self.data("label/path/values", **{"match[]": "nothing"}))
        self.assertEqual({"groups": []}, self.data("rules", type="alert"))
        self.assertEqual({"alerts": []}, self.data("alerts"))
        self.assertEqual([], self.data("query_exemplars", {"query": "pages:hits", **times}))
        for step in ("15", "15s", "15.0", "1m", "1m0s"):
            form = {"query": "rate(site:hits[1m0s])", "step": step, "timeout": "30s", "lookback_delta": "5m", **times}
            series, = self.data("query_range", form)["result"]
            self.assertEqual(3600 // (15 if step.startswith("15") else 60) + 1, len(series["values"]), step)

    def test_what_is_cut_is_said(self):
        for path, form in (("label/path/values", {}), ("labels", {}), ("series", {"match[]": "pages:hits"})):
            _, answer = self.ask(path, limit=1, **form)
            self.assertEqual((1, ["results truncated due to limit"]), (len(answer["data"]), answer.get("warnings")), path)
            _, answer = self.ask(path, limit=len(PAGES), **form)
            self.assertNotIn("warnings", answer, path)
        for path, times in (("query", {"time": self.now}), ("query_range", {"start": self.now - 60, "end": self.now, "step": 60})):
            for limit, warnings in ((1, True), (2, True), (len(PAGES), False), (0, False)):
                status, answer = self.ask(path, query="sort_desc(increase(pages:hits[5m]))", limit=limit, **times)
                self.assertEqual((200, limit or len(PAGES)), (status, len(answer["data"]["result"])), (path, limit))
                self.assertEqual(["results truncated due to limit"] if warnings else None, answer.get("warnings"))
            self.assertEqual(400, self.ask(path, query="1", limit="-1", **times)[0])
            self.assertNotIn("warnings", self.ask(path, query="1", limit=1, **times)[1])
        answer = self.data("query", query="sort_desc(increase(pages:hits[5m]))", limit=1, time=self.now)
        self.assertEqual([str(5 * len(PAGES))], [series["value"][1] for series in answer["result"]])

    def test_wrong_questions_have_their_class(self):
        for status, kind, path, parameters in (
                (400, "bad_data", "query", {}), (400, "bad_data", "query", {"query": "1", "time": "noon"}),
                (400, "bad_data", "query_range", {"query": "1", "start": 1, "end": 2}),
                (400, "bad_data", "query_range", {"query": "1", "start": 1, "end": 2, "step": 0}),
                (400, "bad_data", "query_range", {"query": "1", "start": 2, "end": 1, "step": 1}),
                (400, "bad_data", "series", {}), (400, "bad_data", "labels", {"limit": "x"}),
                (400, "bad_data", "query", {"query": 'site:hits{a=~"("}'}),
                (400, "bad_data", "query", {"query": 'site:hits{a=~"(?=a)"}'}),
                (400, "bad_data", "query", {"query": "sum("}), (400, "bad_data", "series", {"match[]": "sum(a)"}),
                (400, "bad_data", "query", {"query": "delta(a[5m])"}),
                (422, "execution", "query_range", {"query": "1", "start": 0, "end": 20000, "step": 1})):
            found, answer = self.ask(path, **parameters)
            self.assertEqual((status, "error", kind), (found, answer["status"], answer["errorType"]), (path, parameters))
        self.assertEqual(404, self.ask("nothing")[0])
        self.assertEqual(404, self.ask("label/a/b/values")[0])
        self.assertEqual(413, self.ask("query", {"query": "1" * 40000})[0])

    def test_promtool_asks(self):
        at = str(self.now)
        self.assertEqual(f'{{path="/a b"}} => 60 @[{at}]\n',
                         self.promtool("instant", "--time", at, self.api, 'increase(pages:hits{path="/a b"}[30m])'))
        found = self.promtool("range", "--start", str(self.now - 120), "--end", at, "--step", "1m", self.api, "site:hits")
        self.assertEqual([f"10 @[{self.now - 120 + i * 60}]" for i in range(3)], found.splitlines()[1:])
        self.assertEqual('{__name__="pages:hits", path="/"}\n', self.promtool("series", "--match=pages:hits{path='/'}", self.api))
        self.assertEqual("".join(f"{path}\n" for path in sorted(PAGES)), self.promtool("labels", self.api, "path"))

    def check_answered(self, expr):
        for name, value in VARIABLES.items():
            expr = expr.replace(name, value)
        self.assertNotIn("$", expr)
        now = {"query": expr, "time": self.now}
        day = {"query": expr, "start": self.now - 86400, "end": self.now, "step": 120}
        for path, form in (("query", now), ("query_range", day)):
            found = self.data(path, form)["result"]
            if " == " not in expr:  # an alert, which is silent here
                self.assertNotEqual([], found, expr)

    def test_dashboard_is_answered(self):
        dashboards = glob.glob(os.path.join(ROOT, "docs/grafana/dashboards/*.json"))
        self.assertEqual(1, len(dashboards))
        with open(dashboards[0], encoding="utf-8") as file:
            board = json.load(file)
        exprs = [target["expr"] for panel in board["panels"] for target in panel["targets"]]
        self.assertGreater(len(exprs), 8)
        for expr in exprs:
            self.check_answered(expr)
        for variable in board["templating"]["list"]:
            metric, label = re.fullmatch(r"label_values\((\S+), (\w+)\)", variable["definition"]).groups()
            self.assertEqual(sorted(PAGES), self.data(f"label/{label}/values", **{"match[]": metric}))

    def test_examples_of_the_document_are_answered(self):
        with open(os.path.join(ROOT, "docs/PROMETHEUS.md"), encoding="utf-8") as file:
            examples = re.findall(r"(?ms)^```promql\n(.*?)^```", file.read())
        exprs = [expr for block in examples for expr in block.splitlines()  # test_prom_sketches.py asks for histograms
                 if expr and not expr.startswith("#") and "latency" not in expr]
        self.assertGreater(len(exprs), 5)
        for expr in exprs:
            self.check_answered(expr)


if __name__ == "__main__":
    if shutil.which("promtool") is None:
        print("skipped: there is no promtool (Debian package prometheus)")
        sys.exit(77)
    unittest.main()
