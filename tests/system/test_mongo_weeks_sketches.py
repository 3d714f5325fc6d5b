#!/usr/bin/env python3
"""Documents of weeks of histograms and distinct counts: each is what a recount of the log says of its days, whatever is killed or
comes late. TALLYD_MONGO names the server (tests/servers/mongo.py). The seed is printed; TALLYD_SEED repeats a run.
"""

import collections
import datetime
import os
import time

from harness import EX_CONFIG, EX_DATAERR, EX_OK, EX_TEMPFAIL, TIMEOUT_S, draw_death, dying_at, failpoints
from mongocase import main
from test_mongo_sketches import EXACT_MAX, KILLED, SketchCase, bucket_of, counted, estimate, events_of, lines_of, ranks_of
from test_mongo_weeks import first_day
from test_sketches import BEGIN, DAY
from zonecase import UTC, WEEKDAYS

ROUNDS = int(os.environ.get("TALLYD_ROUNDS", "3"))
REPORTS = """\
sources: {a: {path: a.log, decode: [logfmt]}}
reports:
  pages: {by: [path], measures: {hits: count, latency: histogram(duration), visitors: distinct(host)}%s}
  hours: {by: [path], layout: hour, measures: {latency: histogram(duration)}}
aggregate: {batch_size: 64KiB}
store: {validation: error}
"""
SURE = 50  # so few texts are counted exactly


class WeekCase(SketchCase):
    def setUp(self):
        super().setUp()
        self.span = BEGIN, BEGIN + 60 * DAY  # into the months after that
        self.events = []
        self.begin_weeks()

    def begin_weeks(self, start="monday", weeks="true", keep=""):
        self.write("tallyd.yaml", (REPORTS % keep + f"jobs: {{weeks: {weeks}}}\nquery: {{week_start: {start}}}\n").encode())

    def add_events(self, count):
        self.events += events_of(self.dice, count, *self.span)
        self.write("a.log", lines_of(self.events))

    def count_events(self, count):
        self.add_events(count)
        self.count_into(self.store, "a.log")

    def recount(self, start):
        """{(first day, path): {None or a day from 0 on: [events]}}"""
        found = collections.defaultdict(lambda: collections.defaultdict(list))
        for event in self.events:
            at = datetime.datetime.fromtimestamp(event[0], UTC)
            week = first_day(at, start)
            found[week, event[1]][None].append(event)
            found[week, event[1]][(at.date() - week).days].append(event)
        return found

    def check_histogram(self, events, value):
        numbers = [event[2] for event in events if event[2] is not None]
        cell = collections.Counter(map(bucket_of, numbers))
        cell.update({"count": len(numbers), "sum": sum(numbers)})
        self.assertEqual({key: count for key, count in cell.items() if count}, counted(value))

    def check_distinct(self, events, value):
        hosts = [event[3] for event in events if event[3] is not None]
        count = len(set(hosts))
        self.assertEqual(len(hosts), value["count"])
        if "registers" in value:
            self.assertGreater(count, EXACT_MAX)
            self.assertLess(abs(estimate(ranks_of(value)) - count), 0.06 * count)
        else:
            self.assertIn(len(value["entries"]), (count, count - (count > SURE)))

    def check_weeks(self, start="monday"):
        expected = self.recount(start)
        for collection in "pages.latency.week", "pages.visitors.week", "hours.latency.week":
            is_histogram, found = "latency" in collection, {}
            for week in self.base[collection].find():
                first, path = week["metadata"]["date"].date(), week["metadata"]["path"]
                self.assertEqual(week["_id"][:9], f"{first:%Y%m%d}/")
                self.assertEqual({"_id", "metadata", "applied", "modified", "v", "weekly", *(["daily"] if is_histogram else [])}, {*week})
                found[first, path] = {None: week["weekly"], **{int(day): value for day, value in week.get("daily", {}).items()}}
            self.assertEqual(expected.keys(), found.keys(), collection)
            for name, days in expected.items():
                if is_histogram:
                    self.assertEqual({*days}, {*found[name]}, name)
                for day, value in found[name].items():
                    with self.subTest(collection=collection, week=name, day=day):
                        (self.check_histogram if is_histogram else self.check_distinct)(days[day], value)


class Weeks(WeekCase):
    def test_weeks_are_what_their_days_are(self):
        start = self.dice.choice(WEEKDAYS)
        self.begin_weeks(start)
        self.count_events(600)
        self.roll("--dry-run")
        self.assertEqual(0, self.base["pages.latency.week"].count_documents({}))
        self.roll()
        self.check_weeks(start)
        self.assertIn("nothing waits", self.roll())
        self.count_events(5)  # late ones
        self.roll()
        self.check_weeks(start)
        self.tallyd("verify", "-c", "tallyd.yaml", "--store", self.store, "--store-only")

    def test_many_texts_of_several_days(self):
        """None of the days has as many texts as the week."""
        self.events = [(BEGIN + number % 7 * DAY, "/a", 1000 * number, f"h{number % 2000}") for number in range(3000)]
        self.write("a.log", lines_of(self.events))
        self.count_into(self.store, "a.log")
        self.roll()
        self.check_weeks()
        self.assertIn("registers", self.base["pages.visitors.week"].find_one()["weekly"])
        self.assertNotIn("registers", self.base["pages.visitors.day"].find_one()["daily"])

    def test_who_wants_none_has_none(self):
        self.begin_weeks(weeks="false")
        self.count_events(40)
        self.roll()
        self.assertEqual([], [name for name in self.base.list_collection_names() if name.endswith(".week")])

    def test_weeks_begin_on_another_day_by_a_rebuild(self):
        self.count_events(200)
        self.roll()
        self.begin_weeks("sunday")
        self.roll(status=EX_CONFIG)
        self.roll("--rebuild", "2026-08-01", "2026-08-02")
        self.check_weeks("sunday")

    def test_damage_is_said(self):
        self.count_events(50)
        document = self.base["pages.latency.month"].find_one()
        day = next(iter(document["daily"]))
        self.base["pages.latency.month"].update_one({"_id": document["_id"]}, {"$set": {f"daily.{day}.buckets": {"5000": 1}}},
                                                    bypass_document_validation=True)
        self.roll(status=EX_DATAERR)
        self.assertIn("pages.latency.month has a damaged histogram(duration)", self.err)

    def test_they_expire_and_are_dropped_with_the_others(self):
        now = int(time.time()) // DAY * DAY
        self.span = now - 60 * DAY, now - 7 * DAY
        self.count_events(300)
        self.roll()
        self.check_weeks()
        before = self.base["pages.week"].count_documents({})
        self.begin_weeks(keep=", keep: {minute: 2d, hour: 10d, day: 30d}")
        self.count_events(2)
        self.job("run", "expire")
        left = {one["_id"] for one in self.base["pages.week"].find()}
        self.assertLess(0, len(left))
        self.assertLess(len(left), before)
        for name in "latency", "visitors":
            self.assertEqual(left, {one["_id"] for one in self.base[f"pages.{name}.week"].find()}, name)
        self.tallyd("verify", "-c", "tallyd.yaml", "--store", self.store, "--store-only")
        self.write("tallyd.yaml", self.read("tallyd.yaml").replace(b"  pages: {by", b"  others: {by"))
        self.tallyd("forget", "--yes", "-c", "tallyd.yaml", "--store", self.store, "pages")
        self.assertEqual([], [name for name in self.base.list_collection_names() if name.startswith("pages.")])


class Crashes(WeekCase):
    def test_killed_anywhere_while_it_counts(self):
        """Late events all the time, a writer and two jobs that die anywhere; in the end every week is as the log says."""
        self.count_events(20)
        for number in range(ROUNDS):
            self.add_events(60)
            going = [self.start("import", "-q", "-c", "tallyd.yaml", "--decode", "logfmt", "--store", self.store, "a.log",
                                env=dying_at(draw_death(self.dice, failpoints("mongo."), 3)))]
            place = "rollup.sent:3" if number == 0 else draw_death(self.dice, failpoints("rollup."), 8)
            going += [self.begin_job("rollup", "--now", env=dying_at(place)) for _ in range(2)]
            for one in going:
                said = b"".join(one.communicate(timeout=TIMEOUT_S))
                self.assertIn(one.returncode, (EX_OK, EX_TEMPFAIL, KILLED), said)
            self.forget_leases()
            self.count_into(self.store, "a.log")
        self.roll("--now")
        self.check_weeks()


if __name__ == "__main__":
    main()
