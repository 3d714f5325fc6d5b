#!/usr/bin/env python3
"""Every request that Grafana's built-in Prometheus data source sends, with GET and POST, and what it must get.

REQUESTS is the list of the paths and parameters in Grafana's sources, from 8 to 12: pkg/promlib (client, resource, healthcheck,
heuristics) and packages/grafana-prometheus (resource_clients, language_provider, metric_find_query, datasource).
"""

import json
import time
import unittest
import urllib.error
import urllib.parse
import urllib.request

from harness import TIMEOUT_S, DaemonCase

MINUTE = 60
PAGES = ("/", "/a", "/ä")
METRICS = ["pages:bytes", "pages:hits", "site:bytes", "site:hits"]
SERIES = [{"__name__": f"pages:{measure}", "path": path} for measure in ("bytes", "hits") for path in PAGES]
SERIES += [{"__name__": "site:bytes"}, {"__name__": "site:hits"}]
HITS = [series for series in SERIES if series["__name__"] == "pages:hits"]
COUNTER = [{"type": "counter", "help": "report pages by path: count", "unit": ""}]
# Times are $start and $end: the last hour, to the second or a fraction of it. The paths that Prometheus does not take by POST are
# asked by GET alone.
RANGE = {"start": "$start", "end": "$end"}
BOTH, GET = ("GET", "POST"), ("GET",)
REQUESTS = (
    # Save & test; what the server is
    (BOTH, "query", {"query": "1+1", "time": "4"}, {"resultType": "scalar", "result": [4, "2"]}),
    (GET, "status/buildinfo", {}, lambda data: set(data) == {"version", "revision", "branch", "buildUser", "buildDate", "goVersion"}),
    (GET, "status/config", {}, {"yaml": ""}),
    (GET, "status/flags", {}, {}),
    # The metrics browser, completion, variables
    (BOTH, "labels", {"limit": "40000", **RANGE}, ["__name__", "path"]),
    (BOTH, "labels", {"limit": "40000", "match[]": '{__name__="site:hits"}', **RANGE}, ["__name__"]),
    (BOTH, "labels", {"match[]": "pages:hits", **RANGE}, ["__name__", "path"]),
    (GET, "label/__name__/values", {"limit": "40000", **RANGE}, METRICS),
    (GET, "label/__name__/values", {"match[]": '{__name__=~".*hits.*"}', **RANGE}, ["pages:hits", "site:hits"]),
    (GET, "label/__name__/values", {"match[]": '{path="/a"}', **RANGE}, ["pages:bytes", "pages:hits"]),
    (GET, "label/path/values", {**RANGE}, sorted(PAGES)),
    (GET, "label/path/values", {"match[]": 'pages:hits{path=~"/.*"}', "limit": "40000", **RANGE}, sorted(PAGES)),
    (GET, "label/job/values", {"limit": "40000", **RANGE}, []),
    (GET, "label/U__a_2e_b/values", {**RANGE}, []),
    (BOTH, "series", {"match[]": '{__name__!=""}', "limit": "40000", **RANGE}, SERIES),
    (BOTH, "series", {"match[]": "pages:hits", **RANGE}, HITS),
    (BOTH, "series", {"match[]": '{__name__="pages:hits",path!=""}', "limit": "40000", **RANGE}, HITS),
    (BOTH, "series", {"match[]": "nothing", **RANGE}, []),
    (GET, "metadata", {}, lambda data: sorted(data) == METRICS and data["pages:hits"] == COUNTER),
    (GET, "metadata", {"limit": "40000"}, lambda data: sorted(data) == METRICS),
    (GET, "metadata", {"limit": "2", "limit_per_metric": "1"}, lambda data: len(data) == 2),
    (GET, "metadata", {"metric": "pages:hits"}, {"pages:hits": COUNTER}),
    # Panels, Explore, annotations, alert rules
    (BOTH, "query", {"query": "sum(increase(pages:hits[1h]))", "time": "$end"},
     lambda data: data["resultType"] == "vector" and data["result"][0]["value"][1] == "90"),
    (BOTH, "query", {"query": "query_result_is_empty", "time": "$end", "timeout": "60s"}, {"resultType": "vector", "result": []}),
    (BOTH, "query_range", {"query": 'rate(pages:hits{path="/a"}[4m0s])', "step": "15", "timeout": "60s", **RANGE},
     lambda data: data["resultType"] == "matrix" and len(data["result"][0]["values"]) == 241),
    (BOTH, "format_query", {"query": "sum( pages:hits{path='/a'} )"}, "sum( pages:hits{path='/a'} )"),
    (BOTH, "query_exemplars", {"query": "pages:hits", **RANGE}, []),
    (GET, "rules", {}, {"groups": []}),
    (GET, "rules", {"type": "alert", "group_limit": "100"}, {"groups": []}),
    (GET, "alerts", {}, {"alerts": []}),
    (GET, "alertmanagers", {}, {"activeAlertmanagers": [], "droppedAlertmanagers": []}),
    (GET, "targets", {"state": "active"}, {"activeTargets": [], "droppedTargets": [], "droppedTargetCounts": {}}),
    (GET, "targets/metadata", {"metric": "pages:hits"}, []),
    (GET, "notifications", {}, []),
)


def line(at, path):
    stamp = time.strftime("%d/%b/%Y:%H:%M:%S +0000", time.gmtime(at))
    return f'192.0.2.1 - - [{stamp}] "GET {path} HTTP/1.1" 200 10 "-" "test"\n'.encode()


class Grafana(DaemonCase):
    def setUp(self):
        super().setUp()
        self.launch("--listen", "127.0.0.1:0")
        self.now = int(time.time()) // MINUTE * MINUTE
        self.feed(b"".join(line(self.now - MINUTE * (1 + minute), path) for minute in range(30) for path in PAGES))
        self.wait_for_consumed(30 * len(PAGES))

    def ask(self, method, path, parameters):
        """(status, answer)"""
        form = urllib.parse.urlencode(parameters)
        url = f"{self.url}/prometheus/api/v1/{urllib.parse.quote(path)}"
        data = form.encode() if method == "POST" else None
        try:
            with urllib.request.urlopen(url if data else f"{url}?{form}", data, timeout=TIMEOUT_S) as reply:
                return reply.status, json.load(reply)
        except urllib.error.HTTPError as error:
            return error.code, json.load(error)

    def test_every_request_is_answered(self):
        for end in (str(self.now), f"{self.now}.25"):
            times = {"$start": str(self.now - 3600), "$end": end}
            for methods, path, parameters, expected in REQUESTS:
                given = {name: times.get(value, value) for name, value in parameters.items()}
                for method in methods:
                    with self.subTest(method=method, path=path, **given):
                        status, answer = self.ask(method, path, given)
                        self.assertEqual((200, "success"), (status, answer["status"]), answer)
                        self.assertNotIn("warnings", answer)
                        if callable(expected):
                            self.assertTrue(expected(answer["data"]), answer)
                        else:
                            self.assertEqual(expected, answer["data"])

    def test_limits_cut_and_say_so(self):
        for path, parameters, count in (("query", {"query": "pages:hits", "time": self.now}, lambda data: len(data["result"])),
                                        ("query_range", {"query": "pages:hits", "start": self.now - 600, "end": self.now,
                                                         "step": "1m"}, lambda data: len(data["result"])),
                                        ("series", {"match[]": "pages:hits"}, len), ("labels", {}, len),
                                        ("label/path/values", {}, len)):
            with self.subTest(path=path):
                _, answer = self.ask("GET", path, {**parameters, "limit": 1})
                self.assertEqual((1, ["results truncated due to limit"]), (count(answer["data"]), answer.get("warnings")))
                _, answer = self.ask("GET", path, {**parameters, "limit": len(PAGES)})
                self.assertNotIn("warnings", answer)
                status, answer = self.ask("GET", path, {**parameters, "limit": "many"})
                self.assertEqual((400, "bad_data"), (status, answer["errorType"]))


if __name__ == "__main__":
    unittest.main()
