"""What the tests with a MongoDB server share: the server, logs of few pages, and a judge that reads documents.

The judge knows nothing of tallyd but what store/mongo.h says of documents: it reads them by pymongo and compares every
minute, hour, day and month with a recount of the logs.
"""

import collections
import os
import re
import shutil
import sys
import tempfile
import time
import unittest

from harness import EX_IOERR, EX_OK, EX_TEMPFAIL, ROOT, TIMEOUT_S, Case, recount

try:
    import pymongo
except ImportError:
    pymongo = None  # main() begins again by a Python that has it

sys.path.insert(0, os.path.join(ROOT, "tests", "servers"))
import mongo  # noqa: E402 (found only now)
import proxy  # noqa: E402,F401 (of the tests)

EX_UNAVAILABLE = 69
PASSING = (EX_UNAVAILABLE, EX_IOERR, EX_TEMPFAIL)  # an import may end so when its store is away
LINE = '198.51.100.%d - - [%02d/Jan/2026:%02d:%02d:%02d +0000] "GET %s HTTP/1.1" 200 %s "-" "Mozilla/5.0 %s"\n'
FIRST_DAY = 5
# An import reads 256 KiB at least before it writes: long lines make many batches of few of them.
CONFIG = b"aggregate: {batch_size: 64KiB}\n"
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


def total_of(*logs):
    """What harness.recount() says of all of them."""
    total = collections.defaultdict(lambda: [0, 0])
    for one in logs:
        for cell, (hits, size) in recount(one).items():
            total[cell][0] += hits
            total[cell][1] += size
    return dict(total)


def add_up(cells, keep):
    """Coarser cells: keep(minute, path) is what remains of their names."""
    sums = collections.defaultdict(lambda: [0, 0])
    for (minute, path), (hits, size) in cells.items():
        cell = sums[keep(minute, path)]
        cell[0] += hits
        cell[1] += size
    return dict(sums)


def leaves(document, *names):
    """{(the names below, …): [hits, bytes]} of a document's counts, where they are."""
    found = collections.defaultdict(lambda: [0, 0])

    def walk(value, path, column):
        if isinstance(value, dict):
            for name, below in value.items():
                walk(below, (*path, name), column)
        else:
            found[path][column] += value

    for name in names:
        walk(document.get(name, {}), (), 0)
        walk(document.get("bytes", {}).get(name, {}), (), 1)
    return dict(found)


def busy(cells):
    return {name: cell for name, cell in cells.items() if cell != [0, 0]}


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
        self.name = f"t{MongoCase.databases}"
        self.store = f"{self.server.url}/{self.name}"
        self.base = self.client[self.name]

    # ---- imports

    def arguments(self, *files, url=None):
        return ["import", "-c", "tallyd.yaml", "--store", url or self.store, *files]

    def count(self, *files, url=None, **options):
        return self.tallyd(*self.arguments(*files, url=url), **options)

    def begin(self, *files, url=None, **options):
        """An import beside the test."""
        return self.start(*self.arguments(*files, url=url), **options)

    def end(self, process, *statuses):
        """Its end, which must be one of these. What it said."""
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
        ledger = self.base.ledger.find_one({"_id": "ledger"}) or {}
        return {os.path.basename(one["label"]): one["next"] for one in ledger.get("partitions", {}).values()
                if "next" in one}

    def wait_until(self, what):
        until = time.monotonic() + TIMEOUT_S
        while not what():
            self.assertLess(time.monotonic(), until, self.nexts())
            time.sleep(0.005)

    # ---- is it exact?

    def stored_days(self, report):
        """{(minute, path): [hits, bytes]} of the minutes; hours and days of each document must be their sums."""
        cells = {}
        for document in self.base[f"{report}.day"].find():
            path, day = document["metadata"].get("path"), document["metadata"]["date"]
            minutes = {(int(hour), int(minute)): cell for (hour, minute), cell in leaves(document, "minute").items()}
            hours = collections.defaultdict(lambda: [0, 0])
            for (hour, _), (hits, size) in minutes.items():
                hours[hour][0] += hits
                hours[hour][1] += size
            stored = {int(hour): cell for (hour,), cell in leaves(document, "hourly").items()}
            self.assertEqual(busy(hours), busy(stored), document["_id"])
            sums = [sum(cell[column] for cell in minutes.values()) for column in (0, 1)]
            self.assertEqual({(): sums}, leaves(document, "daily"), document["_id"])
            for (hour, minute), cell in minutes.items():
                cells[f"{day:%Y-%m-%d}T{hour:02}:{minute:02}:00Z", path] = cell
        return busy(cells)

    def stored_months(self, report):
        """The same by days; the total of each document must be their sum."""
        cells = {}
        for document in self.base[f"{report}.month"].find():
            path, month = document["metadata"].get("path"), document["metadata"]["date"]
            days = {int(day): cell for (day,), cell in leaves(document, "daily").items()}
            sums = [sum(cell[column] for cell in days.values()) for column in (0, 1)]
            self.assertEqual({(): sums}, leaves(document, "total"), document["_id"])
            for day, cell in days.items():
                cells[f"{month:%Y-%m}-{day:02}", path] = cell
        return busy(cells)

    def check(self, *logs, files=()):
        """The documents say exactly what these logs do, and verify says the same of `files`."""
        expected = total_of(*logs)
        self.assertEqual(expected, self.stored_days("pages"))
        self.assertEqual(add_up(expected, lambda minute, path: (minute, None)), self.stored_days("site"))
        self.assertEqual(add_up(expected, lambda minute, path: (minute[:10], path)), self.stored_months("pages"))
        self.assertEqual(add_up(expected, lambda minute, path: (minute[:10], None)), self.stored_months("site"))
        self.assertEqual({path for _, path in expected},
                         {one["metadata"]["path"] for one in self.base["pages.series"].find()})
        if files:
            self.assertIn("0 differences", self.tallyd("verify", "-c", "tallyd.yaml", "--store", self.store, *files))

    def check_at_rest(self):
        """After an import that ended well: its slot has nothing open, and no log is left."""
        ledger = self.base.ledger.find_one({"_id": "ledger"})
        self.assertEqual([], [name for name, slot in ledger["writers"].items() if "open" in slot])

    def finish(self, *files):
        """Run on to the end. True: something had been left to do."""
        out = self.count(*files)
        self.check_at_rest()
        return re.search(r"counted [1-9]", out) is not None


def main(run=lambda: unittest.main(argv=sys.argv[:1] + sys.argv[1:]), name=mongo.CHOSEN):
    """`run` the tests of a program with a server for all of them; without one, a skip."""
    try:
        mongo.install(name)
        if pymongo is None:
            sys.stdout.flush()
            os.execv(mongo.PYTHON, [mongo.PYTHON, *sys.argv])
        home = tempfile.mkdtemp(prefix="tallyd-mongo-")
        try:
            MongoCase.server = mongo.Server(home, name)
            MongoCase.server.start()
            run()
        finally:
            if MongoCase.server is not None:
                MongoCase.server.kill()
            shutil.rmtree(home, ignore_errors=True)
    except mongo.Missing as error:
        print(f"skipped: {error}")
        sys.exit(77)
