#!/usr/bin/env python3
"""The configuration docs/examples/monitoring.yaml, as it is shipped, over 70 days of samples: each of its charts is right to the
last sample, what is gone is refused by the name of what would do, and the store does not grow once its windows are full. Which
they are when the last 20 days begin, as the first import brings samples of the 14 days before, too.

The days go by in seconds, as otherday.so moves the clock of each import. They end now, so that what a server would expire by
its own clock has expired by that, too. The seed is printed; TALLYD_SEED repeats a run.
"""

import csv
import json
import os
import sqlite3
import time
import unittest
from decimal import Decimal

from harness import EX_UNAVAILABLE, ROOT, Case, dice, other_day, store_url
from test_gauges import mean, text

MINUTE, HOUR, DAY = 60, 3600, 86400
CONFIG = os.path.join(ROOT, "docs/examples/monitoring.yaml")
DAYS, BEFORE_DAYS, LEVEL_DAYS, LEVEL = 70, 14, 20, 0.05
METRICS = {"cpu.load": "gauges", "mem.used": "gauges", "requests": "counters"}
# For each chart: the step, its length, how far back it goes, and the question to ask beyond that.
CHARTS = (("minute", MINUTE, 48 * HOUR, "hour"), ("5m", 5 * MINUTE, 48 * HOUR, "hour"), ("hour", HOUR, 62 * DAY, "day"),
          ("day", DAY, None, None))
LINE = '{"name": "%s", "ts": %d, "value": %d.%03d, "tags": {"client": "web-%d"%s}}\n'


def iso(at):
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(at))


def gauge(values):
    """What `gauges` says of the values in a bucket, in the order of their times and places."""
    if not values:
        return {"last": "", "low": "", "high": "", "mean": ""}
    return {"last": text(values[-1]), "low": text(min(values)), "high": text(max(values)), "mean": text(mean(values))}


def counter(values):
    return {"total": text(sum(values)), "samples": str(len(values))}


MEASURED = {"gauges": gauge, "counters": counter}


def recount(lines):
    """{(client, name): its (time, value) by time}, by nothing that tallyd has."""
    series = {}
    for line in lines.splitlines():
        sample = json.loads(line, parse_float=Decimal)
        series.setdefault((sample["tags"]["client"], sample["name"]), []).append((sample["ts"], sample["value"]))
    for samples in series.values():
        samples.sort(key=lambda one: one[0])  # the same second: as they stand
    return series


class Monitoring:
    """The days, and what is to be found of them."""
    store = "monitoring.db"
    clients, every_s = 3, MINUTE
    hours_an_import = 12

    def samples(self, begin, end):
        """Each series has about one each `every_s`; some come late, by minutes or by days."""
        lines = []
        for at in range(begin, end, self.every_s):
            for client in range(self.clients):
                for name, report in METRICS.items():
                    ts = at + self.dice.randrange(self.every_s)
                    if self.dice.random() < 0.01:
                        ts -= self.dice.choice((MINUTE, 10 * MINUTE, 5 * HOUR, 10 * DAY))
                    kind = ', "kind": "counter"' if report == "counters" else ""
                    lines.append(LINE % (name, max(ts, self.begin), self.dice.randrange(100), self.dice.randrange(1000), client,
                                         kind))
        return "".join(lines)

    def count_at(self, now):
        """An import at that time of what there is, with the configuration as it is. It ends before the clock goes on to it."""
        environment = other_day(now - int(time.time()))
        self.tallyd("import", "-c", CONFIG, "--decode", "metric", "--store", store_url(self.store), "-q", "metrics.json",
                    env=environment)

    def days_go_by(self):
        """How large the store was after each import, in each of the figures of size()."""
        self.dice = dice()
        self.end = int(time.time())
        self.begin = since = self.end - (DAYS + BEFORE_DAYS) * DAY
        step = self.hours_an_import * HOUR
        sizes = []
        for now in range(self.end - DAYS * DAY, self.end + step, step):
            with open(self.path("metrics.json"), "a", encoding="ascii") as file:
                file.write(self.samples(since, now))
            self.count_at(now)
            sizes.append(self.size())
            since = now
        return sizes

    def check_level(self, sizes):
        for what in sizes[0]:
            last = [size[what] for size in sizes[-LEVEL_DAYS * 24 // self.hours_an_import - 1:]]
            growth = max(last) / min(last) - 1
            print(f"{what} in the last {LEVEL_DAYS} of {DAYS} days: {min(last):,} to {max(last):,}, {100 * growth:.2f} %")
            self.assertLessEqual(growth, LEVEL)

    def ask(self, report, begin, end, step, *arguments, **options):
        return self.tallyd("query", report, "--step", step, "--from", iso(begin), "--to", iso(end), "--measure", "all",
                           "--store", store_url(self.store), "--format", "csv-raw", *arguments, **options)

    def check_chart(self, key, samples, step, length, begin):
        """The last of its buckets has the last sample in it."""
        begin, end = begin // length * length, self.end // length * length + length
        buckets = {at: [] for at in range(begin, end, length)}
        for at, value in samples:
            if at >= begin:
                buckets[at // length * length].append(value)
        report = METRICS[key[1]]
        expected = [{"time": iso(at), **MEASURED[report](values)} for at, values in buckets.items()]
        answer = self.ask(report, begin, end, step, "--filter", f"client={key[0]}", "--filter", f"name={key[1]}")
        for wanted, found in zip(expected, csv.DictReader(answer.splitlines()), strict=True):
            self.assertEqual(wanted, found, (key, step))
        self.assertTrue(any(buckets.values()))

    def check_charts(self):
        series = recount(self.read("metrics.json"))
        self.assertEqual(self.clients * len(METRICS), len(series))
        now = int(time.time())  # a little later than when marks were moved
        for key, samples in series.items():
            for step, length, back, _ in CHARTS:
                self.check_chart(key, samples, step, length, self.begin if back is None else now - back)

    def check_refused(self):
        """The expired buckets: minutes expire by hours, and hours by days."""
        for report in MEASURED:
            for step, _, back, longer in CHARTS:
                if longer is not None:
                    self.ask(report, self.end - back - 2 * DAY, self.end, step, status=EX_UNAVAILABLE)
                    self.assertIn(f"or by {longer}", self.err)

    def check_days(self):
        self.check_level(self.days_go_by())
        self.check_charts()
        self.check_refused()
        self.tallyd("verify", "-c", CONFIG, "--decode", "metric", "--store", store_url(self.store), "metrics.json")


class Embedded(Monitoring, Case):
    def size(self):
        """Up to an eighth of the file may be free pages, which are used again."""
        connection = sqlite3.connect(self.path(self.store))
        pages, free = (connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_count", "freelist_count"))
        connection.close()
        self.assertLessEqual(free, pages / 8)
        return {"pages": pages - free}

    def test_70_days(self):
        self.check_days()


if __name__ == "__main__":
    unittest.main()
