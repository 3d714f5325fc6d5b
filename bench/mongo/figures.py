"""make bench-figures: what an update costs over the minutes of a day, by the shape of its document; writes tables and a chart.

On each server, one after the other, days of the same few documents in each shape (figures.c): one minute after the other, the
shapes in turn, so that whatever else the machine does falls on all of them. Then days of documents that are rarely counted into,
as most are. Writes wait for w: majority and j: true. The content of each document at the end of a day is compared with what was
counted into it: where it differs the exit status is 1. The figures have no bounds: they are what a default is chosen by.
"""

import argparse
import collections
import functools
import os
import statistics
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path[:0] = [os.path.join(ROOT, "bench"), os.path.join(ROOT, "tests", "servers")]

import measure  # noqa: E402
import mongo  # noqa: E402
import svg  # noqa: E402
from measure import CONCERN, percentile  # noqa: E402

try:
    import bson
    import pymongo
except ImportError:
    pymongo = None  # main() begins again by a Python that has it

LABELS = {"ferretdb": "FerretDB 2", "secantus": "SecantusDB", "secantus-py": "SecantusDB in Python"}
SERVERS = ("ferretdb", "secantus")
CHART = "figures.svg"  # beside the results
MINUTES, HOURS = 1440, 24
# Documents of a shape; of those that are counted into often, and of those that are rarely, the minutes from one update to the
# next, and the days.
Plan = collections.namedtuple("Plan", "documents often often_days rarely rarely_days")
PLAN, QUICK = Plan(8, 1, 3, 30, 10), Plan(2, 30, 1, 720, 1)
# By shape as figures.c calls it: what it is, what the literature says of it, and how it is drawn: the wide ones first.
SHAPES = {
    "growing_flat": ("growing, flat", "to be avoided: it is moved as it grows [C]", svg.Look("growing, flat", 0, 2, "2 5")),
    "zeros_flat": ("zeros, flat", "no longer moved, but climbs over the day [C]", svg.Look("zeros, flat", 2, 2, "2 5")),
    "growing": ("growing, hierarchical", "—", svg.Look("growing, hierarchical", 0, 4)),
    "shell": ("shell, hierarchical", "—", svg.Look("shell, hierarchical", 1)),
    "zeros": ("zeros, hierarchical", "never grows, no level has over 60 keys: level, and the least [C]",
              svg.Look("zeros, hierarchical", 2)),
}
PROBE = "probe"  # whose updates are the same work at each time of day
TALLYD = ("growing", "shell", "zeros")  # between which it has a choice
SLICES = "0.75 ×: 0.756 ms against 1.012 ms, of slices of a cache, on WiredTiger [K]"
NAME = "bench-figures"
say = functools.partial(measure.say, NAME)


def parse_arguments():
    parser = argparse.ArgumentParser(description="Measure updates over a day by the shape of the document.")
    parser.add_argument("--servers", nargs="+", choices=list(LABELS), default=SERVERS,
                        help=f"which (default {' '.join(SERVERS)})")
    parser.add_argument("--quick", dest="plan", action="store_const", const=QUICK, default=PLAN,
                        help="few updates, to see that all of it works")
    measure.add_arguments(parser)
    return parser.parse_args()


def usual(values):
    """The lower quartile: what else the machine does is no part of it."""
    return percentile(sorted(values), 0.25)


class Days:
    """Measurements of days with an update each `step` minutes: microseconds of a document, by shape."""

    def __init__(self, step):
        self.step = step
        self.updates = {shape: [] for shape in (*SHAPES, PROBE)}  # (minute, microseconds)
        self.before = {shape: [] for shape in (*SHAPES, PROBE)}
        self.bytes = {}  # of a document, at the end

    def hour(self, shape, hour):
        """As it would be if the machine had been as busy as it was all day."""
        shapes, probes = ([us for minute, us in self.updates[which] if minute // 60 == hour] for which in (shape, PROBE))
        return usual(shapes) * usual(us for _, us in self.updates[PROBE]) / usual(probes)

    def day(self, shape):
        return statistics.mean(self.hour(shape, hour) for hour in {minute // 60 for minute, _ in self.updates[shape]})

    def first(self, shape):
        return [us for minute, us in self.updates[shape] if minute == 0]

    def slowest(self, shape):
        return percentile(sorted(us for _, us in self.updates[shape]), 0.99)

    def total_ms(self, shape):
        """The cost of a document in a day, making it beforehand included."""
        return (self.day(shape) * len(range(0, MINUTES, self.step)) + usual(self.before[shape] or [0])) / 1000


class Bench:
    """All that is measured on one server."""

    def __init__(self, arguments, name, work):
        self.build, self.plan, self.label = arguments.build, arguments.plan, LABELS[name]
        self.server = mongo.Server(os.path.join(work, name), name)
        self.often, self.rarely = Days(self.plan.often), Days(self.plan.rarely)
        self.wrong = []

    def measure_day(self, days, name):
        """In a database of its own."""
        base = self.client[name]
        for shape in (*SHAPES, PROBE):  # the one that tallyd makes
            base[shape].create_index([("metadata.path", 1), ("metadata.date", 1)])
        argv = [os.path.join(self.build, "mongo_figures"), f"{self.server.url}/{name}{CONCERN}", str(self.plan.documents),
                str(days.step)]
        for line in measure.run(argv).out.splitlines():
            shape, minute, us = line.split()
            if minute == "before":
                days.before[shape].append(float(us))
            else:
                days.updates[shape].append((int(minute), float(us)))
        for shape in SHAPES:
            days.bytes[shape] = self.check(base[shape], len(range(0, MINUTES, days.step)))
        self.client.drop_database(name)

    def check(self, collection, updates):
        """Do all documents say that there were so many updates? The size of the largest."""
        documents = list(collection.find())
        if len(documents) != self.plan.documents:
            self.wrong.append(f"{self.label}: {collection.full_name} has {len(documents)} documents")
        for document in documents:
            minutes = sum(sum(value.values()) if isinstance(value, dict) else value for value in document["minute"].values())
            if {document["daily"], sum(document["hourly"].values()), minutes} != {updates}:
                self.wrong.append(f"{self.label}: {collection.full_name}: {document['_id']} is not {updates} everywhere")
        return max(len(bson.encode(document)) for document in documents)

    def run(self):
        self.server.start()
        try:
            self.client = pymongo.MongoClient(self.server.url)
            for days, count in ((self.often, self.plan.often_days), (self.rarely, self.plan.rarely_days)):
                for day in range(count):
                    say(f"{self.label}: day {day + 1} of {count}, an update each {days.step} min")
                    self.measure_day(days, f"step{days.step}_day{day}")
        finally:
            self.server.kill()


# ---- the tables


def by_shape(benches):
    rows = [["document", "the literature", *(f"{bench.label}: first hour, last hour; day" for bench in benches)]]
    for shape, (what, literature, _) in SHAPES.items():
        cells = []
        for bench in benches:
            first, last = bench.often.hour(shape, 0), bench.often.hour(shape, HOURS - 1)
            cells.append(f"{first:.0f}, {last:.0f} µs: {last / first:.2f} ×; {bench.often.day(shape):.0f} µs")
        rows.append([what, literature, *cells])
    return rows


def against(benches):
    rows = [["first hour, last hour; day", "the literature", *(bench.label for bench in benches)]]
    for shape, other, literature in (("zeros_flat", "growing_flat", "less [C]"),
                                     ("zeros_flat", "zeros", "more, the more the later [C]"),
                                     ("zeros", "growing", SLICES), ("zeros", "shell", "—"), ("shell", "growing", "—")):
        cells = []
        for bench in benches:
            first, last = (bench.often.hour(shape, hour) / bench.often.hour(other, hour) for hour in (0, HOURS - 1))
            cells.append(f"{first:.2f}, {last:.2f} ×; {bench.often.day(shape) / bench.often.day(other):.2f} ×")
        rows.append([f"{SHAPES[shape][0]}, against {SHAPES[other][0]}", literature, *cells])
    return rows


def three(cell):
    return ", ".join(cell(shape) for shape in TALLYD)


def choice(benches):
    """The choices for tallyd."""
    plan = benches[0].plan
    rows = [["growing, shell, zeros; hierarchical", *(bench.label for bench in benches)]]

    def add(what, cell):
        rows.append([what, *(three(functools.partial(cell, bench)) for bench in benches)])

    add("making a document beforehand, µs", lambda b, shape: "—" if shape == "growing" else
        f"{usual(b.often.before[shape] + b.rarely.before[shape]):.0f}")
    add("the first update of its day, µs", lambda b, shape: f"{usual(b.often.first(shape) + b.rarely.first(shape)):.0f}")
    add("the slowest hundredth of all updates, µs", lambda b, shape: f"{b.often.slowest(shape):.0f}")
    add(f"its day and making it, with an update each {plan.often} min, ms", lambda b, shape: f"{b.often.total_ms(shape):.1f}")
    add(f"the same each {plan.rarely} min, ms", lambda b, shape: f"{b.rarely.total_ms(shape):.1f}")
    add(f"it after such a day each {plan.often} min, kB", lambda b, shape: f"{b.often.bytes[shape] / 1000:.1f}")
    add(f"the same each {plan.rarely} min", lambda b, shape: f"{b.rarely.bytes[shape] / 1000:.1f}")
    return rows


def verdict(benches):
    """Remarks on the three."""
    kinds = [days for bench in benches for days in (bench.often, bench.rarely)]
    best = {min(("shell", "zeros"), key=days.total_ms) for days in kinds}
    ratios = [days.total_ms("shell") / days.total_ms("growing") for days in kinds]
    which = f"`{best.pop()}` costs less, on each server and for both kinds of documents" if len(best) == 1 else \
        "which costs less depends on the server or on how often a document is counted into"
    return (f"Of `shell` and `zeros`, {which}. A shell's day costs {min(ratios):.2f} to {max(ratios):.2f} × that of a document\n"
            "which its first update makes.")


def report(benches, wrong, work):
    equal = "At the end of each day every document said in its minutes, hours and day what was counted into it."
    plan = benches[0].plan
    return f"""
![What an update costs over the hours of a day]({CHART})

{measure.table(by_shape(benches))}

{measure.table(against(benches))}

{measure.table(choice(benches))}

{verdict(benches)}

An update: `$inc` of `daily`, `hourly.H` and `minute.H.M` (or, flat, `minute.N`), an upsert by `_id`, date and path, with
`w: majority`, `j: true` and the index that tallyd makes. {plan.documents} documents are counted into by one command of
`bench/mongo/figures.c`, whose time is divided among them. An hour's figure is the lower quartile of its commands, the day's the
mean of its hours. What else the machine did is left out as far as it can be: hours are scaled by what it cost in them to count into
`daily` alone of other small documents, in turn with the shapes. *Growing*: the day's first update makes the document; *shell*: it was
there, with its metadata; *zeros*: with all its buckets, too. {plan.often_days} days with an update each {plan.often} min,
{plan.rarely_days} with one each {plan.rarely} min; the shapes in turn in each minute.
[C]: Copeland, *MongoDB Applied Design Patterns*, 2013, of MMAPv1, which had to move what grew; [K]: Kvalheim, *The Little MongoDB
Schema Design Book*, 2015.

{measure.equality(wrong, equal)}

{measure.about(work, ("libmongoc", measure.library("libmongoc-1.0")))}
"""


def chart(benches):
    panels = {bench.label: {shape: [(hour + 0.5, bench.often.hour(shape, hour)) for hour in range(HOURS)] for shape in SHAPES}
              for bench in benches}
    return svg.line_charts("What an update costs over the hours of a day, by the shape of its document", panels,
                           {shape: look for shape, (_, _, look) in SHAPES.items()}, range(0, HOURS + 1, 6), "hour of the day",
                           "µs an update")


def run_all(arguments, work):
    mongo.begin()
    benches = []
    for name in arguments.servers:
        mongo.install(name)
        benches.append(Bench(arguments, name, work))
        benches[-1].run()
    wrong = [line for bench in benches for line in bench.wrong]
    with open(os.path.join(os.path.dirname(arguments.results), CHART), "w", encoding="utf-8") as file:
        file.write(chart(benches))
    return wrong, report(benches, wrong, work)


if __name__ == "__main__":
    sys.exit(measure.run_bench(NAME, parse_arguments(), run_all, mongo.ERRORS))
