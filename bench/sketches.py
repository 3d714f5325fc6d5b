#!/usr/bin/env python3
"""make bench-sketches: what histograms and distinct counts cost; writes a part of bench/RESULTS.md."""

import argparse
import os
import random
import re
import socket
import statistics
import subprocess
import sys
import time
import urllib.request

import measure
import sketch_sizes
from tallyd import Tallyd

NAME = "bench-sketches"
HISTOGRAM, DISTINCT = "latency=histogram(bytes)", "visitors=distinct(host)"
ASKED = 300

CONFIG = """
store: {{url: "sqlite:{store}"}}
http: {{enabled: true, listen: "127.0.0.1:{port}"}}
sources:
  web: {{path: {log}, decode: [{{apache: '%h %l %u %t "%r" %>s %b %D'}}]}}
reports:
  pages:
    by: [path]
    measures: {{hits: count, bytes: sum(bytes), latency: histogram(duration), visitors: distinct(host)}}
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


def count_day(program, work, log):
    """Counts it into a store. Returns the configuration."""
    config = os.path.join(work, "day.yaml")
    with open(config, "w", encoding="ascii") as out:
        out.write(CONFIG.format(store=os.path.join(work, "day.db"), port=free_port(), log=log))
    subprocess.run([program, "import", "-c", config, log], check=True, stdout=subprocess.DEVNULL)
    return config


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


def ask(config, program):
    """The median time of p99 by minute of one page's hour, whole answers over HTTP, in ms."""
    with open(config, encoding="ascii") as text:
        address = re.search(r'listen: "(\S+)"', text.read()).group(1)
    url = (f"http://{address}/api/v1/query?report=pages&measure=p99(latency)&step=minute&from=2026-01-05T12:00:00Z"
           "&to=2026-01-05T13:00:00Z&filter=path%3D/cart")
    with subprocess.Popen([program, "run", "-c", config], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as daemon:
        try:
            took = []
            for number in range(ASKED):
                before = time.perf_counter()
                try:
                    with urllib.request.urlopen(url, timeout=10) as reply:
                        reply.read()
                except OSError:
                    if number > 100:
                        raise
                    time.sleep(0.1)
                    continue
                took.append(1000 * (time.perf_counter() - before))
        finally:
            daemon.terminate()
    return statistics.median(took)


def run_all(arguments, work):
    program = os.path.join(arguments.build, "tallyd")
    rows = [["figure", "asked", "measured"]]
    measure.say(NAME, "instructions")
    instructions(arguments, work, rows)
    measure.say(NAME, "a day of one page")
    log = os.path.join(work, "day.log")
    sketch_sizes.write_day(log, random.Random(1), *sketch_sizes.DAYS[0])
    config = count_day(program, work, log)
    median = ask(config, program)
    rows.append(["p99 by minute of one page's hour, whole answer over HTTP, median", "≤ 2 ms",
                 measure.verdict(f"{median:.2f} ms", median <= 2)])
    return [], measure.table(rows)


def parse_arguments():
    parser = argparse.ArgumentParser(description="Measure histograms and distinct counts; write bench/RESULTS.md.")
    parser.add_argument("--lines", type=int, default=100_000, help="lines of the log (default 100,000)")
    measure.add_arguments(parser)
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(measure.run_bench(NAME, parse_arguments(), run_all))
