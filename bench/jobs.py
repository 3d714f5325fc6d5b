#!/usr/bin/env python3
"""make bench-jobs: what the jobs beside the counting cost, and that they change nothing; writes tables into bench/RESULTS.md.

Ingest with all jobs and with none (ingest.py), events kept and not (raw.py), rolling up against reading (mongo/rollup.py), and two
system tests, whose findings are taken over: jobs killed at drawn places with a recount at the end, and 70 days of a monitoring tool. Where a count is wrong the
exit status is 1. A missed figure is no failure.
"""

import argparse
import functools
import os
import re
import shutil
import statistics
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
sys.path[:0] = [os.path.join(HERE, "mongo"), os.path.join(ROOT, "tests", "servers")]

import ingest  # noqa: E402
import measure  # noqa: E402
import mongo  # noqa: E402
import raw  # noqa: E402
import rollup  # noqa: E402
from measure import spread, verdict  # noqa: E402

try:
    import pymongo
except ImportError:
    pymongo = None  # main() begins again by a Python that has it

SERVERS = {"ferretdb": "FerretDB 2", "secantus": "SecantusDB"}
BOUND_INGEST, BOUND_ROLL, BOUND_LEVEL = 0.9, 2, 5
SQLITE_VISITS, MONGO_VISITS = 24, 1  # of each path on each day of the past
TEST_S = 3600
NAME = "bench-jobs"
say = functools.partial(measure.say, NAME)


def parse_arguments():
    parser = argparse.ArgumentParser(description="Measure what jobs cost; write bench/RESULTS.md.")
    parser.add_argument("--pairs", type=int, default=7, help="of runs with jobs and without (default 7)")
    parser.add_argument("--lines", type=int, default=16_000_000, help="that a run counts (default 16,000,000)")
    parser.add_argument("--raw-lines", type=int, default=200_000, help="imported with and without their events (default 200,000)")
    parser.add_argument("--documents", type=int, default=100_000, help="that are rolled up (default 100,000)")
    parser.add_argument("--rounds", type=int, default=5, help="of reading and rolling up, and of raw events (default 5)")
    parser.add_argument("--kills", type=int, default=200, help="rounds with a job killed (default 200)")
    parser.add_argument("--servers", nargs="+", choices=list(SERVERS), default=list(SERVERS),
                        help="where to roll up (default all); the first takes the other figures, too")
    measure.add_arguments(parser)
    return parser.parse_args()


def measure_ingest(arguments, work, server, label):
    """Into SQLite, and into the server."""
    directory = os.path.join(work, "stores")
    places = (("SQLite", SQLITE_VISITS, lambda name: f"sqlite:{directory}/{name}.db"),
              (label, MONGO_VISITS, lambda name: f"{server.url}/{name}"))
    os.makedirs(directory)
    found = []
    for place in places:
        found.append(ingest.Ingest(arguments, work, *place, say))
        found[-1].measure()
    shutil.rmtree(directory)
    return found


def measure_rollup(arguments, work, server, client, label):
    found = []
    for months in 12, 1:
        one = rollup.Rollup(arguments, work, server, client, label, months).measure()
        say(f"{label}: {one.documents:,} documents of {months} months: {statistics.median(one.ratios()):.2f} × reading them, "
            f"into years that are there {one.there_ratio():.2f} ×")
        found.append(one)
    return found


def run_test(words, **environment):
    """The output of a system test. Raises Failed if it did not pass."""
    say(" ".join([*(f"{name}={value}" for name, value in environment.items()), *words]))
    done = subprocess.run([sys.executable, *words], cwd=ROOT, env={**os.environ, **environment}, check=False, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=TEST_S)
    if done.returncode != 0:
        print(done.stdout, file=sys.stderr)
        raise measure.Failed(f"{words[0]}: {(done.stdout.strip().splitlines() or ['no message'])[-1]}")
    return done.stdout


def test_kills(arguments):
    out = run_test(["tests/system/test_mongo_rollup.py", "Rollup.test_killed_anywhere_while_it_counts"],
                   TALLYD_ROUNDS=str(arguments.kills), TALLYD_MONGO=arguments.servers[0])
    return re.search(r"leases found held: (\d+)", out)[1], re.search(r"TALLYD_SEED=(\d+)", out)[1]


def test_level(arguments):
    """[(what, %)]"""
    out = [("SQLite", run_test(["tests/system/test_monitoring.py"]))]
    for name in arguments.servers:
        out.append((SERVERS[name], run_test(["tests/system/test_mongo_monitoring.py"], TALLYD_MONGO=name)))
    return [(f"{label}, {what}", float(percent)) for label, text in out
            for what, percent in re.findall(r"(?m)^(\w+) in the last .*, ([\d.]+) %$", text)]


# ---- the tables

def ratio_cell(ratios, bound, is_least):
    ratio = statistics.median(ratios)
    return verdict(spread(ratios, " ×", 2), ratio >= bound if is_least else ratio <= bound)


def figures(arguments, ingests, rolls, kills, levels):
    rows = [["figure", "bound", "measured"]]
    for one in ingests:
        rows.append([f"{one.label}: lines/s counted while every job runs, against jobs off", f"≥ {BOUND_INGEST} ×",
                     ratio_cell(one.ratios(), BOUND_INGEST, True)])
    for one in rolls:
        if one.months == 12:
            rows.append([f"{one.label}: a year's {one.documents:,} documents rolled up, against one pass of reading them",
                         f"≤ {BOUND_ROLL} ×", ratio_cell(one.ratios(), BOUND_ROLL, False)])
    rows.append([f"SIGKILL of jobs and writers at random moments, {arguments.kills} rounds: differences in a recount", "0",
                 f"0, reached (a lease was held at {kills[0]} of the kills)"])
    for what, percent in levels:
        rows.append([f"{what}: most against least in the last 20 of 70 days", f"≤ {BOUND_LEVEL} %",
                     verdict(f"{percent:.2f} %", percent <= BOUND_LEVEL)])
    return rows


def ingest_rows(arguments, ingests):
    rows = [["store", "lines", "jobs off, lines/s", "jobs on, lines/s", "meanwhile: expired", "rolled up", "periods ranked", "made ahead"]]
    for one in ingests:
        rows.append([one.label, f"{arguments.lines:,}", *(spread(one.rates[way], "", 0) for way in ("off", "on")),
                     *(f"{number:,.0f}" for number in one.did())])
    return rows


def roll_rows(rolls):
    rows = [["server", "documents", "reading", "the same, and adding up what they count, by pymongo", "rolling up, into new documents",
             "into years that are there", "which is, against reading"]]
    for one in rolls:
        rows.append([one.label, f"{one.documents:,}, of {one.months} months; {one.bytes / one.documents:,.0f} bytes each",
                     *map(spread, (one.read_s, one.decode_s, one.new_s)), f"{one.there_s[0]:.3f} s",
                     f"{one.there_ratio():.2f} ×"])
    return rows


def raw_rows(raws):
    rows = [["server", "lines", *(f"events kept: {way}, lines/s" for way in raw.WAYS)]]
    for one in raws:
        rows.append([one.label, f"{one.arguments.raw_lines:,}", *(spread(rates, "", 0) for rates in one.rates.values())])
    return rows


def report(arguments, work, ingests, raws, rolls, kills, levels):
    return f"""
{measure.table(figures(arguments, ingests, rolls, kills, levels))}

Counting: a `tallyd run` is given lines on a pipe as fast as it takes them, of {ingest.FED_HOURS} hours around a midnight, {ingest.PATHS:,} paths by Zipf's
law, one in {ingest.LATE} of the month before; {arguments.pairs} pairs of runs, medians of the ratios of pairs, with the least and the most. Before each
run the store has a past of {ingest.PAST_MONTHS} months, and {len(ingest.PAST_DAYS)} days by the hour or the minute. *Jobs on*: `keep: {{minute: 48h, hour: 62d}}`,
`preallocate: auto`, months rolled up and largest series found a second after they were written; *off*: none of it. SQLite's batches roll up themselves, and
nothing is made ahead there. After each run the months say what was counted.

{measure.table(ingest_rows(arguments, ingests))}

Rolling up: `tallyd job run rollup` from its start to its end, against a cursor over all documents of months that makes nothing of
them, in turn, {arguments.rounds} rounds; {rollup.DAYS} days of each month have a count. After each, every year is what its months are. Documents
of years are new where a whole year is rolled up, or its first month; those of later months are set in them. Of one month alone, each document
leads to one of its own, which the bound is not about. SecantusDB looks at all documents of a month also where the first is asked for,
to know that there is one, and takes longer to send some members of a document than all.

{measure.table(roll_rows(rolls))}

Raw events: `tallyd import` of such lines into an empty database, in turn, {arguments.rounds} rounds.

{measure.table(raw_rows(raws))}

Kills: `tests/system/test_mongo_rollup.py` on {SERVERS[arguments.servers[0]]}, seed {kills[1]}: in each round late events come, and an import and a job
are killed; in the end every year is compared with a recount of the log. The size: `tests/system/test_monitoring.py` and
`test_mongo_monitoring.py`, of `docs/examples/monitoring.yaml`; of SQLite's file, pages in use: up to an eighth of it may be free.

{measure.about(work, ("SQLite", measure.library("sqlite3")))}
"""


def run_all(arguments, work):
    mongo.begin()
    ingests, raws, rolls = [], [], []
    for number, name in enumerate(arguments.servers):
        mongo.install(name)
        server = mongo.Server(os.path.join(work, name), name)
        server.start()
        try:
            if number == 0:
                ingests = measure_ingest(arguments, work, server, SERVERS[name])
            with pymongo.MongoClient(server.url) as client:
                rolls += measure_rollup(arguments, work, server, client, SERVERS[name])
                if number == 0:
                    raws.append(raw.Raw(arguments, work, server, client, SERVERS[name]).measure())
        finally:
            server.kill()
    return [], report(arguments, work, ingests, raws, rolls, test_kills(arguments), test_level(arguments))


if __name__ == "__main__":
    sys.exit(measure.run_bench(NAME, parse_arguments(), run_all, mongo.ERRORS))
