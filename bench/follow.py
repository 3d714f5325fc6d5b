#!/usr/bin/env python3
"""make bench-follow: one daemon follows 1,000 logs that get 10 lines a second each; writes a part of bench/RESULTS.md.

The daemon finds them by a glob whose capture becomes a dimension. Delay: from when a line is in its file until the store has it, so
that a query counts it; from what was written and what a query found, both noted all the time. At the end each log is recounted.
"""

import argparse
import bisect
import json
import os
import sys
import threading
import time
import urllib.request

import daemon
import measure

NAME = "bench-follow"
LOGS, LINES_S, SECONDS = 1000, 10, 60
SETTLE_S = 5  # the daemon opens the logs
TURNS_S = 5   # times a second that each log gets its lines
CPU, MEMORY_MIB, DELAY_S = 0.05, 150, 1.5
LINE = '192.0.2.1 - - [%s] "GET /item/%d HTTP/1.1" 200 5120 "-" "Mozilla/5.0 (X11; Linux x86_64)"\n'


class Writer(threading.Thread):
    """Appends to all logs at an even rate; `written` is [(time, lines until then)]."""

    def __init__(self, folder):
        super().__init__()
        self.logs = [open(os.path.join(folder, f"site{i:04}.log"), "ab", buffering=0) for i in range(LOGS)]
        self.written, self.count = [(0, 0)], 0

    def turn(self):
        now = time.strftime("%d/%b/%Y:%H:%M:%S +0000", time.gmtime())
        for log in self.logs:
            log.write("".join(LINE % (now, self.count + i) for i in range(LINES_S // TURNS_S)).encode())
            self.count += LINES_S // TURNS_S
            self.written.append((time.monotonic(), self.count))

    def run(self):
        start = time.monotonic()
        for number in range(SECONDS * TURNS_S):
            self.turn()
            time.sleep(max(0, start + (number + 1) / TURNS_S - time.monotonic()))


def cpu_s(process):
    with open(f"/proc/{process.pid}/stat", encoding="ascii") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def peak_mib(process):
    with open(f"/proc/{process.pid}/status", encoding="ascii") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmHWM")) / 1024


def total(host):
    first, last = (time.strftime("%Y-%m-%dT%H:00:00Z", time.gmtime(time.time() + hours * 3600)) for hours in (-1, 2))
    with urllib.request.urlopen(f"http://{host}/api/v1/query?report=sites&from={first}&to={last}", timeout=10) as reply:
        return sum(row[1] or 0 for row in json.load(reply)["values"])


def delays(written, found):
    """The age of each line, in seconds, sorted: until a query first found as many lines as were written with it."""
    counts, result = [count for _, count in found], []
    for at, count in written[1:]:
        i = bisect.bisect_left(counts, count)
        if i < len(found):
            result.append(found[i][0] - at)
    return sorted(result)


def watch(host, writer):
    found = []
    writer.start()
    until = time.monotonic() + SECONDS + 30
    while time.monotonic() < until and (writer.is_alive() or found[-1][1] < writer.count):
        found.append((time.monotonic(), total(host)))
        time.sleep(0.05)
    return found


def run_all(arguments, work):
    folder = os.path.join(work, "logs")
    os.makedirs(folder)
    writer = Writer(folder)
    writer.turn()
    one = daemon.Daemon(arguments.build, os.path.join(work, "daemon"),
                        f'sources: {{access: {{path: "{folder}/{{vhost}}.log"}}}}\n'
                        "reports: {sites: {by: [vhost], measures: {hits: count}}}\n")
    one.start()
    host = one.host()
    time.sleep(SETTLE_S)
    measure.say(NAME, f"{LOGS:,} logs, {LINES_S} lines a second each, for {SECONDS} s")
    before, began = cpu_s(one.process), time.monotonic()
    found = watch(host, writer)
    share = (cpu_s(one.process) - before) / (time.monotonic() - began)
    memory, late = peak_mib(one.process), delays(writer.written[1 + LOGS:], found)
    one.check()
    one.end()
    wrong = [] if found[-1][1] == writer.count else [f"{writer.count:,} lines were written, and {found[-1][1]:,} counted"]
    p99 = measure.percentile(late, 0.99) if late else float("inf")
    rows = [("figure", "at most", "measured"),
            ("processor time, of one core (with 20 queries a second)", f"{CPU:.0%}", measure.verdict(f"{share:.1%}", share <= CPU)),
            ("memory at its peak", f"{MEMORY_MIB} MiB", measure.verdict(f"{memory:.0f} MiB", memory <= MEMORY_MIB)),
            ("delay of a line until a query counts it, 99th percentile", f"{DELAY_S} s", measure.verdict(f"{p99:.2f} s", p99 <= DELAY_S))]
    return wrong, f"""## Many logs

{LOGS:,} logs, found by a glob, {LINES_S} lines a second each, {SECONDS} s, into SQLite.

{measure.table(rows)}

{measure.equality(wrong, f"All {writer.count:,} lines are counted once.")}

{measure.about(work)}
"""


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    measure.add_arguments(parser)
    sys.exit(measure.run_bench(NAME, parser.parse_args(), run_all))
