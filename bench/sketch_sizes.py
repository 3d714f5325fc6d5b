#!/usr/bin/env python3
"""make bench-sketch-sizes: bytes that a histogram and a distinct count take in both stores; writes a part of bench/RESULTS.md.

Counted is one day of one page: 10,000 events of 4,000 visitors and, without --small, a million of 300,000. Numbers are lognormal.
"""

import argparse
import os
import random
import subprocess
import sys
import zlib

import measure

sys.path.insert(0, os.path.join(measure.ROOT, "tests", "servers"))
import mongo  # noqa: E402 (found only now)

NAME = "bench-sketch-sizes"
SERVER = "ferretdb"
DAYS = ((10_000, 4_000), (1_000_000, 300_000))  # events, and hosts that they are drawn from
LEVELS = {"minute": "hour", "hour": "day", "day": "month", "month": "year"}  # SQLite's rows that hold the time buckets
MEASURES = {"latency": "histogram(duration)", "coarser": "histogram(duration, hour=2, day=1, month=0)", "visitors": "distinct(host)"}
HISTOGRAM_KINDS = {"minute": "hour", "hour": "day", "day": "month", "month": "year"}  # MongoDB's documents that hold them
KINDS = {"latency": HISTOGRAM_KINDS, "coarser": HISTOGRAM_KINDS, "visitors": {span: span for span in LEVELS}}
BLOCK_BYTES = 32 << 10  # of documents that MongoDB packs at once
ASKED_EVENTS, ASKED_KIB = DAYS[0][0], {"SQLite": 8, "MongoDB": 64}  # of a day with so many events, minutes and all
NOTE = """

The bounds are missed because each minute is kept, and nearly each of its seven events has a bucket or a host of its own. By minute
an event takes some 15 bits of a histogram in SQLite and 22 bytes in BSON, of a distinct count 30 bits and 38 bytes; hours have the hosts once more.

SQLite: the bytes of rows' bodies beyond those of a report without the measure. MongoDB: BSON; packed by zlib at level 1, 32 KiB at a time, as
its block compressor may pack them.
"""
CONFIG = """
sources:
  web: {decode: [{apache: '%h %l %u %t "%r" %>s %b %D'}]}
reports:
  pages: {by: [path], measures: {hits: count, bytes: sum(bytes)MORE}}
"""


def write_day(path, rolls, events, hosts):
    """Events of one page, spread over the minutes of a day. Returns the number of visitors."""
    seen = set()
    with open(path, "w", encoding="ascii") as out:
        for at in sorted(rolls.randrange(86400) for _ in range(events)):
            number = rolls.randrange(hosts)
            seen.add(number)
            out.write(f"10.{number >> 16}.{number >> 8 & 255}.{number & 255} - - "
                      f"[05/Jan/2026:{at // 3600:02}:{at // 60 % 60:02}:{at % 60:02} +0000] "
                      f'"GET /cart HTTP/1.1" 200 512 {int(rolls.lognormvariate(11, 1))}\n')
    return len(seen)


def count_into(store, program, work, log, measures):
    config = os.path.join(work, "day.yaml")
    with open(config, "w", encoding="ascii") as out:
        out.write(CONFIG.replace("MORE", "".join(f", {name}: '{MEASURES[name]}'" for name in measures)))
    subprocess.run([program, "import", "-q", "-c", config, "--store", store, log], check=True, stdout=subprocess.DEVNULL)


def sqlite_bytes(program, work, log, measures):
    """{resolution: bytes of the bodies of its rows}"""
    store = os.path.join(work, f"{os.path.basename(log)}-{'-'.join(measures)}.db")
    count_into(f"sqlite:{store}", program, work, log, measures)
    question = "SELECT " + ", ".join(f"(SELECT total(length(body)) FROM {level}_1)" for level in LEVELS.values())
    done = subprocess.run(["sqlite3", store, question], check=True, capture_output=True, text=True)
    return dict(zip(LEVELS, map(float, done.stdout.split("|"))))


def packed(documents):
    """Bytes as MongoDB's block compressor may pack them."""
    whole = b"".join(documents)
    return sum(len(zlib.compress(whole[at:at + BLOCK_BYTES], 1)) for at in range(0, len(whole), BLOCK_BYTES))


def mongo_documents(base, name):
    """{resolution: its documents, as BSON}"""
    return {span: [document.raw for document in base[f"pages.{name}.{kind}"].find()] for span, kind in KINDS[name].items()}


def kib(number):
    return f"{number / 1024:,.1f}"


def rows_of(program, work, server, events, hosts):
    import bson.codec_options  # only now that begin() has found it
    import bson.raw_bson
    import pymongo

    log = os.path.join(work, f"{events}.log")
    visitors = write_day(log, random.Random(1), events, hosts)
    without = sqlite_bytes(program, work, log, ())
    base = f"sizes{events}"
    count_into(f"{server.url}/{base}", program, work, log, MEASURES)
    codec = bson.codec_options.CodecOptions(document_class=bson.raw_bson.RawBSONDocument)
    with pymongo.MongoClient(server.url) as client:
        stored = {name: mongo_documents(client.get_database(base, codec_options=codec), name) for name in MEASURES}
    for name, expression in MEASURES.items():
        embedded = sqlite_bytes(program, work, log, (name,))
        figures = [[kib(embedded[span] - without[span]) for span in LEVELS]]
        figures.append([kib(sum(map(len, stored[name][span]))) for span in LEVELS])
        figures.append([f"{len(stored[name][span]):,}" for span in LEVELS])
        figures.append([kib(max(map(len, stored[name][span]))) for span in LEVELS])
        total = [sum(embedded.values()) - sum(without.values()), sum(len(d) for span in LEVELS for d in stored[name][span])]
        total.append(sum(packed(stored[name][span]) for span in LEVELS))
        about = f"`{expression}`, {events:,} events" + (f", {visitors:,} visitors" if name == "visitors" else "")
        what = ("SQLite, KiB", "MongoDB, KiB", "MongoDB, documents", "MongoDB, KiB of the largest")
        ends = (kib(total[0]), f"{kib(total[1])}; packed {kib(total[2])}", "", "")
        yield from ([about, label, *row, *judged(label, end, size, events)] for label, row, end, size in zip(what, figures, ends, [*total[:2], None, None]))


def judged(label, end, size, events):
    """The cells of the size in all, and of what is asked."""
    bound = ASKED_KIB[label.split(",")[0]]
    if size is None or events != ASKED_EVENTS:
        return ["", end]
    return [f"≤ {bound} KiB", measure.verdict(end, size <= bound << 10)]


def run_all(arguments, work):
    rows = [["one series and day", "store", *(f"by {span}" for span in LEVELS), "asked", "in all"]]
    server = mongo.Server(os.path.join(work, "server"), SERVER)
    server.start()
    try:
        for events, hosts in DAYS[:1] if arguments.small else DAYS:
            measure.say(NAME, f"{events:,} events")
            rows += rows_of(os.path.join(arguments.build, "tallyd"), work, server, events, hosts)
    finally:
        server.stop()
    return [], measure.table(rows) + NOTE


def parse_arguments():
    parser = argparse.ArgumentParser(description="Measure bytes of histograms and distinct counts; write bench/RESULTS.md.")
    parser.add_argument("--small", action="store_true", help="only the day of 10,000 events")
    measure.add_arguments(parser)
    return parser.parse_args()


if __name__ == "__main__":
    mongo.begin(SERVER)
    sys.exit(measure.run_bench(NAME, parse_arguments(), run_all, mongo.ERRORS))
