#!/usr/bin/env python3
"""`tallyd forget` in MongoDB: a generation of a report is dropped whole, and a file is taken out exactly, whenever it is
killed meanwhile; or it refuses, with the reason.

The judge of a file is a recount of the others by Python. TALLYD_ROUNDS says how often forget is killed (3 by default). The
seed is printed; TALLYD_SEED repeats a run. TALLYD_MONGO names the server (tests/servers/mongo.py).
"""

import csv
import datetime
import gzip
import json
import os

import mongocase

from harness import (EX_CONFIG, EX_DATAERR, EX_NOINPUT, EX_OK, EX_TEMPFAIL, EX_UNAVAILABLE, EX_USAGE, dice, draw_death,
                     dying_at, failpoints)
from mongocase import LINES_A_BATCH, Int64, MongoCase, log, recount

ROUNDS = int(os.environ.get("TALLYD_ROUNDS") or 3)
SPAN = ("--from", "2026-01-01", "--to", "2026-02-01")

OLD = b"pages: {by: [path]}"
NEW = b"pages: {by: [path, status], generation: 2}"


class Forget(MongoCase):
    def setUp(self):
        super().setUp()
        self.dice = dice()
        self.fill()

    def fill(self):
        self.write("tallyd.yaml", mongocase.CONFIG)
        self.count(self.write("a.log", log(self.dice, 40)), "-q")
        self.roll(status=None)
        self.write("tallyd.yaml", mongocase.CONFIG.replace(OLD, NEW))
        self.count(self.write("b.log", log(self.dice, 40)), "-q")

    def forget(self, *arguments, **options):
        return self.tallyd("forget", "-c", "tallyd.yaml", "--store", self.store, *arguments, **options)

    def left(self, key):
        """The documents of a report's generation."""
        names = [name for name in self.base.list_collection_names() if name.rsplit(".", 1)[0] == key and "." in name]
        names += [one["_id"] for one in self.base.jobs.find() if one["_id"].endswith("/" + key)]
        names += ["books" for one in self.base.books.find() if key in one.get("reports", {})]
        return names + ["reports"] * self.base.reports.count_documents({"_id": key})

    def check_rest(self, *files):
        self.tallyd("verify", "-c", "tallyd.yaml", "--store", self.store, *files)
        self.tallyd("verify", "--store", self.store, "--store-only")

    def test_generation_is_dropped_whole(self):
        before = self.left("pages~2")
        self.assertIn("books", before)
        self.assertIn("pages~1: would drop", self.forget("--dry-run", "pages~1"))
        self.assertIn("pages.series", self.left("pages"))
        self.assertRegex(self.forget("pages~1"), "pages~1: dropped [1-9][0-9]* documents of counts, and 6 series")
        self.assertEqual([], self.left("pages"))
        self.assertEqual(before, self.left("pages~2"))
        self.check_rest("a.log", "b.log")
        self.forget("pages~1", status=EX_NOINPUT)

    def test_newest_generation_needs_insistence_and_may_be_counted_anew(self):
        self.forget("pages", status=EX_USAGE)
        self.forget("pages~3", status=EX_NOINPUT)
        self.forget("--yes", "pages")
        self.assertEqual([], self.left("pages~2"))
        self.count(self.write("c.log", log(self.dice, 20)), "-q")
        self.assertIn("pages~2.day", self.left("pages~2"))
        self.check_rest("a.log", "b.log", "c.log")

    def test_killed_drop_is_finished_by_the_next_one(self):
        files = ["a.log", "b.log"]
        for place in [f"drop.collection:{self.dice.randrange(1, 9)}", "drop.last"]:
            with self.subTest(place):
                self.forget("--yes", "pages~2", status=-9, env=dying_at(place))
                self.count("b.log", "-q", status=EX_CONFIG)
                self.assertIn("forget --yes pages~2", self.err)
                self.assertEqual(1, self.base.reports.count_documents({"name": "pages", "dropping": {"$exists": False}}))
                self.forget("--yes", "pages~2")
                self.assertEqual([], self.left("pages~2"))
                files.append(self.write(place, log(self.dice, 20)))
                self.count(files[-1], "-q")
                self.check_rest(*files)
        self.assertEqual(2, len(failpoints("drop.")))

    def test_report_of_a_living_writer_is_refused(self):
        self.write("run.yaml", b"sources: {access: {path: a.log}}\nhttp: {listen: '127.0.0.1:0'}\n"
                   + mongocase.CONFIG.replace(OLD, NEW))
        daemon = self.start("run", "-c", "run.yaml", "--store", self.store)
        self.wait_until(lambda: self.forget("--dry-run", "pages", status=None) is not None and self.status == EX_TEMPFAIL)
        self.forget("--yes", "pages", status=EX_TEMPFAIL)
        self.assertIn("stop it first", self.err)
        daemon.terminate()
        daemon.communicate()


class FileCase(MongoCase):
    def setUp(self):
        super().setUp()
        self.dice = dice()
        self.a, self.b = self.lines(4), self.lines(2)
        self.write("a.log", self.a)
        self.write("b.log", self.b)

    def lines(self, batches):
        """Each batch of an import is also one that is taken out."""
        return log(self.dice, batches * LINES_A_BATCH)

    def forget(self, *arguments, **options):
        return self.tallyd("forget", "-c", "tallyd.yaml", "--store", self.store, *arguments, **options)

    def refuse(self, status, said, *arguments):
        before = self.dump()
        self.forget(*arguments, status=status)
        self.assertIn(said, self.err)
        self.assertEqual(before, self.dump())

    def dump(self):
        """All documents but the ledger, whose slots are taken and given back."""
        return {name: sorted(map(repr, self.base[name].find())) for name in self.base.list_collection_names()
                if name not in ("ledger", "batches") and not name.startswith("system.")}

    def check_left(self, *logs):
        """The documents say what these logs do; buckets may be zeros."""
        expected = recount(*logs)
        for names, counts, stored in self.compared(expected):
            self.assertEqual(counts, stored, names)

    def verify(self, *files):
        for more in [files] * (files != ()) + [["--store-only"]]:
            self.tallyd("verify", "-c", "tallyd.yaml", "--store", self.store, *more)

    def rows(self, report, *arguments):
        out = self.tallyd("query", report, "-c", "tallyd.yaml", "--store", self.store, "--format", "csv", *SPAN, *arguments)
        return list(csv.DictReader(out.splitlines()))


class File(FileCase):
    def test_rest_is_as_if_the_file_had_never_been_counted(self):
        """And a dry run changes nothing, the file may be counted anew, and may be packed."""
        self.count("a.log", "b.log", "-q")
        for job in "rollup", "top":
            self.job("run", job, status=None)
        before = self.dump()
        self.assertIn("would take out 520 lines", self.forget("--dry-run", "a.log"))
        zeros = [{**one, "zeros": True} for one in self.base.reports.find()]
        self.assertEqual({**before, "reports": sorted(map(repr, zeros))}, self.dump())
        self.assertIn("took out 520 lines", self.forget("a.log"))
        self.check_at_rest()
        self.check_left(self.b)
        self.assertEqual(["b.log"], list(self.nexts()))
        self.verify("b.log")
        answers = [self.answers()]
        both = self.store, self.base
        self.anew()
        self.count("b.log", "-q")
        answers.append(self.answers())
        self.assertEqual(*answers)
        self.store, self.base = both
        self.forget("a.log", status=EX_NOINPUT)
        self.assertIn("counted 520 lines", self.count("a.log"))
        self.check(self.a, self.b, files=["a.log", "b.log"])
        self.write("a.log.gz", gzip.compress(self.a))
        os.remove(self.path("a.log"))
        self.forget("--file", "a.log.gz", "a.log")
        self.check_left(self.b)
        self.forget("b.log")
        self.check_left()
        self.verify()

    def answers(self):
        return [self.rows(report, *more) for report in ("pages", "site", "segments", "moments")
                for more in (["--step", "minute", "--measure", "all"], ["--step", "month", "--measure", "all"])] + [
                    self.rows("pages", "--top", "5"), self.rows("pages", "--top", "5", "--measure", "bytes")]

    def test_sums_of_any_numbers_and_events_of_the_future(self):
        """Negative ones and fractions. The stretches of the books in which lines were rejected go back with the position."""
        self.write("tallyd.yaml", b"sources: {m: {path: /m, decode: [metric]}}\nreports:\n"
                   b"  gauges: {by: [name], measures: {n: count, sum: sum(value), mean: mean(value)}}\n"
                   b"  alone: {measures: {sum: sum(value)}}\naggregate: {batch_size: 64KiB}\n")
        soon = (datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(days=3)).strftime("%Y-%m-%dT%H:%M:%SZ")
        def metrics(count):
            return "".join(json.dumps({
                "name": self.dice.choice("abc"), "x": 2000 * "x",
                "ts": soon if self.dice.random() < 0.1 else f"2026-01-0{self.dice.randrange(1, 9)}T10:00:00Z",
                "value": self.dice.choice([0, 1, -1, 0.25, -0.000001, 10**6 + 0.999999])}) + "\n" for _ in range(count)).encode()
        first, more = metrics(200), metrics(300)
        self.write("a.json", first)
        self.write("b.json", metrics(300))
        self.count("a.json", "b.json", "-q")
        self.write("a.json", first + more)
        self.count("a.json", "-q")
        for _ in range(2):
            self.forget("a.json", status=-9, env=dying_at("forget.taken"))
            self.count("b.json", "-q")  # finishes the open batch
            self.assertIn("a.json", self.nexts())
            self.verify("a.json", "b.json")
        self.forget("a.json")
        self.verify("b.json")
        answers = []
        for _ in range(2):
            answers.append([[row for row in self.rows(report, "--step", "day", "--measure", "all")
                             if any(value not in ("0", None) for name, value in row.items() if name != "time")]
                            for report in ("gauges", "alone")])
            self.anew()
            self.count("b.json", "-q")
        self.assertEqual(*answers)


class Kill(FileCase):
    def check_as_far_as_counted(self):
        """Another import finishes the open batch of the one that was killed. Returns how far a.log is counted."""
        self.count("b.log", "-q")
        self.check_at_rest()
        to = self.nexts().get("a.log", 0)
        self.check_left(self.a[:to], self.b)
        return to

    def test_killed_anywhere_a_part_is_counted_or_out(self):
        places = failpoints("mongo.") + failpoints("forget.taken")
        killed = parts = 0
        self.count("a.log", "b.log", "-q")
        for _ in range(ROUNDS):
            to = len(self.a)
            for _ in range(self.dice.randrange(1, 4)):
                self.forget("a.log", status=None, env=dying_at(draw_death(self.dice, places, 4)))
                self.assertIn(self.status, (EX_OK, -9, EX_NOINPUT), self.err)
                killed += self.status == -9
                if self.dice.random() < 0.7:
                    to = self.check_as_far_as_counted()
                    parts += 0 < to < len(self.a)
            if self.dice.random() < 0.5:
                self.forget("a.log", status=None)
                self.assertIn(self.status, (EX_OK, EX_NOINPUT), self.err)
                self.assertEqual(0, self.check_as_far_as_counted())
                self.verify("b.log")
            self.count("a.log", "-q")
            self.check(self.a, self.b, files=["a.log", "b.log"])
        print(f"{ROUNDS} rounds, {killed} kills, {parts} left a part")
        self.assertGreater(killed, 0)

    def test_killed_at_each_place(self):
        self.count("a.log", "b.log", "-q")
        for place in failpoints("mongo.") + failpoints("forget.taken"):
            with self.subTest(place):
                self.count("a.log", "-q")
                self.forget("a.log", status=-9, env=dying_at(place))
                self.check_as_far_as_counted()
        self.forget("a.log")
        self.assertEqual(0, self.check_as_far_as_counted())
        self.verify("b.log")


class Refused(FileCase):
    def test_measures_that_cannot_be_subtracted_and_raw_events(self):
        self.write("tallyd.yaml", b"reports: {site: {measures: {n: count, m: max(bytes)}}}\n")
        self.count("b.log", "-q")
        self.refuse(EX_UNAVAILABLE, "m: max(bytes)", "b.log")
        with_raw = b"sources: {b: {path: b.log, raw: all, raw_growth: %s}}\nreports: {site: {}}\n"
        for growth, place in (b"forever", ","), (b"database per month", "_raw_b_20"):
            self.anew()
            self.write("tallyd.yaml", with_raw % growth)
            self.count("b.log", "-q")
            for later in with_raw % growth, b"reports: {site: {}}\n":
                self.write("tallyd.yaml", later)
                self.refuse(EX_UNAVAILABLE, f"raw events are stored in raw.b of database {self.name}{place}", "b.log")

    def test_series_beyond_the_limit(self):
        self.write("tallyd.yaml", b"reports: {site: {}, pages: {by: [path], series_max: 2}}\n")
        self.count("b.log", "-q")
        self.refuse(EX_UNAVAILABLE, "series_max", "b.log")

    def test_living_writer(self):
        self.count("b.log", "-q")
        self.write("run.yaml", b"sources: {access: {path: a.log}}\nhttp: {listen: '127.0.0.1:0'}\n" + mongocase.CONFIG)
        daemon = self.start("run", "-c", "run.yaml", "--store", self.store)
        self.wait_until(lambda: "a.log" in self.nexts())
        self.forget("b.log", status=EX_TEMPFAIL)
        self.assertIn("stop all that count first", self.err)
        daemon.terminate()
        daemon.communicate()
        self.forget("b.log")
        self.check_left(self.a)

    def test_file_that_changed_where_no_hash_looks(self):
        """Its length and its ends are the same, and so are the books, but not the documents."""
        self.count("a.log", "b.log", "-q")
        at = self.a.index(b"/Jan/2026", len(self.a) // 2)
        self.write("a.log", self.a[:at] + b"/Mar/2026" + self.a[at + 9:])
        self.forget("a.log", status=EX_DATAERR)
        self.assertIn("has less than is to be taken out", self.err)
        self.check_left(self.a, self.b)
        self.write("a.log", self.a[:at - 200] + b"\n" + self.a[at - 199:])
        self.forget("a.log", status=EX_CONFIG)
        self.check_left(self.a, self.b)

    def test_document_that_another_program_changed(self):
        self.count("a.log", "b.log", "-q")
        one = self.base["pages.day"].find_one()
        self.base["pages.day"].update_one({"_id": one["_id"]}, {"$set": {"daily": Int64(1)}})
        self.forget("a.log", status=EX_DATAERR)
        self.assertIn(one["_id"], self.err)
        self.assertEqual(len(self.a), self.nexts()["a.log"])

    def test_generation_that_counts_no_more(self):
        self.write("tallyd.yaml", mongocase.CONFIG)
        self.count("a.log", "-q")
        self.write("tallyd.yaml", mongocase.CONFIG.replace(OLD, NEW))
        self.count("b.log", "-q")
        self.forget("a.log", status=EX_CONFIG)
        self.assertIn("forget pages~1", self.err)
        self.forget("pages~1")
        self.forget("a.log")


if __name__ == "__main__":
    mongocase.main()
