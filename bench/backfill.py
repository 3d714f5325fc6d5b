#!/usr/bin/env python3
"""make bench-backfill: a running daemon backfills a report while live lines come in; writes a part of bench/RESULTS.md.

The report is counted from a log of a past day, which was counted without it. Its rate is compared with that of a plain import of the
same log with the same report. Age: from when a live line is in its file until a query counts it, as in bench/follow.py.
"""

import argparse
import os
import sys
import threading
import time

import daemon
import follow
import measure

NAME = "bench-backfill"
LINES, RATE, TURNS_S = 5_000_000, 50_000, 50
QUIET_S = 10  # live lines alone, before and after
SHARE, AGE_S = 0.7, 2.0
SITES = "sites: {measures: {hits: count}}"
PAGES = "pages: {by: [path], measures: {hits: count, bytes: sum(bytes)}}"


class Live(threading.Thread):
    """Appends to a log at an even rate; `written` is [(time, lines until then)]."""

    def __init__(self, path):
        super().__init__()
        self.path, self.end, self.written, self.count = path, threading.Event(), [(0, 0)], 0

    def run(self):
        with open(self.path, "ab", buffering=0) as log:
            start = time.monotonic()
            while not self.end.is_set():
                now = time.strftime("%d/%b/%Y:%H:%M:%S +0000", time.gmtime())
                log.write("".join(follow.LINE % (now, i) for i in range(RATE // TURNS_S)).encode())
                self.count += RATE // TURNS_S
                self.written.append((time.monotonic(), self.count))
                time.sleep(max(0, start + len(self.written) / TURNS_S - time.monotonic()))


class Reader(threading.Thread):
    """Asks how many live lines are counted; `found` is [(time, lines)]."""

    def __init__(self, host):
        super().__init__()
        self.host, self.end, self.found = host, threading.Event(), []

    def run(self):
        while not self.end.is_set():
            at = time.monotonic()
            self.found.append((time.monotonic(), follow.total(self.host)))
            time.sleep(max(0, at + 0.05 - time.monotonic()))


def p99(live, found, begun, ended):
    """The age of the lines that were written then; without those that no query saw."""
    written = [(0, 0)] + [(at, count) for at, count in live.written[1:] if begun <= at < ended]
    return measure.percentile(follow.delays(written, found), 0.99)


def import_rate(arguments, work, log):
    config = os.path.join(work, "import.yaml")
    with open(config, "w", encoding="ascii") as file:
        file.write("reports: {%s}\n" % PAGES)
    argv = [os.path.join(arguments.build, "tallyd"), "import", "-q", "-c", config, "--store", f"sqlite:{work}/import.db", log]
    return LINES / measure.run(argv).wall_s


def run_all(arguments, work):
    log, live_log = os.path.join(work, "old.log"), os.path.join(work, "live.log")
    with open(log, "wb") as file:
        file.write(measure.run([os.path.join(arguments.build, "traffic"), "--lines", str(LINES)]).out.encode())
    tallyd, store = os.path.join(arguments.build, "tallyd"), f"sqlite:{work}/daemon/tallyd.db"
    rate = import_rate(arguments, work, log)
    one = daemon.Daemon(arguments.build, os.path.join(work, "daemon"),
                        "sources: {web: {path: %s}}\nreports: {%s, %s}\n" % (live_log, SITES, PAGES))
    config = os.path.join(work, "old.yaml")
    with open(config, "w", encoding="ascii") as file:
        file.write("reports: {%s}\n" % SITES)
    measure.run([tallyd, "import", "-q", "-c", config, "--store", store, log])
    one.start()
    live, reader = Live(live_log), Reader(one.host())
    live.start()
    reader.start()
    measure.say(NAME, f"{LINES:,} lines are backfilled while {RATE:,} lines a second come")
    began = time.monotonic()
    time.sleep(QUIET_S)
    begun = time.monotonic()
    done = measure.run([tallyd, "backfill", "-q", "--store", store, "pages", log])
    ended = time.monotonic()
    time.sleep(QUIET_S)
    live.end.set()
    live.join()
    while reader.found[-1][1] < live.count and time.monotonic() < ended + 60:
        time.sleep(0.05)
    reader.end.set()
    reader.join()
    one.check()
    one.end()
    out = measure.run([tallyd, "verify", "-c", os.path.join(work, "daemon", "tallyd.yaml"), "--store", store, live_log, log]).out
    wrong = [] if ": 0 differences" in out else [out.strip().splitlines()[-1]]
    share, age, quiet = LINES / done.wall_s / rate, p99(live, reader.found, begun, ended), p99(live, reader.found, began + 2, begun)
    rows = [("figure", "asked", "measured"),
            (f"rate of the backfill, against a plain import ({rate:,.0f} lines/s)", f"≥ {SHARE} ×",
             measure.verdict(f"{share:.2f} × ({LINES / done.wall_s:,.0f} lines/s)", share >= SHARE)),
            (f"age of a live line when a query first counts it, p99 ({quiet:.2f} s before)", f"≤ {AGE_S} s",
             measure.verdict(f"{age:.2f} s", age <= AGE_S))]
    return wrong, f"""## Backfill beside live lines

{LINES:,} lines of a past day, {RATE:,} live lines a second, one daemon, SQLite.

{measure.table(rows)}

{measure.equality(wrong, "`tallyd verify` of both logs found no difference.")}

{measure.about(work)}
"""


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    measure.add_arguments(parser)
    sys.exit(measure.run_bench(NAME, parser.parse_args(), run_all))
