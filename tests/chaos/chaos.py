#!/usr/bin/env python3
"""Daemons under faults that a seed draws: whatever happens, each event is counted once, or somebody says which is not, and why.

    tests/chaos/chaos.py [--store=sqlite|secantus-py|secantus|ferretdb] [--seed=N] [--rounds=N] [--seconds=N] [--only=FAULT,…]
                         [--results=FILE]

A round has four daemons, three on a topic of a real Kafka broker and one on a file: with SQLite each counts all of its source into
a file of its own, with MongoDB all of them into one database, as a group. Round k of seed N is round 1 of seed N+k-1; the schedule is
printed. In the end all that was produced is recounted (judge.py). A round is

    exact    each event is counted once
    told     what is missing, or counted again, is in the log as a warning or an error, or in the books, or the daemon refused to go on;
             or the broker lost it before anybody counted it
    SILENT   anything else: the status is 1, and the folder with logs, stores and the schedule is kept

With --results a row of bench/RESULTS.md, or another FILE, says what was found; see results.py.
"""

import argparse
import os
import random
import shutil
import sys
import tempfile
import time
import traceback

sys.path[:0] = [os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), name) for name in ("servers", "system")]
import kafka  # noqa: E402 (found only now)
import mongo  # noqa: E402
from process import Missing  # noqa: E402
from results import Results  # noqa: E402
from round import Round  # noqa: E402


def arguments():
    parser = argparse.ArgumentParser(description="Random faults, and an independent judge.")
    parser.add_argument("--store", default="sqlite", choices=["sqlite", *mongo.SERVERS])
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--only", default="", help="faults to draw from, with commas between them")
    parser.add_argument("--results", help="file of results to write a row of")
    return parser.parse_args()


def play(broker, server, options, seed, results):
    """One round. True: nothing went wrong in silence."""
    home = tempfile.mkdtemp(prefix=f"tallyd-chaos-{options.store}-{seed}-")
    print(f"\n== store {options.store}, seed {seed}, {options.seconds} s", flush=True)
    one = Round(home, broker, server, random.Random(seed), options)
    begun = time.monotonic()
    good, verdicts = True, []
    try:
        verdicts = one.play()
    except Exception:  # noqa: BLE001 (the next rounds are worth playing)
        traceback.print_exc()
        good = False
    finally:
        one.close()
    for name, verdict in verdicts:
        print(f"{name}: {verdict.word()}, {verdict.counted} events counted")
        for line in [*(f"  SILENT: {line}" for line in verdict.silent), *(f"  told: {line}" for line in verdict.told)]:
            print(line[:600])
        good = good and not verdict.silent
    print(f"seed {seed}: {'good' if good else 'FAILED, see ' + home} after {time.monotonic() - begun:.0f} s", flush=True)
    if good:
        shutil.rmtree(home, ignore_errors=True)
    results.add(one.played, one.events(), [verdict.word() for _, verdict in verdicts])
    return good


def run(options, home):
    server, broker, bad = None, kafka.Broker(os.path.join(home, "kafka")), []
    first = options.seed if options.seed is not None else time.time_ns() // 1000000
    results = Results(options, first)
    try:
        broker.start()
        if options.store != "sqlite":
            server = mongo.Server(os.path.join(home, "mongo"), options.store)
            server.start()
        for seed in range(first, first + options.rounds):
            bad += [] if play(broker, server, options, seed, results) else [seed]
    finally:
        broker.kill()
        if server is not None:
            server.kill()
    counts = ", ".join(f"{results.words[word]} {word}" for word in ("exact", "told", "SILENT"))
    print(f"\n{options.store}: {options.rounds} rounds, stores: {counts}; seeds that failed: {bad or 'none'}")
    if options.results:
        results.write(options.results)
    return 1 if bad else 0


def main():
    options = arguments()
    try:
        kafka.install()
        if options.store != "sqlite":
            mongo.begin(options.store)
    except Missing as error:
        print(f"skipped: {error}")
        return 77
    home = tempfile.mkdtemp(prefix="tallyd-chaos-servers-")
    for name in ("kafka", "mongo"):
        os.mkdir(os.path.join(home, name))
    try:
        return run(options, home)
    finally:
        shutil.rmtree(home, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
