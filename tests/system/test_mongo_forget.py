#!/usr/bin/env python3
"""`tallyd forget` in MongoDB: a generation of a report is dropped whole, whenever it is killed meanwhile; a file is
refused."""

import mongocase

from harness import EX_CONFIG, EX_NOINPUT, EX_TEMPFAIL, EX_UNAVAILABLE, EX_USAGE, dice, dying_at, failpoints
from mongocase import MongoCase, log

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
        self.tallyd("job", "run", "rollup", "-c", "tallyd.yaml", "--store", self.store, status=None)
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

    def test_file_is_refused(self):
        self.forget("a.log", status=EX_UNAVAILABLE)
        self.assertIn("SQLite store only", self.err)


if __name__ == "__main__":
    mongocase.main()
