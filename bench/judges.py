#!/usr/bin/env python3
"""make bench-judges: how far histograms and distinct counts are off, by judges that no one here wrote; writes a part of
bench/RESULTS.md. tests/system/test_judges.py asks the same of fewer numbers, in a minute."""

import argparse
import csv
import functools
import json
import os
import random
import statistics
import subprocess
import sys

import measure
import peers

sys.path[:0] = [os.path.join(measure.ROOT, "tests", "servers"), os.path.join(measure.ROOT, "tests", "system")]

import hll  # noqa: E402 (found only now)
from process import Missing  # noqa: E402
from sketchcase import (EXACT_MAX, OFF_MAX, QUANTILES, SHAPES, SPREAD_MAX, WORST_MAX, distinct_errors, draw,  # noqa: E402
                        exact_quantile, off, quantiles, run, standard, texts, worst_off)

import datasketches  # noqa: E402 (is installed only now)
import numpy  # noqa: E402
import xxhash  # noqa: E402
from ddsketch import DDSketch  # noqa: E402

NAME = "bench-judges"
SEED = 23
REAL_LOG = os.path.join(os.path.dirname(measure.ROOT), "shared", "data", "access-2015.log")
SHARES = ("0.010001", "0.050001", "0.250001", "0.500001", "0.750001", "0.900001", "0.950001", "0.990001", "0.999001")
PEER_SIZES, PEER_TRIALS = [1000, 10_000, 100_000, 1_000_000], 50
HLL_TEXTS, HLL_PARTS, BITS, WIDTH = 30_000, 3, 12, 5  # no rank of so many texts needs 6 bits
CONFIG = """reports:
  site: {measures: {hits: count, size: histogram(bytes), hosts: distinct(host)}}
  pages: {by: [path], measures: {hits: count, size: histogram(bytes), hosts: distinct(host)}}
"""
say = functools.partial(measure.say, NAME)


def judge_numbers(rng, most, rows):
    counts = [10**power for power in range(len(str(most)))]
    worst = {}
    for shape in SHAPES:
        for count in counts:
            found, name = worst_off(draw(shape, rng, count))
            worst[found] = f"{name} of {count:,} numbers, {shape}"
        say(f"{shape}: off by at most {max(worst):.3%} so far")
    found = max(worst)
    rows.append([f"quantiles p1 to p99.9 against sorted numbers: {len(SHAPES)} distributions, 1 to {most:,} numbers", "≤ 2.2 %",
                 measure.verdict(f"{found:.2%} ({worst[found]})", found <= OFF_MAX)])


def judge_ddsketch(rng, rows):
    ours, theirs = [], []
    for shape in SHAPES:
        numbers, peer = numpy.sort(draw(shape, rng, 100_000)), DDSketch(OFF_MAX)
        for number in numbers.tolist():
            peer.add(number)
        for found, millionths in zip(quantiles(numbers), QUANTILES.values()):
            exact = exact_quantile(numbers, millionths)
            ours.append(off(found, exact))
            theirs.append(off(round(peer.get_quantile_value((millionths * len(numbers) / 1e6 - 1) / (len(numbers) - 1))), exact))
    rows.append(["the same of 100,000 numbers each, mean error; DDSketch(0.022) on the same numbers", "report it",
                 f"{statistics.mean(ours):.2%}; {statistics.mean(theirs):.2%}"])


def judge_texts(most, trials, rows):
    sizes = sorted({round(10 ** (power / 4)) for power in range(4, 4 * (len(str(most)) - 1) + 1)})
    errors = distinct_errors(sizes, trials)
    large = [size > EXACT_MAX for size in sizes]
    spread, worst = standard(errors[:, large]), abs(errors).max()
    each = [standard(column) for column in errors[:, large].T]
    at = sizes[int(abs(errors).max(axis=0).argmax())]
    rows.append([f"distinct counts, {trials} trials of {len(sizes)} sizes, 10 to {most:,}: standard error of the sizes above {EXACT_MAX}", "≤ 1.7 %",
                 measure.verdict(f"{spread:.2%} (by size {min(each):.2%} to {max(each):.2%})", spread <= SPREAD_MAX)])
    rows.append(["the same, worst of all", "≤ 6 %", measure.verdict(f"{worst:.2%} (of {at:,})", worst <= WORST_MAX)])


def judge_datasketches(rows):
    ours, theirs = distinct_errors(PEER_SIZES, PEER_TRIALS), numpy.empty((PEER_TRIALS, len(PEER_SIZES)))
    for trial in range(PEER_TRIALS):
        parts = [datasketches.hll_sketch(BITS, datasketches.HLL_8) for _ in range(2)]
        for number, text in enumerate(texts(trial, PEER_SIZES[-1]), 1):
            parts[number & 1].update(text)
            if number in PEER_SIZES:
                union = datasketches.hll_union(BITS)
                for part in parts:
                    union.update(part)
                theirs[trial, PEER_SIZES.index(number)] = union.get_result(datasketches.HLL_8).get_estimate() / number - 1
    rows.append([f"standard error, {PEER_TRIALS} trials of 1,000 to 1,000,000 texts; DataSketches' HLL of 2^12, united, on the same texts",
                 "report it", f"{standard(ours):.2%}; {standard(theirs):.2%}"])


def reversed_bits(number):
    """As PostgreSQL's bigint. The extension takes the register from the lowest bits, tallyd from the highest."""
    bits = int(f"{number:064b}"[::-1], 2)
    return bits - (1 << 64) if bits >> 63 else bits


def judge_hll(rows):
    """The registers of parts and of their union, and the estimate of these."""
    hll.install()
    draws = random.Random(SEED)
    some = [f"host{draws.randrange(1 << 40)}.example" for _ in range(HLL_TEXTS)]
    parts = [draws.sample(some, HLL_TEXTS // 2) for _ in range(HLL_PARTS)]
    arrays = [",".join(str(reversed_bits(xxhash.xxh3_64_intdigest(text.encode()))) for text in part) for part in parts]
    sketches = [f"(SELECT hll_add_agg(h::hll_hashval, {BITS}, {WIDTH}, 0, 0) FROM unnest('{{{array}}}'::bigint[]) h)" for array in arrays]
    answers = hll.ask([*(f"SELECT {sketch}" for sketch in sketches), f"SELECT {' || '.join(sketches)}", f"SELECT #({' || '.join(sketches)})"])
    same, given = 0, [[part] for part in parts] + [parts]
    for answer, of in zip(answers, given):
        ranks = list(map(int, run("ranks", given="\n\n".join("\n".join(part) for part in of).encode() + b"\n")))
        theirs = hll.registers(answer)
        same += all(rank == theirs[int(f"{number:0{BITS}b}"[::-1], 2)] for number, rank in enumerate(ranks))
    exact = len(set(sum(parts, [])))
    rows.append([f"sketches whose {1 << BITS:,} registers are those of postgresql-hll, by the same hashes: {HLL_PARTS} of texts, and their union",
                 f"{len(given)}", measure.verdict(str(same), same == len(given))])
    rows.append([f"postgresql-hll's own estimate of {exact:,} texts by these registers", "report it", f"off by {abs(float(answers[-1]) / exact - 1):.2%}"])


def judge_clickhouse(arguments, work, rows):
    """quantileExact and uniqExact of the real log, by hour and by page."""
    peer = peers.ClickHouse("exact", measure.CACHE)
    if peer.why_not is not None:
        raise measure.Failed(peer.why_not)
    config, store = os.path.join(work, "tallyd.yaml"), f"sqlite:{work}/real.db"
    program = [os.path.join(arguments.build, "tallyd")]
    with open(config, "w", encoding="ascii") as out:
        out.write(CONFIG)
    subprocess.run([*program, "import", "-q", "-c", config, "--store", store, arguments.log], check=True)
    with open(peer.sql, encoding="utf-8") as file:
        sql = file.read().replace("{FILE}", arguments.log).replace("{SHARES}", ", ".join(SHARES))
    names = {"site": "concat('2015-05-', f[2], 'T', f[3], ':00:00Z')", "pages": "f[4]"}
    worst, wrong_hosts, quantile_count, host_count = 0, 0, 0, 0
    for report, how in ("site", ("--step", "hour")), ("pages", ("--top", "1000")):
        script = "import chdb, sys; print(chdb.query(sys.argv[1], 'JSONCompactEachRow'))"
        said = subprocess.run([peer.python, "-c", script, sql.replace("{NAME}", names[report])], check=True, capture_output=True, text=True).stdout
        exact = {name: (sizes, int(sized), int(hosts)) for name, sizes, sized, hosts in map(json.loads, filter(None, said.split("\n"))) if name}
        for position, figure in enumerate([*(f"quantile({share}, size)" for share in SHARES), "hosts"]):
            out = subprocess.run([*program, "query", report, "-c", config, "--store", store, "--measure", figure, "--from", "2015-05-17", "--to",
                                  "2015-05-21", "--format", "csv-raw", *how], check=True, capture_output=True, text=True).stdout
            for row in csv.DictReader(out.splitlines()):
                sizes, sized, hosts = exact.get(row.get("path") or row["time"], ([], 0, 0))
                if figure == "hosts" and hosts > 0:
                    host_count += 1
                    wrong_hosts += abs(int(row["value"]) - hosts) > (WORST_MAX * hosts if hosts > EXACT_MAX else hosts >= 50)
                elif figure != "hosts" and sized > 0:
                    quantile_count += 1
                    worst = max(worst, off(round(float(row["value"]) * 1e6), int(sizes[position]) * 10**6))
    rows.append([f"the real log against ClickHouse's `quantileExact`: {quantile_count:,} quantiles of hours and pages", "≤ 2.2 %",
                 measure.verdict(f"{worst:.2%}", worst <= OFF_MAX and quantile_count > 5000)])
    rows.append([f"the same against `uniqExact`: of {host_count:,} counts of hosts, those that are off below 50, by more than 1 up to {EXACT_MAX}, "
                 f"by more than {100 * WORST_MAX:.0f} % above", "0",
                 measure.verdict(str(wrong_hosts), wrong_hosts == 0 and host_count > 500)])


def attempt(rows, what, function, *arguments):
    """Add a row that says why there is none, if a judge cannot be had."""
    say(what)
    try:
        function(*arguments, rows)
    except (Missing, measure.Failed) as why:
        rows.append([what, "", f"not judged: {why}"])


def run_all(arguments, work):
    rng, rows = numpy.random.default_rng(SEED), [["figure", "asked", "measured"]]
    judge_numbers(rng, arguments.most, rows)
    attempt(rows, "DDSketch", judge_ddsketch, rng)
    attempt(rows, "the real log, by ClickHouse", judge_clickhouse, arguments, work)
    say("texts")
    judge_texts(arguments.most, arguments.trials, rows)
    attempt(rows, "DataSketches", judge_datasketches)
    attempt(rows, "postgresql-hll", judge_hll)
    missed = any("**missed**" in row[2] for row in rows)
    text = f"""
{measure.table(rows)}

Numbers and texts are the same each time (seed {SEED}); what is counted is sealed, packed and merged as in a store. `tests/system/test_judges.py`
also has the data sets of DataDog, the logs of HdrHistogram, and DataSketches' estimate from tallyd's registers; `make bench-prom` judges
native histograms in PromQL by Prometheus.
"""
    return ["a figure was missed"] if missed else [], text


def parse_arguments():
    parser = argparse.ArgumentParser(description="Judge histograms and distinct counts; write bench/RESULTS.md.")
    parser.add_argument("--most", type=int, default=10**7, help="numbers and texts, a power of ten (default 10,000,000)")
    parser.add_argument("--trials", type=int, default=200, help="of distinct counts (default 200)")
    parser.add_argument("--log", default=REAL_LOG, help="the real log (default: beside the project)")
    measure.add_arguments(parser)
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(measure.run_bench(NAME, parse_arguments(), run_all))
