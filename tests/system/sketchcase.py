"""The judge of sketches: numbers and texts, what is exact of them, and how far what build/bench_sketch counts is off."""

import os
import subprocess
import sys

from harness import ROOT

sys.path.insert(0, os.path.join(ROOT, "tests", "servers"))
import process  # noqa: E402 (found only now)
import sketches  # noqa: E402

process.provided(sketches.install)
import numpy  # noqa: E402 (is installed only now)

PROGRAM = os.path.join(ROOT, "build/bench_sketch")
MILLION = 10**6
QUANTILES = {"p1": 10000, "p5": 50000, "p10": 100000, "p25": 250000, "p50": 500000, "p75": 750000, "p90": 900000, "p95": 950000,
             "p99": 990000, "p99.9": 999000}  # in millionths
OFF_MAX = 0.022  # of a quantile
SPREAD_MAX, WORST_MAX = 0.017, 0.06  # of a distinct count: the standard error, and any error
EXACT_MAX = 600  # so many texts are counted exactly, but for one in 300 counts, which is 1 too small
COUNT_S = 600
# Numbers in seconds, as measured: of any size, and some below 0.
SHAPES = {
    "uniform": lambda rng, n: rng.uniform(0, 10, n),
    "exponential": lambda rng, n: rng.exponential(0.2, n),
    "normal": lambda rng, n: rng.normal(1, 0.1, n),
    "lognormal": lambda rng, n: rng.lognormal(-2, 1, n),
    "Pareto": lambda rng, n: 0.01 * (1 + rng.pareto(1.2, n)),
    "two humps": lambda rng, n: numpy.where(rng.random(n) < 0.5, rng.normal(0.001, 0.0001, n), rng.normal(5, 0.5, n)),
    "nearly constant": lambda rng, n: numpy.where(rng.random(n) < 0.99, 0.25, rng.uniform(0, 100, n)),
    "Laplace around 0": lambda rng, n: rng.laplace(0, 0.5, n),
}


def draw(shape, rng, count):
    """Millionths."""
    return numpy.rint(numpy.clip(SHAPES[shape](rng, count), -1e12, 1e12) * MILLION).astype(numpy.int64)


def run(*arguments, given=b""):
    done = subprocess.run([PROGRAM, *map(str, arguments)], input=given, stdout=subprocess.PIPE, check=True, timeout=COUNT_S)
    return done.stdout.decode().splitlines()


def exact_quantile(ordered, millionths):
    """The least of the numbers that has this share of them up to itself."""
    return ordered[max(1, -(-millionths * len(ordered) // MILLION)) - 1]


def quantiles(numbers, expression="histogram(duration)", names=tuple(QUANTILES)):
    """What the program says, in millionths."""
    return list(map(int, run(expression, *(f"{name}(m)" for name in names), given=numpy.asarray(numbers, "<i8").tobytes())))


def off(found, exact):
    """How far a quantile is off, as a share. Half a millionth is lost by rounding to millionths."""
    return max(0, abs(int(found) - int(exact)) - 0.5) / max(abs(int(exact)), 0.5)


def worst_off(numbers):
    """The greatest error of all quantiles, and whose."""
    ordered = numpy.sort(numbers)
    return max((off(found, exact_quantile(ordered, QUANTILES[name])), name) for name, found in zip(QUANTILES, quantiles(numbers)))


def texts(trial, count):
    """Those of bench_sketch."""
    return (f"{trial:06x}{number:010x}" for number in range(count))


def distinct_errors(sizes, trials, first=0):
    """The errors of distinct counts, as shares: a row a trial, a column a size."""
    counts = numpy.array([list(map(int, line.split())) for line in run("distinct(host)", first, trials, *sizes)])
    return counts / numpy.array(sizes) - 1


def standard(errors):
    return float(numpy.sqrt(numpy.mean(numpy.square(errors))))
