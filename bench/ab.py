"""make bench-ab OLD=DIRECTORY: what a change costs: two builds of tallyd, in turn, in one run.

DIRECTORY is the build/ of another checkout. A machine's speed drifts, so each figure is the ratio new : old of two runs
that follow each other; the table has the median of the ratios, the least and the most. Processor time is what
a noisy machine disturbs least.
"""

import argparse
import os
import statistics
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
sys.path[:0] = [os.path.join(HERE, "kafka"), HERE, os.path.join(ROOT, "tests", "servers")]

import kafka  # noqa: E402
import measure  # noqa: E402

NAME = "bench-ab"
QUERIES = (("a page by minute", ("pages", "--filter", "path=/", "--step", "minute")),
           ("the site by hour", ("site", "--step", "hour")),
           ("the top of a day", ("pages", "--top", "20")))
DAY = ("--from", "2026-01-05", "--to", "2026-01-07")


def parse_arguments():
    parser = argparse.ArgumentParser(description="Compare two builds of tallyd, pair by pair.")
    parser.add_argument("--old", required=True, help="where the programs to compare with are")
    parser.add_argument("--old-name", default="", help="what they are, for the results")
    parser.add_argument("--pairs", type=int, default=7, help="pairs of runs of each figure (default 7)")
    parser.add_argument("--lines", type=int, default=3_000_000, help="lines, and messages (default 3,000,000)")
    parser.add_argument("--questions", type=int, default=40, help="times that a question is asked in a run (default 40)")
    measure.add_arguments(parser)
    return parser.parse_args()


def timed(argv, directory, times=1):
    """(seconds, processor seconds) of all"""
    before, begun = os.times(), time.perf_counter()
    for _ in range(times):
        subprocess.run(argv, cwd=directory, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    after = os.times()
    used = after.children_user + after.children_system - before.children_user - before.children_system
    return time.perf_counter() - begun, used


def pair(run, sides, pairs):
    """[(ratio of seconds, ratio of processor seconds)]; the side that goes first changes each time."""
    ratios = []
    for number in range(pairs):
        found = {side: run(side) for side in (sides if number % 2 == 0 else reversed(sides))}
        old, new = (found[side] for side in sides)
        ratios.append((new[0] / old[0], new[1] / old[1]))
    return ratios


def row(what, ratios):
    wall, processor = (f"{statistics.median(values):.3f} ({min(values):.3f}–{max(values):.3f})" for values in zip(*ratios))
    measure.say(NAME, f"{what}: {processor}, {wall}")
    return [what, processor, wall]


def fresh(work, side):
    directory = os.path.join(work, side.strip("/").replace("/", "-"))
    os.makedirs(directory, exist_ok=True)
    for name in os.listdir(directory):
        os.remove(os.path.join(directory, name))
    return directory


def compare_files(arguments, sides, work):
    """Rows of the table."""
    log = os.path.join(work, "access.log")
    with open(log, "wb") as file:
        subprocess.run([os.path.join(arguments.build, "traffic"), "--lines", str(arguments.lines), "--seed", "1", "--start",
                        "2026-01-05T00:00:00Z"], stdout=file, check=True)
    measure.warm(log)

    def imported(side):
        return timed([os.path.join(side, "tallyd"), "import", "-q", log], fresh(work, side))
    rows = [row(f"import of {arguments.lines:,} lines", pair(imported, sides, arguments.pairs))]
    stores = {side: fresh(work, side) for side in sides}
    for side in sides:
        timed([os.path.join(side, "tallyd"), "import", "-q", log], stores[side])
    for what, question in QUERIES:
        def asked(side, question=question):
            return timed([os.path.join(side, "tallyd"), "query", *question, *DAY], stores[side], arguments.questions)
        rows.append(row(f"query: {what}", pair(asked, sides, arguments.pairs)))
    return rows


def compare_topic(arguments, sides, work):
    import run as bench_kafka  # noqa: PLC0415 - it is bench/kafka/run.py
    kafka.install()
    broker = kafka.Broker(os.path.join(work, "broker"), heap_mib=1024).start(kafka.THOROUGHLY)
    try:
        bench_kafka.load(arguments.build, broker, "lines", arguments.lines, "none")
        used = iter(range(1000))

        def counted(side):
            tallyd = bench_kafka.Daemon(side, work, broker.address, "lines", f"daemon-{next(used)}")
            tallyd.start()
            try:
                tallyd.wait_until(lambda: tallyd.stored() >= arguments.lines, "counting all messages")
                seconds = time.monotonic() - tallyd.begun
            finally:
                cpu_s = tallyd.end()
            return seconds, cpu_s
        what = f"{arguments.lines:,} messages of 4 partitions, until durable"
        return [row(what, pair(counted, sides, arguments.pairs))]
    finally:
        broker.kill()


def run_all(arguments, work):
    sides = (os.path.abspath(arguments.old), os.path.abspath(arguments.build))
    rows = [["new : old", "processor time", "wall time"]]
    rows += compare_files(arguments, sides, work) + compare_topic(arguments, sides, work)
    return [], f"""
{measure.table(rows)}

Ratios of {arguments.pairs} pairs of runs: the median, the least and the most. Old is {arguments.old_name or "another build"}. A question is
asked {arguments.questions} times in a run.

{measure.about(work)}
"""


if __name__ == "__main__":
    sys.exit(measure.run_bench(NAME, parse_arguments(), run_all, (kafka.Missing, kafka.rdkafka.Failed)))
