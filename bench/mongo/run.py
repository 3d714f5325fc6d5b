"""make bench-mongo: tallyd into servers of MongoDB's protocol, and writes the tables, reached or not.

On each server, one after the other: the literature's way, two upserts for every event (naive.c); batches by the store in turn
with a bare loop of the same upserts (apply.c); a chart by the store in turn with a bare find (chart.c); and the daemon, fed
in time at the highest rate at which the age of events keeps below a limit (age.py). All write with the same write concern,
w: majority and j: true. The documents are compared with the books at the end: if they differ, or a server could not be
measured, the exit status is 1. A missed figure is no failure.
"""

import argparse
import functools
import os
import statistics
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path[:0] = [os.path.join(ROOT, "bench"), os.path.join(ROOT, "tests", "servers")]

import age  # noqa: E402
import daemon  # noqa: E402
import measure  # noqa: E402
import mongo  # noqa: E402
from measure import CONCERN, percentile, verdict  # noqa: E402

try:
    import pymongo
except ImportError:
    pymongo = None  # main() begins again by a Python that has it

# Events of a batch of the interleaved rounds, so that a round takes some seconds; and before, so that most documents are there.
SERVERS = {"ferretdb": ("FerretDB 2", 20_000, 1_500_000), "secantus": ("SecantusDB", 5_000, 600_000)}
NAIVE_CONNECTIONS, CONNECTIONS, ROUNDS, CHARTS = 8, 4, 5, 1000
NAIVE_S, PACED, PACED_S = 15, 1000, 30
# For each limit of an event's age: how long the daemon is fed, and how many rates are tried.
LIMITS = {1: (15, 4), 10: (36, 4), 60: (120, 2)}
LATE_S = 10  # beyond twice the limit: an event that is older ends a rate's run
# At least so many times the events/s of two upserts per event, by limit; of a server without one it is reported.
BOUNDS = {"ferretdb": {1: 25, 10: 100}, "secantus": {10: 20}}
BYTES_S, BOUNDS_BYTES = 10, {"ferretdb": 60, "secantus": 12}  # the limit that is tried with hits and bytes, too
PLAIN_S, PLAIN_TRIES = 10, 2  # the limit that is tried without indexes, too
RATE_MAX = 400_000
PAGE = "/index.html"  # the first of the site
# The literature's, of 1,000 updates a second for 30 s: mean, p95 and p99, with MMAPv1 and with WiredTiger.
LITERATURE_MS = "1.06, 1.5, 1.8; 1.11, 1.87, 2.48"
BOUND_APPLY, BOUND_TRIPS, BOUND_SHARE, BOUND_CHART, BOUND_UPDATES = 0.8, 2, 0.05, 1.2, 1.1
NAME = "bench-mongo"
say = functools.partial(measure.say, NAME)


def parse_arguments():
    parser = argparse.ArgumentParser(description="Measure tallyd with servers of MongoDB's protocol; write bench/RESULTS.md.")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help=f"interleaved rounds (default {ROUNDS})")
    parser.add_argument("--servers", nargs="+", choices=list(SERVERS), default=list(SERVERS), help="which (default all)")
    parser.add_argument("--limits", nargs="*", type=int, choices=list(LIMITS), default=list(LIMITS),
                        help="of the age of events, in seconds (default all)")
    measure.add_arguments(parser)
    return parser.parse_args()


class Bench:
    """All that is measured on one server."""

    def __init__(self, arguments, work, name):
        self.bounds, self.bound_bytes = BOUNDS[name], BOUNDS_BYTES[name]
        self.arguments, self.work, (self.label, self.batch, self.before) = arguments, work, SERVERS[name]
        self.server = mongo.Server(os.path.join(work, name), name)
        self.ages = {}  # by limit: the Run of the highest rate that kept it, or None
        self.plain = None  # the same without indexes
        self.bytes = None  # the same of a report of hits and bytes

    def url(self, database):
        return f"{self.server.url}/{database}{CONCERN}"

    def program(self, name, database, *words):
        """The numbers of each line that it prints, and a line's first word if that is none."""
        argv = [os.path.join(self.arguments.build, name), self.url(database), *map(str, words)]
        return [line.split() for line in measure.run(argv).out.splitlines()]

    def measure_naive(self):
        for collection in "pages.day", "pages.month", "pages.minute":  # the literature's, and the one that tallyd makes
            for database in "naive", "paced", "naive_bytes":
                self.client[database][collection].create_index([("metadata.path", 1), ("metadata.date", 1)])
        (events, seconds), _ = self.program("mongo_naive", "plain", NAIVE_CONNECTIONS, NAIVE_S)
        self.plain_rate = int(events) / float(seconds)
        (events, seconds), times = self.program("mongo_naive", "naive", NAIVE_CONNECTIONS, NAIVE_S)
        self.naive_rate, self.naive_ms = int(events) / float(seconds), [float(ms) for ms in times]
        (events, seconds), _ = self.program("mongo_naive", "naive_bytes", NAIVE_CONNECTIONS, NAIVE_S, 0, "bytes")
        self.bytes_rate = int(events) / float(seconds)
        say(f"{self.label}: naive {self.naive_rate:,.0f} events/s, with bytes {self.bytes_rate:,.0f}, "
            f"without indexes {self.plain_rate:,.0f}")
        (events, seconds), times = self.program("mongo_naive", "paced", NAIVE_CONNECTIONS, PACED_S, PACED)
        self.paced_rate, self.paced_ms = int(events) / float(seconds), [float(ms) for ms in times]
        say(f"{self.label}: paced {self.paced_rate:,.0f} updates/s, p99 {self.paced_ms[3]:.1f} ms")

    def measure_apply(self):
        lines = self.program("mongo_apply", "tallyd", self.batch, self.arguments.rounds, CONNECTIONS, self.before)
        self.rounds = [[float(number) for number in line[1:]] for line in lines if line[0] == "round"]
        trips, seconds = next(line[1:] for line in lines if line[0] == "protocol")
        self.trips = int(trips) / len(self.rounds)
        self.share = float(seconds) / sum(of[1] for of in self.rounds)
        self.house = next(line[1:] for line in lines if line[0] == "house")
        self.asked = next(int(line[1]) for line in lines if line[0] == "asked")
        self.tallyd_rate, self.bare_rate, self.bare_1_rate = (
            statistics.median(of[0] / of[column] for of in self.rounds) for column in (1, 2, 3))
        self.apply_ratio = statistics.median(of[2] / of[1] for of in self.rounds)
        say(f"{self.label}: {self.tallyd_rate:,.0f} documents/s, bare {self.bare_rate:,.0f}, ratio {self.apply_ratio:.2f}, "
            f"round trips {self.trips:.2f}, {100 * self.share:.1f} %")

    def measure_apply_bytes(self):
        lines = self.program("mongo_apply", "bytes", self.batch, self.arguments.rounds, CONNECTIONS, self.before, "bytes")
        rounds = [[float(number) for number in line[1:]] for line in lines if line[0] == "round"]
        self.apply_bytes_rate = statistics.median(of[0] / of[1] for of in rounds)
        self.apply_bytes_ratio = statistics.median(of[2] / of[1] for of in rounds)
        say(f"{self.label}: hits and bytes: {self.apply_bytes_rate:,.0f} documents/s, ratio {self.apply_bytes_ratio:.2f}")

    def measure_chart(self):
        [line] = self.program("mongo_chart", "tallyd", "pages", PAGE, CHARTS)
        self.chart_us, self.find_us, self.chart_documents = float(line[0]), float(line[1]), int(line[2])
        say(f"{self.label}: chart {self.chart_us:.0f} us, find {self.find_us:.0f} us, {self.chart_documents} documents")

    def feed(self, rate, seconds, aggregate, store="", database="tallyd", age_max_s=None):
        run = age.Run(rate, seconds, age_max_s)
        measures = "hits: count" + (", bytes: sum(bytes)" if database == "bytes" else "")
        run.watch(self.client[database],
                  daemon.on_pipe(self.arguments.build, self.work, self.url(database), aggregate, store, measures=measures))
        return run

    def measure_bytes(self):
        if BYTES_S in self.arguments.limits:
            first = age.events_of(self.apply_bytes_rate * BYTES_S / 2) * 2 / BYTES_S
            self.bytes = self.measure_age(BYTES_S, first, LIMITS[BYTES_S][1], database="bytes")

    def measure_plain(self):
        for collection in "pages.day", "pages.month":
            self.base[collection].drop_indexes()
        self.plain = self.measure_age(PLAIN_S, self.ages[PLAIN_S].rate, PLAIN_TRIES, ", indexes: false")

    def first_rate(self, limit_s):
        """The rate that the documents a second allow, but not far from what was seen."""
        rate = age.events_of(self.tallyd_rate * limit_s / 2) * 2 / limit_s
        return min([rate, *(3 * run.rate for run in self.ages.values() if run)])

    def measure_age(self, limit_s, rate, tries, store="", database="tallyd"):
        """Up until a rate does not keep the limit, or down until one does. The age says little of how far that is: as soon as
        batches are gathered for as long as they may be, it is near the limit at rates that are far from it."""
        seconds, interval_ms, late_s, best = LIMITS[limit_s][0], 1000 * limit_s // 2, 2 * limit_s + LATE_S, None
        for _ in range(tries):
            rate = max(100, min(int(rate) // 100 * 100, RATE_MAX))
            run = self.feed(rate, seconds, f"flush: {min(1000, interval_ms // 2)}ms, flush_max: {interval_ms}ms", store, database,
                            late_s)
            run.ages = [late_s] if run.late else run.ages_s(seconds / 3)
            p99_s = percentile(run.ages, 0.99)
            say(f"{self.label}: {rate:,} events/s into {database}{store}: age "
                + ("given up at" if run.late else f"p50 {percentile(run.ages, 0.5):.2f} s, p99")
                + f" {p99_s:.2f} s, limit {limit_s} s, flush {run.metrics.get('tallyd_flush_interval_seconds')} s")
            kept = not run.late and p99_s <= limit_s
            if best and not kept or kept and rate == RATE_MAX:
                return run if kept else best
            if kept:
                best = run
            rate *= max(1.25, min(3.0, limit_s / p99_s)) if kept else max(0.5, min(0.8, limit_s / p99_s))
        return best

    def measure_daemon_paced(self):
        self.daemon_paced = self.feed(PACED, PACED_S, "flush: 1s")
        self.daemon_paced.ages = self.daemon_paced.ages_s(2)

    def wrong(self):
        """All documents together agree with the books."""
        return [fault for database in ("tallyd", "bytes") for fault in self.wrong_in(self.client[database])]

    def wrong_in(self, base):
        counted = sum(book["reports"]["pages"].get("counted", 0) for book in base.books.find({"reports": {"$exists": True}}))
        found = {"books": counted}
        for collection, field in (("pages.day", "daily"), ("pages.month", "total")):
            [total] = base[collection].aggregate([{"$group": {"_id": None, "n": {"$sum": f"${field}"}}}])
            found[collection] = total["n"]
        return [] if len(set(found.values())) == 1 else [f"{self.label}: " + ", ".join(f"{k}: {v:,}" for k, v in found.items())]

    def run(self):
        """The faults that were found."""
        self.server.start()
        try:
            self.client = pymongo.MongoClient(self.server.url)
            self.base = self.client["tallyd"]
            self.measure_naive()
            self.measure_apply()
            self.measure_chart()
            for limit_s in self.arguments.limits:
                self.ages[limit_s] = self.measure_age(limit_s, self.first_rate(limit_s), LIMITS[limit_s][1])
            self.measure_apply_bytes()
            self.measure_bytes()
            self.measure_daemon_paced()
            if self.ages.get(PLAIN_S):
                self.measure_plain()
            return self.wrong()
        finally:
            self.server.kill()


# ---- the tables


def age_cell(run, naive_rate, bound):
    """`bound`: how many times at least; None: it is reported."""
    if run is None:
        return "no rate that was tried kept it" + (", **missed**" if bound else "")
    times = run.rate / naive_rate
    text = f"{times:.0f} × ({run.rate:,} events/s)"
    return verdict(text, times >= bound) if bound else text


def updates_cell(run):
    if run is None:
        return "no run"
    days, months = run.updates
    return verdict(f"{(days + months) / days:.2f} ({days:,.0f} of days, {months:,.0f} of months)", days + months <= BOUND_UPDATES * days)


def figures(benches):
    rows = [["figure", "at least", *(bench.label for bench in benches)]]

    def add(figure, least, cell):
        rows.append([figure, least, *(cell(bench) for bench in benches)])

    for limit_s in benches[0].arguments.limits:
        add(f"events/s at an age of p99 ≤ {limit_s} s, against two upserts per event",
            ", ".join(dict.fromkeys(f"≥ {b.bounds[limit_s]} ×" if limit_s in b.bounds else "report it" for b in benches)),
            lambda b, limit_s=limit_s: age_cell(b.ages[limit_s], b.naive_rate, b.bounds.get(limit_s)))
    if BYTES_S in benches[0].arguments.limits:
        add(f"the same for {BYTES_S} s of hits and bytes, both", ", ".join(f"≥ {b.bound_bytes} ×" for b in benches),
            lambda b: age_cell(b.bytes, b.bytes_rate, b.bound_bytes))
        add("documents written for each of a day that a flush writes, in that run", f"≤ {BOUND_UPDATES}",
            lambda b: updates_cell(b.bytes))
    add(f"the same for {PLAIN_S} s without indexes (`store.indexes: false`), both", "report it",
        lambda b: age_cell(b.plain, b.plain_rate, None))
    add("documents/s applied, against a bare loop of the same upserts", f"≥ {BOUND_APPLY} ×",
        lambda b: verdict(f"{b.apply_ratio:.2f} ×", b.apply_ratio >= BOUND_APPLY))
    add("the same of hits and bytes", "report it", lambda b: f"{b.apply_bytes_ratio:.2f} ×")
    add("the protocol's round trips per flush", f"≤ {BOUND_TRIPS}", lambda b: verdict(f"{b.trips:.2f}", b.trips <= BOUND_TRIPS))
    add("the protocol's share of a flush's time", f"≤ {BOUND_SHARE:.0%}",
        lambda b: verdict(f"{100 * b.share:.1f} %", b.share <= BOUND_SHARE))
    add("one page's last hour: documents read", "1", lambda b: verdict(str(b.chart_documents), b.chart_documents == 1))
    add("one page's last hour: median latency, against a bare find", f"≤ {BOUND_CHART} ×",
        lambda b: verdict(f"{b.chart_us / b.find_us:.2f} ×", b.chart_us / b.find_us <= BOUND_CHART))
    add(f"{PACED:,} updates/s for {PACED_S} s, one by one: mean, p95, p99 (the literature's: {LITERATURE_MS})", "report it",
        lambda b: f"{b.paced_ms[0]:.2f}, {b.paced_ms[2]:.2f}, {b.paced_ms[3]:.2f} ms; {b.paced_rate:,.0f} updates/s")
    add("the same load through the daemon: a flush", "report it",
        lambda b: f"{mean_apply_ms(b.daemon_paced):.0f} ms on average; age of an event {shares(b.daemon_paced)}")
    return rows


def mean_apply_ms(run):
    return 1000 * run.metrics["tallyd_apply_duration_seconds_sum"] / run.metrics["tallyd_apply_duration_seconds_count"]


def shares(run):
    return ", ".join(f"p{share * 100:g} {percentile(run.ages, share):.2f} s" for share in (0.5, 0.95, 0.99))


def beside(benches):
    rows = [["what", *(bench.label for bench in benches)]]

    def add(what, cell):
        rows.append([what, *(cell(bench) for bench in benches)])

    add(f"two upserts per event, {NAIVE_CONNECTIONS} connections", lambda b: f"{b.naive_rate:,.0f} events/s; an upsert "
        f"{b.naive_ms[0]:.2f} ms on average, p99 {b.naive_ms[3]:.2f} ms")
    add("two upserts per event without indexes", lambda b: f"{b.plain_rate:,.0f} events/s")
    add("events of a batch, documents", lambda b: f"{b.batch:,}, {statistics.median(of[0] for of in b.rounds):,.0f}")
    add("events of which the documents were there before", lambda b: f"{b.before:,}")
    add(f"documents/s: the store, {CONNECTIONS} connections", lambda b: f"{b.tallyd_rate:,.0f}")
    add(f"documents/s: the bare loop, {CONNECTIONS} connections", lambda b: f"{b.bare_rate:,.0f}")
    add("documents/s: the bare loop, one connection", lambda b: f"{b.bare_1_rate:,.0f}")
    add("two upserts per event, hits and bytes", lambda b: f"{b.bytes_rate:,.0f} events/s")
    add(f"documents/s of hits and bytes: the store, {CONNECTIONS} connections", lambda b: f"{b.apply_bytes_rate:,.0f}")
    add("log of a batch", lambda b: f"{statistics.median(of[4] for of in b.rounds) / 1024:,.0f} KiB")
    add("chunks of a batch with new documents, so that it was asked which were there",
        lambda b: f"{b.asked / len(b.rounds):.1f}")
    add("housekeeping of all rounds: the lease, deleted logs", lambda b: f"{b.house[0]} round trips, {float(b.house[1]):.2f} s")
    add("one page's last hour: the store, a bare find", lambda b: f"{b.chart_us:.0f} µs, {b.find_us:.0f} µs")
    for limit_s in benches[0].arguments.limits:
        add(f"age of an event at the rate that kept p99 ≤ {limit_s} s", lambda b, limit_s=limit_s: shares(b.ages[limit_s]) +
            f"; flush interval {b.ages[limit_s].metrics['tallyd_flush_interval_seconds']:.2f} s" if b.ages[limit_s] else "")
    add("age of an event at the rate that kept it without indexes", lambda b: shares(b.plain) if b.plain else "")
    return rows


def report(arguments, work, benches, wrong):
    equal = "At the end the sums of all documents of days and of months were what the books say."
    seconds = ", ".join(f"{LIMITS[limit_s][0]} s for {limit_s} s" for limit_s in arguments.limits)
    return f"""
{measure.table(figures(benches))}

Servers, programs and daemon share the machine; `w: majority`, `j: true` everywhere; pages by Zipf's law (1.0) over
{age.PATHS:,} paths in lines of 212 bytes; a report by path with one count, as the literature's documents have, or with
hits and bytes.

Two upserts per event: {NAIVE_S} s of `bench/mongo/naive.c`, with the index that tallyd makes. The daemon: `tallyd run` on a pipe, fed in time by
`bench/mongo/feed.c` ({seconds}, of which the first third is not counted), first at a rate taken from the documents
a second measured before, then at others by a quarter or more, while tries last, until one did not keep the limit. A rate is given up as soon as an
event is older than twice the limit and {LATE_S} s. Most updates of a flush are
then alike, and go together. With bytes few are alike: they go by pipelines of up to 50 documents. The rate is less while
documents are new, as in the first minutes of a day. The age is that of an event from when it was due until the books of its
batch, which are the last of its updates to be sent, were first seen in the database.

Documents/s: {arguments.rounds} rounds in turn, medians of their ratios; the bare loop has the same updates without guard and
`applied`, in bulks of 1,000 over as many connections, but neither log nor ledger.

{measure.equality(wrong, equal)}

{measure.table(beside(benches))}

{measure.about(work, ("libmongoc", measure.library("libmongoc-1.0")))}
"""


def run_all(arguments, work):
    mongo.begin()
    benches, wrong = [], []
    for name in arguments.servers:
        mongo.install(name)
        benches.append(Bench(arguments, work, name))
        wrong += benches[-1].run()
    return wrong, report(arguments, work, benches, wrong)


if __name__ == "__main__":
    sys.exit(measure.run_bench(NAME, parse_arguments(), run_all, (*mongo.ERRORS, ValueError)))
