#!/usr/bin/env python3
"""make bench-regex: the step `regex` on lines of combined against mawk, on the same file, in turn; writes a part of
bench/RESULTS.md.

All count hits and bytes by path and minute, and must find the same totals. tallyd finds eight groups, and writes a store. mawk splits
the same fields by regular expressions (bench/peers/path_minute_regex.awk). Beside it is the fastest program that is known for mawk
(bench/peers/path_minute.awk), which splits only what it needs, at quotes and blanks. Each takes one thread to parse. A rate is that of
processor time, so that other programs on the machine do not decide."""

import argparse
import contextlib
import json
import os
import sqlite3
import statistics
import subprocess
import sys

import measure
import peers
import tallyd as tallyd_module

NAME = "bench-regex"
AT_LEAST = 3
QUOTED = r'"(?<%s>(?:[^"\\]++|\\.)*+)"'
REGEX = (r"(?<host>\S+) \S+ (?<user>\S+) \[(?<time>[^\]]+)\] " + QUOTED % "request" + r" (?<status>\d+) (?<bytes>\d+|-) " +
         QUOTED % "referrer" + " " + QUOTED % "agent")
CONFIG = """\
reports: {pages: {by: [path]}}
sources: {a: {path: %s, decode: [%s]}}
import: {threads: 1}
"""


def parse_arguments():
    parser = argparse.ArgumentParser(description="Measure the regex step against mawk; write a part of bench/RESULTS.md.")
    parser.add_argument("--lines", type=int, default=1_000_000, help="lines of the log (default 1,000,000)")
    parser.add_argument("--rounds", type=int, default=5)
    measure.add_arguments(parser)
    return parser.parse_args()


class Import:
    def __init__(self, ta, work, log, name, step):
        self.ta, self.name, self.log = ta, name, log
        self.config = os.path.join(work, f"{name}.yaml".replace(" ", "-"))
        with open(self.config, "w", encoding="utf-8") as out:
            out.write(CONFIG % (json.dumps(log), step))

    def run(self):
        self.ta.remove_store()
        measure.settle()
        return measure.run([self.ta.program, "import", "-q", "-c", self.config, "--store", f"sqlite:{self.ta.store}", self.log])

    def totals(self):
        """Hits and bytes, and lines rejected."""
        argv = [self.ta.program, "query", "pages", "--store", f"sqlite:{self.ta.store}", "--from", tallyd_module.DAY[0], "--to",
                tallyd_module.DAY[1], "--format", "csv-raw", "--measure"]
        found = [sum(int(line.rsplit(",", 1)[1] or 0) for line in measure.run(argv + [name]).out.splitlines()[1:]) for name in ("hits", "bytes")]
        with contextlib.closing(sqlite3.connect(self.ta.store)) as base:
            (rejected,), = base.execute("SELECT ifnull(sum(value), 0) FROM book WHERE entry GLOB 'rejected.*'")
        return [*found, rejected]


class Mawk:
    def __init__(self, log, name, program):
        self.argv, self.name = ["mawk", "-f", os.path.join(peers.PEERS, program), log], name
        self.said = None

    def run(self):
        done = measure.run(self.argv, env=peers.C_LOCALE)
        self.said = [int(field) for field in done.out.split()]
        return done

    def totals(self):
        return [*self.said[1:], 0]


def run_all(arguments, work):
    ta, log = tallyd_module.Tallyd(arguments.build, work), os.path.join(work, "access.log")
    if peers.Mawk().why_not or ta.why_not:
        raise measure.Failed(peers.Mawk().why_not or ta.why_not)
    with open(log, "wb") as out:
        subprocess.run([os.path.join(arguments.build, "traffic"), "--lines", str(arguments.lines), "--seed", "1", "--start",
                        tallyd_module.DAY[0]], stdout=out, check=True)
    measure.warm(log)
    programs = [Import(ta, work, log, "regex", "{regex: %s}" % json.dumps(REGEX)), Import(ta, work, log, "combined", "combined"),
                Mawk(log, "mawk", "path_minute_regex.awk"), Mawk(log, "fastest mawk", "path_minute.awk")]
    runs, found = {one.name: [] for one in programs}, {}
    for number in range(arguments.rounds):
        measure.say(NAME, f"round {number + 1} of {arguments.rounds}")
        for one in programs:
            runs[one.name].append(one.run())
            found[one.name] = one.totals()
    wrong = [f"{name} found {totals}, mawk {found['mawk']}" for name, totals in found.items() if totals != found["mawk"]]
    cpu = {name: statistics.median(run.cpu_s for run in list_) for name, list_ in runs.items()}
    ratios = [mawk.cpu_s / regex.cpu_s for mawk, regex in zip(runs["mawk"], runs["regex"])]
    ratio = statistics.median(ratios)
    rows = [["program", "processor time", "wall time", "lines a second of processor time", "of mawk's rate"]]
    for name, text in (("regex", "`tallyd import`, `regex`"), ("combined", "`tallyd import`, `combined`"),
                       ("mawk", "mawk, the same fields by regular expressions"), ("fastest mawk", "mawk, its fastest program")):
        rows.append([text, measure.spread([run.cpu_s for run in runs[name]]), measure.spread([run.wall_s for run in runs[name]]),
                     f"{arguments.lines / cpu[name]:,.0f}", f"{cpu['mawk'] / cpu[name]:.2f} ×"])
    fast = [mawk.cpu_s / regex.cpu_s for mawk, regex in zip(runs["fastest mawk"], runs["regex"])]
    figure = measure.table([["figure", "at least", "measured", "verdict"],
                            ["the regex step on combined, against mawk that splits the same fields by regular expressions",
                             f"{AT_LEAST} ×", measure.spread(ratios, " ×", 2), "reached" if ratio >= AT_LEAST else "**missed**"],
                            ["against the fastest program for mawk", "report it", measure.spread(fast, " ×", 2), ""]])
    machine = measure.about(work, ("PCRE2", measure.library("libpcre2-8")), ("mawk", measure.first_line("mawk", "-W", "version")))
    said = measure.equality(wrong, f"All found the same hits and bytes, and rejected no line, in {arguments.rounds} rounds of "
                            f"{arguments.lines:,} lines, the programs in turn.")
    return wrong + ([] if ratio >= AT_LEAST else ["the ratio"]), f"\n{figure}\n\n{measure.table(rows)}\n\n{said}\n\n## Machine\n\n{machine}\n"


if __name__ == "__main__":
    sys.exit(measure.run_bench(NAME, parse_arguments(), run_all))
