#!/usr/bin/env python3
"""make bench-builds: the instructions that a line takes by builds of the same code, hardened or not, for this computer or for arm64;
writes a part of bench/RESULTS.md. Each line is decoded by the built-in format and coalesced into the two built-in reports."""

import argparse
import itertools
import os
import subprocess
import sys

import measure
import tallyd as tallyd_module

NAME = "bench-builds"
JSON_EVENTS = 300  # all alike
QEMU = ["qemu-aarch64-static", "-L", os.path.join(measure.ROOT, "build/arm64/root")]
# It writes a line for each instruction.
TRACE = ["-singlestep", "-d", "exec,nochain", "-D", "/dev/stderr"]


def parse_arguments():
    parser = argparse.ArgumentParser(description="Count instructions by build; write bench/RESULTS.md.")
    parser.add_argument("--lines", type=int, default=5_000_000, help="lines of the day that begins so (default 5,000,000)")
    parser.add_argument("--hot-lines", type=int, default=200_000, help="N of callgrind's N and 2N (default 200,000)")
    parser.add_argument("--qemu-lines", type=int, default=4_000, help="N of qemu's N and 2N (default 4,000)")
    measure.add_arguments(parser)
    return parser.parse_args()


def write_log(path, arguments):
    argv = [os.path.join(arguments.build, "traffic"), "--lines", str(arguments.lines), "--seed", "1", "--start", tallyd_module.DAY[0]]
    with subprocess.Popen(argv, stdout=subprocess.PIPE) as traffic, open(path, "wb") as out:
        out.writelines(itertools.islice(traffic.stdout, 2 * arguments.hot_lines))
        traffic.kill()


def traced_instructions(argv):
    with subprocess.Popen([*QEMU, *TRACE, *argv], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as qemu:
        count = sum(line.startswith(b"Trace") for line in qemu.stderr)
    if qemu.returncode != 0:
        raise measure.Failed(f"{argv[0]} ended with status {qemu.returncode}")
    return count


def traced_each(arguments, harness, what, count):
    """The instructions of a harness of arm64 for 2N less those for N."""
    program = os.path.join(arguments.build, "arm64", harness)
    few, many = (traced_instructions([program, what, str(n)]) for n in (count, 2 * count))
    return (many - few) / count


def run_all(arguments, work):
    path = os.path.join(work, "log")
    write_log(path, arguments)
    rows = [["build", "lines", "instructions a line", "of the first of so many lines"]]

    def add(what, lines, found, first):
        measure.say(NAME, f"{what}: {found:,.0f}")
        rows.append([what, f"{lines:,}", f"{found:,.0f}", f"{found / first:.3f} ×"])

    builds = [tallyd_module.Tallyd(os.path.join(arguments.build, name), work) for name in ("", "plain")]
    native = [build.instructions_per_line(path, work, arguments.hot_lines) for build in builds]
    add("x86-64, as built", arguments.hot_lines, native[0], native[0])
    add("x86-64, without the flags that harden", arguments.hot_lines, native[1], native[0])
    few = builds[0].instructions_per_line(path, work, arguments.qemu_lines)
    add("x86-64, as built", arguments.qemu_lines, few, few)
    add("arm64 (NEON), by qemu's trace", arguments.qemu_lines, traced_each(arguments, "bench_hot", path, arguments.qemu_lines), few)
    event = builds[0].instructions_per_json_event(work, JSON_EVENTS)
    add("x86-64, events in JSON", JSON_EVENTS, event, event)
    add("arm64 (NEON), events in JSON, by qemu's trace", JSON_EVENTS, traced_each(arguments, "bench_json", "json", JSON_EVENTS), event)
    valgrind = measure.first_line("valgrind", "--version").removeprefix("valgrind-")
    machine = measure.about(work, ("valgrind", valgrind), ("qemu", measure.first_line(QEMU[0], "--version")))
    return [], f"\n{measure.table(rows)}\n\n## Machine\n\n{machine}\n"


if __name__ == "__main__":
    sys.exit(measure.run_bench(NAME, parse_arguments(), run_all))
