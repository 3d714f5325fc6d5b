#!/usr/bin/env python3
"""`tallyd verify --store-only` on MongoDB: what was changed in any document, and a copy whose ledger and documents are not of one
moment, is found out without any source; a database that is whole is never suspected, whatever was made of it.

TALLYD_MONGO names the server (tests/servers/mongo.py).
"""

import time

from harness import EX_DATAERR, EX_TEMPFAIL, dice, dying_at
from mongocase import LINES_A_BATCH, Decimal128, MongoCase, log, main
from test_expire import KEEP, Expiring
from test_mongo_expire import config
from test_mongo_rollup import each_month
from test_mongo_weeks import weeks_of

# Report, kind of documents, member, and what is said once it is one more in one of them: at once those that are not compared with
# each other.
PLACES = ((("moments", "minute", "second", "by minute: it has .*, but its seconds have"),
           ("moments", "hour", "hourly", "by hour: it has .*, but another place of it has"),
           ("segments", "day", "hourly", "by hour: it has .*, but its minutes have"),
           ("pages", "day", "minute", "by hour: it has .*, but its minutes have"),
           ("pages", "month", "total", "by month: it has .*, but its days have")),
          (("moments", "minute", "minute", "by minute: it has .*, but another place of it has"),
           ("segments", "hour", "minute", "by hour: it has .*, but its minutes have"),
           ("pages", "day", "hourly", "by hour: it has .*, but its minutes have"),
           ("site", "month", "total", "counted: the books have")),
          (("moments", "hour", "minute", "by minute: it has .*, but its seconds have"),
           ("pages", "day", "daily", "by day: it has .*, but another place of it has")),
          (("pages", "month", "daily", "by day: it has .*, but its hours have"),))


class Audit(MongoCase):
    def setUp(self):
        super().setUp()
        self.dice = dice()

    def audit(self, status=0, **options):
        return self.tallyd("verify", "--store-only", "--store", self.store, status=status, **options)

    def healthy(self):
        self.audit()

    def found(self, words):
        self.assertRegex(self.audit(status=1), words)

    def import_lines(self, name, batches=2):
        self.write(name, log(self.dice, batches * LINES_A_BATCH))
        self.count(name)

    def copy(self, *collections):
        return {name: list(self.base[name].find()) for name in collections}

    def put_back(self, copy):
        for name, documents in copy.items():
            self.base[name].delete_many({})
            if documents:
                self.base[name].insert_many(documents)

    def documents(self):
        return [name for name in self.base.list_collection_names() if name.split(".")[-1] in
                ("minute", "hour", "day", "month", "series", "top") or name in ("books", "jobs")]


class OfOneImport(Audit):
    def test_whatever_is_changed_is_found(self):
        self.import_lines("a.log")
        self.healthy()
        for places in PLACES:
            changes = [self.change(*place[:3]) for place in places]
            said = self.audit(status=1)
            for *place, words in places:
                with self.subTest(place=place):
                    self.assertRegex(said, f"{place[0]}.* {words}")
            for collection, name, path in changes:
                collection.update_one({"_id": name}, {"$inc": {path: -1}})
        self.healthy()

    def change(self, report, kind, member):
        """One more in the first slot of a document."""
        collection = self.base[f"{report}.{kind}"]
        one = collection.find_one()
        path, value = member, one[member]
        while isinstance(value, dict):
            key = next(iter(value))
            path, value = f"{path}.{key}", value[key]
        collection.update_one({"_id": one["_id"]}, {"$inc": {path: 1}})
        return collection, one["_id"], path

    def test_what_is_no_number_is_found(self):
        """No such count is read as 0."""
        self.import_lines("a.log")
        wrong = Decimal128("NaN"), Decimal128("-Infinity"), float("inf"), float("nan")
        for (kind, member), step in ((("month", "total"), "month"), (("month", "bytes.total"), "month"), (("day", "daily"), "day")):
            before = self.copy(f"pages.{kind}")
            self.base[f"pages.{kind}"].update_one({}, {"$set": {member: self.dice.choice(wrong)}}, bypass_document_validation=True)
            self.tallyd("query", "pages", "--store", self.store, "--measure", "all", "--from", "2026-01-01", "--to", "2026-02-01",
                        "--step", "month", status=None)
            failed = self.status == EX_DATAERR and "has a damaged" in self.err
            self.assertTrue(failed or step == "day", self.err)
            self.tallyd("verify", "--store-only", "--store", self.store, status=None)
            self.assertNotEqual(0, self.status)
            self.put_back(before)
        self.healthy()

    def test_documents_of_others_are_found(self):
        self.import_lines("a.log")
        one = self.base["pages.day"].find_one()
        self.base["pages.day"].update_one({"_id": one["_id"]}, {"$set": {"metadata.path": "/elsewhere"}})
        self.found(r"pages.day: the document .* should be called \"2026010\d/%2Felsewhere\"")
        self.found("which is not among its series")
        self.base["pages.day"].replace_one({"_id": one["_id"]}, one)
        self.healthy()
        self.base["pages.series"].delete_one({"metadata.path": one["metadata"]["path"]})
        self.found("which is not among its series")

    def test_torn_copies_are_found(self):
        """Ledger, books and documents of different moments."""
        self.import_lines("a.log")
        before = self.copy(*self.documents()) | self.ledger.copy()
        self.import_lines("b.log")
        after = self.copy(*self.documents()) | self.ledger.copy()
        self.healthy()
        self.ledger.put_back(before)
        self.found(r"pages.day: \d+ documents, one of them .* have batch \d+ of writer w0, whose last one is \d+ by the ledger: ")
        self.put_back(before)
        self.healthy()
        self.ledger.put_back(after)
        self.found(r"books: by the ledger, batch \d+ of writer w0 is done, but no books have it")
        self.put_back(after)
        self.put_back({"books": before["books"]})
        self.found("no books have it")
        self.put_back(after)
        self.put_back({"pages.month": before["pages.month"]})
        self.found("pages: counted: the books have")
        self.put_back(after)
        self.ledger.forget_slot("w0")
        self.found(r"have batches of writer w0, which is not in the ledger")
        self.found(r"ledger: the partition .* is of writer w0, which it does not know")
        self.put_back(after)
        last = self.ledger.slots()["w0"]["seq"]
        later = {"writers.w0.seq": last + 2, "writers.w0.gap": {"after": last - 1, "before": last + 2}}
        self.ledger.change({"$set": later})
        self.found(r"pages.day: \d+ documents, one of them .* have batches of writer w0 that the ledger has never known")
        self.put_back(after)
        self.healthy()

    def test_damaged_and_missing_seats(self):
        self.import_lines("a.log")
        seat, whole = self.base.ledger.find_one("w0"), self.ledger.copy()
        key, = seat["partitions"]
        later = f"partitions.{key}.held", seat["partitions"][key]["fence"] + 1
        for changes, words in (({"inc": seat["inc"] + 10 ** 9}, f"seat w0 was taken by incarnation .*, and the ledger's last one is {seat['inc']}: "),
                               (dict([later]), "the partition \"file:.*\" of seat w0 has a negative offset, or was counted without a claim"),
                               ({"inc": "none"}, "seat w0 has no incarnation")):
            self.base.ledger.update_one({"_id": "w0"}, {"$set": changes}, bypass_document_validation=True)
            self.found(words)
            self.ledger.put_back(whole)
            self.healthy()
        self.base.ledger.insert_one({**seat, "_id": "w9"})
        self.found("seat w9 is of a writer that the ledger does not know")
        self.ledger.put_back(whole)
        self.base.ledger.delete_one({"_id": "w0"})
        self.found("seat w0 is missing, which may have the position of partition \"file:.*\": restore the database from a backup")
        self.ledger.put_back(whole)
        self.healthy()

    def test_batch_under_way_without_its_log(self):
        self.write("a.log", log(self.dice, 2 * LINES_A_BATCH))
        process = self.begin("a.log", env=dying_at("mongo.committed:1"))
        self.end(process, -9)
        self.audit(status=EX_TEMPFAIL)  # it cannot tell
        self.assertIn("a batch of writer w0 is under way", self.err)
        logs = self.copy("batches")
        self.base.batches.delete_many({})
        self.found(r"batches: of the log of batch \d+ of writer w0, which is under way, 0 of \d+ bytes are there")
        self.put_back(logs)
        self.count("a.log")
        self.healthy()


class OfManyShapes(Audit, Expiring):
    pages = 6

    def test_years_weeks_and_rankings(self):
        self.write("tallyd.yaml", weeks_of("reports:\n  pages: {by: [path]}\n"))
        self.write("a.log", each_month())
        self.count("a.log")
        for job in "rollup", "top":
            self.job("run", job)
        self.healthy()
        self.write("b.log", each_month() * 2)
        self.count("b.log")
        self.healthy()
        self.roll()
        self.base["pages.year"].update_one({}, {"$inc": {"total.3": 1}})
        self.found("by month: it has .*, but its days have")
        self.base["pages.year"].update_one({}, {"$inc": {"total.3": -1}})
        self.base.jobs.update_one({"_id": "rollup/pages"}, {"$inc": {"fence": -10**12}})
        self.found("pages.year: documents were rolled up by fence")

    def test_what_was_let_go_is_no_difference(self):
        self.write("a.log", self.make_log(500))
        self.write("b.log", self.make_log(500))
        for name, keep in (("a.log", ""), ("b.log", KEEP), ("a.log", "")):
            self.write("tallyd.yaml", config(keep))
            self.count(name)
            self.healthy()

    def test_beside_a_daemon(self):
        """It waits for a moment in which nothing is under way, and looks again where that was over. Slots of zeros count as none."""
        self.put_between()
        self.write("tallyd.yaml", self.read("tallyd.yaml").replace(b"store: {", b"store: {preallocate: 1/1, preallocate_as: zeros, "))
        lines = log(self.dice, 4 * LINES_A_BATCH)
        self.write("a.log", lines[:len(lines) // 2])
        daemon = self.start("run", "-c", "tallyd.yaml")
        self.wait_until(lambda: self.nexts().get("a.log", 0) > 0)
        time.sleep(1)
        self.append("a.log", lines[len(lines) // 2:])
        self.healthy()
        daemon.terminate()
        self.end(daemon)
        self.healthy()


if __name__ == "__main__":
    main()
