#!/usr/bin/env python3
"""make bench-sizing: the arithmetic of docs/SIZING.md, checked by a hundredth of it; writes tables into bench/RESULTS.md.

Heartbeats of devices, one each half an hour, counted as fast as it goes: by device into SQLite over a day, into a server over less,
and both by region and model. The sizes of documents and rows are worked out beforehand and stand beside the measured ones.
"""

import argparse
import datetime
import functools
import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
sys.path[:0] = [os.path.join(ROOT, "tests", "servers")]

import measure  # noqa: E402
import mongo  # noqa: E402

try:
    import bson
    import pymongo
    from bson.codec_options import CodecOptions
    from bson.int64 import Int64
    from bson.raw_bson import RawBSONDocument
except ImportError:
    pymongo = None  # main() begins again by a Python that has it

SERVERS = {"ferretdb": "FerretDB 2", "secantus": "SecantusDB"}
ALL, HALF_HOUR, HALF_HOURS = 30_000_000, 1800, 48
RAW_GB, BYTES_A_HEARTBEAT = 144, 100
REGIONS, MODELS = 20, 50
DAY = datetime.datetime(2026, 1, 5)
LINE = '{"name":"up","ts":%d,"value":1,"tags":'
TAGS = '{"device":"d%08d","region":"r%02d","model":"m%02d"}}\n'
DEVICES = "devices: {by: [device], measures: {beats: count}, series_max: %d}"
SOURCE = "sources: {beats: {type: file, decode: [metric]}}\n"
GROUPS = "groups: {by: [region, model], measures: {beats: count}}"
# A batch of a daemon has a device once at most: five seconds are a 360th of half an hour. These are of a quarter of an hour at most.
BATCH_BYTES = BYTES_A_HEARTBEAT // 2  # of each device
NAME = "bench-sizing"
say = functools.partial(measure.say, NAME)


def parse_arguments():
    parser = argparse.ArgumentParser(description="Check the arithmetic of docs/SIZING.md; write bench/RESULTS.md.")
    parser.add_argument("--devices", type=int, default=ALL // 100, help=f"of {ALL:,} (default a hundredth)")
    parser.add_argument("--server", choices=list(SERVERS), default="ferretdb", help="default ferretdb")
    parser.add_argument("--half-hours", type=int, default=3, help="of all devices into the server (default 3)")
    parser.add_argument("--sample", type=int, default=3000, help="devices of a whole day there (default 3,000)")
    measure.add_arguments(parser)
    return parser.parse_args()


def write_log(path, devices, half_hours):
    """In order of time: of each device at a second of its own in each half hour."""
    tags = [TAGS % (one, one % REGIONS, one // REGIONS % MODELS) for one in range(devices)]
    begin = int(DAY.replace(tzinfo=datetime.timezone.utc).timestamp())
    with open(path, "w", encoding="ascii") as file:
        for at in range(begin, begin + half_hours * HALF_HOUR):
            head = LINE % at
            file.writelines(head + one for one in tags[at % HALF_HOUR::HALF_HOUR])
    return path


# ---- the arithmetic

def rows_of_a_day():
    """Bytes of a device's day in SQLite's rows (store/sqlite/body.h): a series' entry has two bytes, a slot and its count two."""
    hours, day, month, year = 24 * (2 + 2 * 2), 2 + 24 * 2, 2 + 2, 2 + 2
    return hours + day + month + year


def day_document(half_hours):
    """As store/mongo/mongo.h has it."""
    hours = range(-(-half_hours // 2))
    return {"_id": "20260105/d00000000", "metadata": {"date": DAY, "device": "d00000000"}, "daily": Int64(1),
            "hourly": {str(hour): Int64(1) for hour in hours},
            "minute": {str(hour): {str(minute): Int64(1) for minute in (10, 40)[:half_hours - 2 * hour]} for hour in hours},
            "applied": {"w0": Int64(1)}, "modified": DAY, "v": 1}


def month_document():
    return {"_id": "202601/d00000000", "metadata": {"date": DAY, "device": "d00000000"}, "total": Int64(1),
            "daily": {"5": Int64(1)}, "applied": {"w0": Int64(1)}, "modified": DAY, "v": 1}


# ---- what is so

class Counted:
    """An import of a log by one report."""

    def __init__(self, arguments, work, report, url, log, more=""):
        self.program = os.path.join(arguments.build, "tallyd")
        self.config, self.url = os.path.join(work, "tallyd.yaml"), url
        with open(self.config, "w", encoding="ascii") as file:
            file.write(f"{SOURCE}reports: {{{report}}}\n{more}")
        self.run = measure.run([self.program, "import", "-c", self.config, "--store", url, log], watch_memory=True)
        self.beats = int(re.search(r"consumed ([\d,]+) = rejected 0 ", self.run.out)[1].replace(",", ""))
        self.rate = self.beats / self.run.wall_s
        found = subprocess.run([self.program, "query", report.split(":")[0], "--from", "2026-01-05", "--to", "2026-01-06", "--format",
                                "csv", "--store", url], check=True, capture_output=True, text=True).stdout
        if int(found.split()[-1].rsplit(",", 1)[-1]) != self.beats:
            raise measure.Failed(f"{url}: {found.split()[-1]} is not {self.beats}")
        say(f"{report}: {self.beats:,} heartbeats, {self.rate:,.0f}/s into {url.split(':')[0]}")


def budget(arguments, work, url, series):
    """The most memory of a daemon, in MiB, as `check` says."""
    path = os.path.join(work, "budget.yaml")
    with open(path, "w", encoding="ascii") as file:
        file.write(f"{SOURCE}reports: {{{DEVICES % series}}}\nstore: {{url: \"{url}\"}}\n")
    argv = [os.path.join(arguments.build, "tallyd"), "check", "-c", path, "--print"]
    return int(re.search(r"# +in all +(\d+) MiB", measure.run(argv).out)[1])


def lengths(base, collection):
    """The size of each document, in bytes."""
    raw = base.get_collection(collection, codec_options=CodecOptions(document_class=RawBSONDocument))
    return [len(one.raw) for one in raw.find()]


def mean(values):
    return sum(values) / len(values)


def run_sqlite(arguments, work):
    log = write_log(os.path.join(work, "day.json"), arguments.devices, HALF_HOURS)
    found = {"raw": os.path.getsize(log)}
    for name, report in ("devices", DEVICES % arguments.devices), ("groups", GROUPS):
        path = os.path.join(work, f"{name}.db")
        found[name] = Counted(arguments, work, report, f"sqlite:{path}", log)
        found[name + " bytes"] = os.path.getsize(path)
    os.remove(log)
    return found


def run_mongo(arguments, work, server):
    found = {}
    batch = f"aggregate: {{batch_size: {max(64 << 10, arguments.devices * BATCH_BYTES)}}}\n"
    log = write_log(os.path.join(work, "hours.json"), arguments.devices, arguments.half_hours)
    for name, report in ("devices", DEVICES % arguments.devices), ("groups", GROUPS):
        found[name] = Counted(arguments, work, report, f"{server.url}/{name}", log, batch)
    log = write_log(os.path.join(work, "sample.json"), arguments.sample, HALF_HOURS)
    Counted(arguments, work, DEVICES % arguments.sample, f"{server.url}/sample", log)
    with pymongo.MongoClient(server.url) as client:
        for kind in "day", "month":
            found[kind] = mean(lengths(client["sample"], f"devices.{kind}"))
        found["hours"] = mean(lengths(client["devices"], "devices.day"))
        found["group documents"] = sum(client["groups"][f"groups.{kind}"].count_documents({}) for kind in ("day", "month"))
    return found


# ---- the tables

def gb(number):
    return f"{number / 1e9:,.1f} GB"


def bytes_rows(arguments, sqlite, server):
    day, hours, month = (len(bson.encode(one)) for one in (day_document(HALF_HOURS), day_document(arguments.half_hours),
                                                            month_document()))
    rows = [["what", "worked out", "measured", "of 30 million devices a day, as measured"]]

    def add(what, predicted, measured, is_daily=True):
        rows.append([what, f"{predicted:,.0f} bytes", f"{measured:,.0f} bytes: {measured / predicted:.2f} ×",
                     gb(measured * ALL) if is_daily else ""])

    add("heartbeats of a device's day as they come", HALF_HOURS * BYTES_A_HEARTBEAT, sqlite["raw"] / arguments.devices)
    add("SQLite, by device: a device's day, in all rows and the dictionary", rows_of_a_day(), sqlite["devices bytes"] / arguments.devices)
    add("MongoDB, by device: a document of a day", day, server["day"])
    add(f"the same after {arguments.half_hours} half hours", hours, server["hours"], False)
    add("MongoDB, by device: a document of a month, of one day", month, server["month"], False)
    rows.append([f"SQLite, by region and model: all {REGIONS * MODELS:,} series", "", f"{sqlite['groups bytes'] / 1e6:,.1f} MB",
                 "the same"])
    rows.append(["MongoDB, by region and model: documents", f"{2 * REGIONS * MODELS:,}", f"{server['group documents']:,}", "the same"])
    return rows


def rate_rows(arguments, sqlite, server):
    label = SERVERS[arguments.server]
    need = ALL / HALF_HOUR
    rows = [["heartbeats/s", "measured", f"against the {need:,.0f} of 30 million devices", "memory"]]
    for name, found in (("SQLite, by device", sqlite["devices"]), ("SQLite, by region and model", sqlite["groups"]),
                        (f"{label}, by device", server["devices"]), (f"{label}, by region and model", server["groups"])):
        rows.append([f"{name}: {found.beats:,} heartbeats", f"{found.rate:,.0f}", f"{found.rate / need:.2f} ×",
                     f"{found.run.anon_kib_max / 1024:,.0f} MiB"])
    return rows


def budget_rows(arguments, work):
    rows = [["memory of a daemon, at most (`tallyd check --print`)", "SQLite", "MongoDB"]]
    for series in 1_000_000, ALL:
        rows.append([f"`series_max: {series}`", *(f"{budget(arguments, work, url, series):,} MiB"
                                                   for url in ("sqlite:a.db", "mongodb://127.0.0.1/a"))])
    return rows


def report(arguments, work, sqlite, server):
    return f"""
One heartbeat of each of {ALL:,} devices each half an hour is {ALL / HALF_HOUR:,.0f} a second and {RAW_GB} GB a day of {BYTES_A_HEARTBEAT} bytes each. Counted are those
of {arguments.devices:,} devices, as fast as it goes: a day into SQLite, {arguments.half_hours} half hours into {SERVERS[arguments.server]}, in batches of half of the devices at
most, as a daemon's have none twice; and of {arguments.sample:,} devices a day for the size of documents. docs/SIZING.md says what follows.

{measure.table(bytes_rows(arguments, sqlite, server))}

{measure.table(rate_rows(arguments, sqlite, server))}

{measure.table(budget_rows(arguments, work))}

{measure.about(work)}
"""


def run_all(arguments, work):
    mongo.begin()
    sqlite = run_sqlite(arguments, work)
    mongo.install(arguments.server)
    server = mongo.Server(os.path.join(work, arguments.server), arguments.server)
    server.start()
    try:
        return [], report(arguments, work, sqlite, run_mongo(arguments, work, server))
    finally:
        server.kill()


if __name__ == "__main__":
    sys.exit(measure.run_bench(NAME, parse_arguments(), run_all, mongo.ERRORS))
