#!/usr/bin/env python3
"""The cost of a claim in MongoDB beside files that have ended: with their positions in the ledger, and moved to `past`.

    bench/past.py [--files=N] [--rounds=N]         TALLYD_MONGO names the server (tests/servers/mongo.py)

Positions stay in the ledger while a backup is noted there. So both are the same program and the same database: first with such a note,
then without it. A commit and a claim are timed by updates from Python: of a seat, and of a partition of the ledger.
"""

import argparse
import datetime
import os
import statistics
import subprocess
import sys
import tempfile
import time

import measure

sys.path.insert(0, os.path.join(measure.ROOT, "tests", "servers"))
import mongo  # noqa: E402 (found only now)
from ledger import Ledger  # noqa: E402 (found only now)

COMMAND = "make bench-past"
LINE = '192.0.2.1 - - [05/Jan/2026:12:00:%02d +0000] "GET /page-%d.html HTTP/1.1" 200 10 "-" "-"\n'
HEAD = ("positions of ended files", "server", "files", "the ledger", "a commit", "a claim", "reading the ledger", "an import of one file", "date", "commit")
TEXT = """
## Positions of files that have ended

{table}

A commit rewrites a seat, and a claim the ledger. Bytes are those of BSON. A commit, a claim and a read are medians from Python, over a socket of the same machine.
An import opens the database, counts one line in one batch, and closes it. It reads the positions of all files, wherever they are.
"""


def tallyd(url, home, *files):
    begun = time.monotonic()
    subprocess.run([os.path.join(measure.ROOT, "build/tallyd"), "import", "-q", "-c", "tallyd.yaml", "--store", url, *files], cwd=home,
                   check=True, stdout=subprocess.DEVNULL)
    return time.monotonic() - begun


def new_file(home, number):
    name = f"new-{number}.log"
    with open(os.path.join(home, name), "w", encoding="ascii") as file:
        file.write(LINE % (number % 60, number))
    return name


def fill(base, count):
    """Positions and books of so many files that have ended, like those of a file that was."""
    ledger, book = Ledger(base), base.books.find_one({"source": {"$gt": ""}})
    one = ledger.positions()[0]
    sources = [f"file:4096:{number:016x}" for number in range(count)]
    base.books.insert_many([{**book, "_id": f"{source}/", "source": source} for source in sources])
    for at in range(0, count, 1000):
        ledger.change({"$set": {f"partitions.{source}/": {**one, "source": source, "epoch": 1} for source in sources[at:at + 1000]}})


def median_us(rounds, what):
    taken = []
    for _ in range(rounds):
        begun = time.perf_counter()
        what()
        taken.append((time.perf_counter() - begun) * 1e6)
    return f"{statistics.median(taken):,.0f} µs"


def row(name, url, base, home, options, first):
    size = base.command("aggregate", "ledger", pipeline=[{"$match": {"_id": "ledger"}}, {"$project": {"n": {"$bsonSize": "$$ROOT"}}}], cursor={})
    size = size["cursor"]["firstBatch"][0]["n"]
    key = next(reversed(Ledger(base).partitions()))
    seal = median_us(options.rounds, lambda: base.ledger.update_one({"_id": "w0", "seq": {"$gt": 0}}, {"$inc": {"bench": 1}}))
    change = {"$inc": {f"partitions.{key}.bench": 1}}
    claim = median_us(options.rounds, lambda: base.ledger.update_one({"_id": "ledger", f"partitions.{key}.epoch": {"$gt": 0}}, change))
    read = median_us(options.rounds, lambda: base.ledger.find_one("ledger"))
    files = [new_file(home, first + number) for number in range(2)]
    imported = min(tallyd(url, home, file) for file in files)
    return (name, mongo.CHOSEN, f"{options.files:,}", f"{size:,} bytes", seal, claim, read, f"{imported:.2f} s",
            f"{datetime.datetime.now(datetime.timezone.utc):%Y-%m-%d}", measure.first_line("git", "-C", measure.ROOT, "rev-parse", "--short", "HEAD"))


def main():
    mongo.begin()
    import pymongo  # begin() has found it
    parser = argparse.ArgumentParser(description="The cost of a claim beside files that have ended.")
    parser.add_argument("--files", type=int, default=10000)
    parser.add_argument("--rounds", type=int, default=30)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as home:
        server = mongo.Server(os.path.join(home, "server"))
        server.start()
        try:
            with open(os.path.join(home, "tallyd.yaml"), "w", encoding="ascii") as file:
                file.write("reports: {pages: {by: [path]}}\n")
            url, base = f"{server.url}/past?socketTimeoutMS=600000", pymongo.MongoClient(server.url)["past"]
            tallyd(url, home, new_file(home, 0))
            until = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(minutes=60)
            Ledger(base).change({"$set": {"backups.bench.until": until}})
            fill(base, options.files)
            rows = [row("in the ledger", url, base, home, options, 1)]
            print(rows[0], flush=True)
            Ledger(base).change({"$unset": {"backups": ""}})
            tallyd(url, home, new_file(home, 10))
            rows.append(row("in `past`", url, base, home, options, 11))
            print(measure.table([HEAD, *rows]))
            measure.write_part(os.path.join(measure.HERE, "RESULTS.md"), COMMAND, TEXT.format(table=measure.table([HEAD, *rows])))
        finally:
            server.stop()


if __name__ == "__main__":
    main()
