"""The cost of documents made ahead in the evening, and what they spare at midnight: a daemon, and one batch of each."""

import json
import os
import random
import subprocess
import sys
import time
import urllib.request

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path[:0] = [os.path.join(ROOT, "bench"), os.path.join(ROOT, "tests", "servers")]
import daemon  # noqa: E402 (found only now)
import measure  # noqa: E402
import mongo  # noqa: E402

PAGES, ROUNDS, TIMEOUT_S = 20_000, 5, 120
WAYS = {"off": "off", "shell": "auto, shells", "zeros": "auto, zeros"}
LINE = '192.0.2.1 - - [%02d/Jan/2026:%02d:%02d:00 +0000] "GET /p/%d.html HTTP/1.1" 200 %d "-" "-"\n'


def lines(day, hour, minutes):
    """Every page once in each of these minutes."""
    return "".join(LINE % (day, hour, minute, page, page % 977) for minute in minutes for page in range(PAGES)).encode()


EVENING, MIDNIGHT = lines(5, 23, range(40, 50, 2)), lines(6, 0, [1])


def send(one, part, total):
    """Seconds that the store took to make this part durable; `total`: bytes with those before it."""
    before = one.metrics()["tallyd_apply_duration_seconds_sum"]
    one.process.stdin.write(part)
    one.process.stdin.flush()
    until = time.monotonic() + TIMEOUT_S
    while True:
        with urllib.request.urlopen(f"http://{one.find_host()}/api/v1/status", timeout=10) as reply:
            if json.load(reply)["stored"] == total:
                break
        one.check()
        if time.monotonic() > until:
            raise measure.Failed(f"a part was not counted within {TIMEOUT_S} s")
        time.sleep(0.02)
    return one.metrics()["tallyd_apply_duration_seconds_sum"] - before


def run(build, work, url, way):
    """(evening, midnight) in seconds, into a new database."""
    store = "" if way == "off" else f", preallocate: auto, preallocate_as: {way}"
    one = daemon.on_pipe(build, work, f"{url}/midnight{random.randrange(10**9)}", "flush: 1s", store)
    one.start(subprocess.PIPE)
    try:
        one.host()
        evening = send(one, EVENING, len(EVENING))
        midnight = send(one, MIDNIGHT, len(EVENING) + len(MIDNIGHT))
        used = one.metrics()["tallyd_documents_preallocated_used_total"]
        if used != (0 if way == "off" else PAGES):
            raise measure.Failed(f"{used:.0f} of {PAGES} documents were there")
        one.process.stdin.close()
    finally:
        one.end()
    return evening, midnight


def rows(build, work):
    """For each server: the time of a batch, by way. All ways in turn."""
    table = [["server", "`preallocate`", f"last batch of a day, {PAGES:,} series", "first batch of the next day"]]
    for name, title in (("ferretdb", "FerretDB 2"), ("secantus", "SecantusDB")):
        mongo.install(name)
        server = mongo.Server(os.path.join(work, name), name)
        server.start()
        try:
            found = {way: [] for way in WAYS}
            for number in range(ROUNDS):
                for way, times in found.items():
                    if way != "zeros" or number == 0:  # which are slow
                        times.append(run(build, work, server.url, way))
        finally:
            server.kill()
        table += [[title, WAYS[way], *(measure.spread(seconds, digits=2) for seconds in zip(*times))] for way, times in found.items()]
    return table
