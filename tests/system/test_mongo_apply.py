#!/usr/bin/env python3
"""How a batch's updates are carried out on MongoDB: together, inserted or one by one; and what the server does not take of them.

What it refuses is said by document, all else is counted, and once the server takes it, that is counted, too, and once.
TALLYD_MONGO names the server (tests/servers/mongo.py).
"""

import collections
import signal
from decimal import Decimal

from harness import EX_CONFIG, EX_DATAERR, EX_IOERR, EX_OK, TIMEOUT_S, DaemonCase, dice, dying_at
from mongocase import (AGENT, CONFIG, EX_UNAVAILABLE, FIRST_DAY, KINDS, LENGTHS, LINE, LINES_A_BATCH, LOGGED, MEMBERS,
                       SHORT, SIGNS, SPANS, Int64, MongoCase, add_up, main, proxy, recount)

try:
    import bson
except ImportError:
    pass  # as in mongocase

KILLED = -signal.SIGKILL
DOCUMENT_BYTES_MAX = 16 << 20
# As each server says it.
TOO_LARGE = "(larger|too large|exceeds)"
UNABLE = f"({TOO_LARGE}|internal server error)"  # SecantusDB's Python edition gives no reason at exactly 16 MiB


def grow(collection, path):
    """The document of a path, by another hand, to as many bytes as it may have."""
    one = collection.find_one({"metadata.path": path})
    filler = "x" * (DOCUMENT_BYTES_MAX - len(bson.encode({**one, "filler": ""})))
    collection.update_one({"_id": one["_id"]}, {"$set": {"filler": filler}})


class Alike(MongoCase):
    """Pages that were asked for equally often in the same minutes have equal updates, which go as one to the documents
    that are there."""

    PAGES = LINES_A_BATCH // 2

    def setUp(self):
        super().setUp()
        self.dice = dice()
        self.write("tallyd.yaml", CONFIG.replace(b"{by: [path]}", b"{by: [path], measures: {hits: count}}"))

    def lines(self, hour, batches=3, others=5, agent=AGENT):
        """Each batch has its minute, all pages, some of them twice, and a few pages that no other has."""
        out = []
        for minute in range(batches):
            paths = [f"/page-{i}.html" for i in range(self.PAGES)]
            paths += self.dice.sample(paths, LINES_A_BATCH - self.PAGES - others)
            paths += [f"/{hour}/{minute}/{i}.html" for i in range(others)]
            out += [LINE % (1, FIRST_DAY, hour, minute, i % 60, path, 7, agent) for i, path in enumerate(paths)]
        return "".join(out).encode()

    def count_lines(self, lines):
        self.write("a.log", lines)
        self.count("a.log")

    def hits(self, *logs, span="minute"):
        return {cell: hits for cell, (hits, _) in add_up(recount(*logs), span).items()}

    def stored_hits(self, kind="day", slot="minute"):
        return {cell: hits for cell, (hits, _) in self.stored("pages", kind, slot).items()}

    def check_hits(self, lines):
        self.assertEqual(self.hits(lines), self.stored_hits())
        self.assertEqual(self.hits(lines, span="month"), self.stored_hits("month", "month"))

    def test_known_pages_and_new_ones(self):
        lines = b""
        for hour in (1, 2):
            lines += self.lines(hour)
            self.count_lines(lines)
            self.check_hits(lines)

    def test_documents_that_are_gone_are_made_anew(self):
        first, second = self.lines(1), self.lines(2)
        self.count_lines(first)
        gone = {f"/page-{i}.html" for i in range(0, self.PAGES, 3)}
        self.base["pages.day"].delete_many({"metadata.path": {"$in": list(gone)}})
        self.count_lines(first + second)
        expected = {cell: hits for cell, hits in self.hits(first + second).items()
                    if not (cell[1] in gone and "T01:" in cell[0])}
        self.assertEqual(expected, self.stored_hits())

    def test_killed_in_between(self):
        first = self.lines(1)
        self.count_lines(first)
        lines = first + self.lines(2)
        self.write("a.log", lines)
        environment = dying_at(f"mongo.applying:{self.dice.randrange(1, 4)}")
        self.end(self.begin("a.log", env=environment), KILLED)
        self.end(self.begin("a.log", env=environment), EX_OK, KILLED)
        self.finish("a.log")
        self.check_hits(lines)

    def test_a_sum_at_its_end(self):
        """The server refuses one of those that are alike: the others are counted, and it stays at the end."""
        first, second = self.lines(1), self.lines(2)
        self.count_lines(first)
        full = {"metadata.path": "/page-3.html"}
        self.base["pages.month"].update_one(full, {"$set": {"total": 2**63 - 1}})
        self.count_lines(first + second)
        self.assertEqual(2**63 - 1, self.base["pages.month"].find_one(full)["total"])
        total = self.hits(first + second, span="month")["2026-01", "/page-3.html"]
        self.base["pages.month"].update_one(full, {"$set": {"total": Int64(total)}})
        self.check_hits(first + second)

    def test_decimals_beside_a_sum_at_its_end(self):
        """They are added exactly, in the same update that the server refuses as it is."""
        self.write("tallyd.yaml", b"reports: {loads: {measures: {n: count, sum: sum(value), mean: mean(value)}}}\n")
        values = [Decimal(self.dice.randrange(-10**9, 10**9)) / 10**6 for _ in range(20)]
        lines = [f'{{"name": "x", "ts": 1767600000, "value": {value}}}\n' for value in values]
        self.write("a.log", "".join(lines[:10]).encode())
        self.count("--decode", "metric", "a.log")
        self.base["loads.day"].update_one({}, {"$set": {"daily": 2**63 - 1}})
        self.write("a.log", "".join(lines).encode())
        self.count("--decode", "metric", "a.log")
        day = self.base["loads.day"].find_one()
        self.assertEqual((2**63 - 1, sum(values), sum(values), 20), (
            day["daily"], day["sum"]["daily"].to_decimal(), day["mean"]["daily"]["units"].to_decimal(), day["mean"]["daily"]["count"]))

    def refuse(self, lines, reason, day_hits):
        """An import, and another that goes on with what it left, end with the reason; but for one page, all is counted."""
        self.write("a.log", lines)
        for _ in range(2):
            self.count("a.log", status=EX_IOERR)
            self.assertRegex(self.err, rf'refuses an update of pages\.day "20260105/%2Fpage-3\.html": .*{reason}')
            stored = self.stored_hits()
            self.assertEqual({cell: hits for cell, hits in day_hits.items() if cell[1] != "/page-3.html"},
                             {cell: hits for cell, hits in stored.items() if cell[1] != "/page-3.html"})

    def test_one_grows_beyond_what_a_document_may_have(self):
        first, second = self.lines(1), self.lines(2, batches=1, agent="x")
        self.count_lines(first)
        grow(self.base["pages.day"], "/page-3.html")
        self.refuse(first + second, TOO_LARGE, self.hits(first + second))
        self.base["pages.day"].update_one({"metadata.path": "/page-3.html"}, {"$unset": {"filler": 1}})
        self.finish("a.log")
        self.check_hits(first + second)

    def test_a_validator_refuses_a_new_one(self):
        lines = self.lines(1, batches=1, agent="x")
        self.base.create_collection("pages.day")  # FerretDB forgets a validator that comes with it
        self.base.command("collMod", "pages.day", validator={"metadata.path": {"$ne": "/page-3.html"}})
        if "ferretdb" in self.base.client.server_info():  # no writer begins: FerretDB loses updates under such a validator
            self.write("a.log", lines)
            self.count("a.log", status=EX_CONFIG)
            self.assertIn("FerretDB loses updates", self.err)
        else:
            self.refuse(lines, "121", self.hits(lines))
        self.base.command("collMod", "pages.day", validator={})
        self.finish("a.log")
        self.check_hits(lines)

    def test_the_reply_to_an_insert_is_lost(self):
        """The documents are made, and nobody is told: whoever goes on finds them there, and their guards."""
        lines = self.lines(1, batches=1, agent="x")
        self.write("a.log", lines)
        for collection in "pages.series", "pages.day", "pages.month":
            with self.subTest(collection=collection):
                self.anew()
                lost = proxy.Fault(lose=("insert", collection))
                with proxy.Proxy(self.server.port, lambda fault=lost: fault) as between:
                    url = f"mongodb://127.0.0.1:{between.port}/{self.name}{SHORT}"
                    self.count("a.log", url=url, status=EX_UNAVAILABLE)
                    self.assertEqual(1, between.commands[lost.lose])
                self.assertGreaterEqual(self.base[collection].count_documents({"applied.w0": {"$gte": 1}}), self.PAGES)
                self.finish("a.log")
                self.check_hits(lines)


class Differing(MongoCase):
    """Pages that were asked for in the same minutes, for other numbers of bytes: their updates go as pipelines with a row of
    numbers for each, to the documents that are there."""

    PAGES = 110

    def setUp(self):
        super().setUp()
        self.dice, self.lines = dice(), b""
        self.write("tallyd.yaml", CONFIG.replace(b"error}", b"warn, connections: 1}"))

    def add(self, hour, pages=None, batches=2):
        """Each batch has its minute, a line of every page, and one of a page that no other has."""
        for minute in range(batches):
            paths = [f"/page-{i}.html" for i in range(pages or self.PAGES)] + [f"/{hour}/{minute}.html"] * (not pages)
            self.dice.shuffle(paths)
            paths += self.dice.choices(paths, k=LINES_A_BATCH - len(paths))
            self.lines += "".join(LINE % (1, FIRST_DAY, hour, minute, i % 60, path, self.dice.randrange(10**9), AGENT)
                                  for i, path in enumerate(paths)).encode()
        self.write("a.log", self.lines)

    def count_between(self, **options):
        """An import through a proxy. How many pipelines it sent."""
        heard = []
        with proxy.Proxy(self.server.port, heard=heard, **options) as between:
            self.count("a.log", url=f"mongodb://127.0.0.1:{between.port}/{self.name}")
        return b"".join(heard).count(b"$indexOfArray")

    def test_known_pages_and_new_ones(self):
        for hour in 1, 2:
            self.add(hour)
            self.assertGreater(self.count_between(), 8)  # three of days and three of months, for either batch
            self.check(self.lines)
        self.check(self.lines, files=["a.log"])

    def test_documents_that_are_gone_are_made_anew(self):
        self.add(1)
        self.count("a.log")
        gone = {f"/page-{i}.html" for i in range(0, self.PAGES, 3)}
        self.base["pages.day"].delete_many({"metadata.path": {"$in": list(gone)}})
        self.add(2)
        self.count("a.log")
        expected = {cell: counts for cell, counts in add_up(recount(self.lines), "minute").items()
                    if not (cell[1] in gone and "T01:" in cell[0])}
        self.assertEqual(expected, self.stored("pages", "day", "minute"))

    def test_killed_in_between(self):
        self.add(1)
        self.count("a.log")
        self.add(2, batches=3)
        for _ in range(2):
            self.end(self.begin("a.log", env=dying_at(f"mongo.applying:{self.dice.randrange(1, 9)}")), EX_OK, KILLED)
        self.finish("a.log")
        self.check(self.lines, files=["a.log"])

    def test_the_reply_to_an_update_is_lost(self):
        """The documents have the numbers, and nobody is told: whoever goes on finds them there, by their guards."""
        self.add(1)
        self.count("a.log")
        for hour, collection in enumerate(("pages.day", "pages.month"), 2):
            self.add(hour)
            lost = proxy.Fault(lose=("update", collection))
            with proxy.Proxy(self.server.port, lambda fault=lost: fault) as between:
                self.count("a.log", url=f"mongodb://127.0.0.1:{between.port}/{self.name}{SHORT}", status=EX_UNAVAILABLE)
                self.assertEqual(1, between.commands["lost"])
            self.finish("a.log")
            self.check(self.lines)

    def test_sums_near_their_end(self):
        """They would become doubles: they go by themselves, remain int64, and stay at its end."""
        self.add(1)
        self.count("a.log")
        months = self.base["pages.month"]
        sums = {"/page-3.html": 2**63 - 1, "/page-4.html": 2**62, "/page-5.html": 2**62 - 1}
        for path, number in sums.items():
            months.update_one({"metadata.path": path}, {"$set": {"bytes.total": Int64(number)}})
        self.add(2, batches=1)
        self.count("a.log")
        more = add_up(recount(self.lines.split(b"\n", 2 * LINES_A_BATCH)[-1]), "month")
        for path, number in sums.items():
            total = months.find_one({"metadata.path": path})["bytes"]["total"]
            self.assertEqual((Int64, min(2**63 - 1, number + more["2026-01", path][1])), (type(total), total), path)

    def test_a_number_in_place_of_buckets_is_refused(self):
        self.add(1)
        self.count("a.log")
        page = {"metadata.path": "/page-3.html"}
        days = self.base["pages.day"]
        own = days.find_one(page)["bytes"]["hourly"]
        self.add(2, batches=1)
        for wrong in Int64(7), None, "7":
            days.update_one(page, {"$set": {"bytes.hourly": wrong}}, bypass_document_validation=True)
            self.count("a.log", status=EX_IOERR)
            self.assertIn('refuses an update of pages.day "20260105/%2Fpage-3.html": ', self.err)
            self.assertEqual(wrong, days.find_one(page)["bytes"]["hourly"])
        days.update_one(page, {"$set": {"bytes.hourly": own}})
        self.finish("a.log")
        self.check(self.lines, files=["a.log"])

    def test_a_server_without_pipelines(self):
        """It is asked once; all is counted."""
        failure = {"code": 9, "errmsg": "no pipelines"}
        for reply in {"ok": 0, **failure}, {"ok": 1, "n": 0, "nModified": 0, "writeErrors": [{"index": 0, **failure}]}:
            self.anew()
            self.lines = b""
            self.add(1, pages=12, batches=1)
            self.count("a.log")
            self.add(2, pages=12)
            self.assertEqual(1, self.count_between(answer=lambda piece, reply=bson.encode(reply): (
                proxy.replied(piece, reply) if b"$indexOfArray" in piece else None)))
            self.check(self.lines)


class New(MongoCase):
    """No two updates are alike, and many documents are new: after a command of such, those that are not there go in as they are."""

    def setUp(self):
        super().setUp()
        self.dice = dice()
        self.write("tallyd.yaml", CONFIG.replace(b"error}", b"error, connections: 1}"))
        self.lines = b""

    def add(self, day, hour, pages, status=EX_OK):
        """Count a line of each. The commands that it took."""
        self.lines += "".join(LINE % (1, day, hour, 4, 5, f"/page-{i}.html", self.dice.randrange(10**6), "x")
                              for i in pages).encode()
        self.write("a.log", self.lines)
        with proxy.Proxy(self.server.port) as between:
            self.count("a.log", url=f"mongodb://127.0.0.1:{between.port}/{self.name}", status=status)
            return between.commands

    def test_new_documents_among_old_ones(self):
        self.add(FIRST_DAY, 3, range(0, 60, 2))
        self.check(self.lines)
        self.add(FIRST_DAY + 1, 3, range(60))
        self.check(self.lines)

    def test_documents_that_are_gone_are_made_anew(self):
        """They are looked for, since series before them were new, and inserted with what comes then."""
        self.add(FIRST_DAY, 3, range(40))
        gone = [f"/page-{i}.html" for i in range(0, 40, 4)]
        self.base["pages.day"].delete_many({"metadata.path": {"$in": gone}})
        commands = self.add(FIRST_DAY, 4, range(60))
        # One of the finds asks whether they are ahead of the ledger, as after each claim.
        self.assertEqual((2, 1, 1), tuple(commands[name, "pages.day"] for name in ("find", "insert", "update")))
        expected = {cell: counts for cell, counts in add_up(recount(self.lines), "minute").items()
                    if not (cell[1] in gone and "T03:" in cell[0])}
        self.assertEqual(expected, self.stored("pages", "day", "minute"))
        self.assertEqual(add_up(recount(self.lines), "month"), self.stored("pages", "month", "month"))

    def test_series_that_are_there(self):
        """A process that begins knows none of them. One update finds all; only missing ones are inserted."""
        self.add(FIRST_DAY, 3, range(40))
        for pages, inserts in ((40, 0), (50, 1), (50, 0)):
            commands = self.add(FIRST_DAY, 4, range(pages))
            self.assertEqual((1, inserts), tuple(commands[name, "pages.series"] for name in ("update", "insert")))
            numbers = [one["applied"]["w0"] for one in self.base["pages.series"].find()]
            self.assertEqual((pages, 1), (len(numbers), len(set(numbers))))
            self.check(self.lines, files=["a.log"])

    def test_series_that_are_there_behind_new_ones(self):
        """After a command of new ones the next are tried as new; those that are there get the batch's number all the same."""
        self.add(FIRST_DAY, 3, range(2000, 2100))
        self.add(FIRST_DAY, 4, [*range(1000), *range(1950, 2150)])
        self.check(self.lines, files=["a.log"])
        numbers = {one["metadata"]["path"]: one["applied"]["w0"] for one in self.base["pages.series"].find()}
        self.assertEqual(1200, len(numbers))
        self.assertEqual(numbers["/page-1999.html"], numbers["/page-2000.html"])

    def test_other_metadata_than_the_name_says_are_refused(self):
        self.add(FIRST_DAY, 3, range(8))
        days = self.base["pages.day"]
        days.update_one({"metadata.path": "/page-3.html"}, {"$set": {"metadata.path": "/page-9.html"}})
        for _ in range(2):
            self.add(FIRST_DAY, 4, range(8), status=EX_DATAERR)
            self.assertIn('pages.day has a document "20260105/%2Fpage-3.html" with other metadata than its `_id` says', self.err)
        days.update_one({"metadata.path": "/page-9.html"}, {"$set": {"metadata.path": "/page-3.html"}})
        self.finish("a.log")
        self.check(self.lines, files=["a.log"])


class Extremes(MongoCase):
    """Reports that count nothing, in both stores: the smallest, greatest and last of values, of which some lines have none."""

    CONFIG = b"""
reports:
  pages: {by: [path], measures: {low: min(bytes), high: max(bytes), now: last(bytes)}}
  peaks: {by: [path], measures: {high: max(bytes)}}
  few: {by: [path], measures: {low: min(bytes)}, series_max: 3}
store: {validation: error}
"""

    def setUp(self):
        super().setUp()
        self.dice, self.lines = dice(), b""
        self.write("tallyd.yaml", self.CONFIG)

    def add(self, day):
        """Some lines of each page in two minutes; of the first page none has a value."""
        lines = [LINE % (1, day, 3, minute, self.dice.randrange(9), f"/page-{i}.html",
                         self.dice.choice((0, 7, 7, 7, 900, "-")) if i > 0 else "-", "x")
                 for minute in (0, 1) for i in range(30) for _ in range(self.dice.randrange(1, 4))]
        self.dice.shuffle(lines)
        self.lines += "".join(lines).encode()
        self.write("a.log", self.lines)

    def expected(self, span):
        """{(time, path): [smallest, greatest, last value]}"""
        events = collections.defaultdict(list)
        for place, line in enumerate(self.lines.splitlines()):
            day, year, clock, path, size = LOGGED.match(line).groups()
            at = f"{int(year)}-01-{int(day):02}T{clock.decode()}"
            if size != b"-":
                events[at[:LENGTHS[SPANS.index(span)]], path.decode()].append((at, place, int(size)))
        return {cell: [min(sizes := [size for _, _, size in of]), max(sizes), max(of)[2]] for cell, of in events.items()}

    def found(self, kind, span):
        """The same of the documents of a kind."""
        cells = collections.defaultdict(list)
        levels = range(SPANS.index(kind) + 1, SPANS.index(span) + 1)

        def walk(value, at, level):
            if level in levels:
                for key, below in value.items():
                    walk(below, f"{at}{SIGNS[level]}{int(key):02}", level + 1)
            else:
                cells[at, document["metadata"]["path"]].append(value.get("v") if isinstance(value, dict) else value)

        for document in self.base[f"pages.{kind}"].find():
            for measure in "low", "high", "now":
                walk(document.get(measure, {}).get(MEMBERS[span], {}),
                     document["metadata"]["date"].isoformat()[:LENGTHS[SPANS.index(kind)]], SPANS.index(kind) + 1)
        return {cell: values for cell, values in cells.items() if values != [None] * 3}

    def check_both(self):
        self.tallyd("import", "-c", "tallyd.yaml", "a.log")
        for kind, spans in KINDS["day"].items():
            for span in (*spans, kind):
                self.assertEqual(self.expected(span), self.found(kind, span), (kind, span))
        for store in "sqlite:tallyd.db", self.store:
            self.tallyd("verify", "-c", "tallyd.yaml", "--store", store, "a.log")
        for question in (["pages", "--measure", "all", "--step", "minute"], ["pages", "--top", "50", "--measure", "now"],
                         ["peaks", "--top", "50"], ["few", "--step", "hour"]):  # which of the few are known differs
            self.assertEqual(self.query(*question), self.query(*question, store=self.store), question)

    def test_batches_are_applied_once(self):
        for day in FIRST_DAY, FIRST_DAY, FIRST_DAY + 1:
            self.add(day)
            self.count("a.log")
            self.check_both()

    def test_one_that_had_been_applied_is_not_again(self):
        """Its writer dies before it says so. The writer that finishes it leaves alone what another changed since."""
        self.add(FIRST_DAY)
        self.end(self.begin("a.log", env=dying_at("mongo.applied")), KILLED)
        months = self.base["pages.month"]
        one = months.find_one({"high": {"$exists": True}})
        months.update_one({"_id": one["_id"]}, {"$set": {"high.total": Int64(-7)}})
        self.finish("a.log")
        self.assertEqual(-7, months.find_one({"_id": one["_id"]})["high"]["total"])
        said = self.tallyd("verify", "-c", "tallyd.yaml", "--store", self.store, "a.log", status=1)
        self.assertIn("1 difference", said)
        months.update_one({"_id": one["_id"]}, {"$set": {"high.total": one["high"]["total"]}})
        self.check_both()


class Daemon(MongoCase, DaemonCase):
    """The same while a daemon follows a file."""

    def setUp(self):
        super().setUp()
        self.put_between()
        self.lines = b""
        self.add(1)
        self.launch("-c", "tallyd.yaml")
        self.wait_for_counted()

    def add(self, hour, pages=20, alike=True):
        """A line of each page, in one write."""
        lines = "".join(LINE % (1, FIRST_DAY, hour, 0, i, f"/page-{i}.html", 7 if alike else i, "x")
                        for i in range(pages)).encode()
        self.lines += lines
        self.append("a.log", lines)

    def wait_for_counted(self):
        self.wait_for(lambda: self.nexts().get("a.log"), lambda found: found == len(self.lines))

    def check_refused(self, said):
        self.assertRegex(said, rf'tallyd run: .* refuses an update of pages\.day "20260105/%2Fpage-3\.html": .*{TOO_LARGE}')
        hours = {path: cell for (at, path), cell in self.stored("pages", "day", "hour").items() if at.endswith("T02")}
        self.assertEqual({f"/page-{i}.html": [1, i] for i in range(20) if i != 3}, hours)

    def test_a_document_grows_beyond_what_it_may_have(self):
        """It ends and says which one, also when it is started again; and goes on when that has been mended."""
        self.wait_for(lambda: self.base["pages.day"].find_one({"metadata.path": "/page-3.html"}), bool)
        grow(self.base["pages.day"], "/page-3.html")
        self.add(2, alike=False)
        self.assertEqual(EX_IOERR, self.process.wait(TIMEOUT_S))
        self.check_refused(self.read("log").decode())
        self.tallyd("run", "-c", "tallyd.yaml", status=EX_IOERR)
        self.check_refused(self.err)
        self.base["pages.day"].update_one({"metadata.path": "/page-3.html"}, {"$unset": {"filler": 1}})
        self.launch("-c", "tallyd.yaml")
        self.add(3)
        self.wait_for_counted()
        self.stop()
        self.check(self.lines, files=["a.log"])

    def test_the_reply_to_an_insert_is_lost(self):
        """It asks again by itself, and finds that the documents have what it wants to add."""
        self.wait_for(lambda: self.base["pages.day"].count_documents({}), lambda found: found == 20)  # by one insert
        lost = proxy.Fault(lose=("insert", "pages.day"))
        before = self.between.commands[lost.lose]
        self.between.plan = lambda: proxy.FAITHFUL if self.between.commands[lost.lose] > before else lost
        self.between.cut()
        self.add(2, pages=50)
        self.wait_for_counted()
        self.stop()
        self.assertEqual(1, self.between.commands["lost"])
        self.assertIn(b"store_failed", self.read("log"))
        self.check(self.lines, files=["a.log"])


RETIRED_MIN = 32  # as in retire.h
ROOM = 1200  # for the claims of a file or two, not of as many as leave at once


class Ledger(MongoCase):
    """The ledger has an entry for each file, and a seat the positions of its writer: each is one document."""

    LOG = LINE % (1, FIRST_DAY, 1, 1, 1, "/%s", 7, AGENT)

    def test_it_is_told_before_it_is_full(self):
        self.write("tallyd.yaml", CONFIG)
        self.count(self.write("a.log", (self.LOG % "a").encode()))
        self.assertNotIn("ledger_nearly_full", self.err)
        self.ledger.change({"$set": {"filler": "x" * (12 << 20)}})
        self.count(self.write("b.log", (self.LOG % "b").encode()))
        self.assertEqual(1, self.err.count("event=ledger_nearly_full"), self.err)
        self.assertEqual({"a.log", "b.log"}, set(self.nexts()))

    def fill(self, name, free):
        """One of its documents, by another hand, up to so many bytes less than it may have."""
        one = self.base.ledger.find_one_and_update({"_id": name}, {"$unset": {"filler": ""}}, return_document=True)
        filler = "x" * (DOCUMENT_BYTES_MAX - len(bson.encode({**one, "filler": ""})) - free)
        self.base.ledger.update_one({"_id": name}, {"$set": {"filler": filler}})

    def test_a_seat_is_told_before_it_is_full(self):
        self.write("tallyd.yaml", CONFIG)
        self.count(self.write("a.log", (self.LOG % "a").encode()))
        self.fill("w0", 1 << 20)
        self.count(self.write("b.log", (self.LOG % "b").encode()))
        self.assertEqual(1, self.err.count("event=ledger_nearly_full"), self.err)
        self.assertIn(" document=w0 ", self.err)
        self.assertIn("this writer counts nothing more: have other daemons count", self.err)

    def test_one_that_is_full(self):
        """The claim says it, and the commit."""
        self.write("tallyd.yaml", CONFIG)
        self.count(self.write("a.log", (self.LOG % "a").encode()))
        for name, free, advice in (("ledger", 0, "another database"), ("w0", 0, "have other daemons"), ("w0", 250, "have other daemons")):
            with self.subTest(name, free=free):
                self.fill(name, free)
                self.count(self.write("b.log", (self.LOG % "b").encode()), status=EX_IOERR)
                self.assertRegex(self.err, f"document {name} of collection ledger has 16777.* of 16777216 bytes: .*{advice}.*{UNABLE}")
                self.fill(name, 1 << 20)
        self.count("b.log")
        self.assertEqual({"a.log", "b.log"}, set(self.nexts()))

    def test_one_that_has_no_room_for_what_makes_it_smaller(self):
        """Files that have ended are claimed before they leave, which takes some bytes of each."""
        names = [self.write(f"{number}.log", (self.LOG % number).encode()) for number in range(RETIRED_MIN + 1)]
        self.count(*names[:-2])
        self.fill("ledger", ROOM)
        self.count(*names[-2:])
        self.assertRegex(self.err, "event=not_retired .*document ledger of collection ledger has 16.* of 16777216 bytes")
        self.assertEqual(set(names), set(self.nexts()))
        self.fill("ledger", 1 << 20)
        self.count(names[0])
        self.assertGreater(self.base.past.count_documents({}), RETIRED_MIN - 2)


if __name__ == "__main__":
    main()
