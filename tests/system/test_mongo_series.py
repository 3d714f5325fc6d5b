#!/usr/bin/env python3
"""Many series in a MongoDB server, asked over HTTP: rankings, sums of those that match a filter, and texts of a dimension by
prefix. The judge is a recount of the log's lines; the prefixes are such as would do harm to whoever takes them for more.

The seed is printed; TALLYD_SEED repeats a run.
"""

import collections
import datetime
import json
import threading
import time
import urllib.error
import urllib.parse
import urllib.request

from harness import TIMEOUT_S, DaemonCase, dice
from mongocase import MongoCase, main, proxy

REPORTS = """\
reports:
  pages: {by: [path], measures: {n: count, size: sum(bytes), least: min(bytes), most: max(bytes)}}
  kinds: {by: [method, status, path], layout: hour}
  few: {by: [path], series_max: 3}
"""
RUN = "http: {listen: '127.0.0.1:0'}\nsources: {access: {path: empty.log}}\n"
PATHS = ["/", "/a", "/a.b", "/a*", "/ab", "/a-b", "/a/b", "/a%2Fb", "/$gt", "/(other)", "/.*", "/é", "/😀", "/~", "/_id"]
PREFIXES = ["", "/", "/a", "/a/", "/a%2", ".*", "^/", "/.", "/a.", "/$", "$", "(", "\0", "/\0", "/a\0", "é", "/é", "/\U0010ffff", "/~", "~",
            b"/\xc3", b"\xff", b"/\xf0\x9f", "/" * 3000]
BEGIN = datetime.datetime(2026, 1, 30, 20)
SILENT_S = 5  # of a question that may take 2 s
HOUR, DAY = datetime.timedelta(hours=1), datetime.timedelta(days=1)
Event = collections.namedtuple("Event", "at method status path size")


class Series(MongoCase, DaemonCase):
    def setUp(self):
        super().setUp()
        self.dice = dice()
        self.events = sorted((self.event() for _ in range(90)), key=lambda event: event.at)
        self.between = proxy.Proxy(self.server.port)
        self.addCleanup(self.between.close)
        through = f"mongodb://127.0.0.1:{self.between.port}/{self.name}?serverSelectionTimeoutMS=500"
        self.write("tallyd.yaml", (REPORTS + RUN + f"store: {{url: \"{through}\", validation: error}}\n").encode())
        self.write("empty.log", b"")
        self.write("access.log", "".join(
            f'192.0.2.1 - - [{event.at:%d/%b/%Y:%H:%M:%S} +0000] "{event.method} {event.path} HTTP/1.1" {event.status} '
            f'{"-" if event.size is None else event.size}\n' for event in self.events).encode())
        self.count("access.log")
        self.launch("-c", "tallyd.yaml")

    def event(self):
        """In any of two days, with an hour that has more than its share, over the end of a month."""
        at = BEGIN + self.dice.choice([HOUR, 2 * DAY]) * self.dice.random()
        return Event(at.replace(microsecond=0), self.dice.choice(["GET", "POST"]), self.dice.choice([200, 404]),
                     self.dice.choice(PATHS[:1 + self.dice.randrange(len(PATHS))]), self.dice.choice([None, 0, 7, 500]))

    def ask(self, what, *words, code=200, **parameters):
        """The answer to /api/v1/WHAT."""
        parameters = [(name, value) for name, value in parameters.items()] + list(words)
        url = f"/api/v1/{what}?{urllib.parse.urlencode(parameters)}"
        try:
            answer = json.loads(self.get(url))
            self.assertEqual(200, code, url)
            return answer
        except urllib.error.HTTPError as error:
            said = error.read().decode()
            self.assertEqual(code, error.code, f"{url}\n{said}")
            return json.loads(said)

    def code(self, path):
        try:
            with urllib.request.urlopen(self.url + path, timeout=TIMEOUT_S) as reply:
                return reply.status
        except urllib.error.HTTPError as error:
            return error.code

    # ---- a server that is silent

    def test_silent_server_delays_no_answer(self):
        self.stop()
        self.write("tallyd.yaml", self.read("tallyd.yaml") + b"query: {timeout: 2s}\n")
        self.launch("-c", "tallyd.yaml")
        span = "&from=2026-01-30&to=2026-02-02"
        paths = "/api/v1/query?report=pages&step=day" + span, "/api/v1/top?report=few" + span
        for path in paths:
            self.assertEqual(200, self.code(path))
        over = threading.Event()
        self.addCleanup(over.set)
        self.between.answer = lambda _: over.wait() and None
        for path in paths:
            begun = time.monotonic()
            self.assertEqual(503, self.code(path), path)
            self.assertLess(time.monotonic() - begun, SILENT_S)
        over.set()
        self.wait_for(lambda: [self.code(path) for path in paths], lambda codes: codes == [200, 200])

    # ---- texts by prefix

    def complete(self, texts, prefix, limit, **parameters):
        raw = prefix if isinstance(prefix, bytes) else prefix.encode()
        expected = sorted(text for text in texts if text.encode().startswith(raw))
        with self.subTest(prefix=prefix, limit=limit, **parameters):
            self.assertEqual({"values": expected[:limit], "more": len(expected) > limit},
                             self.ask("series", prefix=raw, limit=limit, **parameters))

    def test_texts_of_a_dimension(self):
        paths = {event.path for event in self.events}
        for prefix in PREFIXES:
            for limit in (1, 3, 1000):
                self.complete(paths, prefix, limit, report="pages")
                self.complete(paths, prefix, limit, report="kinds", dimension="path")
        for prefix, limit in (("", 1), ("", 2), ("", 9), ("G", 9), ("g", 9), ("4", 9)):
            self.complete({event.method for event in self.events}, prefix, limit, report="kinds", dimension="method")
            self.complete({str(event.status) for event in self.events}, prefix, limit, report="kinds", dimension="status")
        self.assertEqual(3, len(self.ask("series", report="few")["values"]))
        self.assertEqual([], self.ask("series", report="few", prefix="(")["values"])

    # ---- rankings

    def recount(self, by, measure, begin, end, events):
        """{series: value}, of the series that were counted; None: the measure says nothing."""
        of = collections.defaultdict(list)
        for event in events:
            if begin <= event.at < end:
                of[tuple(str(getattr(event, name)) for name in by)].append(event.size)
        sizes = {series: [size for size in found if size is not None] for series, found in of.items()}
        value = {"n": lambda series: len(of[series]), "hits": lambda series: len(of[series]), "size": lambda series: sum(sizes[series]),
                 "least": lambda series: min(sizes[series], default=None),
                 "most": lambda series: max(sizes[series], default=None)}[measure]
        return {series: value(series) for series in of}

    def check_top(self, report, by, measure, begin, end, limit, **wanted):
        """What /api/v1/top is to say of the series that are wanted, by a filter."""
        events = [event for event in self.events if all(str(getattr(event, name)) == text for name, text in wanted.items())]
        now, before = (self.recount(by, measure, first, last, events)
                       for first, last in ((begin, end), (begin - (end - begin), begin)))
        is_total = measure not in ("least", "most")
        ranked = sorted((series for series in now if not is_total or now[series]),
                        key=lambda series: (now[series] is None, -(now[series] or 0), "\t".join(series)))
        total = sum(now.values()) if is_total else None
        answer = self.ask("top", *(("filter", f"{name}={text}") for name, text in wanted.items()), report=report, measure=measure,
                          limit=limit, **{"from": begin.isoformat() + "Z", "to": end.isoformat() + "Z"})
        found = [(tuple(one["series"].values()), one["value"], one["before"]) for one in answer["series"]]
        with self.subTest(report=report, measure=measure, begin=begin, end=end, **wanted):
            self.assertEqual([(series, now[series], before.get(series)) for series in ranked[:limit]], found)
            if is_total:
                self.assertEqual((total, sum(before.values())), (answer["total"], answer["before"]["total"]))
                for one in answer["series"]:
                    self.assertAlmostEqual(one["value"] / total, one["share"], places=5)

    def test_rankings(self):
        ranges = [(BEGIN, BEGIN + HOUR), (BEGIN + HOUR / 4, BEGIN + HOUR / 2), (BEGIN.replace(hour=0), BEGIN.replace(hour=0) + DAY),
                  (BEGIN - DAY, BEGIN + 4 * DAY)]
        for begin, end in ranges:
            for measure in ("n", "size", "least", "most"):
                self.check_top("pages", ["path"], measure, begin, end, self.dice.choice([1, 3, 20]))
            for wanted in ({}, {"method": "GET"}, {"status": "404"}, {"status": "200", "path": "/a"},
                           {"method": "GET", "status": "200", "path": "/"}, {"method": "G"}, {"path": "(other)"}):
                self.check_top("kinds", ["method", "status", "path"], "hits", begin, end, self.dice.choice([1, 3, 1000]), **wanted)

    def test_rankings_know_other(self):
        known = self.ask("series", report="few")["values"]
        count = collections.Counter(event.path if event.path in known else "(other)" for event in self.events)
        answer = self.ask("top", report="few", **{"from": "2026-01-01", "to": "2026-03-01"})
        self.assertEqual(sorted(count.items(), key=lambda item: (-item[1], item[0])),
                         [(one["series"]["path"], one["value"]) for one in answer["series"]])

    # ---- sums

    def test_sums_of_what_matches(self):
        for wanted in ({"method": "GET"}, {"status": "404", "method": "POST"}, {"path": "/a"}, {"path": "/.*"}, {"method": "\0"},
                       {"path": "/a\0"}, {"path": b"\xff"}, {"method": ""}):
            expected = sum(all(str(getattr(event, name)) == text for name, text in wanted.items()) for event in self.events)
            words = [("filter", name.encode() + b"=" + (text if isinstance(text, bytes) else text.encode())) for name, text in wanted.items()]
            for step in "hour", "day", "month":
                with self.subTest(step=step, **wanted):
                    answer = self.ask("query", *words, report="kinds", step=step, **{"from": "2026-01-01", "to": "2026-03-01"})
                    self.assertEqual(expected, sum(value for _, value in answer["values"]))

    # ---- a server that is away

    def test_later(self):
        """Nobody is told to ask for less then; and it goes on by itself."""
        questions = [("series", {"report": "pages", "prefix": "/"}), ("top", {"report": "pages", "from": "2026-01-01", "to": "2026-03-01"}),
                     ("query", {"report": "kinds", "filter": "method=GET", "from": "2026-01-01", "to": "2026-03-01"})]
        answers = [self.ask(what, **words) for what, words in questions]
        self.between.plan = lambda: proxy.Fault("refuse")
        self.between.cut()
        for what, words in questions:
            with self.subTest(what):
                said = self.ask(what, code=503, **words)["error"]
                self.assertIn(f"127.0.0.1:{self.between.port}", said)
                self.assertNotIn("rows_max", said)
        self.between.plan = lambda: proxy.FAITHFUL
        self.wait_for(lambda: self.code("/api/v1/series?report=pages"), lambda code: code == 200)
        self.assertEqual(answers, [self.ask(what, **words) for what, words in questions])


if __name__ == "__main__":
    main()
