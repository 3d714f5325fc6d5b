#!/usr/bin/env python3
"""Documents of weeks: each is what a recount of the logs says of its days, on whichever day weeks begin, whatever is killed, comes
late, or goes on at once. TALLYD_MONGO names the server (tests/servers/mongo.py).
"""

import collections
import datetime
import json
import signal
import time
from decimal import Decimal

from harness import EX_CONFIG, EX_OK, EX_TEMPFAIL, draw_death, dying_at, failpoints
from mongocase import FOLLOWING, Int64, main
from test_mongo_rollup import CONFIG, LINE, ROUNDS, RollupCase, log, recount
from zonecase import DAY, UTC, WEEKDAYS

LATE = LINE % ("07/Mar/2024:10:00:00", "/page-1.html", 9)
OTHER_DAY = "query.week_start says"


def weeks_of(config, start="monday", weeks="true"):
    return (config + f"jobs: {{weeks: {weeks}}}\nquery: {{week_start: {start}}}\n").encode()


def first_day(at, start):
    return at.date() - (at.weekday() - WEEKDAYS.index(start)) % 7 * DAY


def figures(values):
    """Of [(when, size)]: the count, sum, max, min, mean, and when the newest was."""
    sizes = [size for _, size in values]
    return len(sizes), sum(sizes), max(sizes), min(sizes), sum(sizes) / len(sizes), max(when for when, _ in values)


class WeekCase(RollupCase):
    def begin_weeks(self, start="monday", weeks="true"):
        self.write("tallyd.yaml", weeks_of(CONFIG, start, weeks))

    def expected(self, lines, start):
        """{(first day, path): {None or a day from 0 on: figures}} by nothing that tallyd has."""
        cells = collections.defaultdict(lambda: collections.defaultdict(list))
        for (_, _, path), values in recount(lines).items():
            for at, size in values:
                first = first_day(at, start)
                cells[first, path][None].append((at, size))
                cells[first, path][(at.date() - first).days].append((at, size))
        return {name: {day: figures(values) for day, values in days.items()} for name, days in cells.items()}

    def figures_at(self, document, *path):
        """As figures(), at a member of each measure."""
        found = []
        for name in (None, "bytes", "most", "least", "usual", "newest"):
            value = document[name] if name else document
            for key in path:
                value = value[key]
            found.append(value)
        hits, size, most, least, usual, newest = found
        self.assertEqual((hits, size), (usual["count"], usual["units"]))
        self.assertIsInstance(usual["at"], datetime.datetime)
        return hits, size, most, least, usual["mean"], newest["t"].replace(microsecond=0)

    def check_weeks(self, lines, start="monday"):
        expected, found = self.expected(lines, start), {}
        for week in self.base["pages.week"].find():
            first = week["metadata"]["date"].date()
            self.assertEqual(week["_id"][:9], f"{first:%Y%m%d}/")
            days = {int(day): self.figures_at(week, "daily", day) for day in week["daily"]}
            found[first, week["metadata"]["path"]] = {None: self.figures_at(week, "weekly"), **days}
        self.assertEqual(expected.keys(), found.keys())
        for name, week in expected.items():
            self.assertEqual(week, found[name], name)
        site = collections.Counter()
        for (first, _), days in expected.items():
            site[first] += days[None][0]
        self.assertEqual(site, {week["metadata"]["date"].date(): week["weekly"] for week in self.base["site.week"].find()})

    def weeks_said(self, said):
        return [line for line in said.splitlines() if " week " in line]


class Weeks(WeekCase):
    def test_weeks_are_what_their_days_are(self):
        for start in "monday", "sunday", self.dice.choice(WEEKDAYS):
            with self.subTest(start=start):
                self.anew()
                self.begin_weeks(start)
                lines = log(self.dice, 1500)
                self.count_lines(lines)
                self.assertRegex(self.job("list"), r"weeks +pages +\d\d+ ")
                first = min(first for first, _ in self.expected(lines, start))
                self.assertIn(f"pages week {first} waits", self.roll("--dry-run"))
                self.assertEqual(0, self.base["pages.week"].count_documents({}))
                self.roll()
                self.check_weeks(lines, start)
                self.check_years(lines)
                self.assertIn("nothing waits", self.roll())
                self.assertRegex(self.job("list"), r"weeks +pages +0 ")

    def test_late_events_are_rolled_up_again_in_their_week(self):
        self.begin_weeks("sunday")
        lines = log(self.dice, 400, years=(2024,))
        self.count_lines(lines)
        self.roll()
        lines += LATE.encode() * 3
        self.count_lines(lines)
        said = self.weeks_said(self.roll())
        self.assertEqual(["pages", "site"], [line.split()[0] for line in said])
        self.assertIn("week 2024-03-03", said[0])
        self.check_weeks(lines, "sunday")

    def test_a_week_that_goes_on_waits(self):
        self.begin_weeks()
        now = datetime.datetime.now(UTC)
        lines = log(self.dice, 100) + (LINE % (now.strftime("%d/%b/%Y:%H:%M:%S"), "/page-1.html", 9)).encode()
        self.count_lines(lines)
        this_week = f"week {first_day(now, 'monday')}"
        self.assertNotIn(this_week, self.roll())
        self.assertIn(this_week, self.roll("--now"))
        self.check_weeks(lines)

    def test_who_wants_none_has_none(self):
        self.count_lines(log(self.dice, 100))
        self.assertEqual([], self.weeks_said(self.roll()))
        self.assertNotIn("weeks", self.job("list"))
        self.assertEqual([], [name for name in self.base.list_collection_names() if name.endswith(".week")])
        self.assertEqual([], [one["_id"] for one in self.base.jobs.find() if one["_id"].startswith("weeks")])

    def test_wanted_later(self):
        """Earlier counts are stamped once; from then on writers that do not know of weeks stamp, too."""
        lines = log(self.dice, 400, years=(2024,))
        self.count_lines(lines)
        self.roll()
        self.begin_weeks()
        self.roll()
        self.check_weeks(lines)
        self.begin_weeks(self.dice.choice(WEEKDAYS), "false")
        lines += LATE.encode() * 2 + log(self.dice, 20, years=(2024,))
        self.count_lines(lines)
        self.assertEqual([], self.weeks_said(self.roll()))
        self.begin_weeks()
        self.roll()
        self.check_weeks(lines)

    def test_rebuilt_after_another_hand(self):
        self.begin_weeks()
        lines = log(self.dice, 300, years=(2024,))
        self.count_lines(lines)
        self.roll()
        self.base["pages.week"].update_many({"_id": {"$gte": "20240304", "$lt": "202404"}}, {"$set": {"weekly": Int64(10**9)}})
        self.assertIn("nothing waits", self.roll())
        said = self.weeks_said(self.roll("--rebuild", "2024-03-04", "2024-04-01"))
        self.assertEqual(4 * 2, len(said), said)
        self.check_weeks(lines)

    def test_fractions_add_up(self):
        self.write("tallyd.yaml", weeks_of("sources: {metrics: {decode: [metric]}}\nstore: {validation: error}\n"
                                           "reports: {g: {measures: {n: count, sum: sum(value), mean: mean(value)}}}\n"))
        values, lines = collections.defaultdict(list), []
        for _ in range(300):
            at = datetime.datetime(2025, 1, 1) + datetime.timedelta(seconds=self.dice.randrange(90 * 86400))
            value = Decimal(self.dice.randrange(-3 * 10**6, 3 * 10**6)) / 10**6
            values[first_day(at, "monday")].append(value)
            lines.append(json.dumps({"name": "x", "ts": f"{at:%Y-%m-%dT%H:%M:%S}Z", "value": float(value)}) + "\n")
        self.count_lines("".join(lines).encode())
        self.roll()
        found = {week["metadata"]["date"].date(): week for week in self.base["g.week"].find()}
        self.assertEqual(values.keys(), found.keys())
        for first, numbers in values.items():
            week = found[first]
            self.assertEqual((len(numbers), sum(numbers)),
                             (week["weekly"], week["sum"]["weekly"].to_decimal()))
            self.assertAlmostEqual(float(sum(numbers)) / len(numbers), week["mean"]["weekly"]["mean"])

    def test_of_the_first_days_of_all(self):
        """The week of 1970-01-01 begins before that."""
        self.begin_weeks()
        lines = (LINE % ("01/Jan/1970:10:00:00", "/page-1.html", 9)).encode() + LATE.encode()
        self.count_lines(lines)
        self.roll()
        self.check_weeks(lines)
        self.assertEqual(1, self.base["pages.week"].count_documents({"_id": "19691229/%2Fpage-1.html"}))


class OtherDays(WeekCase):
    def test_weeks_begin_on_another_day_by_a_rebuild(self):
        self.begin_weeks("monday")
        lines = log(self.dice, 400, years=(2024,))
        self.count_lines(lines)
        self.roll()
        self.base["pages.week"].insert_many([{"_id": name} for name in ("", "2024", "20240304x", "zzz")],
                                            bypass_document_validation=True)
        self.begin_weeks("sunday")
        lines += LATE.encode()
        self.count_lines(lines)
        self.roll(status=EX_CONFIG)
        self.assertIn(OTHER_DAY, self.err)
        self.roll("--rebuild", "2025-01-01", "2025-01-02")
        self.base["pages.week"].delete_many({"_id": {"$in": ["", "2024", "20240304x", "zzz"]}})
        self.check_weeks(lines, "sunday")
        self.assertIn("nothing waits", self.roll())

    def test_killed_while_they_become_others(self):
        self.begin_weeks("monday")
        lines = log(self.dice, 200, years=(2024,), pages=40)
        self.count_lines(lines)
        self.roll()
        start = "monday"
        for place in "weeks.begun", "rollup.sent:2", "rollup.stamping:2":
            start = self.dice.choice([day for day in WEEKDAYS if day != start])
            self.begin_weeks(start)
            killed = self.begin_job("rollup", "--rebuild", "2025-01-01", "2025-01-02", env=dying_at(place))
            self.assertEqual(-signal.SIGKILL, self.ended(killed), self.output)
            self.forget_leases()
            if self.ended(self.begin_job("rollup")) == EX_CONFIG:  # one report's weeks are others, those of the next are not yet
                self.roll("--rebuild", "2025-01-01", "2025-01-02")
            self.check_weeks(lines, start)

    def test_writers_whose_weeks_begin_on_another_day(self):
        """Their stamps lead to both weeks that they touch, also when these became others."""
        self.begin_weeks("monday")
        lines = log(self.dice, 300, years=(2024,))
        self.count_lines(lines)
        self.roll()
        for _ in range(4):
            self.begin_weeks(self.dice.choice(WEEKDAYS))
            lines += log(self.dice, 10, years=(2024,))
            self.count_lines(lines)
            self.begin_weeks("monday")
            self.roll()
            self.check_weeks(lines)

    def test_one_that_was_stopped_and_goes_on_leaves_no_old_weeks(self):
        self.begin_weeks("monday")
        lines = log(self.dice, 200, years=(2024,), pages=40)
        self.count_lines(lines)
        sleeper = self.begin_job("rollup")
        time.sleep(self.dice.random() * 0.5)
        sleeper.send_signal(signal.SIGSTOP)
        self.forget_leases()
        self.begin_weeks("sunday")
        self.roll("--rebuild", "2024-01-01", "2026-01-01")
        self.check_weeks(lines, "sunday")
        sleeper.send_signal(signal.SIGCONT)
        self.assertIn(self.ended(sleeper), (EX_OK, EX_CONFIG), self.output)
        self.roll("--rebuild", "2024-01-01", "2024-01-02")
        self.check_weeks(lines, "sunday")


class Crashes(WeekCase):
    def test_killed_anywhere_while_it_counts(self):
        """Late events all the time, a writer and two jobs that die anywhere; in the end every week is as the logs say."""
        start = self.dice.choice(WEEKDAYS)
        self.begin_weeks(start)
        lines, held = log(self.dice, 20, years=(2024,)), 0
        self.count_lines(lines)
        for _ in range(ROUNDS):
            lines += log(self.dice, 60, years=(2024,))
            self.write("a.log", lines)
            going = [self.begin("a.log", env=dying_at(draw_death(self.dice, failpoints("mongo."), 3)))]
            for _ in range(2):
                going.append(self.begin_job("rollup", "--now", env=dying_at(draw_death(self.dice, failpoints("rollup."), 4))))
            for one in going:
                self.assertIn(self.ended(one), (EX_OK, EX_TEMPFAIL, -signal.SIGKILL), self.output)
            held += self.base.jobs.count_documents({"until": {"$gt": datetime.datetime.now(UTC)}})
            self.forget_leases()
        self.count("a.log")
        self.roll("--now")
        self.check_weeks(lines, start)
        self.check_years(lines)
        print(f"leases found held: {held} of {ROUNDS * 4}")

    def test_two_at_once(self):
        self.begin_weeks()
        lines = log(self.dice, 400, years=(2024,), pages=40)
        self.count_lines(lines)
        both = [self.begin_job("rollup"), self.begin_job("rollup")]
        for one in both:
            self.ended(one)
        self.roll()
        self.check_weeks(lines)
        self.check_years(lines)


class Expiry(WeekCase):
    def test_weeks_go_with_their_first_day(self):
        """Never in part: neither what is there, nor what is rolled up again."""
        now = datetime.datetime.now(UTC).replace(tzinfo=None)
        config = "reports: {site: {keep: {minute: 2d, hour: 10d, day: 60d}}}\nstore: {validation: error}\n"
        times = [now - datetime.timedelta(seconds=self.dice.randrange(200 * 86400)) for _ in range(500)]
        lines = "".join(LINE % (at.strftime("%d/%b/%Y:%H:%M:%S"), "/", 1) for at in times)
        self.write("tallyd.yaml", weeks_of(config.replace("day: 60d", "day: 400d"), "thursday"))
        self.count_lines(lines.encode())
        self.roll("--now")
        weeks = collections.Counter(first_day(at, "thursday") for at in times)
        self.assertEqual(weeks, self.stored())
        self.write("tallyd.yaml", weeks_of(config, "thursday"))
        late = [now - datetime.timedelta(seconds=self.dice.randrange(200 * 86400)) for _ in range(100)]
        self.count_lines((lines + "".join(LINE % (at.strftime("%d/%b/%Y:%H:%M:%S"), "/", 1) for at in late)).encode())
        mark = self.base.reports.find_one({"_id": "site"})["expired"]["day"].date()
        weeks.update(first_day(at, "thursday") for at in late)
        kept = {first: hits for first, hits in weeks.items() if first >= mark}
        self.assertLess(len(kept), len(weeks))
        self.roll("--now")
        self.assertEqual(kept, self.stored())
        self.assertIn("nothing waits", self.roll("--now"))

    def stored(self):
        return {week["metadata"]["date"].date(): week["weekly"] for week in self.base["site.week"].find()}


class Daemon(WeekCase):
    def test_the_daemon_does_it(self):
        """Some weeks: it takes but a part of its time for that."""
        lines = b"".join(line for line in log(self.dice, 600, years=(2024,)).splitlines(True) if b"/Jan/" in line or b"/Feb/" in line)
        self.write("a.log", lines)
        following = FOLLOWING % (CONFIG.split("aggregate:")[0], self.server.port, self.name, "")
        self.write("tallyd.yaml", (following + "jobs: {rollup_after: 1s, weeks: true}\nquery: {week_start: sunday}\n").encode())
        daemon = self.start("run", "-c", "tallyd.yaml")
        try:
            weeks = len(self.expected(lines, "sunday"))
            self.wait_for_job(lambda: self.base["pages.week"].count_documents({}) == weeks)
        finally:
            daemon.terminate()
            daemon.communicate()
        self.roll()
        self.check_weeks(lines, "sunday")

    def test_what_one_job_fails_at_keeps_no_other_from_being_done(self):
        """Weeks of another day wait for somebody's word; years and rankings do not."""
        lines = log(self.dice, 100, years=(2024,))
        self.write("a.log", lines)
        following = FOLLOWING % (CONFIG.split("aggregate:")[0], self.server.port, self.name, "")
        rest = "jobs: {rollup_after: 2s, weeks: true}\nquery: {week_start: %s}\n"
        self.write("tallyd.yaml", (following + rest % "sunday").encode())
        daemon = self.start("run", "-c", "tallyd.yaml")
        try:
            self.wait_for_job(lambda: self.base["pages.week"].count_documents({}) > 0)
        finally:
            daemon.terminate()
            daemon.communicate()
        self.base["pages.year"].delete_many({})
        self.base["jobs"].update_one({"_id": "rollup/pages"}, {"$inc": {"written.202403": 1}})
        self.write("tallyd.yaml", (following + rest % "monday").encode())
        daemon = self.start("run", "-c", "tallyd.yaml")
        try:
            self.wait_for_job(lambda: self.base["pages.year"].count_documents({}) > 0)
        finally:
            daemon.terminate()
            self.assertIn(b"job_failed", b"".join(text or b"" for text in daemon.communicate()))


if __name__ == "__main__":
    main()
