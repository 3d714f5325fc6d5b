#!/usr/bin/env python3
"""`newest: N` in MongoDB: documents hold the newest events of a series and day, each once, whatever is killed, in whatever order and by
as many writers as they come.

The judge recounts the logs by Python (newestcase.py) and reads documents by pymongo. TALLYD_ROUNDS says how many histories of kills are
played (2 by default). The seed is printed; TALLYD_SEED repeats a run. TALLYD_MONGO names the server (tests/servers/mongo.py).
"""

import calendar
import collections
import json
import os

import mongocase
from harness import EX_CONFIG, EX_OK, EX_UNAVAILABLE, dice, draw_death, dying_at, failpoints
from mongocase import MongoCase
from newestcase import events_of, make_log, newest_of, shortened

ROUNDS = int(os.environ.get("TALLYD_ROUNDS") or 2)
NEWEST = {"pages": 7, "site": 20}
CONFIG = """\
reports:
  pages: {by: [path], newest: 7}
  site: {newest: 20, layout: minute}
aggregate: {batch_size: 64KiB}
store: {validation: error}
"""
KILLED = -9


def plain(event):
    return {name: 1000 * calendar.timegm(value.timetuple()) if name == "time" else value for name, value in event.items()}


class Newest(MongoCase):
    def setUp(self):
        super().setUp()
        self.dice = dice()
        self.write("tallyd.yaml", CONFIG.encode())

    # ---- the judge

    def documents(self, report):
        """{(series, day in ms): events}"""
        found = {}
        for one in self.base[f"{report}.newest.day"].find():
            day = 1000 * calendar.timegm(one["metadata"]["date"].timetuple())
            found[one["metadata"].get("path", ""), day] = [plain(event) for event in one["daily"]["events"]]
        return found

    def sources(self):
        known = [*self.ledger.partitions().values(), *self.base.past.find()]
        return {os.path.basename(one["label"]): one["source"] for one in known}

    def check(self, logs):
        sources = self.sources()
        events = [event for name, log in logs.items() for event in events_of(log, sources[name])]
        for report, newest in NEWEST.items():
            self.assertEqual(shortened(newest_of(events, newest, by_path=report == "pages")),
                             shortened(self.documents(report)), report)
        for more in list(logs), ["--store-only"]:
            self.tallyd("verify", "-c", "tallyd.yaml", "--store", self.store, *more)

    # ---- the tests

    def test_kills_orders_and_writers(self):
        kills = collections.Counter()
        for number in range(ROUNDS):
            self.anew()
            logs = {f"{name}.log": make_log(self.dice, 900) for name in "abcd"}
            for name, log in logs.items():
                self.write(name, log)
            for _ in range(3):  # two writers side by side, each of which may die
                names = self.dice.sample(list(logs), 4)
                places = [draw_death(self.dice, failpoints("mongo."), 2) for _ in range(2)]
                both = [self.begin("-q", *some, env=dying_at(place)) for some, place in zip((names[:2], names[2:]), places)]
                for process in both:
                    process.communicate(timeout=mongocase.TIMEOUT_S)
                    kills[process.returncode] += 1
                    self.assertIn(process.returncode, (EX_OK, KILLED, 75))
            self.count("-q", *self.dice.sample(list(logs), 4))
            with self.subTest(round=number):
                self.check(logs)
            self.append("a.log", more := make_log(self.dice, 200))
            self.count("-q", "a.log")
            logs["a.log"] += more
            with self.subTest(round=number, what="more"):
                self.check(logs)
        print(dict(kills))

    def test_answers_backfill_backup_and_refusals(self):
        logs = {"a.log": make_log(self.dice, 400)}
        self.write("a.log", logs["a.log"])
        self.write("alone.yaml", b"reports: {site: {newest: 20, layout: minute}}\n")
        self.tallyd("import", "-q", "-c", "alone.yaml", "--store", self.store, "a.log")
        self.tallyd("backfill", "-q", "-c", "tallyd.yaml", "--store", self.store, "pages", "--from", "2026-01-05T12:00", "--to",
                    "2026-01-06T10:00")
        self.tallyd("backfill", "-q", "-c", "tallyd.yaml", "--store", self.store, "pages")
        self.check(logs)
        events = sorted(events_of(logs["a.log"], self.sources()["a.log"]), key=lambda one: (one[2]["time"], one[2]["at"]), reverse=True)
        asked = self.tallyd("query", "pages", "--store", self.store, "--newest", "7", "--filter", "path=/3", "--format", "json")
        self.assertEqual([event["at"] for path, _, event in events if path == "/3"][:7],
                         [one["at"] for one in json.loads(asked)["newest"]])
        self.tallyd("admin", "backup", "--store", self.store, "back")
        before = self.documents("pages")
        self.anew()
        self.tallyd("admin", "restore", "--store", self.store, "back")
        self.assertEqual(before, self.documents("pages"))
        self.check(logs)
        self.tallyd("forget", "--yes", "-c", "tallyd.yaml", "--store", self.store, "a.log", status=EX_UNAVAILABLE)
        self.assertIn("nothing brings back", self.err)
        self.tallyd("admin", "copy", self.store, self.store + "copy")
        self.tallyd("verify", "-c", "tallyd.yaml", "--store", self.store + "copy", "a.log")
        self.use(self.name + "copy")
        self.check(logs)
        self.use(self.name[:-len("copy")])
        self.write("other.yaml", CONFIG.replace("newest: 7", "newest: 8").encode())
        self.tallyd("import", "-c", "other.yaml", "--store", self.store, "a.log", status=EX_CONFIG)
        self.assertIn("generation", self.err)
        # Damage is found: an event too few, and one too many in the wrong place.
        (path, _), _ = next(iter(before.items()))
        day = self.base["pages.newest.day"]
        whole = day.find_one({"metadata.path": path})
        for bad in ({"$pop": {"daily.events": -1}}, {"$push": {"daily.events": {"$each": whole["daily"]["events"][:1], "$position": 3}}}):
            day.update_one({"_id": whole["_id"]}, bad)
            out = self.tallyd("verify", "--store", self.store, "--store-only", status=1)
            self.assertIn("newest", out)
            day.replace_one({"_id": whole["_id"]}, whole)
        self.tallyd("verify", "--store", self.store, "--store-only")
        self.tallyd("forget", "--yes", "--store", self.store, "pages")
        self.assertEqual([], [name for name in self.base.list_collection_names() if name.startswith("pages.")])

    def test_copies_between_kinds_of_stores(self):
        self.write("tallyd.yaml", CONFIG.replace(", layout: minute", "").encode())
        logs = {"a.log": make_log(self.dice, 300)}
        self.write("a.log", logs["a.log"])
        self.count("-q", "a.log")
        before = self.documents("pages")
        self.tallyd("admin", "copy", self.store, "sqlite:copy.db")
        self.tallyd("verify", "-c", "tallyd.yaml", "--store", "sqlite:copy.db", "a.log")
        self.anew()
        self.tallyd("admin", "copy", "sqlite:copy.db", self.store)
        self.assertEqual(before, self.documents("pages"))
        self.append("a.log", more := make_log(self.dice, 100))
        self.count("-q", "a.log")
        self.check({"a.log": logs["a.log"] + more})

    def test_events_beside_other_are_not_judged(self):
        self.write("tallyd.yaml", b"reports: {pages: {by: [path], newest: 4, series_max: 2}}\n")
        self.write("a.log", make_log(self.dice, 200, days=1))
        self.count("-q", "a.log")
        said = r"pages: not judged: newest events of \d series and days beside some of \(other\)\n.*: 0 differences"
        self.assertRegex(self.tallyd("verify", "-c", "tallyd.yaml", "--store", self.store, "a.log"), said)
        self.tallyd("verify", "--store", self.store, "--store-only")

    def test_expiry(self):
        old, new = make_log(self.dice, 60).replace(b"Jan/2026", b"Jun/2025"), make_log(self.dice, 60)
        self.write("tallyd.yaml", b"reports:\n  pages: {by: [path], newest: 4, keep: {minute: 2d, hour: 20d, day: 40d}}\n"
                   b"jobs: {weeks: true}\n")
        self.write("a.log", old + new)
        self.count("-q", "a.log")
        self.job("run", "expire")
        self.assertEqual((True, False), tuple(f"pages.{name}" in self.base.list_collection_names() for name in ("week", "newest.week")))
        documents = self.documents("pages")
        self.assertTrue(documents)
        self.assertGreater(min(day for _, day in documents), 1764547200000)  # 2025-12-01
        self.append("a.log", old)  # late: only months have it
        self.count("-q", "a.log")
        self.assertEqual(documents, self.documents("pages"))
        for more in ["a.log"], ["--store-only"]:
            self.tallyd("verify", "-c", "tallyd.yaml", "--store", self.store, *more)


if __name__ == "__main__":
    mongocase.main()
