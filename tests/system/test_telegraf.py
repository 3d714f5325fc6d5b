#!/usr/bin/env python3
"""StatsD and Influx against Telegraf's own plugins. Telegraf adds random lines of StatsD up and writes the sums as lines of Influx. tallyd
counts the lines of StatsD, and those of Telegraf: both must say the same. The seed is printed; TALLYD_SEED repeats a run."""

import os
import sys
import unittest

from harness import ROOT, Case, dice

sys.path.insert(0, os.path.join(ROOT, "tests", "servers"))
import process  # noqa: E402 (found only now)
import telegraf  # noqa: E402

CONFIG = b"""
sources:
  statsd: {path: statsd.log, decode: statsd}
  telegraf: {path: telegraf.log, decode: influx}
reports:
  values: {where: ['member=-', 'metric_type=-'], by: [name, host, region, type],
           measures: {count: count, sum: sum(value), last: last(value), lower: min(value), upper: max(value)}}
  members: {where: ['member!=-'], by: [name, host, region, member]}
  written: {where: ['metric_type!=-'], by: [name, host, region, metric_type], measures: {value: last(value)}}
"""
BEGIN_S, LINES = 1767571200, 5000
DAY, EVER = ("2026-01-05", "2026-01-06"), ("2026-01-05", "2100-01-01")
# The types of StatsD: Telegraf's word, tallyd's word, and which fields of Telegraf are which measures.
TIMES = {"count": "count", "sum": "sum", "lower": "lower", "upper": "upper"}
KINDS = {"c": ("counter", "counter", {"value": "sum"}), "g": ("gauge", "gauge", {"value": "last"}), "ms": ("timing", "timer", TIMES),
         "h": ("histogram", "histogram", TIMES), "s": ("set", "set", {})}


def random_line(chance):
    kind = chance.choice(list(KINDS))
    name = chance.choice(["page.hits", "odd=n\u00e4me"])
    tags = {tag: chance.choice(["a", "eu=1 x"]) for tag in chance.sample(["host", "region"], chance.randrange(3))}
    value = {"c": str(chance.randrange(-50, 1000)), "s": f"member{chance.randrange(9)}"}.get(kind, f"{chance.randrange(10**6) / 1000:.3f}")
    rate = chance.choice(["", "|@0.5", "|@0.1", "|@1"]) if kind == "c" else ""
    written = "|#" + ",".join(f"{tag}:{text}" for tag, text in tags.items()) if tags else ""
    if tags and chance.random() < 0.3 and "=" not in name + "".join(tags.values()):  # as InfluxDB writes tags
        name += "".join(f",{tag}={text}" for tag, text in tags.items())
        written = ""
    return f"{name}:{value}|{kind}{rate}{written}"


class Telegraf(Case):
    def setUp(self):
        super().setUp()

    def table(self, report, measure, by, span):
        rows = self.query(report, "--measure", measure, "--top", "1000", span=span)
        return {tuple(row[name] for name in by): round(float(row["value"]), 6) for row in rows}

    def test_telegraf_and_tallyd_say_the_same(self):
        chance = dice()
        lines = [random_line(chance) for _ in range(LINES)]
        self.write("tallyd.yaml", CONFIG)
        self.write("statsd.log", "".join(f"{line}|T{BEGIN_S + number}\n" for number, line in enumerate(lines)).encode())
        self.write("telegraf.log", telegraf.gather("".join(line + "\n" for line in lines).encode()))
        self.tallyd("import", "-c", "tallyd.yaml", "--last-line", "statsd.log", "telegraf.log")
        consumed, parsed = self.booked()
        self.assertEqual(consumed, parsed)

        wanted = {}
        for word, own, fields in KINDS.values():
            for field, measure in fields.items():
                for (name, host, region, kind), value in self.table("values", measure, ["name", "host", "region", "type"], DAY).items():
                    if kind == own:
                        wanted[f"{name}.{field}", host, region, word] = value
        for name, host, region, _ in self.table("members", "hits", ["name", "host", "region", "member"], DAY):
            key = f"{name}.value", host, region, "set"
            wanted[key] = wanted.get(key, 0) + 1
        written = self.table("written", "value", ["name", "host", "region", "metric_type"], EVER)
        self.assertGreater(len(wanted), 100)
        self.assertEqual([], [(key, value, written.get(key)) for key, value in wanted.items() if written.get(key) != value][:9])
        left = {key[0].rpartition(".")[2] for key in written if key not in wanted and key[0] != "done.value"}
        self.assertEqual({"mean", "median", "stddev"}, left)


if __name__ == "__main__":
    process.provided(telegraf.install)
    unittest.main()
