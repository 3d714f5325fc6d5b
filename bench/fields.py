#!/usr/bin/env python3
"""make bench-fields: what derived fields cost an event, in instructions on warm memos; writes a table into bench/RESULTS.md."""

import argparse
import os
import re
import subprocess
import sys
import tempfile

import measure

sys.path[:0] = [os.path.join(measure.ROOT, "tests", "system")]

import test_fields  # noqa: E402

NAME = "bench-fields"
FIELDS = ["host_net", "country", "agent_family", "bot", "route", "hour_of_day", "query:utm_source", "country,bot,agent_family"]
LIMITS = {"country,bot,agent_family": 300}


def instructions(program, fields, log, lines):
    """Of one line: what 2N lines take less what N take."""
    totals = []
    for count in (lines, 2 * lines):
        with tempfile.NamedTemporaryFile() as out:
            subprocess.run(["valgrind", "--tool=callgrind", f"--callgrind-out-file={out.name}", program, fields, log, str(count)],
                           check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            totals.append(int(re.search(rb"^(?:summary|totals): (\d+)", out.read(), re.MULTILINE).group(1)))
    return (totals[1] - totals[0]) / lines


def repeated(build, work, lines):
    """A log of so many lines, three times: in the second round, memos know every text."""
    argv = [os.path.join(build, "traffic"), "--lines", str(lines), "--seed", "1"]
    text = subprocess.run(argv, stdout=subprocess.PIPE, check=True).stdout
    path = os.path.join(work, "lines.log")
    with open(path, "wb") as out:
        out.write(text * 3)
    return path


def run_all(arguments, work):
    program = os.path.join(arguments.build, "bench_derived")
    rows = [["fields", "instructions a line more", "at most", "verdict"]]
    log = repeated(arguments.build, work, arguments.lines)
    database = os.path.join(work, "halves.mmdb")
    with open(database, "wb") as out:
        out.write(test_fields.mmdb("Halves-Country", 1300000000, {"0.0.0.0/1": {"country": {"iso_code": "AA"}},
                                                          "128.0.0.0/1": {"country": {"iso_code": "BB"}}}))
    none = instructions(program, "-", log, arguments.lines)
    for fields in FIELDS:
        measure.say(NAME, fields)
        more = instructions(program, f"{fields}={database}", log, arguments.lines) - none
        limit = LIMITS.get(fields)
        verdict = "" if limit is None else "reached" if more <= limit else "missed"
        rows.append([f"`{fields}`", f"{more:,.0f}", f"{limit or 'report it'}", verdict])
    return [], ("Instructions that derived fields take a line more, by callgrind, on memos that know each text; decoding alone takes "
                f"{none:,.0f}.\n\n" + measure.table(rows))


def parse_arguments():
    parser = argparse.ArgumentParser(description="Measure derived fields; write bench/RESULTS.md.")
    parser.add_argument("--lines", type=int, default=5_000, help="lines of the log (default 5,000)")
    measure.add_arguments(parser)
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(measure.run_bench(NAME, parse_arguments(), run_all))
