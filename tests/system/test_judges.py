#!/usr/bin/env python3
"""Histograms and distinct counts, judged by sketches that others wrote and by exact ones, over numbers and texts of many kinds.

Needs pip and Go, which get the judges once. `make bench-judges` asks the same of 10^7 numbers and texts, and more judges. The
seed is printed; TALLYD_SEED repeats a run.
"""

import collections
import csv
import inspect
import os
import re
import statistics
import unittest

import sketchcase
from harness import ROOT, Case, dice
from sketchcase import (EXACT_MAX, OFF_MAX, QUANTILES, SHAPES, SPREAD_MAX, WORST_MAX, distinct_errors, draw, exact_quantile, off,
                        quantiles, run, standard, texts, worst_off)

# These are installed by sketchcase.
import datadog_datasets
import datasketches
import numpy
import xxhash
from ddsketch import DDSketch
from hdrh.histogram import HdrHistogram
from hdrh.log import HistogramLogReader

REAL_LOG = os.path.join(os.path.dirname(ROOT), "shared/data/access-2015.log")
REAL_LINE = re.compile(rb'(\S+) \S+ .*? \[(\d+)/May/2015:(\d+):\d+:\d+ \+0000\] "\S+ ([^ ?"]+)[^"]*" \d+ (\d+|-) ')
TRIALS = 200
NOISE = 1 + 3 / (2 * TRIALS) ** 0.5  # a standard error of so many trials is off by chance
REGISTERS, REGISTER_BITS = 4096, 12


class Quantiles(Case):
    def setUp(self):
        super().setUp()
        seed = dice().randrange(1 << 32)
        self.rng = numpy.random.default_rng(seed)
        numpy.random.seed(seed)  # the data sets of DataDog draw by it

    def test_of_any_distribution(self):
        for shape in SHAPES:
            for count in (1, 2, 10, 100, 1000, 10**4, 10**5, 10**6):
                worst, name = worst_off(draw(shape, self.rng, count))
                self.assertLessEqual(worst, OFF_MAX, f"{name} of {count} numbers, {shape}")

    def test_of_the_data_sets_of_datadog(self):
        kinds = [kind for _, kind in inspect.getmembers(datadog_datasets, inspect.isclass)
                 if issubclass(kind, datadog_datasets.Dataset) and not inspect.isabstract(kind) and "Empty" not in kind.__name__]
        self.assertGreater(len(kinds), 10)
        for kind in kinds:
            for size in (1, 20, 500, 10000):
                numbers = numpy.rint(numpy.asarray(list(kind(size).data), float) * sketchcase.MILLION).astype(numpy.int64)
                if len(numbers) > 0:
                    worst, name = worst_off(numbers)
                    self.assertLessEqual(worst, OFF_MAX, f"{name} of {kind.__name__}({size})")

    def test_as_near_as_ddsketch(self):
        """A peer that promises the same error has about the same one."""
        ours, theirs = [], []
        for shape in SHAPES:
            numbers, peer = numpy.sort(draw(shape, self.rng, 20000)), DDSketch(OFF_MAX)
            for number in numbers.tolist():
                peer.add(number)
            for found, millionths in zip(quantiles(numbers), QUANTILES.values()):
                exact = exact_quantile(numbers, millionths)
                ours.append(off(found, exact))
                theirs.append(off(round(peer.get_quantile_value((millionths * len(numbers) / 1e6 - 1) / (len(numbers) - 1))), exact))
        print(f"off by {statistics.mean(ours):.2%} on average, DDSketch by {statistics.mean(theirs):.2%}")
        self.assertLess(statistics.mean(ours), 1.2 * statistics.mean(theirs))
        self.assertLessEqual(max(ours), OFF_MAX)

    def test_of_the_logs_of_hdrhistogram(self):
        """Each interval is a minute of a log that tallyd imports; a number of the log is a millionth."""
        judged = 0
        for log in sketchcase.sketches.logs():
            whole, minutes = None, []
            reader = HistogramLogReader(log, HdrHistogram(1, 2, 1))
            while (interval := reader.get_next_interval_histogram()) is not None:
                minutes.append([(one.value_iterated_to, one.count_added_in_this_iter_step) for one in interval.get_recorded_iterator()])
                if whole is None:
                    whole = interval
                else:
                    whole.add(interval)
            reader.close()
            judged += 1
            self.check_log(minutes, whole, os.path.basename(log))
        self.assertGreater(judged, 0)

    def check_log(self, minutes, whole, log):
        with open(self.path("a.log"), "w", encoding="ascii") as out:
            for number, minute in enumerate(minutes):
                for value, count in minute:
                    line = f"time=2026-01-05T{number // 60 % 24:02}:{number % 60:02}:00Z duration={value // 10**6}.{value % 10**6:06}\n"
                    out.write(line * count)
        self.write("tallyd.yaml", b"sources: {a: {path: a.log, decode: [logfmt]}}\n"
                   b"reports: {site: {measures: {hits: count, latency: histogram(duration)}}}\n")
        store = f"sqlite:{log}.db"
        self.tallyd("import", "-q", "-c", "tallyd.yaml", "--store", store, "a.log")
        for name, millionths in QUANTILES.items():
            found = self.tallyd("query", "site", "-c", "tallyd.yaml", "--store", store, "--measure", f"{name}(latency)", "--from",
                                "2026-01-05", "--to", "2026-01-06", "--format", "csv-raw").strip().rpartition(",")[2]
            rank = max(1, -(-millionths * whole.get_total_count() // 10**6))
            exact = whole.get_value_at_percentile(100 * rank / whole.get_total_count())
            self.assertLessEqual(off(round(float(found) * 1e6), exact), OFF_MAX, f"{name} of {log}")


class Distincts(unittest.TestCase):
    def test_standard_error_and_worst_case(self):
        sizes = sorted({round(10 ** (power / 4)) for power in range(4, 25)})
        errors = distinct_errors(sizes, TRIALS)
        for size, column in zip(sizes, errors.T):
            if size < EXACT_MAX:
                self.assertLess(abs(column).max() * size, 2, size)
            self.assertLessEqual(standard(column), SPREAD_MAX * NOISE, size)
            self.assertLessEqual(abs(column).max(), WORST_MAX, size)
        self.assertLessEqual(standard(errors[:, [size > EXACT_MAX for size in sizes]]), SPREAD_MAX)

    def test_as_near_as_datasketches(self):
        sizes, trials = [1000, 10000, 50000], 40
        ours, theirs = distinct_errors(sizes, trials), numpy.empty((trials, len(sizes)))
        for trial in range(trials):
            union = datasketches.hll_union(REGISTER_BITS)
            parts = [datasketches.hll_sketch(REGISTER_BITS, datasketches.HLL_8) for _ in range(2)]
            for number, text in enumerate(texts(trial, sizes[-1]), 1):
                parts[number & 1].update(text)
                if number in sizes:
                    union.update(parts[0])
                    union.update(parts[1])
                    theirs[trial, sizes.index(number)] = union.get_result(datasketches.HLL_8).get_estimate() / number - 1
        print(f"standard errors {standard(ours):.2%}, DataSketches {standard(theirs):.2%}")
        self.assertLess(standard(ours), 1.25 * standard(theirs))

    def registers(self, some):
        """The greatest rank of each, by the definition in distinct.h."""
        ranks = [0] * REGISTERS
        for text in some:
            digest, rest_bits = xxhash.xxh3_64_intdigest(text.encode()), 64 - REGISTER_BITS
            rank = rest_bits - (digest & ((1 << rest_bits) - 1)).bit_length() + 1
            ranks[digest >> rest_bits] = max(rank, ranks[digest >> rest_bits])
        return ranks

    def test_registers_and_unions(self):
        """By another library's XXH3, of texts of any length; in parts, which have some texts in common."""
        rolls = dice()
        for count in (0, 1, 500, 700, 1500, 30000):
            some = [f"{rolls.getrandbits(rolls.randrange(1, 900)):x}" for _ in range(count)]
            parts = [rolls.sample(some, count * 2 // 3) for _ in range(3)]
            given = "\n\n".join("\n".join(part) for part in parts)
            self.assertEqual(self.registers(sum(parts, [])), list(map(int, run("ranks", given=given.encode() + b"\n"))))

    def test_datasketches_estimates_the_same_from_the_same_registers(self):
        for size in (1000, 20000, 300000):
            ranks = numpy.array(list(map(int, run("ranks", given="\n".join(texts(7, size)).encode() + b"\n"))), numpy.uint8)
            theirs = datasketches.hll_sketch.deserialize(sketch_of(ranks)).get_estimate()
            ours, = run("distinct(host)", 7, 1, size)
            self.assertLessEqual(abs(int(ours) / theirs - 1), 0.01, size)


def sketch_of(ranks):
    """An HLL_8 of DataSketches, as it is written: it estimates by its registers, since it says that they are out of order."""
    head = bytes([10, 1, 7, REGISTER_BITS, 0, 16, 0, 2 | 2 << 2])
    low, high = (float(numpy.sum(2.0 ** -ranks[part].astype(float))) for part in (ranks < 32, ranks >= 32))
    numbers = numpy.array([0.0, low, high], "<f8").tobytes() + numpy.array([numpy.sum(ranks == 0), 0], "<u4").tobytes()
    return head + numbers + ranks.tobytes()


@unittest.skipUnless(os.path.exists(REAL_LOG), "the real log is not beside the project")
class RealLog(Case):
    def test_sizes_and_hosts_of_each_page_and_hour(self):
        with open(REAL_LOG, "rb") as file:
            lines = [REAL_LINE.match(line) for line in file]
        events = [match.groups() for match in lines if match]
        self.assertGreaterEqual(len(events), 9990)
        config = b"reports:\n  site: {measures: {hits: count, size: histogram(bytes), hosts: distinct(host)}}\n" \
                 b"  pages: {by: [path], measures: {hits: count, size: histogram(bytes), hosts: distinct(host)}}\n"
        self.write("tallyd.yaml", config)
        self.tallyd("import", "-q", "-c", "tallyd.yaml", REAL_LOG)
        self.check(events, "site", ("--step", "hour"), lambda day, hour, path: f"2015-05-{int(day):02}T{int(hour):02}:00:00Z")
        self.check(events, "pages", ("--top", "1000"), lambda day, hour, path: path.decode())

    def check(self, events, report, how, name_of):
        sizes, hosts = collections.defaultdict(list), collections.defaultdict(set)
        for host, day, hour, path, size in events:
            name = name_of(day, hour, path)
            hosts[name].add(host)
            if size != b"-":
                sizes[name].append(int(size))
        for figure in (*(f"{name}(size)" for name in QUANTILES), "hosts"):
            out = self.tallyd("query", report, "-c", "tallyd.yaml", "--measure", figure, "--from", "2015-05-17", "--to", "2015-05-21",
                              "--format", "csv-raw", *how)
            judged = 0
            for row in csv.DictReader(out.splitlines()):
                name = row.get("path") or row["time"]
                if name not in hosts or row["value"] == "":
                    continue
                judged += 1
                if figure == "hosts":
                    self.assertLessEqual(abs(int(row["value"]) - len(hosts[name])), len(hosts[name]) >= 50, name)
                else:
                    exact = exact_quantile(sorted(sizes[name]), QUANTILES[figure.partition("(")[0]])
                    self.assertLessEqual(off(round(float(row["value"]) * 1e6), exact * 10**6), OFF_MAX, f"{figure} of {name}")
            self.assertGreater(judged, 70)


if __name__ == "__main__":
    unittest.main()
