"""Shared by the system tests: a tallyd in a directory of its own, logs to give it, and a recount of them.

The program under test is $TALLYD (a command line; build/tallyd by default), so that the same tests run under a
sanitizer. Every test gets an empty directory, removed at the end, and works in it.
"""

import collections
import contextlib
import csv
import fcntl
import hashlib
import json
import os
import random
import re
import shlex
import shutil
import signal
import sqlite3
import subprocess
import tempfile
import time
import unittest
import urllib.error
import urllib.request

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
DAY = ("2026-01-05", "2026-01-07")  # of what traffic() writes, with its late lines
TIMEOUT_S = 180
NOBODY = 65534

PIPE_BYTES = 1 << 20

# of <sysexits.h>
EX_OK, EX_USAGE, EX_DATAERR, EX_NOINPUT, EX_CANTCREAT, EX_IOERR, EX_TEMPFAIL = 0, 64, 65, 66, 73, 74, 75
EX_UNAVAILABLE, EX_PROTOCOL, EX_NOPERM, EX_CONFIG = 69, 76, 77, 78

LINE = re.compile(rb'(\S+) \S+ \S+ \[(\d+)/Jan/(\d+):(\d\d:\d\d):\d\d \+0000\] "\S+ ([^ ?"]+)[^"]*" \d+ (\d+|-) ')


def command():
    argv = shlex.split(os.environ.get("TALLYD", "build/tallyd"))
    return [*argv[:-1], os.path.join(ROOT, argv[-1])]


def traffic(lines, seed=1):
    """A log of realistic shape, as bytes."""
    argv = [os.path.join(ROOT, "build/traffic"), "--lines", str(lines), "--seed", str(seed)]
    return subprocess.run(argv, stdout=subprocess.PIPE, check=True, timeout=TIMEOUT_S).stdout


def recount(log):
    """{("minute", path): [hits, bytes]} of what traffic() wrote, by nothing that tallyd has."""
    counts = collections.defaultdict(lambda: [0, 0])
    for line in log.splitlines():
        _, day, year, minute, path, size = LINE.match(line).groups()
        cell = counts[f"{int(year)}-01-{int(day):02}T{minute.decode()}:00Z", path.decode()]
        cell[0] += 1
        cell[1] += 0 if size == b"-" else int(size)
    return counts


def store_url(store):
    """The URL of a store that is named by its URL or by its file."""
    return store if "://" in store else f"sqlite:{store}"


def dice():
    """Random numbers; the seed is printed, and TALLYD_SEED repeats a run."""
    seed = int(os.environ.get("TALLYD_SEED") or time.time_ns())
    print(f"TALLYD_SEED={seed}", flush=True)
    return random.Random(seed)


def failpoints(*prefixes):
    """The failpoints whose names begin with one of the prefixes; all without a prefix."""
    with open(os.path.join(ROOT, "base/failpoint.h"), encoding="utf-8") as header:
        return [name for name in re.findall(r'X\(\w+, "([a-z_.]+)"\)', header.read()) if name.startswith(prefixes or "")]


def dying_at(place):
    """The environment of a program that dies at this failpoint, as by SIGKILL: "store.begun", or "store.begun:3" at its third
    pass."""
    return {**os.environ, "TALLYD_FAILPOINT": place}


def draw_death(rolls, places, passes_max):
    """One of these failpoints and a pass of it, drawn. A program that passes it less often goes on."""
    return f"{rolls.choice(places)}:{rolls.randrange(1, passes_max + 1)}"


def preload(name):
    """A library for LD_PRELOAD: `otherday` moves the clock, `hurry` has the monotonic clock run faster, `faulty` fails reads and writes.
    The loader only warns of one that is missing, and the test would test nothing."""
    path = os.path.join(ROOT, f"build/{name}.so")
    if not os.path.exists(path):
        raise FileNotFoundError(f"{path}: `make build/{name}.so` makes it")
    return path


def other_day(seconds):
    """The environment of a program whose clock is so far ahead."""
    return {**os.environ, "LD_PRELOAD": preload("otherday"), "OTHERDAY_S": str(seconds)}


def get(url):
    """The body of a reply that says success."""
    with urllib.request.urlopen(url, timeout=TIMEOUT_S) as reply:
        return reply.read().decode()


def get_reply(url):
    """(status, body); (None, why) of a daemon that does not listen."""
    try:
        with urllib.request.urlopen(url, timeout=TIMEOUT_S) as reply:
            return reply.status, reply.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()
    except urllib.error.URLError as error:
        return None, str(error)


class Case(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.mkdtemp(prefix="tallyd-test-")
        self.addCleanup(shutil.rmtree, self.dir)

    def path(self, name):
        return os.path.join(self.dir, name)

    def write(self, name, data):
        with open(self.path(name), "wb") as file:
            file.write(data)
        return name

    def append(self, name, data):
        with open(self.path(name), "ab") as file:
            file.write(data)

    def read(self, name):
        with open(self.path(name), "rb") as file:
            return file.read()

    def start(self, *arguments, **options):
        """A tallyd that runs beside the test."""
        process = subprocess.Popen([*command(), *arguments], cwd=self.dir, stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options)
        self.addCleanup(process.kill)
        for pipe in process.stdout, process.stderr:  # which nobody may read until it ends: a full one would hold it up
            if pipe is not None:
                fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
        return process

    def tallyd(self, *arguments, status=EX_OK, **options):
        """Run a command. Returns its standard output; self.err has its errors. `status` is the expected status; None: any."""
        if "input" not in options:
            options["stdin"] = subprocess.DEVNULL
        options.setdefault("timeout", TIMEOUT_S)
        done = subprocess.run([*command(), *arguments], cwd=self.dir, stdout=subprocess.PIPE, check=False,
                              stderr=subprocess.PIPE, **options)
        self.status, self.err = done.returncode, done.stderr.decode(errors="replace")
        out = done.stdout.decode(errors="replace")
        if status is not None:
            said = f"tallyd {shlex.join(arguments)}\n{out}{self.err}"
            self.assertEqual(status, done.returncode, said)
        return out

    def query(self, report, *arguments, span=DAY, store="tallyd.db"):
        """The rows of an answer, as dictionaries."""
        out = self.tallyd("query", report, "--store", store_url(store), "--from", span[0], "--to", span[1],
                          "--format", "csv-raw", *arguments)
        return list(csv.DictReader(out.splitlines()))

    def total(self, measure="hits", report="site", span=DAY, store="tallyd.db"):
        rows = self.query(report, "--measure", measure, span=span, store=store)
        self.assertEqual(1, len(rows))
        return int(rows[0]["value"])

    def answers(self, store="tallyd.db", span=DAY):
        """A digest of what a store answers: every minute of all, every hour of each of the busiest pages."""
        digest = hashlib.sha256()
        for question in (["site", "--step", "minute", "--measure", "all"], ["pages", "--step", "hour"],
                         ["pages", "--top", "1000"], ["pages", "--top", "1000", "--measure", "bytes"]):
            digest.update(repr(self.query(*question, span=span, store=store)).encode())
        return digest.hexdigest()

    def booked(self, store="tallyd.db"):
        """(consumed, parsed) of the books of all sources in an embedded store."""
        with contextlib.closing(sqlite3.connect(self.path(store))) as base:
            books = collections.Counter(dict(base.execute("SELECT entry, sum(value) FROM book WHERE report = 0 GROUP BY entry")))
        return books["consumed"], books["parsed"]

    def import_start(self, out):
        """At which byte of its file an import says that it began; None where it found nothing new."""
        found = re.search(r"bytes ([\d,]+) to", out)
        return int(found.group(1).replace(",", "")) if found else None


class DaemonCase(Case):
    """With a `tallyd run` beside the test."""

    def launch(self, *arguments, started=True, **options):
        """A daemon that has logged where it listens; without `started` it may still wait for its store. Its log is the file `log`."""
        with open(self.path("log"), "wb") as log:
            process = subprocess.Popen([*command(), "run", *arguments], cwd=self.dir, stdin=subprocess.PIPE,
                                       stdout=subprocess.DEVNULL, stderr=log, **options)
        self.addCleanup(process.stdin.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        self.process = process
        if started:
            self.url = "http://" + self.wait_for_log(r"event=started .*listen=(\S+)").group(1)
        return process

    def wait_for(self, what, good):
        end = time.monotonic() + TIMEOUT_S
        while not good(found := what()):
            said = self.read("log").decode()
            self.assertLess(time.monotonic(), end, f"last: {found}\n{said}")
            self.assertIsNone(self.process.poll(), said)
            time.sleep(0.02)
        return found

    def wait_for_log(self, pattern):
        return self.wait_for(lambda: re.search(pattern, self.read("log").decode()), bool)

    def get(self, path):
        return get(self.url + path)

    def wait_for_consumed(self, count):
        self.wait_for(lambda: json.loads(self.get("/api/v1/status"))["consumed"], lambda found: found == count)

    def feed(self, data):
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def stop(self, number=signal.SIGTERM):
        self.process.send_signal(number)
        self.assertEqual(EX_OK, self.process.wait(TIMEOUT_S), self.read("log").decode())
        self.assertIn(b"event=stopped", self.read("log"))
