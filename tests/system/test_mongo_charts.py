#!/usr/bin/env python3
"""A program that has pymongo, and nothing of tallyd, charts the counts: the queries of the literature on time series.

Their names for things are others: what they call page, clientid and metric is in `metadata`, their timestamp is
metadata.date, their totalViews and seconds are `minute` and `second`, and their values are a measure of any name.
"""

import collections
import datetime
import json
import re

import zonecase
from harness import dice
from mongocase import MongoCase, main, mongo, pymongo

MINUTE, HOUR, DAY = datetime.timedelta(minutes=1), datetime.timedelta(hours=1), datetime.timedelta(days=1)
VIEW = '198.51.100.7 - - [%s +0000] "GET %s HTTP/1.1" 200 7 "-" "-"\n'


def number(last):
    """The newest sample of a gauge."""
    return float(last["v"].to_decimal())


def floor(at, span):
    return at - (at - datetime.datetime(1970, 1, 1)) % span


class ChartCase(MongoCase):
    """One database for all tests of a class: they read. The class holds the events that it was made of."""

    made_in = None

    def setUp(self):
        super().setUp()
        made = type(self)
        self.write("tallyd.yaml", self.CONFIG)
        if made.made_in is None:
            made.dice, made.made_in = dice(), self.name
            self.make()
        self.use(made.made_in)

    def check_plan(self, cursor, documents):
        """It goes by the index of series and date, and looks at nothing else: where the server explains itself so."""
        if mongo.CHOSEN == "ferretdb":
            return
        explained = cursor.explain()
        stage = explained["queryPlanner"]["winningPlan"]
        while "inputStage" in stage:
            stage = stage["inputStage"]
        self.assertEqual(("IXSCAN", "tallyd_series_date"), (stage["stage"], stage.get("indexName")))
        self.assertEqual(documents, explained["executionStats"]["totalDocsExamined"])
        self.assertEqual(documents, explained["executionStats"]["totalKeysExamined"])


class Seconds(ChartCase):
    """Documents of a minute with its seconds, {page, timestamp, totalViews, seconds: {"0": …, "59": …}}."""

    CONFIG = b"reports: {views: {by: [path], measures: {views: count}, layout: minute}}\n"
    hour, page = datetime.datetime(2026, 1, 5, 10), "/a.b/$c"
    views, lines = collections.Counter(), []

    def make(self):
        lines = self.lines
        for number in range(400):
            at = self.hour + datetime.timedelta(seconds=9 * number + self.dice.randrange(9))
            for page in self.dice.sample(["/index.html", "/a.b/$c"], self.dice.randrange(3)):
                self.views[page, at] += 1
                lines.append(VIEW % (at.strftime("%d/Jan/2026:%H:%M:%S"), page))
        self.dice.shuffle(lines)
        self.write("a.log", "".join(lines[:300]).encode())
        self.count("a.log")
        self.write("a.log", "".join(lines).encode())  # what follows goes into the same documents
        self.count("a.log")

    def seconds(self, begin, span):
        return {at: hits for (page, at), hits in self.views.items()
                if page == self.page and begin <= at < begin + span}

    def test_a_minute_is_a_document(self):
        minute = floor(max(at for page, at in self.views if page == self.page), MINUTE)
        found = self.base["views.minute"].find_one({"metadata.path": self.page, "metadata.date": minute})
        self.assertEqual({"_id", "metadata", "minute", "second", "applied", "modified", "v"}, set(found))
        self.assertEqual({"path": self.page, "date": minute}, found["metadata"])
        self.assertEqual(f"{minute:%Y%m%d%H%M}/%2Fa.b%2F$c", found["_id"])
        wanted = self.seconds(minute, MINUTE)
        self.assertEqual({str(at.second): hits for at, hits in wanted.items()}, found["second"])
        self.assertEqual(sum(wanted.values()), found["minute"])
        self.assertEqual(found, self.base["views.minute"].find_one({"_id": found["_id"]}))

    def test_an_hour_by_second_is_a_range_of_them(self):
        query = {"metadata.path": self.page, "metadata.date": {"$gte": self.hour, "$lt": self.hour + HOUR}}
        found, documents = {}, 0
        for one in self.base["views.minute"].find(query, {"second": 1, "metadata.date": 1}).sort("metadata.date", 1):
            documents += 1
            for second, hits in one["second"].items():
                found[one["metadata"]["date"] + datetime.timedelta(seconds=int(second))] = hits
        self.assertEqual(self.seconds(self.hour, HOUR), found)
        self.assertEqual(sorted(found, key=lambda at: floor(at, MINUTE)), list(found))
        self.check_plan(self.base["views.minute"].find(query), documents)

    def test_a_part_of_an_hour_goes_by_the_index(self):
        begin, until = self.hour + 20 * MINUTE, self.hour + 25 * MINUTE
        query = {"metadata.path": self.page, "metadata.date": {"$gte": begin, "$lt": until}}
        wanted = {floor(at, MINUTE) for at in self.seconds(begin, until - begin)}
        self.assertEqual(wanted, {one["metadata"]["date"] for one in self.base["views.minute"].find(query)})
        self.check_plan(self.base["views.minute"].find(query), len(wanted))

    def test_seconds_are_minutes_and_hours_in_longer_documents(self):
        hour = self.base["views.hour"].find_one({"metadata.path": self.page, "metadata.date": self.hour})
        wanted = collections.Counter()
        for at, hits in self.seconds(self.hour, HOUR).items():
            wanted[str(at.minute)] += hits
        self.assertEqual(dict(wanted), hour["minute"])
        self.assertEqual(sum(wanted.values()), hour["hourly"])
        day = self.base["views.day"].find_one({"metadata.path": self.page, "metadata.date": floor(self.hour, DAY)})
        self.assertEqual(({"10": hour["hourly"]}, hour["hourly"]), (day["hourly"], day["daily"]))
        self.assertNotIn("minute", day)

    def test_the_date_takes_an_index_that_ends_documents(self):
        for kind in "minute", "hour", "day":
            name = self.base[f"views.{kind}"].create_index([("metadata.date", 1)], expireAfterSeconds=10**9)
            self.assertEqual(10**9, self.base[f"views.{kind}"].index_information()[name]["expireAfterSeconds"])
        self.assertEqual(0, self.base["views.minute"].count_documents({"metadata.date": {"$not": {"$type": "date"}}}))
        self.write("a.log", "".join(self.lines).encode())
        self.tallyd("verify", "--store", self.store, "a.log")

    def test_a_long_report_may_ask_a_secondary(self):
        views = self.base.get_collection("views.minute",
                                         read_preference=pymongo.ReadPreference.SECONDARY_PREFERRED)
        rows = views.aggregate([{"$match": {"metadata.date": {"$gte": self.hour, "$lt": self.hour + HOUR}}},
                                {"$group": {"_id": "$metadata.path", "views": {"$sum": "$minute"}}}])
        wanted = collections.Counter()
        for (page, _), hits in self.views.items():
            wanted[page] += hits
        self.assertEqual(dict(wanted), {row["_id"]: row["views"] for row in rows})


class Monitor(ChartCase):
    """Samples of machines, {clientid, metric, timestamp, values}: gauges, where the last one wins, and counters."""

    DAYS = 3
    CONFIG = b"""
sources: {metrics: {decode: [metric]}}
reports:
  gauges: {by: [clientid, name], measures: {values: last(value)}, layout: hour}
  counters: {by: [clientid, name], measures: {samples: count, values: sum(value)}, layout: hour}
  days: {by: [clientid, name], measures: {values: last(value)}}
"""

    begin = datetime.datetime(2026, 1, 30)  # into the next month
    samples = collections.defaultdict(list)  # of each minute of one client: (time, value)
    client_id, metric = "web-7", "load/1"
    series = {"metadata.clientid": client_id, "metadata.name": metric}

    def make(self):
        lines = []
        for number in range(self.DAYS * 24 * 40):
            at = self.begin + datetime.timedelta(seconds=90 * number + self.dice.randrange(90))
            at += datetime.timedelta(seconds=at.second == 0)  # something may be late within its minute
            value = self.dice.randrange(-9000, 90000) / 1000
            self.samples[floor(at, MINUTE)].append((at, value))
            lines.append(self.event(self.client_id, at, value))
            if number % 100 == 0:
                lines.append(self.event("web-8", at, 1))
        self.dice.shuffle(lines)  # a gauge is what the newest sample says, not the one that came last
        self.write("a.log", "".join(lines).encode())
        self.count("a.log")

    def event(self, client, at, value):
        return json.dumps({"name": self.metric, "ts": f"{at.isoformat()}Z", "value": value,
                           "tags": {"clientid": client}}) + "\n"

    def within(self, begin, span):
        return [sample for minute, samples in self.samples.items() for sample in samples
                if begin <= minute < begin + span]

    def gauge(self, begin, span):
        """The value of the newest sample. No two samples have one instant here."""
        return max(self.within(begin, span))[1]

    def chart(self, report, kind, begin, span, read):
        """{time: value}, and how many documents that took: read(document) has the buckets of one."""
        query = {**self.series, "metadata.date": {"$gte": begin, "$lt": begin + span}}
        found, documents = {}, list(self.base[f"{report}.{kind}"].find(query).sort("metadata.date", 1))
        for one in documents:
            found.update(read(one))
        self.check_plan(self.base[f"{report}.{kind}"].find(query), len(documents))
        return found, len(documents)

    @staticmethod
    def minutes_of_hour(one):
        return {one["metadata"]["date"] + int(minute) * MINUTE: number(bucket)
                for minute, bucket in one["values"]["minute"].items()}

    @staticmethod
    def minutes_of_day(one):
        return {one["metadata"]["date"] + int(hour) * HOUR + int(minute) * MINUTE: number(bucket)
                for hour, minutes in one["values"]["minute"].items() for minute, bucket in minutes.items()}

    @staticmethod
    def hours_of_day(one):
        return {one["metadata"]["date"] + int(hour) * HOUR: number(bucket)
                for hour, bucket in one["values"]["hourly"].items()}

    @staticmethod
    def days_of_month(one):
        return {one["metadata"]["date"] + (int(day) - 1) * DAY: number(bucket)
                for day, bucket in one["values"]["daily"].items()}

    def test_an_hour_of_a_gauge_is_a_document(self):
        hour = self.begin + 7 * HOUR
        found = self.base["gauges.hour"].find_one({**self.series, "metadata.date": hour})
        self.assertEqual({"clientid": self.client_id, "name": self.metric, "date": hour}, found["metadata"])
        self.assertEqual("2026013007/web-7/load%2F1", found["_id"])
        wanted = {minute: max(samples) for minute, samples in self.samples.items() if floor(minute, HOUR) == hour}
        self.assertEqual({str(minute.minute): (at, value) for minute, (at, value) in wanted.items()},
                         {key: (bucket["t"], number(bucket)) for key, bucket in found["values"]["minute"].items()})
        self.assertEqual(max(wanted.values()), (found["values"]["hourly"]["t"], number(found["values"]["hourly"])))

    def test_an_hour_of_a_counter_is_a_document(self):
        hour = self.begin + 7 * HOUR
        found = self.base["counters.hour"].find_one({**self.series, "metadata.date": hour})
        wanted = {str(minute.minute): samples for minute, samples in self.samples.items() if floor(minute, HOUR) == hour}
        self.assertEqual({minute: len(samples) for minute, samples in wanted.items()}, found["minute"])
        self.assertEqual(sum(map(len, wanted.values())), found["hourly"])
        for minute, samples in wanted.items():
            total = found["values"]["minute"][minute]
            self.assertAlmostEqual(sum(value for _, value in samples), float(total.to_decimal()), 6)

    def test_24_hours_of_minutes_are_24_documents_or_one(self):
        begin = self.begin + DAY
        wanted = {minute: self.gauge(minute, MINUTE) for minute in self.samples if begin <= minute < begin + DAY}
        of_hours, hour_documents = self.chart("gauges", "hour", begin, DAY, self.minutes_of_hour)
        of_days, day_documents = self.chart("days", "day", begin, DAY, self.minutes_of_day)
        self.assertEqual((wanted, 24), (of_hours, hour_documents))
        self.assertEqual((wanted, 1), (of_days, day_documents))
        for report, documents in ("gauges", 24), ("days", 1):
            rows = self.query(report, "--step", "minute", "--filter", f"clientid={self.client_id}", "--explain",
                              span=("2026-01-31", "2026-02-01"), store=self.store)
            self.assertEqual(wanted, {datetime.datetime.fromisoformat(row["time"][:-1]): float(row["value"])
                                      for row in rows if row["value"]})
            self.assertIn(f"\nread {documents} rows", self.err)

    def test_two_days_by_minute_and_by_five(self):
        begin, span = self.begin + 12 * HOUR, 2 * DAY
        found, documents = self.chart("gauges", "hour", begin, span, self.minutes_of_hour)
        self.assertEqual(48, documents)
        fives = {}
        for minute in sorted(found):
            fives[floor(minute, 5 * MINUTE)] = found[minute]
        self.assertEqual({minute: self.gauge(minute, MINUTE) for minute in self.samples if minute in found}, found)
        self.assertEqual({five: self.gauge(five, 5 * MINUTE) for five in fives}, fives)
        self.assertEqual(48 * 12, len(fives))

    def test_hours_and_days_are_few_documents(self):
        span = self.DAYS * DAY
        hours, documents = self.chart("gauges", "day", self.begin, span, self.hours_of_day)
        self.assertEqual(self.DAYS, documents)
        self.assertEqual({self.begin + n * HOUR: self.gauge(self.begin + n * HOUR, HOUR)
                          for n in range(24 * self.DAYS)}, hours)
        days, documents = self.chart("gauges", "month", datetime.datetime(2026, 1, 1), 2 * 31 * DAY, self.days_of_month)
        self.assertEqual(2, documents)
        self.assertEqual({self.begin + n * DAY: self.gauge(self.begin + n * DAY, DAY) for n in range(self.DAYS)}, days)

    def sample(self, at, value):
        """One more, in a file of its own."""
        value = round(value, 3)
        self.samples[floor(at, MINUTE)].append((at, value))
        self.write("a.log", self.event(self.client_id, at, value).encode())
        self.count("a.log")

    def test_a_late_sample_does_not_win(self):
        minute = max(self.samples)
        before = self.base["gauges.hour"].find_one({**self.series, "metadata.date": floor(minute, HOUR)})
        at, value = max(self.samples[minute])
        self.sample(at - datetime.timedelta(milliseconds=1), value + 1)
        after = self.base["gauges.hour"].find_one({"_id": before["_id"]})
        self.assertEqual(before["values"], after["values"])
        self.assertGreater(after["applied"]["w0"], before["applied"]["w0"])
        self.sample(at + datetime.timedelta(milliseconds=1), value + 2)
        after = self.base["gauges.hour"].find_one({"_id": before["_id"]})
        self.assertAlmostEqual(value + 2, number(after["values"]["minute"][str(minute.minute)]), 6)
        self.assertEqual(after["values"]["hourly"], after["values"]["minute"][str(minute.minute)])


class Year(ChartCase):
    """A page's year, as `tallyd query` charts it: from how few documents, and by the clocks of a place."""

    CONFIG = b"reports: {pages: {by: [path]}}\n"
    begin, page, times = datetime.datetime(2025, 1, 1), "/index.html", []

    def make(self):
        lines = []
        for half_day in range(2 * 365):
            at = self.begin + half_day * DAY / 2 + datetime.timedelta(seconds=self.dice.randrange(86400 // 2))
            self.times.append(at.replace(tzinfo=zonecase.UTC))
            lines.append(VIEW % (at.strftime("%d/%b/%Y:%H:%M:%S"), self.page))
            if half_day % 50 == 0:
                lines.append(VIEW % (at.strftime("%d/%b/%Y:%H:%M:%S"), "/other"))
        self.dice.shuffle(lines)
        self.write("a.log", "".join(lines).encode())
        self.count("a.log")

    def check_chart(self, step, tz, begin, end, documents):
        zone = zonecase.zone_of(tz)
        rows = self.query("pages", "--filter", f"path={self.page}", "--step", step, "--tz", tz, "--explain",
                          span=(begin, end), store=self.store)
        read = int(re.search(r"^read (\d+) rows", self.err, re.M).group(1))
        begin, end = (datetime.datetime.fromisoformat(time).replace(tzinfo=zone) for time in (begin, end))
        wanted = zonecase.chart([at for at in self.times if begin <= at < end], step, zone)
        self.assertEqual(wanted, {row["time"]: int(row["value"]) for row in rows if row["value"] != "0"})
        self.assertTrue(1 <= read <= documents, self.err)

    def test_charts_are_few_documents(self):
        hour = f"{self.times[300]:%Y-%m-%dT%H}:00"
        until = f"{self.times[300] + HOUR:%Y-%m-%dT%H}:00"
        day = f"{self.times[300] + DAY:%Y-%m-%dT%H}:00"
        self.check_chart("minute", "UTC", hour, until, 2)
        self.check_chart("hour", "UTC", hour, day, 2)
        self.check_chart("hour", "UTC", "2025-02-01", "2025-05-02", 90)
        self.check_chart("month", "UTC", "2025-01-01", "2026-01-01", 12)
        self.check_chart("year", "UTC", "2025-01-01", "2026-01-01", 12)
        self.check_chart("week", "UTC", "2025-01-06", "2025-12-29", 12)

    def test_charts_of_a_place_are_few_documents_too(self):
        self.check_chart("hour", "Europe/Berlin", "2025-02-01", "2025-05-02", 91)
        self.check_chart("day", "Europe/Berlin", "2025-02-01", "2025-05-02", 91)
        self.check_chart("month", "Europe/Berlin", "2025-02-01", "2025-12-01", 11 + 11)  # with a night between months
        self.check_chart("week", "America/New_York", "2025-02-03", "2025-04-28", 4 + 13)
        self.check_chart("day", "Asia/Kathmandu", "2025-02-01", "2025-03-03", 31 + 31)  # with minutes of each night


if __name__ == "__main__":
    main()
