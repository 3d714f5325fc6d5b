#!/usr/bin/env python3
"""A database of any earlier version opens in this one: as test_versions.py. TALLYD_MONGO names another server."""

import datetime
import os
import re
import tarfile

from harness import EX_CONFIG, EX_DATAERR, EX_TEMPFAIL, dice, dying_at
from mongocase import CONFIG, LINES_A_BATCH, MongoCase, log, main, proxy
from test_mongo_identity import KILLED
from test_versions import COUNTED, GOLDEN, SPAN, Versions

FORMATS = (1, 2, 4, 5, 6)
# Reports of numbers with fractions, as mongodb-2-millionths has them of the first 300 lines of LOADS.
MILLIONTHS = b"""\
reports:
  loads:
    by: [name]
    measures: {n: count, sum: sum(value), mean: mean(value), low: min(value), high: max(value), now: last(value), spread: histogram(value)}
"""
LOADS = [f'{{"name": "{"abc"[i % 3]}", "ts": {1767225600 + 6001 * i}, "value": {(i * 7919 % 4001 - 2000) * 997 / 10**6:.6f}}}\n'.encode()
         for i in range(400)]


class Databases(Versions, MongoCase):
    check = Versions.check

    def test_restored_then_counted_on(self):
        self.read_log()
        for version in FORMATS:
            with self.subTest(format=version):
                self.anew()
                self.restore_and_count_on(version)

    def restore_and_count_on(self, version):
        name = f"mongodb-{version}"
        with tarfile.open(os.path.join(GOLDEN, f"{name}.tar.gz")) as archive:
            archive.extractall(self.dir, filter="data")
        self.write("a.log", b"".join(self.lines[:COUNTED]))
        self.tallyd("admin", "restore", "--store", self.store, name)
        self.check(self.store, COUNTED)
        said = self.tallyd("admin", "upgrade", "--dry-run", "--store", self.store)
        self.assertIn("nothing to do" if version == FORMATS[-1] else f"format {version} would become", said)
        self.tallyd("admin", "copy", self.store, f"sqlite:copy-{version}.db")
        for store in self.store, f"copy-{version}.db":
            self.write("a.log", b"".join(self.lines[:COUNTED]))
            self.check(store, COUNTED)
            self.count_on(store)
        self.assertEqual(FORMATS[-1], self.ledger.read()["v"])

    def test_key_of_ids_is_noted(self):
        """Earlier versions stored no fingerprint of derive.key."""
        def count(key, **options):
            self.write("tallyd.yaml", f"derive: {{key: {key}}}\nreports: {{ids: {{by: [host_id]}}}}\n".encode())
            self.tallyd("import", "-q", "-c", "tallyd.yaml", "--store", self.store, "a.log", **options)

        def definition():
            return self.base.reports.find_one({"_id": "ids"})["definition"]

        self.read_log()
        self.write("a.log", b"".join(self.lines[:9]))
        count("0123456789abcdef")
        whole = definition()
        self.assertRegex(whole, r"\ngiven host_id key [0-9a-f]{16}\n$")
        self.append("a.log", self.lines[9])
        self.base.reports.update_one({"_id": "ids"}, {"$set": {"definition": re.sub("given.*\n", "", whole)}})
        count("0123456789abcdef")
        self.assertEqual(whole, definition())
        count("fedcba9876543210", status=EX_CONFIG)
        self.assertIn("generation: 2", self.err)
        self.tallyd("verify", "-c", "tallyd.yaml", "--store", self.store, "--store-only")

    def begin_format_4(self):
        """A batch of a.log is open in the ledger, of a version that knew no seats, and no document has it."""
        draws = dice()
        self.anew()
        self.logs = {name: log(draws, 3 * LINES_A_BATCH) for name in ("a.log", "b.log")}
        self.write("tallyd.yaml", CONFIG)
        for name, lines in self.logs.items():
            self.write(name, lines)
        self.count("b.log")
        self.write("a.log", b"".join(self.logs["a.log"].splitlines(keepends=True)[:LINES_A_BATCH]))
        self.count("a.log")  # months have it, as they had each batch of that version that was done
        self.write("a.log", self.logs["a.log"])
        self.end(self.begin("a.log", env=dying_at("mongo.committed")), KILLED)
        self.ledger.make_format_4()
        opened = self.base.ledger.find_one("ledger")["writers"]["w0"]["open"]
        self.assertEqual(opened, self.ledger.open_batches()["w0"])
        self.assertEqual(0, self.documents_of(opened))

    def documents_of(self, opened):
        return self.base["pages.day"].count_documents({"applied.w0": opened["seq"]})

    def check_format_4(self):
        for name in "b.log", "a.log":
            self.count(name)
            self.check_at_rest()
        self.assertEqual(FORMATS[-1], self.ledger.read()["v"])
        MongoCase.check(self, *self.logs.values(), files=self.logs)

    def test_format_4_with_an_open_batch(self):
        """The first writer finishes it, or the upgrade by hand."""
        for by_hand in False, True:
            with self.subTest(by_hand=by_hand):
                self.begin_format_4()
                opened, = self.ledger.open_batches().values()
                if by_hand:
                    self.tallyd("admin", "upgrade", "--store", self.store)
                    self.check_at_rest()
                    self.assertLess(0, self.documents_of(opened))
                self.check_format_4()

    def test_format_4_with_a_batch_that_stays_open(self):
        """Its log was away when the format was raised. The next writer of w0 finishes it, or one of w1: when it claims the file while the
        writer of w0 lives, or when it finds it gone."""
        for minutes, slot, name in (None, "w0", "b.log"), (30, "w1", "a.log"), (-30, "w1", "b.log"):
            with self.subTest(slot=slot, lease_minutes=minutes):
                self.begin_format_4()
                opened, = self.ledger.open_batches().values()
                logged = list(self.base.batches.find())
                self.base.batches.delete_many({})
                self.tallyd("admin", "upgrade", "--store", self.store)
                self.assertIn("batch_left_open", self.err)
                self.assertEqual({"w0": opened}, self.ledger.open_batches())
                self.base.batches.insert_many(logged)
                if minutes is not None:
                    lease = datetime.datetime.utcnow() + datetime.timedelta(minutes=minutes)
                    self.ledger.change({"$set": {"writers.w0.lease": lease, "writers.w0.host": "another"}})
                self.append(name, self.logs[name][:self.logs[name].index(b"\n") + 1])
                self.logs[name] = self.read(name)
                self.count(name)
                self.assertEqual([slot], [one["_id"] for one in self.base.ledger.find({"_id": {"$ne": "ledger"}})])
                self.check_at_rest()
                self.assertLess(0, self.documents_of(opened))
                self.check_format_4()

    def two_parts(self):
        """A log of which the first part is counted, in a database of format 4; and its seats."""
        lines, rest = (log(dice(), 2 * LINES_A_BATCH) for _ in range(2))
        self.write("tallyd.yaml", CONFIG)
        self.write("a.log", lines)
        self.count("a.log")
        seats = list(self.base.ledger.find({"_id": {"$ne": "ledger"}}))
        self.ledger.make_format_4()
        self.append("a.log", rest)
        return lines + rest, seats

    def test_format_4_while_a_backup_of_it_is_taken(self):
        """The older version copies no seats."""
        lines, _ = self.two_parts()
        until = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(minutes=5)
        self.ledger.change({"$set": {"backups.old.until": until}})
        self.count("a.log", status=EX_TEMPFAIL)
        self.assertIn("a backup is being taken, or was killed in the last ten minutes: wait until it has ended", self.err)
        self.assertEqual(4, self.ledger.read()["v"])
        self.ledger.change({"$unset": {"backups.old": ""}})
        self.count("a.log")
        MongoCase.check(self, lines, files=["a.log"])

    def test_format_4_that_was_restored_over_format_5(self):
        """The older version knows no seats, and left them."""
        lines, seats = self.two_parts()
        for seat in seats:
            seat["open"] = {"seq": seat["seq"] + 7, "prev": seat["seq"], "inc": seat["inc"], "bytes": 4711, "ranges": []}
            self.base.ledger.insert_one(seat)
        self.tallyd("admin", "backup", "copy", "-c", "tallyd.yaml", "--store", self.store)
        self.roll("--now")
        self.tallyd("verify", "--store", self.store, "--store-only")
        self.count("a.log")
        self.check_at_rest()
        MongoCase.check(self, lines, files=["a.log"])

    def test_a_backup_of_format_4_that_ended_in_format_5(self):
        """It has the ledger of the later version, and nothing of its seats."""
        self.write("tallyd.yaml", CONFIG)
        self.write("a.log", log(dice(), LINES_A_BATCH))
        self.count("a.log")
        self.tallyd("admin", "backup", "copy", "-c", "tallyd.yaml", "--store", self.store)
        names = self.read("copy/tallyd-backup.json")
        self.write("copy/tallyd-backup.json", re.sub(rb'("format" *: *{ *"\$numberInt" *: *)"3"', rb'\1"1"', names))
        self.assertNotEqual(names, self.read("copy/tallyd-backup.json"))
        self.anew()
        self.tallyd("admin", "restore", "copy", "-c", "tallyd.yaml", "--store", self.store, status=EX_DATAERR)
        self.assertIn("was taken while a later one counted: it is not whole", self.err)
        self.assertEqual([], self.base.list_collection_names())

    # ---- numbers with fractions, which were millionths before format 4

    def answers(self):
        """All figures of each series by hour and month, and of all; from this database."""
        return [self.query("loads", "--step", step, "--measure", "all", *more, span=SPAN, store=self.store)
                for step in ("hour", "month") for more in ([], *(["--filter", f"name={name}"] for name in "abc"))]

    def count_loads(self, count):
        self.write("a.log", b"".join(LOADS[:count]))
        self.tallyd("import", "-c", "tallyd.yaml", "--decode", "metric", "--store", self.store, "a.log")
        for more in ["--decode", "metric", "a.log"], ["--store-only"]:
            self.tallyd("verify", "-c", "tallyd.yaml", "--store", self.store, *more)

    def check_sums(self, count, read):
        """read(a sum's value in a document) is what the lines say, by day."""
        expected = {}
        for i in range(count):
            day = (1767225600 + 6001 * i) // 86400
            expected[day, "abc"[i % 3]] = expected.get((day, "abc"[i % 3]), 0) + (i * 7919 % 4001 - 2000) * 997
        self.assertEqual(expected, {((one["metadata"]["date"] - datetime.datetime(1970, 1, 1)).days, one["metadata"]["name"]): read(one["sum"]["daily"])
                                    for one in self.base["loads.day"].find()})

    def test_older_versions_are_out_before_a_report_has_decimals(self):
        self.write("tallyd.yaml", b"reports: {site: {}}\n")
        self.write("b.log", LOADS[0])
        self.count("--decode", "metric", "b.log")
        self.ledger.make_format_4()
        self.ledger.change({"$set": {"v": 2}})
        formats = []

        def note(piece):
            if b"update\0\x08\0\0\0reports\0" in piece:
                formats.append(self.ledger.read()["v"])

        self.write("tallyd.yaml", MILLIONTHS)
        self.write("a.log", b"".join(LOADS[:10]))
        with proxy.Proxy(self.server.port) as between:
            between.answer = note
            self.count("--decode", "metric", "a.log", url=f"mongodb://127.0.0.1:{between.port}/{self.name}")
        self.assertEqual([FORMATS[-1]], formats)

    def test_millionths_are_counted_on(self):
        self.write("tallyd.yaml", MILLIONTHS)
        fresh = []
        for count in COUNTED, len(LOADS):
            self.count_loads(count)
            self.check_sums(count, lambda value: int(value.to_decimal() * 10**6))
            fresh.append(self.answers())
        self.anew()
        with tarfile.open(os.path.join(GOLDEN, "mongodb-2-millionths.tar.gz")) as archive:
            archive.extractall(self.dir, filter="data")
        self.tallyd("admin", "restore", "--store", self.store, "mongodb-2-millionths")
        self.assertEqual(fresh[0], self.answers())
        for count, answers in zip((COUNTED, len(LOADS)), fresh):
            self.count_loads(count)
            self.check_sums(count, lambda value: value["units"] * 10**6 + value["micros"])
            self.assertEqual(answers, self.answers())
        for job in "rollup", "top":
            self.tallyd("job", "run", job, "--store", self.store)
        self.assertEqual(fresh[1], self.answers())
        self.tallyd("admin", "copy", self.store, "sqlite:copy.db")
        self.anew()
        self.tallyd("admin", "copy", "sqlite:copy.db", self.store)
        self.check_sums(len(LOADS), lambda value: int(value.to_decimal() * 10**6))
        self.assertEqual(fresh[1], self.answers())


if __name__ == "__main__":
    main()
