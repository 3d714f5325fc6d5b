#!/usr/bin/env python3
"""Prometheus' remote write over a real Kafka, 1.0 and 2.0: native histograms are counted bucket by bucket if they are deltas, samples are
levels, and totals are rejects. The judge made the messages, so it knows their buckets. A real Prometheus makes others, from a target that
the judge is. The seed is printed; TALLYD_SEED repeats a run."""

import collections
import json
import math
import subprocess
import time
import urllib.parse

from harness import EX_CONFIG, EX_DATAERR, EX_USAGE, TIMEOUT_S, dice, draw_death, failpoints
from kafkacase import KafkaCase, main
from test_otlp_histograms import slots_of

import prometheus  # beside kafka
import remotewrite as rw
from process import Missing

MILLION, SCHEMA, WIDE = 10**6, 4, (1, 0.01)
BEGIN_MS, DAY_MS, MINUTE_MS = 1767571200000, 86400000, 60000
SPAN = ("2026-01-05", "2026-01-06")
PATHS = ("/a", "/b c", "/\u00e4\"\\")
NAN, INFINITE = math.nan, math.inf
REPORTS = f"""reports:
  pages: {{where: [name=took], by: [path], measures: {{points: count, latency: histogram(value), total: sum(value)}}}}
  wide: {{where: [name=took], measures: {{latency: "histogram(value, schema={WIDE[0]}, zero={WIDE[1]})"}}}}
  levels: {{where: [name=level], by: [path, instance], measures: {{points: count, least: min(value), most: max(value), mean: mean(value)}}}}
  grown: {{where: [name=grown_total], by: [path], measures: {{total: sum(value)}}}}
  parts: {{by: [name, path], measures: {{total: sum(value)}}}}
"""


def draw_side(rolls, schema):
    """{index: count} between 2^-12 and 2^30, where each bucket of schema 4 has numbers; in runs with gaps."""
    if rolls.random() < 0.2:
        return {}
    octave, counts = 2**schema, {}
    index = math.ceil(rolls.randrange(-12, 12) * octave) + 1
    for _ in range(rolls.randrange(1, 4)):
        for _ in range(rolls.randrange(1, 12)):
            if index < 30 * octave:
                counts[index] = rolls.choice([0, 1, 2, 7, 160, 10**6])
            index += 1
        index += rolls.choice([1, 3, math.ceil(4 * octave)])
    return counts


class Judge:
    """Messages, and what must be counted of them."""

    def __init__(self, rolls, are_deltas):
        self.rolls, self.are_deltas = rolls, are_deltas
        self.cells = collections.defaultdict(collections.Counter)  # path: {bucket: count}, "points", "sum" in millionths
        self.levels, self.rejects, self.events = collections.defaultdict(list), collections.Counter(), 0
        self.parts, self.grown = collections.Counter(), collections.Counter()

    def histogram(self, path, hint):
        rolls = self.rolls
        schema, zeros = rolls.randrange(-4, 9), rolls.choice([0, 0, 3])
        positive, negative = draw_side(rolls, schema), draw_side(rolls, schema)
        count = zeros + sum(positive.values()) + sum(negative.values())
        micro = rolls.randrange(-10**9, 10**9) if count else 0
        cell = self.cells[path]
        cell.update({"points": 1, "zero": zeros, "count": count, "sum": micro})
        for name, side in ("buckets", positive), ("negative", negative):
            counts = {index - 1: n for index, n in side.items() if n}  # Prometheus' index is that of the upper bound
            cell.update({(name, index): n for index, n in slots_of(counts, schema).items()})
            for index, n in slots_of(counts, schema, WIDE[0]).items():
                cell[WIDE, "zero" if 2**(index / 2**WIDE[0]) <= WIDE[1] else (name, index * 2**(SCHEMA - WIDE[0]))] += n
        self.events += 1
        return rw.histogram(self.time(), schema, zeros, micro / MILLION, hint=hint, is_float=rolls.random() < 0.3, positive=positive,
                            negative=negative)

    def time(self):
        return BEGIN_MS + self.rolls.randrange(DAY_MS)

    def refuse(self, reason):
        self.rejects[reason] += 1

    def series(self):
        """(labels, samples, histograms, type)."""
        rolls, path = self.rolls, self.rolls.choice(PATHS)
        labels = {"__name__": "took", "Job": "x", "empty": "", "path": path, "instance": rolls.choice(["i:1", "i:2"])}
        deltas = {} if self.are_deltas else {"__temporality__": rolls.choice(["delta", "Delta"])}
        hint = rw.GAUGE_HINT if self.are_deltas else rolls.randrange(4)
        kind = rolls.choice(["delta", "delta", "delta", "level", "level", "total", "state", "counter", "grown", "fraction", "own", "broken", "stale"])
        if kind == "delta":
            return {**labels, **deltas}, [], [self.histogram(path, hint) for _ in range(rolls.choice([1, 1, 3]))], rw.UNKNOWN
        if kind == "level":
            values = [rolls.randrange(-10**9, 10**9) for _ in range(rolls.choice([1, 1, 5]))]
            self.levels[path, labels["instance"]] += values
            self.events += len(values)
            return {**labels, "__name__": "level"}, [rw.sample(self.time(), value / MILLION) for value in values], [], rw.GAUGE
        if kind == "total":
            hint, count = rolls.choice([rw.NO_HINT, rw.RESET, rw.NO_RESET]), rolls.choice([1, 2])
            self.rejects["cumulative"] += count if self.are_deltas else 1
            return labels, [], [rw.histogram(self.time(), 3, 1, 1.0, hint=hint)] * count, rw.HISTOGRAM
        if kind == "state":
            self.refuse("gauge_histogram")
            more = {"__type__": "gaugehistogram"} if self.are_deltas else {}
            return {**labels, **more}, [], [rw.histogram(self.time(), 3, 1, 1.0)], rw.GAUGE_HISTOGRAM
        if kind == "counter":
            self.refuse("cumulative")
            more = {"__type__": "counter"} if self.are_deltas else rolls.choice([{}, {"__temporality__": "cumulative"}])
            name = rolls.choice(["hits_total", "took_sum", "took_count", "took_bucket"])
            return {**labels, "__name__": name, **more}, [rw.sample(self.time(), 1.5)] * 3, [], rw.COUNTER
        if kind == "grown":
            value = rolls.randrange(10**9)
            self.grown[path] += value
            self.events += 1
            return {**labels, **deltas, "__name__": "grown_total"}, [rw.sample(self.time(), value / MILLION)], [], rw.UNKNOWN
        if kind == "fraction":
            self.refuse("inexact")
            return {**labels, **deltas}, [], [rw.histogram(self.time(), 3, 0, 1.0, is_float=True, positive={3: 0.5, 9: 1.5})], rw.UNKNOWN
        if kind == "own":
            count, micro = rolls.randrange(1, 100), rolls.randrange(10**9)
            self.parts["own.count", path] += count * MILLION
            self.parts["own.sum", path] += micro
            self.events += 2
            counts = {0: count - 1, 2: 1}
            return {**labels, **deltas, "__name__": "own"}, [], [rw.histogram(self.time(), rw.CUSTOM, 0, micro / MILLION, positive=counts,
                                                                              custom=(0.1, 1.0))], rw.UNKNOWN
        if kind == "stale":
            self.rejects["stale"] += 2
            return {**labels, **deltas, "__name__": "level"}, [rw.sample(self.time(), rw.STALE)], [rw.histogram(self.time(), 0, 0, rw.STALE)], rw.GAUGE
        reason, samples, histograms = rolls.choice([
            ("number", [rw.sample(self.time(), rolls.choice([NAN, INFINITE, 1e13]))], []),
            ("number", [], [rw.histogram(self.time(), 0, 0, 1.0, hint=hint, positive={100: 1})]),
            ("number", [], [rw.histogram(self.time(), 0, 0, NAN, count=1, hint=hint)]),
            ("member", [rw.sample(0, 1.0)], []),
            ("time_range", [rw.sample(-5, 1.0)], []),
            ("remote_write", [], [rw.histogram(self.time(), 0, 1, 1.0, count=2, hint=hint)]),
            ("remote_write", [], [rw.histogram(self.time(), 9, 1, 1.0, hint=hint)]),
            ("remote_write", [], [rw.histogram(self.time(), 0, 1, 1.0, hint=hint) + rw.part(11, rw.integer(2, 1 << 31))])])
        self.refuse(reason)
        return {**labels, **deltas}, samples, histograms, rw.UNKNOWN

    def message(self):
        rolls = self.rolls
        series = [self.series() for _ in range(rolls.randrange(1, 8))]
        message = rolls.choice([rw.request_1, rw.request_2])(series)
        return rw.packed(message) if rolls.random() < 0.7 else message



class RemoteWrite(KafkaCase):
    def setUp(self):
        super().setUp()
        self.dice = dice()

    def send(self, topic, messages):
        producer = self.broker.producer()
        for number, message in enumerate(messages):
            producer.send(topic, number % 2, message)
        producer.flush()
        producer.close()

    def fetch(self, path):
        return json.loads(self.get(path))

    def native(self, report, until=f"{SPAN[1]}T00:00:00Z"):
        """{path: (count, sum, {bucket: count})} of the whole day before."""
        words = urllib.parse.urlencode({"query": f"increase({report}:latency[1d])", "time": until})
        found = {}
        for series in self.fetch(f"/prometheus/api/v1/query?{words}")["data"]["result"]:
            histogram, buckets = series["histogram"][1], {}
            for _, low, high, count in histogram.get("buckets", []):
                low, high = float(low), float(high)
                name = "zero" if low <= 0 <= high else ("buckets" if high > 0 else "negative", round(16 * math.log2(high if high > 0 else -low)))
                buckets[name] = int(float(count))
            found[series["metric"].get("path")] = int(float(histogram["count"])), float(histogram["sum"]), buckets
        return found

    def check(self, judge):
        self.assertEqual({*judge.cells}, {*(natives := self.native("pages"))})
        whole = collections.Counter()
        for path, cell in judge.cells.items():
            count, total, buckets = natives[path]
            self.assertEqual(cell["count"], count)
            self.assertAlmostEqual(cell["sum"] / MILLION, total, 4)
            wanted = {key: n for key, n in cell.items() if n and (key == "zero" or isinstance(key[1], int))}
            self.assertEqual([], sorted({*wanted.items()} ^ {*buckets.items()}, key=str)[:9])
            whole.update(cell)
        wide = collections.Counter({key[1]: n for key, n in whole.items() if isinstance(key, tuple) and key[0] == WIDE and n})
        wide["zero"] += whole["zero"]
        (found,) = self.native("wide").values()
        self.assertEqual({key: n for key, n in wide.items() if n}, found[2])

        def ask(report, measure, *by):
            rows = self.query(report, "--measure", measure, "--top", "100", span=SPAN)
            return {tuple(row[name] for name in by): round(float(row["value"]) * MILLION) for row in rows}

        self.assertEqual({(path,): cell["points"] * MILLION for path, cell in judge.cells.items()}, ask("pages", "points", "path"))
        by = "path", "instance"
        self.assertEqual({key: len(values) * MILLION for key, values in judge.levels.items()}, ask("levels", "points", *by))
        self.assertEqual({key: min(values) for key, values in judge.levels.items()}, ask("levels", "least", *by))
        self.assertEqual({key: max(values) for key, values in judge.levels.items()}, ask("levels", "most", *by))
        self.assertEqual({(path,): total for path, total in judge.grown.items()}, ask("grown", "total", "path"))
        self.assertEqual({**judge.parts}, {key: value for key, value in ask("parts", "total", "name", "path").items() if key[0].startswith("own.")})

    def run_judged(self, decode, are_deltas):
        topic, count = self.new_topic(2), 400
        judge = Judge(self.dice, are_deltas)
        messages = [judge.message() for _ in range(count)]
        messages += [messages[0][:-1], b"\xff" * 20, b"", rw.part(3, rw.integer(1, 1)), rw.varint(1 << 30) + b"\x00x"]
        judge.rejects.update({"empty": 1, "remote_write": 3})  # metadata alone is nothing
        self.send(topic, messages)
        self.configure({topic: f"decode: {decode}, fields: {{work: 'tag:Job'}}"}, REPORTS)
        source = f"kafka:{topic}"
        for _ in range(3):
            self.run_daemon(failpoint=draw_death(self.dice, failpoints("store."), 3), consuming=False)
            try:
                self.process.wait(0.3 + self.dice.random())
            except subprocess.TimeoutExpired:  # it was not passed so often
                self.kill()
        self.run_daemon()
        expected = judge.events + sum(judge.rejects.values())
        self.wait_consumed(source, expected)
        self.assertEqual({**judge.rejects}, {reason: n for reason in judge.rejects if (n := self.book(source, f"rejected.{reason}"))})
        self.check(judge)
        self.stop()
        self.check_books()
        self.verify()

    def test_deltas_by_label(self):
        self.run_judged("remote_write", False)

    def test_deltas_by_configuration(self):
        self.run_judged("[{remote_write: deltas}]", True)

    def test_one_message_is_explained(self):
        """Places are those in the unpacked message. Lines are none."""
        message = rw.request_2([({"__name__": "took", "__temporality__": "delta", "path": "/a\n"}, [], [rw.histogram(BEGIN_MS, 3, 2, 5.5)], rw.UNKNOWN),
                                ({"__name__": "a_total"}, [rw.sample(BEGIN_MS, 1.0)], [], rw.UNKNOWN)])
        self.configure({"prometheus": "decode: remote_write"}, REPORTS, name="explain.yaml")
        for form in message, rw.packed(message):
            self.write("message", form)
            said = self.tallyd("explain", "-c", "explain.yaml", "--json", "--source", "prometheus", "--file", "message", status=EX_DATAERR).splitlines()
            event, reject = map(json.loads, said)
            fields = {field["name"]: field for field in event["fields"]}
            self.assertEqual(("took", "/a\n", 5.5), (fields["name"]["value"], fields["path"]["value"], fields["value"]["number"]))
            at = message.index(b"/a\n")
            self.assertEqual((at + 1, at + 3), (fields["path"]["from"], fields["path"]["to"]))
            self.assertEqual("cumulative", reject["reason"])
        self.tallyd("explain", "--decode", "remote_write", "x", status=EX_USAGE)
        self.assertIn("a line is no message of it", self.err)
        self.write("files.yaml", b"sources: {a: {path: a.log, decode: remote_write}}")
        self.tallyd("check", "-c", "files.yaml", status=EX_CONFIG)
        self.assertIn("type: kafka only", self.err)

    def test_messages_of_a_real_prometheus(self):
        """It scrapes a target that says the same each time, until the target ends; then it sends stale markers. Histograms of gauges are
        deltas by configuration: their numbers are counted once for each scrape. Totals stay rejects."""
        positive, negative, target = {-40: 7, -39: 1, 3: 2, 90: 10**6}, {5: 3}, rw.Target
        state = target.histogram(3, 2, 12.5, positive=positive, negative=negative)
        scraped = target({"took": (target.GAUGE_HISTOGRAM, [({"path": path}, state) for path in PATHS]),
                          "spent": (target.HISTOGRAM, [({"path": "/a"}, state)]),
                          "hits_total": (target.COUNTER, [({}, target.value(target.COUNTER, 7))]),
                          "level": (target.GAUGE, [({"path": "/a"}, target.value(target.GAUGE, -2.25))])})
        receiver = rw.Receiver()
        self.addCleanup(receiver.stop)
        self.write("prometheus.yml", f"""
global: {{scrape_interval: 250ms}}
scrape_configs: [{{job_name: a, static_configs: [{{targets: ["{scraped.address}"]}}], metric_relabel_configs: [
  {{source_labels: [__name__], regex: "scrape_.*", action: drop}}]}}]
remote_write: [{{url: "{receiver.url}", send_native_histograms: true, queue_config: {{batch_send_deadline: 100ms}}, metadata_config: {{send_interval: 1s}}}}]
""".encode())
        try:
            server = prometheus.Prometheus(self.path("prometheus"))
            self.addCleanup(server.stop)
            server.start(self.path("prometheus.yml"), "--enable-feature=native-histograms")
        except Missing as error:
            self.skipTest(str(error))

        def wait(good):
            end = time.monotonic() + TIMEOUT_S
            while not good():
                self.assertLess(time.monotonic(), end)
                time.sleep(0.1)

        def markers():
            return sum(rw.unpacked(body).count(rw.STALE) for _, body in receiver.bodies)

        wait(lambda: scraped.scrapes >= 5 and len(receiver.bodies) > 3)
        scraped.stop()
        wait(lambda: markers() >= 6)
        server.stop()
        scrapes, topic = scraped.scrapes, self.new_topic(2)
        self.assertEqual({"0.1.0"}, {headers["X-Prometheus-Remote-Write-Version"] for headers, _ in receiver.bodies})
        self.send(topic, [body for _, body in receiver.bodies])
        self.configure({topic: "decode: [{remote_write: deltas}]"}, REPORTS)
        self.run_daemon()
        source = f"kafka:{topic}"
        self.wait_for(lambda: self.book(source, "rejected.stale"), lambda found: found >= markers() - 1)
        counts = {("buckets", index): n for index, n in slots_of({i - 1: n for i, n in positive.items()}, 3).items()} | \
                 {("negative", index): n for index, n in slots_of({i - 1: n for i, n in negative.items()}, 3).items()} | {"zero": 2}
        expected = {key: n * scrapes for key, n in counts.items() if n}
        said = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 3600))
        for path, (count, total, buckets) in self.native("pages", said).items():
            self.assertEqual((scrapes * (2 + sum(positive.values()) + 3), scrapes * 12.5), (count, total), path)
            self.assertEqual(expected, buckets)
        self.assertEqual({*PATHS}, {*self.native("pages", said)})
        self.assertGreaterEqual(self.book(source, "rejected.cumulative"), scrapes)  # of the histogram of totals
        self.stop()
        self.check_books()
        self.verify()


if __name__ == "__main__":
    main()
