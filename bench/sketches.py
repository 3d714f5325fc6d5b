#!/usr/bin/env python3
"""make bench-sketches: what histograms and distinct counts cost; writes a part of bench/RESULTS.md."""

import argparse
import contextlib
import http.client
import os
import random
import re
import socket
import statistics
import subprocess
import sys
import time
import urllib.parse

import measure
import peers
import sketch_sizes
from tallyd import Tallyd

sys.path[:0] = [os.path.join(measure.ROOT, "tests", "servers")]
import mongo  # noqa: E402 (found only now)

try:
    import pymongo
except ImportError:
    pymongo = None  # main() begins again by a Python that has it

NAME = "bench-sketches"
HISTOGRAM, DISTINCT = "latency=histogram(bytes)", "visitors=distinct(host)"
ASKED, ROUNDS = 300, 5
BOUND_IMPORT, BOUND_FIND, BOUND_ASK_MS = 3, 1.5, 2
SKETCHES = ", latency: histogram(duration), visitors: distinct(host)"
QUESTION = {"report": "pages", "measure": "p99(latency)", "step": "minute", "from": "2026-01-05T12:00:00Z",
            "to": "2026-01-05T13:00:00Z", "filter": "path=/cart"}

CONFIG = """
store: {{url: "{store}"}}
http: {{enabled: true, listen: "127.0.0.1:{port}"}}
sources:
  web: {{path: {log}, decode: [{{apache: '%h %l %u %t "%r" %>s %b %D'}}]}}
reports:
  pages:
    by: [path]
    measures: {{hits: count, bytes: sum(bytes){more}}}
"""


def few_paths(source, target):
    """The same lines on a hundred paths, so that most events find their cell."""
    with open(source, "rb") as lines, open(target, "wb") as out:
        for number, line in enumerate(lines):
            out.write(re.sub(rb'"(\w+) \S+ ', rb'"\1 /page/%d ' % (number * 7919 % 100), line, count=1))
    return target


def instructions(arguments, work, rows):
    """Add rows with the instructions of a line, for each kind of log."""
    tallyd, logs = Tallyd(arguments.build, work), {}
    logs["a hundred paths"] = os.path.join(work, "few.log")
    logs["48,109 paths"] = os.path.join(work, "many.log")
    with open(logs["48,109 paths"], "wb") as out:
        subprocess.run([os.path.join(arguments.build, "traffic"), "--lines", "300000", "--seed", "1"], stdout=out, check=True)
    few_paths(logs["48,109 paths"], logs["a hundred paths"])
    for what, log in logs.items():
        none = tallyd.instructions_with(log, work, arguments.lines)
        for added, most in ((HISTOGRAM, 120), (DISTINCT, 100)):
            more = tallyd.instructions_with(log, work, arguments.lines, added) - none
            rows.append([f"instructions a line more, `{added.split('=')[1]}`, {what}", f"≤ {most}",
                         measure.verdict(f"{more:,.0f} of {none:,.0f}", more <= most)])


def imported(program, work, store, log, more):
    """The configuration by which the log was imported into a store."""
    config = os.path.join(work, "day.yaml")
    with open(config, "w", encoding="ascii") as out:
        out.write(CONFIG.format(store=store, port=free_port(), log=log, more=more))
    subprocess.run([program, "import", "-c", config, log], check=True, stdout=subprocess.DEVNULL)
    return config


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


@contextlib.contextmanager
def serving(program, config):
    """A daemon; gives a function that asks it QUESTION and returns how long the whole answer took, in ms."""
    with open(config, encoding="ascii") as text:
        connection = http.client.HTTPConnection(re.search(r'listen: "(\S+)"', text.read()).group(1), timeout=30)
    path = "/api/v1/query?" + urllib.parse.urlencode(QUESTION)

    def ask():
        begun = time.perf_counter()
        connection.request("GET", path)
        reply = connection.getresponse()
        if b"null" == reply.read() or reply.status != 200:
            raise measure.Failed(f"{path}: {reply.status}")
        return 1000 * (time.perf_counter() - begun)

    with subprocess.Popen([program, "run", "-c", config], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as daemon:
        try:
            until = time.monotonic() + 30
            while time.monotonic() < until:
                with contextlib.suppress(OSError, http.client.HTTPException, measure.Failed):
                    ask()
                    break
                connection.close()
                time.sleep(0.1)
            yield ask
        finally:
            daemon.terminate()


def on_mongo(program, work, log):
    """The medians of the question and of a bare find of the document that answers it, on FerretDB, in ms."""
    server = mongo.Server(os.path.join(work, "ferretdb"), "ferretdb")
    server.start()
    try:
        config = imported(program, work, f"{server.url}/tallyd", log, SKETCHES)
        hours = pymongo.MongoClient(server.url)["tallyd"]["pages.latency.hour"]
        name, = (found["_id"] for found in hours.find({}, {"_id": 1}) if str(found["_id"]).startswith("2026010512"))
        asked, found = [], []
        with serving(program, config) as ask:
            for _ in range(ASKED):
                asked.append(ask())
                begun = time.perf_counter()
                document, = hours.find({"_id": name})
                found.append(1000 * (time.perf_counter() - begun))
        if not document:
            raise measure.Failed("the document is empty")
        return statistics.median(asked), statistics.median(found)
    finally:
        server.kill()


# ---- import, against ClickHouse


def timed_log(arguments, work):
    """Combined lines with a duration behind the bytes, as the peer finds it best."""
    path, draws = os.path.join(work, "timed.log"), random.Random(1)
    lines = subprocess.Popen([os.path.join(arguments.build, "traffic"), "--lines", str(arguments.import_lines), "--seed", "1", "--start",
                              "2026-01-05T00:00:00Z"], stdout=subprocess.PIPE)
    with open(path, "wb") as out:
        for line in lines.stdout:
            head, request, rest = line.split(b'"', 2)
            status, size, rest = rest.lstrip().split(b" ", 2)
            out.write(b'%s"%s" %s %s %d %s' % (head, request, status, size, draws.lognormvariate(11, 1), rest))
    if lines.wait() != 0:
        raise measure.Failed("traffic failed")
    return path


def time_imports(arguments, work):
    """The seconds of tallyd and of ClickHouse, in turn, and what differs."""
    log, store = timed_log(arguments, work), os.path.join(work, "import.db")
    peer = peers.ClickHouse("sketches", measure.CACHE, ("p99", "hosts"))
    if peer.why_not is not None:
        raise measure.Failed(peer.why_not)
    config, ours, theirs = os.path.join(work, "import.yaml"), [], []
    with open(config, "w", encoding="ascii") as out:
        timed = CONFIG.replace("%D'", """%D "%{{Referer}}i" "%{{User-Agent}}i"'""")
        out.write(timed.format(store=f"sqlite:{store}", port=free_port(), log=log, more=SKETCHES))
    program = os.path.join(arguments.build, "tallyd")
    measure.warm(log)
    for number in range(ROUNDS):
        for name in os.listdir(work):
            if name.startswith("import.db"):
                os.remove(os.path.join(work, name))
        measure.settle()
        ours.append(measure.run([program, "import", "-q", "-c", config, log]).wall_s)
        seconds, (_, hits, size) = peer.count(log)
        theirs.append(seconds)
        measure.say(NAME, f"import, round {number + 1} of {ROUNDS}: {ours[-1]:.2f} s, ClickHouse {seconds:.2f} s")
    wrong = []
    for figure, expected in ("hits", hits), ("bytes", size):
        said = measure.run([program, "query", "pages", "-c", config, "--measure", figure, "--from", "2026-01-04", "--to", "2026-01-07", "--format",
                            "csv-raw"]).out.strip().rpartition(",")[2]
        if int(said) != expected:
            wrong.append(f"{figure}: {said}, ClickHouse {expected}")
    return statistics.median(ours), statistics.median(theirs), wrong


def run_all(arguments, work):
    mongo.begin("ferretdb")
    program = os.path.join(arguments.build, "tallyd")
    rows = [["figure", "asked", "measured"]]
    measure.say(NAME, "instructions")
    instructions(arguments, work, rows)
    measure.say(NAME, "a day of one page")
    log = os.path.join(work, "day.log")
    sketch_sizes.write_day(log, random.Random(1), *sketch_sizes.DAYS[0])
    config = imported(program, work, f"sqlite:{os.path.join(work, 'day.db')}", log, SKETCHES)
    with serving(program, config) as ask:
        median = statistics.median(ask() for _ in range(ASKED))
    rows.append(["p99 by minute of one page's hour, whole answer over HTTP, SQLite, median", f"≤ {BOUND_ASK_MS} ms",
                 measure.verdict(f"{median:.2f} ms", median <= BOUND_ASK_MS)])
    measure.say(NAME, "the same on FerretDB")
    asked, found = on_mongo(program, work, log)
    rows.append(["the same on FerretDB, against a bare find of its document, medians", f"≤ {BOUND_FIND} ×",
                 measure.verdict(f"{asked / found:.2f} × ({asked:.2f} and {found:.2f} ms)", asked / found <= BOUND_FIND)])
    ours, theirs, wrong = time_imports(arguments, work)
    rows.append([f"import of {arguments.import_lines:,} lines with `histogram(duration)` and `distinct(host)` by path, against ClickHouse's "
                 "`quantileTDigest` and `uniq` by path and minute", f"≥ {BOUND_IMPORT} ×",
                 measure.verdict(f"{theirs / ours:.2f} × ({ours:.2f} and {theirs:.2f} s)", theirs / ours >= BOUND_IMPORT)])
    return wrong, measure.table(rows) + "\n\n" + measure.equality(wrong, "ClickHouse counted as many hits and bytes.")


def parse_arguments():
    parser = argparse.ArgumentParser(description="Measure histograms and distinct counts; write bench/RESULTS.md.")
    parser.add_argument("--lines", type=int, default=100_000, help="lines whose instructions are counted (default 100,000)")
    parser.add_argument("--import-lines", type=int, default=3_000_000, help="lines that are imported (default 3,000,000)")
    measure.add_arguments(parser)
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(measure.run_bench(NAME, parse_arguments(), run_all, mongo.ERRORS))
