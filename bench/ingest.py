"""How fast a daemon counts what waits for it, with jobs and without: the same store and the same lines, in turn.

Before each run the store has a past: documents of months that are to be rolled up, and days of which the hours, or the minutes,
need not be kept. With jobs, a daemon rolls up and expires these, finds the largest series and makes documents ahead, all beside the
counting; without, it leaves them. A line in 500 is of the month before, so that there is always something to roll up again.
"""

import bisect
import datetime
import itertools
import json
import os
import random
import shutil
import statistics
import subprocess
import time
import urllib.request

import daemon
import measure

HOUR, DAY = 3600, 86400
PATHS, PAST_MONTHS, PAST_DAYS, FED_HOURS, LATE = 3000, 13, range(4, 21), 12, 500
KEEP = ", keep: {minute: 48h, hour: 62d}"
LINE = '192.0.2.1 - - [%s] "GET /p/%d.html HTTP/1.1" 200 10 "-" "-"\n'
TIMEOUT_S = 600


def stamp(at):
    return time.strftime("%d/%b/%Y:%H:%M:%S +0000", time.gmtime(at))


def months_before(now, count):
    """The 10th of each, at noon; the last first."""
    year, month = time.gmtime(now)[:2]
    for _ in range(count):
        year, month = (year - 1, 12) if month == 1 else (year, month - 1)
        yield int(datetime.datetime(year, month, 10, 12, tzinfo=datetime.timezone.utc).timestamp())


def write_past(path, now, visits):
    """Each path once in each of the months, and so often in each of the days."""
    today = now // DAY * DAY
    times = list(months_before(now, PAST_MONTHS))
    times += [today - day * DAY + visit * DAY // visits for day in PAST_DAYS for visit in range(visits)]
    with open(path, "w", encoding="ascii") as file:
        for at in times:
            when = stamp(at)
            file.writelines(LINE % (when, number) for number in range(PATHS))


def write_fed(path, now, lines):
    """From yesterday 18:00 on, as time goes; paths by Zipf's law."""
    dice, begin = random.Random(1), now // DAY * DAY - FED_HOURS * HOUR // 2
    late = next(months_before(now, 1))
    sums = list(itertools.accumulate(1 / rank for rank in range(1, PATHS + 1)))
    seconds = FED_HOURS * HOUR
    with open(path, "w", encoding="ascii") as file:
        for second in range(seconds):
            when = stamp(begin + second)
            for number in range(lines * second // seconds, lines * (second + 1) // seconds):
                chosen = bisect.bisect(sums, dice.random() * sums[-1])
                file.write(LINE % (when if number % LATE else stamp(late + second), min(chosen, PATHS - 1)))


class Ingest:
    """All pairs of runs into one kind of store. `url_of(name)`: of an empty one."""

    def __init__(self, arguments, work, label, visits, url_of, say):
        self.arguments, self.work, self.label, self.url_of, self.say = arguments, work, label, url_of, say
        self.rates = {"off": [], "on": []}
        self.done = []  # of each run with jobs: what they did
        self.number = 0
        now = int(time.time())
        self.past, self.fed = os.path.join(work, "past.log"), os.path.join(work, "fed.log")
        write_past(self.past, now, visits)
        write_fed(self.fed, now, arguments.lines)
        self.until = now + 2 * DAY

    def prepare(self):
        """The URL of a store with a past."""
        self.number += 1
        url = self.url_of(f"jobs{self.number}")
        home = os.path.join(self.work, "import")
        shutil.rmtree(home, ignore_errors=True)
        one = daemon.on_pipe(self.arguments.build, home, url, "flush: 1s")
        subprocess.run([one.program, "import", "-q", "-c", "tallyd.yaml", self.past], cwd=one.dir, check=True)
        return url

    def run(self, way):
        url = self.prepare()
        is_on = way == "on"
        one = daemon.on_pipe(self.arguments.build, self.work, url, "flush: 1s", ", preallocate: auto" if is_on else "",
                             KEEP if is_on else "", f"jobs: {{rollup_after: {'1s' if is_on else '30d'}}}\n")
        measure.settle()
        one.start(subprocess.PIPE)
        try:
            host = one.host()
            begun = time.monotonic()
            self.feed(one, host)
            taken = time.monotonic() - begun
            if is_on:
                self.done.append(one.metrics())
            one.process.stdin.close()
        finally:
            one.end()
        self.check(one, url)
        self.rates[way].append(self.arguments.lines / taken)

    def feed(self, one, host):
        """All of it, until it is stored."""
        with open(self.fed, "rb") as file:
            shutil.copyfileobj(file, one.process.stdin, 1 << 20)
            one.process.stdin.flush()
            total = file.tell()
        until = time.monotonic() + TIMEOUT_S
        stored = None
        while stored != total:
            one.check()
            if time.monotonic() > until:
                raise measure.Failed(f"what was fed was not counted within {TIMEOUT_S} s")
            with urllib.request.urlopen(f"http://{host}/api/v1/status", timeout=10) as reply:
                stored = json.load(reply)["stored"]
            time.sleep(0.01)

    def check(self, one, url):
        """Everything is counted, whatever expired."""
        with open(self.past, "rb") as past:
            expected = self.arguments.lines + sum(1 for _ in past)
        span = ["--from", time.strftime("%Y-01-01", time.gmtime(self.until - 800 * DAY)), "--to",
                time.strftime("%Y-%m-%d", time.gmtime(self.until))]
        out = subprocess.run([one.program, "query", "pages", "--step", "month", *span, "--format", "csv", "--store", url],
                             check=True, capture_output=True, text=True).stdout
        found = sum(int(line.rsplit(",", 1)[1]) for line in out.splitlines()[1:])
        if found != expected:
            raise measure.Failed(f"{self.label}: {found:,} are counted of {expected:,}")

    def measure(self):
        for number in range(self.arguments.pairs):
            for way in ("off", "on") if number % 2 == 0 else ("on", "off"):
                self.run(way)
            self.say(f"{self.label}: pair {number + 1}: jobs off {self.rates['off'][-1]:,.0f}, "
                     f"on {self.rates['on'][-1]:,.0f} lines/s, {self.ratios()[-1]:.3f} ×")

    def ratios(self):
        return [on / off for on, off in zip(self.rates["on"], self.rates["off"])]

    def did(self):
        """The work of the jobs beside, at the median: rows or documents that expired, documents rolled up, periods of which the
        largest series were found, documents made ahead."""
        return [statistics.median(one.get(f"tallyd_{name}_total", 0) for one in self.done)
                for name in ("expired_rows", "rollup_documents", "top_periods", "documents_preallocated")]
