#!/usr/bin/env python3
"""The line protocol as Telegraf writes it: each number of a random line is counted under its name and tags. The judge made the
lines, so it knows what they say. The seed is printed; TALLYD_SEED repeats a run."""

import collections
import unittest

from harness import Case, dice

CONFIG = b"""
sources: {telegraf: {path: metrics.lp, decode: influx}}
reports: {values: {by: [name, host, region], measures: {n: count, total: sum(value)}}}
"""
SPAN = ("2026-01-05", "2026-01-06")
BEGIN_NS = 1767571200 * 10**9
DAY_NS = 86400 * 10**9


def escape(text, specials):
    return "".join("\\" + c if c in specials else c for c in text)


def random_text(dice):
    return "".join(dice.choice('abz,= "/ä') for _ in range(dice.randrange(1, 9))).strip() or "x"


def random_line(dice, counts, texts):
    measurement = dice.choice(["cpu", "disk io", "net,eth"])
    tags = {name: dice.choice(texts) for name in dice.sample(["host", "region", "other-tag"], dice.randrange(4))}
    fields, has_number = [], False
    for name in dice.sample(["value", "usage idle", "a=b", "state", "up"], dice.randrange(1, 6)):
        if name == "state":
            fields.append('state="%s"' % escape(random_text(dice), '"\\'))
        elif name == "up":
            fields.append("up=" + dice.choice(["true", "f", "TRUE"]))
        else:
            micro = dice.randrange(-10**9, 10**9)
            is_integer = dice.random() < 0.5
            micro -= micro % 10**6 if is_integer else 0
            text = "%di" % (micro // 10**6) if is_integer else "%s%d.%06d" % ("-" * (micro < 0), abs(micro) // 10**6, abs(micro) % 10**6)
            fields.append(escape(name, ",= ") + "=" + text)
            cell = counts[f"{measurement}.{name}", tags.get("host", "-"), tags.get("region", "-")]
            cell[0] += 1
            cell[1] += micro
            has_number = True
    key = "".join(f",{name}={escape(text, ',= ')}" for name, text in tags.items())
    return f"{escape(measurement, ', ')}{key} {','.join(fields)} {BEGIN_NS + dice.randrange(DAY_NS)}\n", has_number


class MetricLines(Case):
    def test_each_number_is_counted_under_its_name_and_tags(self):
        chance, counts = dice(), collections.defaultdict(lambda: [0, 0])
        texts = [random_text(chance) for _ in range(5)]
        lines = [random_line(chance, counts, texts) for _ in range(5000)]
        self.write("tallyd.yaml", CONFIG)
        self.write("metrics.lp", "".join(line for line, _ in lines).encode())
        said = self.tallyd("import", "-c", "tallyd.yaml", "metrics.lp")
        events, rejected = sum(n for n, _ in counts.values()), sum(not has_number for _, has_number in lines)
        self.assertIn(f"consumed {events + rejected:,} = rejected {rejected:,} + parsed {events:,}", said)
        got = collections.defaultdict(list)
        for measure in "n", "total":
            for row in self.query("values", "--measure", measure, "--top", "1000", span=SPAN):
                got[row["name"], row["host"], row["region"]].append(row["value"])
        self.assertEqual({key: [n, micro] for key, (n, micro) in counts.items()},
                         {key: [int(n), round(float(total) * 10**6)] for key, (n, total) in got.items()})
        self.assertIn(": 0 differences", self.tallyd("verify", "-c", "tallyd.yaml", "metrics.lp"))


if __name__ == "__main__":
    unittest.main()
