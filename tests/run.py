#!/usr/bin/env python3
"""Runs test programs, each with a timeout, and prints their results.

    tests/run.py [--seed=WORD] [--timeout=SECONDS] TEST… [--timeout=SECONDS] TEST…

With a --seed, each test draws its chances (TALLYD_SEED) from that word and its own command line, so that a whole run can
be repeated. A TEST is a command line, "[NAME=VALUE …] PROGRAM [ARGUMENT…]". A --timeout applies to the tests after it. Exit status 0
is a pass. Exit status 77 is a skip, whose reason is the last line of output. Any other status is a failure, and its
output is shown. Tests start in the order given and run side by side, one more than there are processors, since most
wait for a server. At the end the failures are named again, each with the end of its output. The last line counts them:

    12 passed, 0 failed, 1 skipped

The exit status is 1 if any test failed; with CI=true in the environment also if any was skipped.
"""

import concurrent.futures
import hashlib
import os
import shlex
import signal
import subprocess
import sys
import tempfile
import time

SKIP = 77
OUTPUT_BYTES_MAX = 64 * 1024
SUMMARY_ROWS = 12  # of each failure's output, at the end

running = set()
stopping = False


def seed_of(seed, line):
    """The TALLYD_SEED of a command line, in 60 bits."""
    return str(int(hashlib.sha256(f"{seed} {line}".encode()).hexdigest()[:15], 16))


def parse(arguments):
    """[(command line, its environment, its argv, its timeout)]"""
    tests, timeout_s, seed = [], 120.0, None
    for argument in arguments:
        if argument.startswith("--timeout="):
            timeout_s = float(argument.split("=", 1)[1])
            continue
        if argument.startswith("--seed="):
            seed = argument.split("=", 1)[1]
            continue
        words = shlex.split(argument)
        environment = {"TALLYD_SEED": seed_of(seed, argument)} if seed else {}
        while words and "=" in words[0].split("/")[0]:
            name, value = words.pop(0).split("=", 1)
            environment[name] = value
        if not words:
            sys.exit(f"tests/run.py: found {argument!r}, expected a test's command line")
        tests.append((argument, environment, words, timeout_s))
    return tests


def surroundings():
    """The environment, without the variables by which a make that runs this program controls its own children."""
    return {name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL")}


def kill(process):
    """Kills a process and all its children, which are in its session."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def wait(process, timeout_s):
    """The reason of a failure, or None."""
    try:
        status = process.wait(timeout_s)
    except subprocess.TimeoutExpired:
        return f"took longer than {timeout_s:.0f} s"
    if status < 0:
        return f"was ended by {signal.Signals(-status).name}"
    return f"exit status {status}" if status not in (0, SKIP) else None


def run(test):
    """(command line, "PASS", "SKIP" or "FAIL", reason, output, seconds)"""
    line, environment, argv, timeout_s = test
    begun = time.monotonic()
    with tempfile.TemporaryFile() as output:
        if stopping:
            return line, "FAIL", "not run", "", 0.0
        try:
            process = subprocess.Popen(argv, env={**surroundings(), **environment}, stdin=subprocess.DEVNULL,
                                       stdout=output, stderr=subprocess.STDOUT, start_new_session=True)
        except OSError as error:
            return line, "FAIL", str(error), "", 0.0
        running.add(process)
        what = wait(process, timeout_s)
        kill(process)
        process.wait()
        running.discard(process)
        output.seek(max(0, output.seek(0, os.SEEK_END) - OUTPUT_BYTES_MAX))
        text = output.read().decode(errors="replace")
    if what is None and process.returncode == SKIP:
        result, what = "SKIP", (text.strip().splitlines() or ["no reason was printed"])[-1]
    else:
        result = "FAIL" if what else "PASS"
    return line, result, what, text, time.monotonic() - begun


def show(line, result, what, text, seconds):
    print(f"{result} {seconds:7.2f} s  {line}" + (f"  ({what})" if what else ""), flush=True)
    if result == "FAIL":
        for row in text.splitlines():
            print(f"    | {row}")


def summarize(failures):
    """Names them once more, where somebody who sees only the end of a long output finds them."""
    for line, _, what, text, _ in failures:
        print(f"\nFAILED {line}  ({what})")
        for row in text.splitlines()[-SUMMARY_ROWS:]:
            print(f"    | {row}")


def main():
    global stopping
    failures = []
    counts = {"PASS": 0, "FAIL": 0, "SKIP": 0}
    tests = parse(sys.argv[1:])
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count() + 1) as pool:
        try:
            for done in concurrent.futures.as_completed([pool.submit(run, test) for test in tests]):
                show(*done.result())
                counts[done.result()[1]] += 1
                if done.result()[1] == "FAIL":
                    failures.append(done.result())
        except KeyboardInterrupt:
            stopping = True
            for process in list(running):
                kill(process)
            return 130
    summarize(failures)
    skipped = f", {counts['SKIP']} skipped" if counts["SKIP"] else ""
    print(f"{counts['PASS']} passed, {counts['FAIL']} failed{skipped}")
    in_ci = os.environ.get("CI") == "true"
    return 1 if counts["FAIL"] or not tests or (in_ci and counts["SKIP"]) else 0


if __name__ == "__main__":
    sys.exit(main())
