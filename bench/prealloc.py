#!/usr/bin/env python3
"""make bench-prealloc: what store/prealloc.h makes of four kinds of traffic; writes tables and bench/prealloc.svg.

The C module itself is simulated (bench/prealloc.c), minute by minute over days, beside what the literature has: a chance of 1 in
500,000 at each hit, and all documents at midnight. Then a daemon is measured with two servers, the last batch of a day and the
first of the next. The exit status is 1 where a figure is missed.
"""

import argparse
import collections
import math
import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
sys.path[:0] = [HERE, os.path.join(HERE, "mongo")]
import measure  # noqa: E402 (found only now)
import midnight  # noqa: E402
import mongo  # noqa: E402
import svg  # noqa: E402

LOG = os.path.join(os.path.dirname(ROOT), "shared/data/access-2015.log")
LINE = re.compile(rb'\S+ \S+ .* \[\d+/\w+/\d+:(\d\d):\S+ [^]]*\] "\S+ ([^ ?"]+)')
SERIES, HITS, COVERAGE, SPIKE = 1_000_000, 10_000_000, 0.99, 2
JUDGED_DAYS = 2  # of which bench/prealloc.c adds up all
NAMES = {"auto": "`auto`", "chance": "`1/500000`", "midnight": "all at midnight"}
CHART = "prealloc.svg"  # beside the results
NAME = "bench-prealloc"

Way = collections.namedtuple("Way", "spike minutes decades busy")
Decade = collections.namedtuple("Decade", "series hit covered made unused")


def simulate(build, weights, hits, hours=None):
    """{way: what came of it}"""
    argv = [os.path.join(build, "bench_prealloc"), weights, str(hits), *([hours] if hours else [])]
    ways = {name: {"minutes": [0] * 1440, "decades": {}, "busy": None} for name in NAMES}
    for line in subprocess.run(argv, check=True, capture_output=True, text=True).stdout.splitlines():
        kind, name, *numbers = line.split()
        way = ways[name]
        if kind == "day":
            way["spike"] = float(numbers[0])
        elif kind == "minute":
            way["minutes"][int(numbers[0])] = int(numbers[1])
        elif kind == "decade":
            way["decades"][int(numbers[0])] = Decade(*map(int, numbers[1:]))
        else:
            way["busy"] = Decade(*map(int, numbers[1:]))
    return {name: Way(**way) for name, way in ways.items()}


def write_numbers(path, numbers):
    with open(path, "w", encoding="ascii") as file:
        file.writelines(f"{number}\n" for number in numbers)
    return path


def read_log(directory):
    """Files of how often each path of the real log was asked for, and how much each hour was."""
    paths, hours = collections.Counter(), collections.Counter()
    with open(LOG, "rb") as lines:
        for line in lines:
            found = LINE.match(line)
            if found:
                hours[int(found[1])] += 1
                paths[found[2]] += 1
    return (write_numbers(os.path.join(directory, "paths"), paths.values()),
            write_numbers(os.path.join(directory, "hours"), [hours[i] for i in range(24)]))


def traffics(build, work):
    """{what: ways}"""
    waves = write_numbers(os.path.join(work, "waves"), [1 + 0.6 * math.sin((hour - 9) / 24 * 2 * math.pi) for hour in range(24)])
    yield f"Zipf, {SERIES:,} series, {HITS:,} hits a day, by day and night alike", simulate(build, f"zipf:{SERIES}", HITS)
    yield "the same, with hours of 0.4 to 1.6 times the average", simulate(build, f"zipf:{SERIES}", HITS, waves)
    if os.path.exists(LOG):
        paths, hours = read_log(work)
        yield "the real log's paths and hours, 1,000,000 hits a day", simulate(build, paths, 1_000_000, hours)
        yield "the real log's paths and hours, its own 2,500 hits a day", simulate(build, paths, 2500, hours)


# ---- what it came to

def percent(part, whole):
    return "–" if whole == 0 else f"{100 * part / whole:.2f} %"


def all_of(way):
    return Decade(*map(sum, zip(*way.decades.values())))


def figures(results):
    """The rows of the summary, and where the first two miss what is asked."""
    rows = [["traffic", "way", "coverage, series with ≥ 50 hits a day", "spike", "coverage, all", "made and never used"]]
    missed = []
    for number, (what, ways) in enumerate(results.items()):
        for name, way in ways.items():
            total = all_of(way)
            if name == "auto" and number < 2:
                missed += [] if way.busy.covered >= COVERAGE * way.busy.hit and way.spike <= SPIKE else [what]
            rows.append([what if name == "auto" else "", NAMES[name],
                         percent(way.busy.covered, way.busy.hit) if way.busy else "–", f"{way.spike:,.2f}",
                         percent(total.covered, total.hit), percent(total.unused, total.made)])
    return rows, missed


def decade_name(power):
    return f"{10.0 ** power:,.0f} to {10.0 ** (power + 1):,.0f}" if power >= 0 else \
        f"{10.0 ** power:g} to {10.0 ** (power + 1):g}"


def by_decade(ways):
    rows = [["hits a day", "series", *(f"{NAMES[name]}: {what}" for name in ways for what in ("coverage", "waste"))]]
    for power in sorted(ways["auto"].decades, reverse=True):
        row = [decade_name(power), f"{ways['auto'].decades[power].series // JUDGED_DAYS:,}"]
        for way in ways.values():
            decade = way.decades[power]
            row += [percent(decade.covered, decade.hit), percent(decade.unused, decade.made)]
        rows.append(row)
    return rows


def chart(what, ways):
    lines = {name: [(minute / 60, count) for minute, count in enumerate(way.minutes)] for name, way in ways.items()}
    looks = {name: svg.Look(NAMES[name].strip("`"), number, 1) for number, name in enumerate(ways)}
    return svg.line_charts("Documents made ahead, per minute of a day", {what: lines}, looks, range(0, 25, 6),
                           "hour of the day, UTC", "documents a minute, logarithmic", is_log=True)


def report(work, results, rows, batches):
    first, *_ = results.values()
    auto = first["auto"]
    tables = "\n\n".join(f"By how often a series is hit: {what}.\n\n{measure.table(by_decade(ways))}"
                         for number, (what, ways) in enumerate(results.items()) if number in (0, 3))
    return f"""
| figure | at least | measured | verdict |
|---|---|---|---|
| `auto` on Zipf, series with ≥ 50 hits a day: coverage | ≥ 99 % | {percent(auto.busy.covered, auto.busy.hit)} | \
{"reached" if auto.busy.covered >= COVERAGE * auto.busy.hit else "**missed**"} |
| the same: spike, the busiest minute by the average one | ≤ 2 | {auto.spike:.2f} | {"reached" if auto.spike <= SPIKE else "**missed**"} |

A simulation of `store/prealloc.c` itself (`bench/prealloc.c`): the days that are judged follow two from which it learns. Coverage: of
the documents with a count on a day, those that had been made on the day before. Waste: of those made, what nothing was counted in.
Spike: of the worst day. Of the real log there are fewer documents than minutes: its spikes are what chance makes of that.

![documents made per minute]({CHART})

{measure.table(rows)}

{tables}

Of the series with less than 4 hits in two days no document is made: most of them would not be used.

With servers: what a daemon's batch takes when the next day's documents are due, and the first batch of the next day, which finds
them there, or makes them itself; each with its log and seal, medians of {midnight.ROUNDS} rounds (of zeros one).

{measure.table(batches)}

{measure.about(work)}
"""


def parse_arguments():
    parser = argparse.ArgumentParser(description="What is made ahead, when, and for nothing.")
    measure.add_arguments(parser)
    return parser.parse_args()


def run_all(arguments, work):
    results = dict(traffics(arguments.build, work))
    rows, missed = figures(results)
    with open(os.path.join(os.path.dirname(arguments.results), CHART), "w", encoding="utf-8") as file:
        waves = list(results)[1]
        file.write(chart(f"{SERIES:,} series, {HITS:,} hits a day", results[waves]))
    return missed, report(work, results, rows, midnight.rows(arguments.build, work))


if __name__ == "__main__":
    sys.exit(measure.run_bench(NAME, parse_arguments(), run_all, (mongo.Missing,)))
