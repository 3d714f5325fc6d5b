"""The stores that daemons count into, and their answers: asked through `tallyd query`, and read as documents where it has any."""

import collections
import contextlib
import csv
import os
import shutil
import sqlite3
import subprocess
import time

from harness import TIMEOUT_S, command
from ledger import Ledger, Picture

try:
    import pymongo
except ImportError:
    pymongo = None

ALL_TIME = ("2015-01-01", "2040-01-01")
ASKING = "query: {series_max: 100000}\n"
REPORTS = """\
reports:
  blocks: {by: [path], measures: {hits: count, bytes: sum(bytes)}}
  all: {}
  drawn: {by: ["path:1"], measures: {hits: count, sizes: histogram(bytes), paths: distinct(path)}}
  some: {by: [path], sample: 1/3}
  kept: {by: ["path:1"], keep: {minute: 2d, hour: 40d, day: 400d, month: 800d}}
"""
SHAPES = {1: "  shape: {by: [path]}\n", 2: "  shape: {by: [path, method], generation: 2}\n"}
MOMENTS = "  moments: {layout: minute}\n"  # MongoDB only
EX_DIFFERENCES = 1
Answer = collections.namedtuple("Answer", "rows error")


def environment():
    return {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}


class Store:
    """`daemons` count into it."""

    url = None

    def __init__(self, home, daemons):
        self.home, self.daemons, self.dumped = home, daemons, False
        with open(os.path.join(home, "ask.yaml"), "w", encoding="ascii") as file:
            file.write(ASKING)

    def run(self, *arguments):
        return subprocess.run([*command(), *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              cwd=self.home, env=environment(), timeout=TIMEOUT_S, check=False)

    def is_torn(self):
        """Was a copy put back that was no copy of one moment, and does tallyd's own audit find that?"""
        return False

    def query(self, report, *arguments, span=ALL_TIME, measure="all"):
        done = self.run("query", report, "-c", os.path.join(self.home, "ask.yaml"), "--store", self.url, "--from", str(span[0]),
                        "--to", str(span[1]), "--measure", measure, "--format", "csv-raw", *arguments)
        if done.returncode != 0:
            return Answer([], done.stderr.decode(errors="replace").strip())
        return Answer(list(csv.DictReader(done.stdout.decode().splitlines())), None)

    def blocks(self):
        """{path: (hits, bytes)}"""
        answer = self.query("blocks", "--top", "100000")
        if answer.error:
            raise RuntimeError(answer.error)
        return {row["path"]: (int(row["hits"]), int(row["bytes"])) for row in answer.rows}

    def buckets(self):
        """{kind of documents: {segment of the path: {bucket: events}}} of the histogram in `drawn`; a file has no documents."""
        return {}

    def told(self, pattern):
        """How often its daemons said so."""
        return sum(len(pattern.findall(daemon.said())) for daemon in self.daemons)

    def settle(self):
        """Finish the batches that its daemons left open."""

    def close(self):
        pass


class Sqlite(Store):
    NAME = "sqlite"

    def __init__(self, home, daemon):
        super().__init__(home, [daemon])
        self.path = daemon.path("disk/tallyd.db")
        self.url = f"sqlite:{self.path}"

    def configured(self, daemon):
        return f'store: {{url: "sqlite:disk/tallyd.db"}}\n{REPORTS}{SHAPES[daemon.variant]}'

    def sql(self, question):
        if not os.path.exists(self.path):
            return []
        base = sqlite3.connect(f"file:{self.path}?mode=ro", uri=True, timeout=TIMEOUT_S)
        with contextlib.closing(base):
            try:
                return base.execute(question).fetchall()
            except sqlite3.OperationalError:
                return []  # it has no tables yet

    def positions(self):
        """{source: {partition: next}}"""
        found = collections.defaultdict(dict)
        for source, part, after in self.sql("SELECT source, CAST(part AS INTEGER), next FROM position"):
            found[source][part] = after
        return found

    def books(self):
        """{entry: sum} of all sources; a report's are "REPORT.entry", of a second generation "REPORT~2.entry"."""
        total = collections.Counter()
        names = {number: name if generation == 1 else f"{name}~{generation}"
                 for number, name, generation in self.sql("SELECT id, name, generation FROM report")}
        for report, entry, value in self.sql("SELECT report, entry, value FROM book WHERE source != ''"):
            total[entry if report == 0 else f"{names.get(report, report)}.{entry}"] += value
        return total

    def dump(self):
        if not os.path.exists(self.path):
            return
        base, copy = sqlite3.connect(self.path, timeout=TIMEOUT_S), sqlite3.connect(os.path.join(self.home, "dump.db"))
        with contextlib.closing(base), contextlib.closing(copy):
            base.backup(copy)
        self.dumped = True

    def restore(self, running):
        """As somebody does who copies a file back: by another file, of the same name."""
        if not running:
            self.daemons[0].kill()
        for end in ("-wal", "-shm", "-journal"):
            with contextlib.suppress(FileNotFoundError):
                os.remove(self.path + end)
        shutil.copy(os.path.join(self.home, "dump.db"), self.path + ".new")
        os.replace(self.path + ".new", self.path)


class Mongo(Store):
    NAME = "mongo"

    def __init__(self, home, daemons, server, name, port, ends_by_server):
        super().__init__(home, daemons)
        self.more = ", ttl: true" if ends_by_server else ""
        self.server, self.name, self.port = server, name, port
        self.url = f"{server.url}/{name}"
        self.client = pymongo.MongoClient(server.url, serverSelectionTimeoutMS=1000 * TIMEOUT_S)
        self.base = self.client[name]
        self.was_torn = False

    def configured(self, daemon):
        options = "?socketTimeoutMS=2000&connectTimeoutMS=1000&serverSelectionTimeoutMS=1500"
        return (f'store: {{url: "mongodb://127.0.0.1:{self.port}/{self.name}{options}", preallocate: auto{self.more}}}\n'
                f"jobs: {{weeks: true, rollup_after: 1s}}\n{REPORTS}{MOMENTS}{SHAPES[daemon.variant]}")

    def positions(self):
        found = collections.defaultdict(dict)
        for one in Ledger(self.base).partitions().values():
            found[one["source"]][int(one["partition"] or 0)] = one.get("next", 0)
        return found

    def books(self):
        total = collections.Counter()

        def add(value, stem):
            for name, below in value.items():
                if isinstance(below, dict):
                    add(below, f"{stem}{name}.")
                else:
                    total[stem + name] += below

        for book in self.base.books.find({"source": {"$gt": ""}}):
            add(book.get("entries", {}), "")
            for name, entries in book.get("reports", {}).items():
                add(entries, f"{name}.")
        return total

    def documents(self):
        """{(kind, buckets): {path: (hits, bytes)}} of each kind of documents of the report `blocks`, by nothing that tallyd has."""
        found = {}
        for kind, buckets in (("day", ("minute", "hourly")), ("month", ("daily", "total"))):
            for bucket in buckets:
                sums = collections.defaultdict(lambda: [0, 0])
                for document in self.base[f"blocks.{kind}"].find():
                    cell = sums[document["metadata"]["path"]]
                    cell[0] += total_of(document.get(bucket, 0))
                    cell[1] += total_of(document.get("bytes", {}).get(bucket, 0))
                found[kind, bucket] = {path: tuple(cell) for path, cell in sums.items() if cell[0]}
        return found

    def buckets(self):
        found = {}
        for kind, bucket in (("hour", "minute"), ("day", "hourly"), ("month", "daily"), ("year", "total")):
            found[kind] = collections.defaultdict(collections.Counter)
            for document in self.base[f"drawn.sizes.{kind}"].find():
                for value in document[bucket].values():
                    found[kind][document["metadata"]["path:1"]].update(
                        {int(index): count for index, count in value.get("buckets", {}).items()})
        return found

    def raw(self, topic):
        """[(path, size)] of the raw events of a topic."""
        return [(one["path"], one["response_size"]) for one in self.base[f"raw.{topic}"].find({}, {"path": 1, "response_size": 1})]

    def dump(self):
        """As mongodump does it: one collection after the other, while they are written."""
        self.copy = {name: list(self.base[name].find()) for name in self.base.list_collection_names() if not name.startswith("system.")}
        self.dumped = True

    def copy_is_torn(self):
        """Its days, its months and its books do not say the same of `blocks`; or a batch is under way whose log is not in it."""
        sums = {sum(total_of(document.get(bucket, 0)) for document in self.copy.get(f"blocks.{kind}", []))
                for kind, bucket in (("day", "hourly"), ("month", "total"))}
        books = (book.get("reports", {}).get("blocks", {}) for book in self.copy.get("books", []))
        return len({*sums, sum(book.get("counted", 0) for book in books)}) > 1 or self.copy_lacks_log()

    def copy_lacks_log(self):
        """A daemon that needs such a batch refuses to go on, and the audit finds it; the others count, and warn of it."""
        logs = {one["_id"].rpartition("/")[0] for one in self.copy.get("batches", [])}
        return any(f"{slot}/{opened['inc']:016x}/{opened['seq']:016x}" not in logs
                   for slot, opened in Picture(self.copy).open_batches().items())

    def is_torn(self):
        return self.was_torn and self.run("verify", "--store-only", "-c", "settle.yaml").returncode == EX_DIFFERENCES

    def restore(self, running):
        self.was_torn = self.was_torn or self.copy_is_torn()
        if not running:
            for daemon in self.daemons:
                daemon.kill()
        for name in self.base.list_collection_names():
            if not name.startswith("system."):
                self.base[name].delete_many({})
                if documents := self.copy.get(name):
                    with contextlib.suppress(pymongo.errors.BulkWriteError):  # as mongorestore: what a daemon made meanwhile stays
                        self.base[name].insert_many(documents, ordered=False)

    def settle(self):
        path = os.path.join(self.home, "empty.log")
        with open(path, "wb"):
            pass
        with open(os.path.join(self.home, "settle.yaml"), "w", encoding="ascii") as file:
            file.write(f'store: {{url: "{self.url}"{self.more}}}\n{REPORTS}{MOMENTS}{SHAPES[max(d.variant for d in self.daemons)]}')
        for _ in range(3):
            done = self.run("import", "-q", "-c", "settle.yaml", path)
            if done.returncode == 0:
                return
            time.sleep(1)
        print(f"settle: {done.stderr.decode(errors='replace').strip()}", flush=True)

    def close(self):
        self.client.drop_database(self.name)
        self.client.close()


def total_of(value):
    return sum(total_of(below) for below in value.values()) if isinstance(value, dict) else value


