"""What the tests of totals share: instances that Prometheus scrapes, its messages of remote write, a daemon that keeps their totals, and the
engine of Prometheus as the judge of what PromQL says of them.

Instances restart, are away, and are scraped at odd times; messages come twice, late and in any order; the daemon is killed.
"""

import collections
import json
import os
import re
import subprocess
import time

import harness
import promcase
from harness import EX_OK, draw_death, failpoints

import process  # beside mongo and kafka
import promjudge
import remotewrite as rw

ROUNDS = int(os.environ.get("TALLYD_ROUNDS") or 200)
MINUTE_MS, MINUTES = 60000, 150
BOUNDS = ("0.05", "0.1", "0.5", "1", "+Inf")
EXAMPLE = os.path.join(harness.ROOT, "docs/examples/prometheus.yaml")


def reports(more):
    """Those of the example with `more` of each, and kept for ever."""
    with open(EXAMPLE, encoding="utf-8") as file:
        text = file.read()
    text = text[text.index("reports:"):text.index("\nstore:")]
    text = re.sub("\n    keep: .*", "", text)
    return re.sub("\n    where: ", f"\n    {more}\n    where: ", text)


def otlp_of(at_ms, series):
    """The same as cumulative sums of OpenTelemetry, in JSON."""
    metrics = []
    for labels, value in series:
        attributes = [{"key": name, "value": {"stringValue": text}} for name, text in labels.items() if name != "__name__"]
        point = {"timeUnixNano": str(at_ms * 10**6), "asDouble": value, "attributes": attributes}
        metrics.append({"name": labels["__name__"], "sum": {"aggregationTemporality": 2, "isMonotonic": True, "dataPoints": [point]}})
    return json.dumps({"resourceMetrics": [{"scopeMetrics": [{"metrics": metrics}]}]}).encode()


class World:
    """What some instances say whenever they are scraped."""

    def __init__(self, rolls, scrape_ms, is_otlp):
        self.rolls, self.messages, self.samples = rolls, [], collections.defaultdict(dict)  # (name, labels): {ms: value}
        self.is_otlp = is_otlp
        self.end_ms = int(time.time()) // 60 * MINUTE_MS - 60 * MINUTE_MS
        self.begin_ms = self.end_ms - MINUTES * MINUTE_MS
        for number in range(3):
            self.run(f"h{number}:80", scrape_ms, self.begin_ms + rolls.randrange(1, scrape_ms))

    def run(self, instance, scrape_ms, first_ms):
        rolls, totals, away_until = self.rolls, collections.Counter(), 0
        for at in range(first_ms, self.end_ms, scrape_ms):
            at_ms = at + rolls.randrange(min(100, self.end_ms - at, MINUTE_MS - at % MINUTE_MS))
            if rolls.random() < 0.01:
                totals.clear()  # it restarts
            if rolls.random() < 0.01:
                away_until = at_ms + rolls.randrange(10) * MINUTE_MS
            self.serve(totals, scrape_ms)
            if at_ms >= away_until:
                self.scrape(instance, at_ms, totals)

    def serve(self, totals, scrape_ms):
        for _ in range(self.rolls.randrange(8) * scrape_ms // 15000):
            code, took = self.rolls.choice(("200", "200", "200", "404")), self.rolls.choice((1, 1, 2, 6, 20)) / 16
            totals[code] += 1
            totals["sum"] += took
            for bound in BOUNDS:
                totals["le", bound] += took <= float(bound)

    def scrape(self, instance, at_ms, totals):
        more, series = {"job": "api", "instance": instance}, []
        took = "http_request_duration_seconds"
        for code in ("200", "404"):
            series.append(({"__name__": "http_requests_total", "code": code, **more}, totals[code]))
        for bound in BOUNDS:
            series.append(({"__name__": f"{took}_bucket", "le": bound, **more}, totals["le", bound]))
        series.append(({"__name__": f"{took}_sum", **more}, totals["sum"]))
        series.append(({"__name__": f"{took}_count", **more}, totals["le", "+Inf"]))
        for labels, value in series:
            self.samples[tuple(labels.items())][at_ms] = value
        self.messages += [(otlp_of if self.is_otlp else self.remote_write_of)(at_ms, series)] * self.rolls.choice((1, 1, 1, 2))

    def remote_write_of(self, at_ms, series):
        types = {"http_requests_total": rw.COUNTER}
        listed = [(labels, [rw.sample(at_ms, float(value))], [], types.get(labels["__name__"], rw.HISTOGRAM)) for labels, value in series]
        return rw.packed(self.rolls.choice((rw.request_1, rw.request_2))(listed))

    def shuffled(self):
        """Late by some dozens at most, but for a few."""
        place = {i: i + self.rolls.randrange(1000 if self.rolls.random() < 0.02 else 40) for i in range(len(self.messages))}
        return [self.messages[i] for i in sorted(place, key=place.get)]

    def judged(self, has_all):
        """As promjudge.Judge takes them."""
        for labels, samples in self.samples.items():
            kept = sorted(samples.items()) if has_all else sorted({at // MINUTE_MS: (at, samples[at]) for at in sorted(samples)}.values())
            labels = dict(labels)
            yield labels.pop("__name__"), labels, kept


class TotalsCase:
    """With a KafkaCase: `store_places` names the failpoints of its store."""
    store_places, address = "store.", None
    judged = promcase.PromCase.judged

    def ask(self, query, *times):
        asked = promcase.PromCase()
        asked.url = self.address
        return asked.ask(query, *times)

    def count(self, scrape_ms, more="", store="", step="remote_write"):
        world, topic = World(self.dice, scrape_ms, step == "otlp"), self.new_topic(2)
        producer = self.broker.producer()
        for message in world.shuffled():
            producer.send(topic, self.dice.randrange(2), message)
        producer.flush()
        producer.close()
        self.configure({topic: f"decode: [{{{step}: totals}}]"}, store + reports(more))
        self.tallyd("check", "-c", "tallyd.yaml", status=EX_OK)
        for _ in range(3):
            self.run_daemon(failpoint=draw_death(self.dice, failpoints(self.store_places), 3), consuming=False)
            try:
                self.process.wait(0.3 + self.dice.random())
            except subprocess.TimeoutExpired:  # it was not passed so often
                self.kill()
        self.run_daemon()
        self.wait_consumed(f"kafka:{topic}", len(world.messages) * (4 + len(BOUNDS)))
        self.stop()  # so that all that is committed is in documents of MongoDB
        self.run_daemon()
        self.address = self.listening()
        return world

    def selector(self, name):
        rolls = self.dice
        instance = rolls.choice(("", "", 'instance="h1:80"', 'instance=~"h[02].*"', 'job!="x"'))
        offset = rolls.choice(("", "", "", " offset 7m"))
        return lambda length: f"{name}{{{instance}}}{length}{offset}"

    def over(self, name):
        rolls, length = self.dice, self.dice.choice(("2m", "3m", "5m", "10m", "1h"))
        function = rolls.choice(("rate", "rate", "increase", "increase", "resets", "changes"))
        return f"{function}({self.selector(name)(f'[{length}]')})"

    def expression(self):
        rolls, took, bucket = self.dice, "http_request_duration_seconds", "http_request_duration_seconds_bucket"
        rate, of_bucket = self.over("http_requests_total"), self.over(bucket)
        return rolls.choice((
            rate, f"sum({rate})", f"sum by (code) ({rate})", f"topk(100, {rate})", f"max by (code) ({rate})", f"avg without (instance) ({rate})", of_bucket,
            f"{rate} / on (instance, job) group_left sum by (instance, job) ({self.over('http_requests_total')})",
            f"histogram_quantile(0.{rolls.randrange(1, 100)}, rate({self.selector(bucket)('[5m]')}))",
            f"histogram_quantile(0.9, sum by (le) (increase({self.selector(bucket)('[10m]')})))",
            f"max_over_time(({rate})[{rolls.choice(('10m', '30m'))}:2m])", f"{rate} > 0.1", self.selector("http_requests_total")(""),
            f'sum({self.selector(bucket)("")}) by (le)', f"{self.over(f'{took}_sum')} / {self.over(f'{took}_count')}"))

    def check(self, world, has_all):
        self.judge = promjudge.Judge.of_samples(self.dir, world.judged(has_all))
        self.addCleanup(self.judge.close)
        self.filled = 0
        begin, end = world.begin_ms // 1000, world.end_ms // 1000
        for _ in range(ROUNDS):
            query = self.expression()
            at, step = self.dice.randrange(begin, end + 600, 60), self.dice.choice((None, 60, 180))
            times = (at,) if step is None else (at, at + step * self.dice.randrange(1, 20), step)
            error, here = self.ask(query, *times)
            judge_error, there = self.judged(query, *times)
            self.assertEqual((None, None), (error, judge_error), query)
            is_alone = re.fullmatch(r"(rate|increase)\([^()]*\)", query)  # the same bits; others may add up in another order
            self.assertIsNone(promcase.difference(here, there, 0 if is_alone else promcase.NEAR), f"{query} at {times}")
            self.filled += bool(there)
        self.assertGreater(self.filled, ROUNDS // 2)
        return end


def main(run):
    """run() with a judge; without one, a skip."""
    process.provided(promjudge.install)
    run()
