"""Shared by the tests with a MongoDB server: the server, logs of few pages, and a judge that reads documents.

The judge knows nothing of tallyd but what store/mongo/mongo.h and mongo/handle/kind.h say of documents: it reads them by pymongo and
compares every second, minute, hour, day and month in any of them with a recount of the logs.
"""

import collections
import datetime
import os
import re
import shutil
import sys
import time
import unittest

from harness import EX_IOERR, EX_OK, EX_TEMPFAIL, EX_UNAVAILABLE, ROOT, TIMEOUT_S, Case

try:
    import pymongo
    from bson.decimal128 import Decimal128
    from bson.int64 import Int64
except ImportError:
    pymongo = Decimal128 = Int64 = None  # main() begins again by a Python that has it

sys.path.insert(0, os.path.join(ROOT, "tests", "servers"))
import mongo  # noqa: E402 (found only now)
from ledger import Ledger  # noqa: E402 (found only now)
import proxy  # noqa: E402,F401 (of the tests)

PASSING = (EX_UNAVAILABLE, EX_IOERR, EX_TEMPFAIL)  # an import may end so when its store is away
# Options of the driver: how long it waits for a reply that does not come, and for a server that is away.
SHORT = "?socketTimeoutMS=1500&connectTimeoutMS=1000&serverSelectionTimeoutMS=1500"
LINE = '198.51.100.%d - - [%02d/Jan/2026:%02d:%02d:%02d +0000] "GET %s HTTP/1.1" 200 %s "-" "Mozilla/5.0 %s"\n'
FIRST_DAY = 5
# A report of each layout. A line is counted as {report: (its dimension, of a path)}.
REPORTS = """\
reports:
  pages: {by: [path]}
  site: {}
  segments: {by: ["path:1"], layout: hour}
  moments: {layout: minute}
"""
DIMENSIONS = {"pages": ("path", lambda path: path), "site": (None, lambda path: None),
              "segments": ("path:1", lambda path: "/" + path.split("/")[1]), "moments": (None, lambda path: None)}
# An import reads 256 KiB at least before it writes: long lines make many batches of few of them.
CONFIG = (REPORTS + "aggregate: {batch_size: 64KiB}\n"
          "store: {validation: error}\n").encode()  # what is written must pass
AGENT, LINES_A_BATCH = "x" * 2000, 130


def log(dice, lines, pages=6, days=2, minutes=6):
    """Lines of few pages in few minutes: what takes time here is the server, by the document and the figure."""
    paths = [f"/{i % 3}/page-{i}.html" for i in range(pages)]
    moments = [(day, *divmod(minute, 60))
               for day in range(days) for minute in sorted(dice.sample(range(1440), minutes))]
    out = []
    for number in range(lines):
        late = dice.randrange(len(moments)) if dice.random() < 0.05 else 0
        day, hour, minute = moments[max(0, number * len(moments) // lines - late)]
        size = "-" if dice.random() < 0.1 else dice.randrange(5000)
        out.append(LINE % (dice.randrange(256), FIRST_DAY + day, hour, minute, dice.randrange(60), dice.choice(paths),
                           size, AGENT))
    return "".join(out).encode()


# By layout: the kinds of documents, and what they have buckets of.
KINDS = {"day": {"day": ("minute", "hour"), "month": ("day",)},
         "hour": {"hour": ("minute",), "day": ("hour",), "month": ("day",)},
         "minute": {"minute": ("second",), "hour": ("minute",), "day": ("hour",), "month": ("day",)}}
LAYOUTS = {"pages": "day", "site": "day", "segments": "hour", "moments": "minute"}
MEMBERS = {"second": "second", "minute": "minute", "hour": "hourly", "day": "daily", "month": "total"}
# Times are told by as much of "2026-01-05T12:03:07" as their span needs; what follows comes behind a sign.
SPANS = ("month", "day", "hour", "minute", "second")
LENGTHS, SIGNS = (7, 10, 13, 16, 19), ("", "-", "T", ":", ":")
LOGGED = re.compile(rb'\S+ \S+ \S+ \[(\d+)/Jan/(\d+):(\S+) \+0000\] "\S+ ([^ ?"]+)[^"]*" \d+ (\d+|-) ')


def recount(*logs):
    """{("2026-01-05T12:03:07", path): [hits, bytes]} of all of them, by nothing that tallyd has."""
    total = collections.defaultdict(lambda: [0, 0])
    for line in b"".join(logs).splitlines():
        day, year, clock, path, size = LOGGED.match(line).groups()
        cell = total[f"{int(year)}-01-{int(day):02}T{clock.decode()}", path.decode()]
        cell[0] += 1
        cell[1] += 0 if size == b"-" else int(size)
    return dict(total)


def add_up(cells, span, of_path=lambda path: path):
    """The same by longer spans, and by what is kept of a path."""
    sums = collections.defaultdict(lambda: [0, 0])
    for (at, path), (hits, size) in cells.items():
        cell = sums[at[:LENGTHS[SPANS.index(span)]], of_path(path)]
        cell[0] += hits
        cell[1] += size
    return dict(sums)


def leaves(document, name):
    """{(the keys below, …): [hits, bytes]} of a document's counts at a member."""
    found = collections.defaultdict(lambda: [0, 0])

    def walk(value, path, column):
        if isinstance(value, dict):
            for key, below in value.items():
                walk(below, (*path, key), column)
        else:
            found[path][column] += value

    walk(document.get(name, {}), (), 0)
    walk(document.get("bytes", {}).get(name, {}), (), 1)
    return dict(found)


def busy(cells):
    return {name: cell for name, cell in cells.items() if cell != [0, 0]}


FOLLOWING = """\
%s
store: {url: "mongodb://127.0.0.1:%d/%s%s"}
sources: {access: {path: a.log}}
aggregate: {flush: 100ms}
http: {listen: "127.0.0.1:0"}
"""


class MongoCase(Case):
    server = None  # of the whole program; see main()
    FAIL_COMMAND = mongo.SERVERS[mongo.CHOSEN].FAIL_COMMAND
    databases = 0

    maxDiff = 2000

    def setUp(self):
        super().setUp()
        self.client = pymongo.MongoClient(self.server.url, serverSelectionTimeoutMS=1000 * TIMEOUT_S)
        self.addCleanup(self.client.close)
        self.write("tallyd.yaml", CONFIG)
        self.anew()

    def anew(self):
        """Another, empty database."""
        MongoCase.databases += 1
        self.use(f"t{MongoCase.databases}")

    def put_between(self):
        """A proxy between the server and a daemon that will follow a.log."""
        self.between = proxy.Proxy(self.server.port)
        self.addCleanup(self.between.close)
        self.write("tallyd.yaml", (FOLLOWING % (REPORTS, self.between.port, self.name, SHORT)).encode())

    def use(self, name):
        self.name = name
        self.store = f"{self.server.url}/{self.name}"
        self.base = self.client[self.name]
        self.ledger = Ledger(self.base)

    # ---- imports

    def arguments(self, *files, url=None):
        return ["import", "-c", "tallyd.yaml", "--store", url or self.store, *files]

    def count(self, *files, url=None, **options):
        return self.tallyd(*self.arguments(*files, url=url), **options)

    def begin(self, *files, url=None, **options):
        """An import beside the test."""
        return self.start(*self.arguments(*files, url=url), **options)

    def end(self, process, *statuses):
        """Wait for its end, with one of these statuses. Returns its output."""
        out, err = process.communicate(timeout=TIMEOUT_S)
        self.assertIn(process.returncode, statuses or (EX_OK,), (out + err).decode())
        if process.returncode > 0:
            self.assertRegex(err, rb"tallyd import: .*\S", "it failed, and does not say why")
        return (out + err).decode()

    def timed(self, *files):
        """How long an import takes on this machine, by one into a database of its own."""
        begun = time.monotonic()
        self.count(*files)
        taken = time.monotonic() - begun
        self.anew()
        return taken

    def nexts(self):
        """{label of a file: up to where it is counted}"""
        return {os.path.basename(one["label"]): one["next"] for one in self.ledger.positions()}

    def wait_until(self, what, timeout_s=TIMEOUT_S):
        until = time.monotonic() + timeout_s
        while not what():
            self.assertLess(time.monotonic(), until, self.nexts())
            time.sleep(0.005)

    def wait_for_job(self, what):
        """A daemon rests for many times as long as the server took."""
        self.wait_until(what, 4 * TIMEOUT_S)

    # ---- jobs

    def job(self, *arguments, **options):
        return self.tallyd("job", *arguments, "-c", "tallyd.yaml", "--store", self.store, **options)

    def roll(self, *arguments, **options):
        return self.job("run", "rollup", *arguments, **options)

    def rank(self, *arguments, **options):
        return self.job("run", "top", *arguments, **options)

    def begin_job(self, name, *arguments, **options):
        """A run of it beside the test."""
        return self.start("job", "run", name, *arguments, "-c", "tallyd.yaml", "--store", self.store, **options)

    def ended(self, process):
        """Its status; `output` has what it said."""
        out, err = process.communicate(timeout=TIMEOUT_S)
        self.output = (out + err).decode()
        return process.returncode

    def forget_leases(self):
        """Again after a while: a server may carry out what it was asked for by one that was killed or stopped meanwhile."""
        for pause_s in 0.3, 0:
            self.base.jobs.update_many({"until": {"$exists": True}}, {"$set": {"until": datetime.datetime(2020, 1, 1)}})
            time.sleep(pause_s)

    def check_scans(self, questions, reports):
        """Answers from cached rankings, and then from scans, because no ranking is valid any more."""
        ranked = [self.get(question) for question in questions]

        def turn(by):
            for report in reports:
                found = self.base[f"{report}.top"].update_many({"ranked": {"$exists": True}}, {"$inc": {"ranked": by}},
                                                               bypass_document_validation=True)
                self.assertLess(0, found.modified_count, f"{report} has no ranking, so both would be scans")
        turn(-1000)
        scanned = [self.get(question) for question in questions]
        turn(1000)
        for question, from_document, from_scan in zip(questions, ranked, scanned):
            self.assertEqual(from_scan, from_document, question)
        return ranked

    # ---- is it exact?

    def stored(self, report, kind, bucket):
        """{(time, value of the dimension): [hits, bytes]} of the buckets in the documents of one kind."""
        cells = {}
        dimension = DIMENSIONS[report][0]
        for document in self.base[f"{report}.{kind}"].find():
            date = document["metadata"]["date"].isoformat()[:LENGTHS[SPANS.index(kind)]]
            signs = SIGNS[SPANS.index(kind) + 1:]
            for keys, cell in leaves(document, MEMBERS[bucket]).items():
                at = date + "".join(f"{sign}{int(key):02}" for sign, key in zip(signs, keys))
                cells[at, document["metadata"].get(dimension)] = cell
        return busy(cells)

    def compared(self, expected, longer=True):
        """For each report, kind of documents, and bucket in them: what is expected, and what is stored. `longer` False: of the
        shortest documents alone, since a writer that stands still has not rolled up what it counted."""
        for report, (_, of_path) in DIMENSIONS.items():
            for kind, buckets in list(KINDS[LAYOUTS[report]].items())[:None if longer else 1]:
                for bucket in (*buckets, kind):
                    yield (report, kind, bucket), add_up(expected, bucket, of_path), self.stored(report, kind, bucket)

    def check(self, *logs, files=(), longer=True):
        """The documents say exactly what these logs do, and verify says the same of `files`."""
        expected = recount(*logs)
        for (report, kind, bucket), counts, stored in self.compared(expected, longer):
            with self.subTest(report=report, documents=kind, by=bucket):
                self.assertEqual(counts, stored)
        self.assertEqual({path for _, path in expected},
                         {one["metadata"]["path"] for one in self.base["pages.series"].find()})
        if files:
            for more in files, ["--store-only"]:
                self.tallyd("verify", "-c", "tallyd.yaml", "--store", self.store, *more)

    def check_at_rest(self):
        """After an import that ended well: its slot has nothing open, and everything is rolled up."""
        self.assertEqual({}, self.ledger.open_batches())
        self.assertEqual({}, self.ledger.unrolled())

    def finish(self, *files):
        """Run on to the end. True: something had been left to do."""
        out = self.count(*files)
        self.check_at_rest()
        return re.search(r"counted [1-9]", out) is not None


def main(run=lambda: unittest.main(argv=sys.argv[:1] + sys.argv[1:]), name=mongo.CHOSEN):
    """`run` the tests of a program with a server for all of them; without one, a skip. If the server broke its own storage, the
    tests run once more with a new one: they said nothing of tallyd."""
    try:
        mongo.begin(name)
        if not run_with_server(run, name):
            print("the server broke its storage: all tests run once more with a new server", flush=True)
            if not run_with_server(run, name):
                sys.exit("the server broke its storage again")
    except mongo.Missing as error:
        print(f"skipped: {error}")
        sys.exit(77)


def run_with_server(run, name):
    """Exits with the status of the tests. Returns False if they failed and the server is broken."""
    home = mongo.new_home("tallyd-mongo-")
    server = MongoCase.server = mongo.Server(home, name)
    try:
        server.start()
        run()
    except SystemExit as end:
        if not end.code or not server.is_broken():
            raise
        return False
    finally:
        server.kill()
        shutil.rmtree(home, ignore_errors=True)
    return True
