#!/usr/bin/env python3
"""The largest of 100,000 pages in the open hour and in the open day, over HTTP: at rest, and while lines come in; and what the sums
that answer it cost the counting.

    bench/open.py [--lines=N] [--old=BUILD]         TALLYD_MONGO names the server (tests/servers/mongo.py)

Pages are drawn by Zipf's law. Yesterday and the past hours of today are counted and ranked first, the open hour then. With --old, another
build counts the same lines in turn.
"""

import argparse
import datetime
import http.client
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse

import daemon
import measure
from measure import percentile

sys.path.insert(0, os.path.join(measure.ROOT, "tests", "servers"))
import mongo  # noqa: E402 (found only now)

COMMAND = "make bench-open"
PAGES, QUESTIONS, FEED, SLOW_MS = 100_000, 200, 1000, 100
START_S, SLOWEST = 60, 500  # lines/s that are counted at the least
HEAD = ("top 20 of 100,000 pages", "server", "p50", "p90", "slowest", "documents read", f"over {SLOW_MS} ms")
TEXT = """
## The largest pages of periods that are open

{table}

{lines:,} lines by Zipf's law (1.0) in the open hour, as many before it on two days; then {feed:,} lines/s while it is asked. {questions} questions each, from Python
on the same machine, whose load average was {load} of two cores. Documents read are those of the first question of a new process. A scan of all
documents takes more than {slow} ms, so the last column has the questions that scanned, at most.

{rates}

An index on the totals, with the server's sort and limit, was measured once and dropped (2026-11-26, by pymongo: updates by commands of 1,000 to
20,000 documents of a day with hours and minutes). FerretDB took 9,729 updates/s without an index, 7,126 with one on the day's total, 1,421 with others
on each hour's; SecantusDB 3,256, 3,538 and 1,235. The question took 20 to 69 ms with the indexes, 33 to 41 ms without.
"""


def lines_of(rolls, count, begin, end):
    pages = rolls.choices(range(PAGES), WEIGHTS, k=count)
    step = (end - begin) / count
    return "".join(f'192.0.2.1 - - [{begin + number * step:%d/%b/%Y:%H:%M:%S} +0000] "GET /page-{page}.html HTTP/1.1" 200 100 "-" "-"\n'
                   for number, page in enumerate(pages))


WEIGHTS = [1 / (1 + page) for page in range(PAGES)]


class Bench:
    def __init__(self, options, home, server):
        self.options, self.home, self.server = options, home, server
        self.rolls = random.Random(1)
        self.hour = datetime.datetime.now(datetime.timezone.utc).replace(minute=0, second=0, microsecond=0)
        self.day = self.hour.replace(hour=0)
        self.log = os.path.join(home, "access.log")
        self.running = []

    def append(self, text):
        with open(self.log, "a", encoding="ascii") as log:
            log.write(text)

    def config(self, base):
        return (f'reports: {{pages: {{by: [path], measures: {{hits: count}}}}}}\nsources: {{access: {{path: "{self.log}"}}}}\n'
                f'store: {{url: "{self.server.url}/{base}"}}\naggregate: {{flush: 1s}}\n')

    def count_all(self, build, base):
        """Lines a second, until all are counted."""
        tallyd = daemon.Daemon(build, os.path.join(self.home, base), self.config(base))
        with open(self.log, "rb") as log:
            count = sum(block.count(b"\n") for block in iter(lambda: log.read(1 << 20), b""))
        begun = time.monotonic()
        tallyd.start()
        self.running.append(tallyd)
        tallyd.host()
        while tallyd.metrics().get("tallyd_lines_consumed_total", 0) < count:
            tallyd.check()
            if time.monotonic() - begun > START_S + count / SLOWEST:
                raise measure.Failed(f"{count:,} lines are not counted by {SLOWEST:,} lines/s")
            time.sleep(0.05)
        return tallyd, count / (time.monotonic() - begun)

    def ask(self, host, begin):
        connection = http.client.HTTPConnection(host, timeout=60)
        words = {"report": "pages", "measure": "hits", "limit": 20, "from": f"{begin:%Y-%m-%dT%H:%M:%SZ}"}
        taken = []
        for _ in range(QUESTIONS):
            begun = time.perf_counter()
            connection.request("GET", "/api/v1/top?" + urllib.parse.urlencode(words))
            answer = json.loads(connection.getresponse().read())
            taken.append(1000 * (time.perf_counter() - begun))
            if len(answer.get("series", ())) != 20:
                raise measure.Failed(f"expected 20 series, got {json.dumps(answer)[:300]}")
            time.sleep(0.02)
        return sorted(taken)

    def documents(self, tallyd, begin, length):
        said = subprocess.run([tallyd.program, "query", "pages", "-c", "tallyd.yaml", "--top", "20", "--explain", "--measure", "hits", "--from",
                               f"{begin:%Y-%m-%dT%H:%M:%SZ}", "--to", f"{begin + length:%Y-%m-%dT%H:%M:%SZ}"], cwd=tallyd.dir,
                              capture_output=True, text=True, check=True)
        return next(line.split()[1] for line in said.stderr.splitlines() if line.startswith("read "))

    def row(self, name, taken, documents):
        return (name, mongo.CHOSEN, *(f"{percentile(taken, share):.2f} ms" for share in (0.5, 0.9, 1)), documents,
                f"{sum(one > SLOW_MS for one in taken)} of {len(taken)}")

    def feed(self, ended):
        while not ended.wait(1):
            now = datetime.datetime.now(datetime.timezone.utc)
            self.append(lines_of(self.rolls, FEED, now - datetime.timedelta(seconds=1), now))

    def run(self):
        options, now = self.options, datetime.datetime.now(datetime.timezone.utc)
        self.append(lines_of(self.rolls, options.lines, self.hour, now))
        rates = self.rates()
        os.remove(self.log)
        self.append(lines_of(self.rolls, options.lines // 2, self.day - datetime.timedelta(days=1), self.day))
        self.append(lines_of(self.rolls, options.lines // 2, self.hour - datetime.timedelta(hours=1), self.hour))
        self.append(lines_of(self.rolls, options.lines, self.hour, now))
        tallyd, _ = self.count_all(options.build, "open")
        subprocess.run([tallyd.program, "job", "run", "top", "-c", "tallyd.yaml"], cwd=tallyd.dir, check=True, stdout=subprocess.DEVNULL)
        spans = {"the open hour": (self.hour, datetime.timedelta(hours=1)), "the open day": (self.day, datetime.timedelta(days=1))}
        rows = [HEAD]
        for name, (begin, length) in spans.items():
            documents = self.documents(tallyd, begin, length)
            self.ask(tallyd.host(), begin)
            rows.append(self.row(name, self.ask(tallyd.host(), begin), documents))
        ended = threading.Event()
        thread = threading.Thread(target=self.feed, args=(ended,))
        thread.start()
        try:
            time.sleep(3)
            for name, (begin, length) in spans.items():
                rows.append(self.row(f"{name}, while lines come in", self.ask(tallyd.host(), begin), self.documents(tallyd, begin, length)))
        finally:  # else the thread goes on for ever after a failure
            ended.set()
            thread.join()
        tallyd.end()
        return rows, rates

    def rates(self):
        """Both builds in turn, each into databases of its own."""
        if self.options.old is None:
            return "The rate of counting was not measured."
        found = {self.options.build: [], self.options.old: []}
        for number in range(self.options.rounds):
            for build, rates in found.items():
                tallyd, rate = self.count_all(build, f"rate{number}{len(rates)}{build == self.options.old:d}")
                tallyd.end()
                rates.append(rate)
        new, old = (statistics.median(rates) for rates in found.values())
        return (f"Lines of the open hour counted a second, {self.options.rounds} rounds in turn, medians: {new:,.0f} with the sums, {old:,.0f} by a build without "
                f"({new / old:.3f} ×).")


def main():
    mongo.begin()
    parser = argparse.ArgumentParser(description="The largest pages of periods that are open.")
    parser.add_argument("--build", default=os.path.join(measure.ROOT, "build"))
    parser.add_argument("--lines", type=int, default=400_000)
    parser.add_argument("--old")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as home:
        server = mongo.Server(os.path.join(home, "server"))
        server.start()
        bench = Bench(options, home, server)
        try:
            rows, rates = bench.run()
        finally:
            for tallyd in bench.running:
                tallyd.end()
            server.kill()
    text = TEXT.format(table=measure.table(rows), lines=options.lines, feed=FEED, questions=QUESTIONS, load=f"{os.getloadavg()[0]:.0f}",
                       slow=SLOW_MS, rates=rates)
    print(text)
    measure.write_part(os.path.join(measure.ROOT, "bench", "RESULTS.md"), COMMAND, text)


if __name__ == "__main__":
    main()
