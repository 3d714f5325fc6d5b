#!/usr/bin/env python3
"""Charts of any step in any time zone, by the command: what they say is what Python's calendar says."""

import datetime
import json
import re
import unittest

import zonecase
from harness import EX_USAGE, Case, dice
from zonecase import DAY, UTC, chart, text, zone_of

BEGIN, END = datetime.datetime(2012, 1, 1, tzinfo=UTC), datetime.datetime(2025, 12, 1, tzinfo=UTC)
CONFIG = b"sources: {metrics: {decode: [metric]}}\nreports: {all: {measures: {n: count}}}\n"
QUESTIONS = 40


class Zones(Case):
    def setUp(self):
        super().setUp()
        self.dice = dice()
        always = [datetime.datetime(2015, 10, 5, hour, 40, tzinfo=UTC) for hour in (8, 10)]  # in each chart of an hour
        self.times = sorted([self.instant() for _ in range(3000)] + always)
        lines = [json.dumps({"name": "x", "ts": f"{at:%Y-%m-%dT%H:%M:%S.%f}"[:-3] + "Z", "value": 1}) + "\n"
                 for at in self.times]
        self.dice.shuffle(lines)
        self.write("tallyd.yaml", CONFIG)
        self.write("a.log", "".join(lines).encode())
        self.tallyd("import", "--config", "tallyd.yaml", "a.log")

    def instant(self):
        """Anywhere; mostly within one autumn, so that there is something to see by minutes and hours."""
        if self.dice.randrange(3) == 0:
            return BEGIN + datetime.timedelta(seconds=self.dice.randrange(int((END - BEGIN).total_seconds())))
        return datetime.datetime(2015, 10, 1, tzinfo=UTC) + datetime.timedelta(seconds=self.dice.randrange(60 * 86400))

    def ask(self, step, zone, begin, end, week_start="monday"):
        """[(time, value)]"""
        rows = self.query("all", "--step", step, "--week-start", week_start, "--tz", zone.key, "--explain", span=(begin, end))
        return [(row["time"], int(row["value"])) for row in rows]

    def read(self):
        """How many rows of the store the last answer took."""
        return int(re.search(r"^read (\d+) rows", self.err, re.M).group(1))

    def check(self, step, zone, begin, end):
        week_start = self.dice.choice(zonecase.WEEKDAYS)
        rows = self.ask(step, zone, text(begin, zone), text(end, zone), week_start)
        starts = [datetime.datetime.fromisoformat(time.replace("Z", "+00:00")) for time, _ in rows]
        self.assertEqual(sorted(set(starts)), starts)
        self.assertTrue(starts[0] <= begin and starts[-1] < end, (step, zone, begin, end, rows[0], rows[-1]))
        self.assertEqual(zonecase.start(begin, step, zone, week_start), starts[0])
        after = self.times[-1] + DAY  # the last one's end is not told: what is before `end` is in it at least
        wanted = chart([at for at in self.times if starts[0] <= at < after], step, zone, week_start)
        self.assertEqual({time: value for time, value in wanted.items() if time in dict(rows)},
                         {time: value for time, value in rows if value}, (step, zone, begin, end))
        missing = set(chart([at for at in self.times if begin <= at < end], step, zone, week_start)) - {time for time, _ in rows}
        self.assertEqual(set(), missing, (step, zone, begin, end))

    def test_any_chart_is_what_the_calendar_says(self):
        every = zonecase.names()
        for _ in range(QUESTIONS):
            zone = zone_of(self.dice.choice(self.dice.choice([zonecase.ODD_ZONES, every])))
            step = self.dice.choice(zonecase.STEPS)
            begin = self.instant()
            days = 5 if step in ("minute", "15m") else 100 if step in ("hour", "3h") else 1500
            end = begin + datetime.timedelta(seconds=60 + self.dice.randrange(days * 86400))
            self.check(step, zone, begin.replace(microsecond=0), end.replace(microsecond=0))

    def test_days_of_a_year_are_all_there(self):
        zone = zone_of("Europe/Berlin")
        rows = self.ask("day", zone, "2015-01-01", "2016-01-01")
        day, wanted = datetime.datetime(2015, 1, 1), []
        while day.year == 2015:
            wanted.append(text(day.replace(tzinfo=zone).astimezone(UTC), zone))
            day += DAY
        self.assertEqual(wanted, [time for time, _ in rows])
        self.assertEqual(sum(1 for at in self.times if at.astimezone(zone).year == 2015),
                         sum(value for _, value in rows))

    def test_charts_take_the_fewest_rows(self):
        berlin, utc, delhi = zone_of("Europe/Berlin"), zone_of("UTC"), zone_of("Asia/Kolkata")
        for most, zone, step, begin, end in (
                (2, utc, "minute", "2015-10-05T10:20", "2015-10-05T11:20"),
                (2, berlin, "minute", "2015-10-05T10:20", "2015-10-05T11:20"),
                (2, berlin, "hour", "2015-10-05T10:20", "2015-10-06T10:20"),
                (91, utc, "hour", "2015-09-10", "2015-12-09"),
                (91, berlin, "hour", "2015-09-10", "2015-12-09"),
                (31, berlin, "day", "2015-10-10", "2015-11-09"),
                (1, utc, "month", "2015-01-01", "2016-01-01"),
                (2, utc, "month", "2014-07-01", "2015-12-01"),
                (13 + 13, berlin, "month", "2015-01-01", "2016-01-01"),
                (31 + 31, delhi, "day", "2015-10-10", "2015-11-09")):
            self.ask(step, zone, begin, end)
            self.assertLessEqual(self.read(), most, (zone, step, self.err))
            self.assertGreater(self.read(), 0)

    def test_wrong_zones_are_refused(self):
        self.tallyd("query", "all", "--tz", "Europe/Berln", status=EX_USAGE)
        self.assertIn('(did you mean "Europe/Berlin"?)', self.err)
        self.tallyd("query", "all", "--tz", "../../etc/passwd", status=EX_USAGE)


if __name__ == "__main__":
    unittest.main()
