#!/usr/bin/env python3
"""make bench-fuzz: inputs that each fuzz target tries in a second of processor time, from the kept inputs on; writes a part of
bench/RESULTS.md. A second of processor time, since a busy computer gives a target few of them. New inputs are not kept."""

import argparse
import glob
import os
import re
import subprocess
import sys

import measure

NAME = "bench-fuzz"
LEAST = 2000


def parse_arguments():
    parser = argparse.ArgumentParser(description="Measure how fast the fuzz targets are; write bench/RESULTS.md.")
    parser.add_argument("--seconds", type=int, default=60, help="of each target (default 60)")
    measure.add_arguments(parser)
    return parser.parse_args()


def run_target(program, seconds, work):
    """(inputs tried, seconds of processor time)"""
    target = os.path.basename(program).removeprefix("fuzz_")
    found = os.path.join(work, target)
    os.mkdir(found)
    kept = os.path.join(measure.ROOT, "tests/fuzz/corpus", target)
    process = subprocess.Popen([program, f"-max_total_time={seconds}", "-timeout=10", "-print_final_stats=1", f"-artifact_prefix={work}/",
                                found, kept], cwd=measure.ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
    out = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    tried = re.search(r"number_of_executed_units:\s+(\d+)", out)
    if process.returncode != 0 or not tried:
        raise measure.Failed(f"{target} ended with status {process.returncode}: {out[-500:]}")
    measure.say(NAME, f"{target}: {int(tried[1]) / (usage.ru_utime + usage.ru_stime):,.0f}")
    return target, int(tried[1]), usage.ru_utime + usage.ru_stime


def run_all(arguments, work):
    programs = sorted(glob.glob(os.path.join(arguments.build, "asan/tests/fuzz_*")))
    ran = [run_target(program, arguments.seconds, work) for program in programs]
    rows = [["target", "inputs", "processor time", "inputs a second of it"]]
    rows += [[f"`{target}`", f"{tried:,}", f"{cpu_s:.1f} s", measure.verdict(f"{tried / cpu_s:,.0f}", tried / cpu_s >= LEAST)]
             for target, tried, cpu_s in ran]
    return [], (f"\nUnder AddressSanitizer; at least {LEAST:,} inputs a second are wanted. No input crashed.\n\n{measure.table(rows)}\n\n"
                f"## Machine\n\n{measure.about(work)}\n")


if __name__ == "__main__":
    sys.exit(measure.run_bench(NAME, parse_arguments(), run_all))
