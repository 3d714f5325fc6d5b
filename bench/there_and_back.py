#!/usr/bin/env python3
"""A store is copied from SQLite to MongoDB and back; all three must give the same bytes for the same questions.

    bench/there_and_back.py [--series=N] [--log=FILE --from=TIME --to=TIME]      TALLYD_MONGO names the server (tests/servers/mongo.py)

Without --log the log is made: each series is requested once or more, in two days.
"""

import argparse
import datetime
import hashlib
import os
import random
import subprocess
import sys
import tempfile
import time

import measure

sys.path.insert(0, os.path.join(measure.ROOT, "tests", "servers"))
import mongo  # noqa: E402 (found only now)

COMMAND = "make bench-copy"
LINE = '192.0.2.1 - - [%02d/Jan/2026:%02d:%02d:00 +0000] "GET /page/%d HTTP/1.1" 200 %d "-" "x"\n'
CONFIG = """\
reports:
  site: {measures: {hits: count, bytes: sum(bytes)}}
  pages: {by: [path], measures: {hits: count, bytes: sum(bytes)}}
  statuses: {by: [status_class]}
"""
QUESTIONS = (["pages", "--step", "hour"], ["site", "--step", "minute", "--measure", "all"], ["pages", "--top", "1000", "--measure", "hits"],
             ["pages", "--top", "1000", "--measure", "bytes"], ["statuses", "--step", "hour", "--measure", "all"])
HEAD = ("log", "server", "lines", "to MongoDB", "back to SQLite", "bytes of the answers", "date", "commit")
TEXT = """
## A store in MongoDB and back

{table}

All three stores gave the same bytes for each question: by minute and hour, and the thousand largest series by two measures.
"""


def tallyd(home, *arguments):
    return subprocess.run([os.path.join(measure.ROOT, "build/tallyd"), *arguments], cwd=home, check=True, stdout=subprocess.PIPE).stdout


def make_log(path, series):
    dice = random.Random(5)
    with open(path, "w", encoding="ascii") as file:
        for n in range(2 * series):
            file.write(LINE % (5 + n % 2, n // 7 % 24, n % 60, n if n < series else dice.randrange(series), n % 5000))


def answers(home, store, options):
    parts = [tallyd(home, "query", *question, "--store", store, "--from", options.begin, "--to", options.end, "--format", "csv-raw")
             for question in QUESTIONS]
    return hashlib.sha256(b"".join(parts)).hexdigest(), sum(map(len, parts))


def timed(home, *arguments):
    begun = time.monotonic()
    tallyd(home, *arguments)
    return f"{time.monotonic() - begun:.1f} s"


def row(home, url, options):
    log = os.path.abspath(options.log) if options.log else os.path.join(home, "made.log")
    if not options.log:
        make_log(log, options.series)
    with open(os.path.join(home, "tallyd.yaml"), "w", encoding="ascii") as file:
        file.write(CONFIG)
    tallyd(home, "import", "-q", "-c", "tallyd.yaml", "--store", "sqlite:a.db", log)
    times = [timed(home, "admin", "copy", *stores) for stores in (("sqlite:a.db", url), (url, "sqlite:b.db"))]
    found = {answers(home, store, options) for store in ("sqlite:a.db", url, "sqlite:b.db")}
    if len(found) != 1:
        sys.exit(f"the stores answer differently: {found}")
    with open(log, "rb") as file:
        lines = sum(1 for _ in file)
    name = os.path.basename(log) if options.log else f"{options.series:,} series"
    return (name, mongo.CHOSEN, f"{lines:,}", *times, f"{found.pop()[1]:,}", f"{datetime.datetime.now(datetime.timezone.utc):%Y-%m-%d}",
            measure.first_line("git", "-C", measure.ROOT, "rev-parse", "--short", "HEAD"))


def main():
    mongo.begin()
    parser = argparse.ArgumentParser(description="A store is copied to MongoDB and back.")
    parser.add_argument("--series", type=int, default=100000)
    parser.add_argument("--log")
    parser.add_argument("--from", dest="begin", default="2026-01-05")
    parser.add_argument("--to", dest="end", default="2026-01-07")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as home:
        server = mongo.Server(os.path.join(home, "server"))
        server.start()
        try:
            table = measure.table([HEAD, row(home, f"{server.url}/copied", options)])
            print(table)
            measure.write_part(os.path.join(measure.HERE, "RESULTS.md"), COMMAND, TEXT.format(table=table))
        finally:
            server.stop()


if __name__ == "__main__":
    main()
