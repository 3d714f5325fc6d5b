#!/usr/bin/env python3
"""Runs test programs, each with a timeout, and prints their results.

    tests/run.py [--seed=WORD] [--timeout=SECONDS] TEST… [--timeout=SECONDS] TEST…

With a --seed, each test draws its chances (TALLYD_SEED) from that word and its own command line, so that a whole run can
be repeated. A TEST is a command line, "[NAME=VALUE …] PROGRAM [ARGUMENT…]". A --timeout applies to the tests after it. Exit status 0
is a pass. Exit status 77 is a skip, whose reason is the last line of output. Any other status is a failure, and its
output is shown. Tests start in the order given and run side by side, two more than there are processors, since most
wait for a server. A run of more than a minute ends with the tests that took the most processor time. Then the failures are named
again, each with the end of its output. The last line counts them:

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
import threading
import time

SKIP = 77
OUTPUT_BYTES_MAX = 64 * 1024
SUMMARY_ROWS = 12  # of each failure's output, at the end
WORKERS = os.cpu_count() + 2
LONG_S = 60  # a run that takes longer ends with a table of COSTLY rows
COSTLY = 20

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
    """(the reason of a failure or None, processor seconds of the process and of the children it waited for)"""
    is_late = threading.Event()

    def end():
        is_late.set()
        kill(process)

    timer = threading.Timer(timeout_s, end)
    timer.start()
    _, status, usage = os.wait4(process.pid, 0)
    timer.cancel()
    process.returncode = os.waitstatus_to_exitcode(status)
    return reason(process.returncode, timeout_s if is_late.is_set() else None), usage.ru_utime + usage.ru_stime


def reason(status, timeout_s):
    """Of a failure: of an exit status, or of a timeout that was exceeded."""
    if timeout_s is not None:
        return f"took longer than {timeout_s:.0f} s"
    if status < 0:
        return f"was ended by {signal.Signals(-status).name}"
    return f"exit status {status}" if status not in (0, SKIP) else None


class Result:
    """A test's command line; "PASS", "SKIP" or "FAIL" and the reason; its output; its time and its processor time in seconds."""

    def __init__(self, line, result, what, text="", took_s=0.0, cpu_s=0.0):
        self.line, self.result, self.what, self.text, self.took_s, self.cpu_s = line, result, what, text, took_s, cpu_s


def run(test):
    line, environment, argv, timeout_s = test
    begun = time.monotonic()
    with tempfile.TemporaryFile() as output:
        if stopping:
            return Result(line, "FAIL", "not run")
        try:
            process = subprocess.Popen(argv, env={**surroundings(), **environment}, stdin=subprocess.DEVNULL,
                                       stdout=output, stderr=subprocess.STDOUT, start_new_session=True)
        except OSError as error:
            return Result(line, "FAIL", str(error))
        running.add(process)
        what, cpu_s = wait(process, timeout_s)
        kill(process)  # what it left running
        running.discard(process)
        output.seek(max(0, output.seek(0, os.SEEK_END) - OUTPUT_BYTES_MAX))
        text = output.read().decode(errors="replace")
    if what is None and process.returncode == SKIP:
        result, what = "SKIP", (text.strip().splitlines() or ["no reason was printed"])[-1]
    else:
        result = "FAIL" if what else "PASS"
    return Result(line, result, what, text, time.monotonic() - begun, cpu_s)


def show(done):
    print(f"{done.result} {done.took_s:7.2f} s  {done.line}" + (f"  ({done.what})" if done.what else ""), flush=True)
    if done.result == "FAIL":
        for row in done.text.splitlines():
            print(f"    | {row}")


def show_costs(results, took_s):
    """The tests that took the most processor time, and how busy the processors were."""
    cpu_s = sum(done.cpu_s for done in results)
    print(f"\n{took_s:.0f} s, and {cpu_s:.0f} s of processor time: {cpu_s / took_s / os.cpu_count():.0%} of {os.cpu_count()} processors")
    for done in sorted(results, key=lambda done: -done.cpu_s)[:COSTLY]:
        print(f"  {done.cpu_s:7.1f} s of processor time in {done.took_s:7.1f} s  {done.line}")


def summarize(failures):
    """Names them once more, where somebody who sees only the end of a long output finds them."""
    for done in failures:
        print(f"\nFAILED {done.line}  ({done.what})")
        for row in done.text.splitlines()[-SUMMARY_ROWS:]:
            print(f"    | {row}")


def main():
    global stopping
    results = []
    begun = time.monotonic()
    tests = parse(sys.argv[1:])
    with concurrent.futures.ThreadPoolExecutor(WORKERS) as pool:
        try:
            for future in concurrent.futures.as_completed([pool.submit(run, test) for test in tests]):
                results.append(future.result())
                show(results[-1])
        except KeyboardInterrupt:
            stopping = True
            for process in list(running):
                kill(process)
            return 130
    if time.monotonic() - begun > LONG_S:
        show_costs(results, time.monotonic() - begun)
    counts = {word: sum(done.result == word for done in results) for word in ("PASS", "FAIL", "SKIP")}
    summarize([done for done in results if done.result == "FAIL"])
    skipped = f", {counts['SKIP']} skipped" if counts["SKIP"] else ""
    print(f"{counts['PASS']} passed, {counts['FAIL']} failed{skipped}")
    in_ci = os.environ.get("CI") == "true"
    return 1 if counts["FAIL"] or not tests or (in_ci and counts["SKIP"]) else 0


if __name__ == "__main__":
    sys.exit(main())
