#!/usr/bin/env python3
"""A real Prometheus in front of a daemon: remote_read gives it samples, from which it answers any PromQL.

The judge is a recount of the log, by nothing that tallyd or Prometheus has. Needs Prometheus (Debian: prometheus); without
it the test is skipped (exit 77). TALLYD_PROMETHEUS names another one.
"""

import collections
import json
import os
import random
import struct
import sys
import time
import unittest
import urllib.error
import urllib.parse
import urllib.request

from harness import ROOT, TIMEOUT_S, DaemonCase

sys.path.insert(0, os.path.join(ROOT, "tests", "servers"))
from process import Missing  # noqa: E402  (found by the path above)
from prometheus import Prometheus  # noqa: E402

MINUTE = 60
PAGES = ("/", "/a b", '/"c"\\d', "/ä")
HOURS = 3
READ = "/prometheus/api/v1/read"
CONFIG = """
remote_read:
  - url: {url}/prometheus/api/v1/read
    read_recent: true
    filter_external_labels: false
"""


def line(at, path):
    stamp = time.strftime("%d/%b/%Y:%H:%M:%S +0000", time.gmtime(at))
    path = path.replace("\\", "\\\\").replace('"', '\\"')
    return f'192.0.2.1 - - [{stamp}] "GET {path} HTTP/1.1" 200 10 "-" "test"\n'.encode()


# ---- a ReadRequest by hand

def varint(value):
    out = b""
    while value >= 0x80:
        out += bytes([value & 0x7f | 0x80])
        value >>= 7
    return out + bytes([value])


def part(number, data):
    return varint(number << 3 | 2) + varint(len(data)) + data


def integer(number, value):
    return varint(number << 3) + varint(value & (1 << 64) - 1)


def matcher(kind, name, value):
    return part(3, integer(1, kind) + part(2, name.encode()) + part(3, value.encode()))


def query(start, end, *matchers, hints=b""):
    return part(1, integer(1, start) + integer(2, end) + b"".join(matchers) + (part(4, hints) if hints else b""))


def packed(data, claim=None):
    """In Snappy's format, by literals alone."""
    out = varint(len(data) if claim is None else claim)
    for at in range(0, len(data), 60):
        piece = data[at:at + 60]
        out += bytes([len(piece) - 1 << 2]) + piece
    return out


class RemoteRead(DaemonCase):
    def setUp(self):
        super().setUp()
        self.launch("--listen", "127.0.0.1:0")
        self.now = int(time.time()) // MINUTE * MINUTE
        dice = random.Random(7)
        self.counts = collections.Counter()  # (start of its minute, path): hits
        lines = []
        for at in range(self.now - HOURS * 3600, self.now, MINUTE):
            for path in PAGES:
                hits = dice.choice((0, 0, 1, 2, 9))
                self.counts[at, path] = hits
                lines += [line(at + dice.randrange(MINUTE), path)] * hits
        self.feed(b"".join(lines))
        self.wait_for_consumed(len(lines))

    def hits(self, start, end, path):
        """Those of the minutes in [start, end)."""
        return sum(self.counts[at, path] for at in range(start, end, MINUTE))

    def post(self, body, **headers):
        request = urllib.request.Request(self.url + READ, body, {"Content-Type": "application/x-protobuf",
                                                                 "Content-Encoding": "snappy", **headers})
        try:
            with urllib.request.urlopen(request, timeout=TIMEOUT_S) as reply:
                return reply.status, reply.read()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    def prometheus(self, *options):
        server = Prometheus(self.path("prometheus"))
        self.addCleanup(server.stop)
        self.write("prometheus.yml", CONFIG.format(url=self.url).encode())
        server.start(self.path("prometheus.yml"), *options)
        return server.url + "/api/v1/"

    def ask(self, api, path, **form):
        with urllib.request.urlopen(f"{api}{path}?{urllib.parse.urlencode(form)}", timeout=TIMEOUT_S) as reply:
            answer = json.load(reply)
        self.assertEqual(("success", []), (answer["status"], answer.get("warnings", [])), form)
        return answer["data"]["result"] if "query" in path else answer["data"]

    def value(self, api, expression, at):
        """{path: value} at an instant."""
        return {row["metric"].get("path"): float(row["value"][1]) for row in self.ask(api, "query", query=expression, time=at)}

    def test_real_prometheus_answers_exactly(self):
        api = self.prometheus()
        closed = self.ask(api, "status/buildinfo")["version"].startswith("2.")  # a range has both of its ends
        for at in (self.now, self.now - 17 * MINUTE, self.now - 3600):
            for minutes in (5, 60):
                want = {path: self.hits(at - minutes * MINUTE, at, path) for path in PAGES}
                length = f"{minutes}m"
                self.assertEqual(want, self.value(api, f"sum_over_time(pages:hits:increase1m[{length}])", at))
                self.assertEqual(want, self.value(api, f"pages:hits - pages:hits offset {length}", at))
                if closed:
                    self.assertEqual(want, self.value(api, f"increase(pages:hits[{length}])", at))
                    self.assertEqual({None: sum(want.values())}, self.value(api, f"sum(increase(pages:hits[{length}]))", at))
                most = {path: max(self.counts[m, path] for m in range(at - minutes * MINUTE, at, MINUTE)) for path in PAGES}
                self.assertEqual(most, self.value(api, f"max_over_time(pages:hits:increase1m[{length}])", at))
        # At no whole minute, it is the last whole ones.
        want = {path: self.hits(self.now - 6 * MINUTE, self.now - MINUTE, path) for path in PAGES}
        self.assertEqual(want, self.value(api, "sum_over_time(pages:hits:increase1m[5m])", self.now - 23))
        # A counter has all there ever was.
        want = {path: self.hits(self.now - HOURS * 3600, self.now, path) for path in PAGES}
        self.assertEqual(want, self.value(api, "pages:hits", self.now))
        # Matchers of all kinds, a subquery, a join, and a range.
        self.assertEqual({"/": want["/"]}, self.value(api, 'pages:hits{path="/"}', self.now))
        self.assertEqual({p: want[p] for p in PAGES if p not in ("/", "/ä")},
                         self.value(api, '{__name__="pages:hits",path!="/",path!~"/[^a-z\\"]"}', self.now))
        self.assertEqual({"/a b": want["/a b"]}, self.value(api, 'pages:hits{path=~"/a.*"}', self.now))
        self.assertEqual({None: sum(want.values())}, self.value(api, "max_over_time(sum(pages:hits)[10m:1m])", self.now))
        total = self.value(api, "pages:bytes / on(path) group_left pages:hits", self.now)
        self.assertEqual({path: 10 for path in PAGES}, total)
        rows = self.ask(api, "query_range", query="pages:hits:increase1m", start=self.now - 3600, end=self.now, step=MINUTE)
        found = {(int(at) - MINUTE, row["metric"]["path"]): int(value) for row in rows for at, value in row["values"]}
        start = self.now - 3600 - MINUTE
        self.assertEqual({key: hits for key, hits in self.counts.items() if key[0] >= start}, found)
        names = {row["__name__"] for row in self.ask(api, "series", **{"match[]": '{path="/"}', "start": start, "end": self.now})}
        self.assertEqual({f"pages:{measure}{of}" for measure in ("hits", "bytes") for of in ("", ":increase1m")}, names)

    def test_every_sample_is_that_of_the_log(self):
        """Whatever is evaluated over them is then right."""
        api = self.prometheus()
        rows = self.ask(api, "query", query=f'{{__name__=~"pages:hits.*"}}[{HOURS}h]', time=self.now + 1)
        found = {(row["metric"]["__name__"], row["metric"]["path"]): [(round(at, 3), int(value)) for at, value in row["values"]]
                 for row in rows}
        ends = range(self.now - HOURS * 3600 + MINUTE, self.now + 1, MINUTE)
        expected = {}
        for path in PAGES:
            expected["pages:hits", path] = [(end, self.hits(self.now - HOURS * 3600, end, path)) for end in ends]
            expected["pages:hits:increase1m", path] = [(end - 0.001, self.counts[end - MINUTE, path]) for end in ends]
        for key, samples in expected.items():
            self.assertEqual(samples, found[key][-len(samples):], key)
            self.assertLessEqual(len(found[key]) - len(samples), 1)
        self.assertEqual(set(expected), set(found))

    def test_anchored_ranges_are_exact(self):
        """Of a Prometheus that has them, which is newer than Debian's."""
        if not os.environ.get("TALLYD_PROMETHEUS"):
            return
        api = self.prometheus("--enable-feature=promql-extended-range-selectors")
        for at in (self.now, self.now - 17 * MINUTE, self.now - 3600):
            for minutes in (1, 5, 60):
                want = {path: self.hits(at - minutes * MINUTE, at, path) for path in PAGES}
                self.assertEqual(want, self.value(api, f"increase(pages:hits[{minutes}m] anchored)", at))

    def test_samples_by_hand(self):
        """A request of two queries, read without a library: names, times and values as documented."""
        name = matcher(0, "__name__", "pages:hits")
        first = (self.now - 2 * MINUTE) * 1000
        status, body = self.post(packed(query(first, first + 60000, name, matcher(0, "path", "/")) + query(5, 4, name)))
        self.assertEqual(200, status, body)
        labels = part(1, part(1, b"__name__") + part(2, b"pages:hits")) + part(1, part(1, b"path") + part(2, b"/"))
        data = unpacked(body)
        self.assertIn(labels, data)
        for at in (self.now - 2 * MINUTE, self.now - MINUTE):
            value = self.hits(self.now - HOURS * 3600, at, "/")
            self.assertIn(part(2, b"\x09" + struct.pack("<d", value) + integer(2, at * 1000)), data)
        self.assertEqual(2, data.count(b"\x12\x10\x09"))  # samples
        hinted = query(0, self.now * 1000, name, matcher(0, "path", "/"), hints=integer(3, first) + integer(4, first + 1))
        self.assertEqual(1, unpacked(self.post(packed(hinted))[1]).count(b"\x12\x10\x09"))

    def test_what_is_wrong_is_refused(self):
        name = matcher(0, "__name__", "pages:hits")
        good = query(self.now * 1000 - 60000, self.now * 1000, name)
        cases = (
            (415, "Content-Type", good, {"Content-Type": "application/x-www-form-urlencoded"}),
            (400, "no Snappy block", b"\xff" * 9, {}),
            (400, "claims 1073741824 bytes", packed(good, 1 << 30), {}),
            (400, "damaged", packed(good, len(good) + 1), {}),
            (413, "too long", packed(good * 1000), {}),
            (400, "no ReadRequest", packed(b"\x0b"), {}),
            (400, "no ReadRequest", packed(b""), {}),
            (400, "accepts no samples", packed(good + integer(2, 1)), {}),
            (400, "more than 16 queries", packed(good * 17), {}),
            (400, "more than 64 matchers", packed(query(0, 1, *[name] * 65)), {}),
            (422, "more than 4000000 samples at once", packed(query(0, self.now * 1000, name)), {}),
            (400, "one matcher", packed(query(0, 1, matcher(2, "path", ".*"))), {}),
            (400, "regular expression", packed(query(0, 1, name, matcher(2, "path", "("))), {}),
        )
        for status, said, body, headers in cases:
            found, answer = self.post(body, **headers)
            self.assertEqual(status, found, answer)
            self.assertIn(said, answer)
        for accepted in (integer(2, 1) + integer(2, 0), part(2, b"\x01\x00"), b""):
            self.assertEqual(200, self.post(packed(good + accepted))[0])
        with self.assertRaises(urllib.error.HTTPError) as caught:
            self.get(READ)
        self.assertEqual((405, "POST"), (caught.exception.code, caught.exception.headers["Allow"]))


class Token(DaemonCase):
    def test_prometheus_sends_it(self):
        """As `authorization` in its configuration; without it, nothing is told, and Prometheus says so."""
        self.write("tallyd.yaml", b"""
sources: {access: {path: access.log}}
http: {listen: '127.0.0.1:0', token: a-long-enough-token}
reports: {site: {}}
""")
        now = int(time.time()) // MINUTE * MINUTE
        self.write("access.log", line(now - 90, "/") * 3)
        self.launch("-c", "tallyd.yaml")
        self.wait_for_log("event=caught_up")
        config = CONFIG.format(url=self.url)
        answer = self.ask_by("without", config, now)
        self.assertIn("401", answer["warnings"][0])
        self.assertEqual([], answer["data"]["result"])
        answer = self.ask_by("with", f"{config}    authorization: {{credentials: a-long-enough-token}}\n", now)
        self.assertEqual("3", answer["data"]["result"][0]["value"][1])

    def ask_by(self, name, config, at):
        """What a Prometheus of this configuration answers, once it says anything."""
        server = Prometheus(self.path(name))
        self.addCleanup(server.stop)
        self.write("prometheus.yml", config.encode())
        server.start(self.path("prometheus.yml"))
        parameters = urllib.parse.urlencode({"query": "site:hits - site:hits offset 5m", "time": at})

        def ask():
            with urllib.request.urlopen(f"{server.url}/api/v1/query?{parameters}", timeout=TIMEOUT_S) as reply:
                return json.load(reply)

        return self.wait_for(ask, lambda answer: answer["data"]["result"] or "401" in str(answer.get("warnings")))


class Gauges(DaemonCase):
    def test_largest_of_each_minute(self):
        """As samples; a minute without events has none."""
        self.write("tallyd.yaml", b"""
sources: {access: {path: access.log}}
http: {listen: '127.0.0.1:0'}
reports:
  sizes: {measures: {most: max(bytes)}}
""")
        now = int(time.time()) // MINUTE * MINUTE
        sizes = ((90, 7), (90, 30), (89, 5), (200, 9))
        self.write("access.log", b"".join(line(now - ago, "/").replace(b" 200 10 ", b" 200 %d " % size) for ago, size in sizes))
        self.launch("-c", "tallyd.yaml")
        self.wait_for_consumed(len(sizes))
        server = Prometheus(self.path("prometheus"))
        self.addCleanup(server.stop)
        self.write("prometheus.yml", CONFIG.format(url=self.url).encode())
        server.start(self.path("prometheus.yml"))
        parameters = urllib.parse.urlencode({"query": "sizes:most[5m]", "time": now})
        with urllib.request.urlopen(f"{server.url}/api/v1/query?{parameters}", timeout=TIMEOUT_S) as reply:
            row, = json.load(reply)["data"]["result"]
        self.assertEqual([(-180.001, "9"), (-60.001, "30")], [(round(when - now, 3), value) for when, value in row["values"]])


class Histograms(DaemonCase):
    def test_one_beside_others(self):
        """A selector of many metrics gets it, and an old Prometheus reads the others all the same."""
        self.write("tallyd.yaml", b"""
sources: {access: {path: access.log}}
http: {listen: '127.0.0.1:0'}
reports:
  sizes: {measures: {hits: count, all: histogram(bytes)}}
""")
        now = int(time.time()) // MINUTE * MINUTE
        self.write("access.log", line(now - 90, "/") * 3)
        self.launch("-c", "tallyd.yaml")
        self.wait_for_consumed(3)
        server = Prometheus(self.path("prometheus"))
        self.addCleanup(server.stop)
        self.write("prometheus.yml", CONFIG.format(url=self.url).encode())
        server.start(self.path("prometheus.yml"))

        def ask(query):
            parameters = urllib.parse.urlencode({"query": query, "time": now})
            with urllib.request.urlopen(f"{server.url}/api/v1/query?{parameters}", timeout=TIMEOUT_S) as reply:
                answer = json.load(reply)
            self.assertEqual(("success", []), (answer["status"], answer.get("warnings", [])), query)
            return {row["metric"].get("__name__"): row for row in answer["data"]["result"]}

        found = ask('{__name__=~"sizes:.*"}')
        self.assertEqual(["3", "3", "30"], [found[f"sizes:{name}"]["value"][1] for name in ("hits", "all_count", "all_sum")])
        if "sizes:all" in found:  # Prometheus 2.42, Debian's, does not read histograms remotely
            self.assertEqual({"count": "3", "sum": "30"}, {name: found["sizes:all"]["histogram"][1][name] for name in ("count", "sum")})
            of_minute, = ask("histogram_count(sum_over_time(sizes:all:increase1m[5m]))").values()
            self.assertEqual("3", of_minute["value"][1])


def unpacked(data):
    """A Snappy block: literals, and copies of what was unpacked before."""
    at = next(i for i, byte in enumerate(data) if byte < 0x80) + 1
    out = bytearray()
    while at < len(data):
        tag = data[at]
        at += 1
        kind, length = tag & 3, tag >> 2
        if kind == 0:
            if length >= 60:
                size = length - 59
                length = int.from_bytes(data[at:at + size], "little")
                at += size
            out += data[at:at + length + 1]
            at += length + 1
            continue
        if kind == 1:
            offset, length, at = (tag >> 5) << 8 | data[at], (length & 7) + 4, at + 1
        else:
            size = 2 if kind == 2 else 4
            offset, length, at = int.from_bytes(data[at:at + size], "little"), length + 1, at + size
        for _ in range(length):
            out.append(out[-offset])
    return bytes(out)


if __name__ == "__main__":
    try:
        Prometheus.binary()
    except Missing as missing:
        print(missing)
        sys.exit(77)
    unittest.main()
