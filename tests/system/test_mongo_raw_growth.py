#!/usr/bin/env python3
"""How raw events expire in MongoDB: each growth, where the server can do it; what one cannot do must be said at start.

TALLYD_MONGO names the server. The seed is printed.
"""

import collections
import datetime
import os
import time

from harness import EX_CONFIG, EX_NOPERM, DaemonCase, preload
from mongocase import main
from test_mongo_raw import BOOK, IS_FERRET, LINE, MONTHS, RawCase, documents_of, traffic

TTL_S = 400  # servers look every minute
LOOK_S = 12  # a daemon looks for what may go every ten


def line_at(at):
    return LINE % (1, "-", at.day, MONTHS[at.month - 1], at.year, at.hour, at.minute, at.second, "/", 200, 1, "-", "-")


class Growth(RawCase):
    """Each kind, where the server can do it; else it is refused at start, and leaves nothing."""

    def count_periods(self, growth, names):
        """An import of nine days; all documents are in the collection or database of their period."""
        log = traffic(self.dice, 90, days=9, agent="-")
        self.write("a.log", log)
        self.configure(growth=growth)
        self.count("a.log")
        expected = collections.defaultdict(list)
        for _, one in documents_of(log):
            expected[names(one["time"])].append(one)
        return log, expected

    def there(self, collection):
        return sorted((one for one in collection.find({}, {"_id": 0})), key=repr)

    def collections(self):
        return {name for name in self.base.list_collection_names() if name.startswith("raw.")}

    def check_collections(self, expected):
        self.assertEqual(set(expected), self.collections())
        for name, documents in expected.items():
            self.assertEqual(sorted(documents, key=repr), self.there(self.base[name]))
            self.assertIn("tallyd_host_time", self.base[name].index_information())

    def test_collections_by_day(self):
        _, expected = self.count_periods("collection per day", lambda at: f"raw.access.{at:%Y%m%d}")
        self.assertEqual(9, len(expected))
        self.check_collections(expected)

    def test_the_oldest_are_dropped(self):
        log, expected = self.count_periods("collection per day keep 3", lambda at: f"raw.access.{at:%Y%m%d}")
        kept = {name: expected[name] for name in sorted(expected)[-3:]}
        self.check_collections(kept)
        late = traffic(self.dice, 40, days=2, agent="late")  # all of them of days that are gone
        self.write("late.log", late)
        self.assertRegex(self.count("late.log"), "stored 0, refused 0, expired 40")
        self.check_collections(kept)
        self.assertEqual(130, sum(one["entries"]["parsed"] for one in self.base["books"].find()))
        self.tallyd("verify", "-c", "tallyd.yaml", "--store", self.store, "a.log", "late.log")
        self.assertEqual(len(log), self.nexts()["a.log"])

    def test_a_drop_that_fails_holds_up_nothing_else(self):
        """The next start only warns, and what reports need not keep goes."""
        if not self.FAIL_COMMAND:
            self.skipTest("the server cannot be told to fail")
        self.write("a.log", traffic(self.dice, 90, days=9, agent="-"))
        self.write("tallyd.yaml", b"""\
sources: {access: {raw: all, raw_growth: collection per day keep 3}}
reports: {site: {keep: {minute: 3h, hour: 2d, day: 40d}}}
""")
        failing = {"configureFailPoint": "failCommand", "data": {"failCommands": ["drop"], "errorCode": 13}}
        self.client.admin.command({**failing, "mode": "alwaysOn"})
        try:
            self.write("old.log", traffic(self.dice, 10, days=1, agent="old"))
            self.count("old.log")
            self.count("a.log", status=EX_NOPERM)
            self.assertIn("not everything that expired is deleted yet", self.err)
            self.assertIn("expired", self.base.reports.find_one({"_id": "site"}))
            self.count("a.log", status=EX_NOPERM)
            self.assertIn("raw_expire_failed", self.err)
            self.assertLess(3, len(self.collections()))
        finally:
            self.client.admin.command({**failing, "mode": "off"})
        self.count("a.log")
        self.assertEqual(3, len(self.collections()))

    def test_a_period_to_come_drops_none(self):
        now = datetime.datetime.now(datetime.timezone.utc)
        times = [now - datetime.timedelta(days=1), now, now + datetime.timedelta(hours=23)]
        self.write("a.log", "".join(line_at(at) for at in times).encode())
        self.configure(growth="collection per day keep 2")
        self.count("a.log")
        self.assertEqual({f"raw.access.{at:%Y%m%d}" for at in times}, self.collections())

    def test_collections_by_week_and_month(self):
        _, expected = self.count_periods(
            "collection per week", lambda at: f"raw.access.{at - datetime.timedelta(days=at.weekday()):%Y%m%d}")
        self.check_collections(expected)
        self.anew()
        _, expected = self.count_periods("collection per month", lambda at: f"raw.access.{at:%Y%m}")
        self.check_collections(expected)

    def test_databases_by_month(self):
        lines = "".join(LINE % (1, "-", day, MONTHS[month], 2025, 0, 0, 0, "/", 200, month, "-", "-")
                        for month in range(5) for day in (1, 2))  # a day alone would be no sign of the time
        self.write("a.log", lines.encode())
        self.configure(growth="database per month keep 2")
        self.count("a.log")
        found = {name for name in self.client.list_database_names() if name.startswith(f"{self.name}_raw_")}
        self.assertEqual({f"{self.name}_raw_access_202504", f"{self.name}_raw_access_202505"}, found)
        self.assertEqual([4, 4], [one["response_size"] for one in self.client[max(found)]["raw.access"].find()])
        self.assertEqual([], [name for name in self.base.list_collection_names() if name.startswith("raw")])
        for name in found:
            self.client.drop_database(name)

    def test_a_name_of_a_database_that_is_too_long(self):
        self.configure(growth="database per month")
        self.write("a.log", BOOK.encode())
        self.tallyd(*self.arguments("a.log", url=f"{self.server.url}/{'n' * 50}"), status=EX_CONFIG)
        self.assertRegex(self.err, "raw_growth.*too long a name")

    def test_ttl(self):
        """The index is there, and documents end."""
        now = datetime.datetime.now(datetime.timezone.utc)
        self.write("a.log", (line_at(now) + line_at(now - datetime.timedelta(days=2))).encode())
        self.configure(growth="ttl 1d")
        self.count("a.log")
        self.assertEqual(86400, self.base["raw.access"].index_information()["tallyd_time"]["expireAfterSeconds"])
        until = time.monotonic() + TTL_S
        while self.base["raw.access"].count_documents({}) > 1:
            self.assertLess(time.monotonic(), until, "nothing ends")
            time.sleep(0.5)
        self.configure(growth="ttl 2d")
        self.tallyd(*self.arguments("a.log"), status=EX_CONFIG)
        self.assertRegex(self.err, "raw_growth: ttl 2d.*drop the index tallyd_time")

    def test_capped(self):
        log = traffic(self.dice, 800)
        self.write("a.log", log)
        self.configure(growth="capped 64KiB")
        if IS_FERRET:  # it makes another collection, and says nothing
            self.tallyd(*self.arguments("a.log"), status=EX_CONFIG)
            self.assertRegex(self.err, "raw_growth: capped 64KiB.* no capped collection")
            self.assertEqual(0, self.base["raw.access"].count_documents({}))
            return
        self.count("a.log")
        self.assertTrue(self.base["raw.access"].options()["capped"])
        found = self.stored()
        expected = dict(documents_of(log))
        self.assertLess(len(found), len(expected))  # some servers let it grow to the end of a command
        self.assertEqual({offset: expected[offset] for offset in sorted(expected)[-len(found):]}, found)

    def test_a_collection_that_was_there_is_not_capped(self):
        self.write("a.log", BOOK.encode())
        self.base.create_collection("raw.access")
        self.configure(growth="capped 1MiB")
        self.tallyd(*self.arguments("a.log"), status=EX_CONFIG)
        self.assertEqual({"raw.access"}, self.collections())


class Clock(RawCase, DaemonCase):
    """Documents that are kept stay, though the clock of the computer is ahead; the log's times go with it."""

    def setUp(self):
        super().setUp()
        self.now = datetime.datetime.now(datetime.timezone.utc)
        self.lines = b""
        self.log(self.days(-1), self.days(0))
        self.set_clock(0)
        self.write("tallyd.yaml", f"""\
reports: {{pages: {{by: [path]}}}}
store: {{url: "{self.store}"}}
sources: {{access: {{path: a.log, raw: all, raw_growth: collection per day keep 3}}}}
aggregate: {{flush: 100ms}}
http: {{listen: "127.0.0.1:0"}}
""".encode())

    def days(self, days):
        return self.now + datetime.timedelta(days=days)

    def log(self, *times):
        lines = "".join(line_at(at) for at in times).encode()
        self.lines += lines
        self.append("a.log", lines)

    def set_clock(self, days):
        self.write("ahead.new", str(days * 86400).encode())
        os.rename(self.path("ahead.new"), self.path("ahead"))

    def begin_daemon(self):
        self.launch("-c", "tallyd.yaml", env={**os.environ, "LD_PRELOAD": preload("otherday"), "OTHERDAY_FILE": self.path("ahead")})

    def check_all_there(self):
        expected = collections.defaultdict(dict)
        for offset, one in documents_of(self.lines):
            expected[f"raw.access.{one['time']:%Y%m%d}"][offset] = one
        count = len(documents_of(self.lines))
        self.wait_for(lambda: sum(one["entries"]["parsed"] for one in self.base["books"].find()), lambda found: found == count)
        found = {name for name in self.base.list_collection_names() if name.startswith("raw.")}
        self.assertEqual(dict(expected), {name: self.stored(name) for name in found})
        for name in found:
            self.assertIn("tallyd_host_time", self.base[name].index_information())

    def test_a_moment_of_another_day(self):
        self.begin_daemon()
        self.check_all_there()
        self.set_clock(5)
        self.log(self.days(5))
        self.check_all_there()
        self.set_clock(0)
        self.log(self.days(-1), self.days(0))
        self.check_all_there()
        time.sleep(LOOK_S)
        self.log(self.days(-1), self.days(0))
        self.check_all_there()

    def test_some_days_that_last_are_not_believed_at_once(self):
        self.begin_daemon()
        self.check_all_there()
        self.set_clock(5)
        self.log(self.days(5))
        time.sleep(LOOK_S)
        self.check_all_there()
        self.set_clock(0)
        self.log(self.days(0))
        self.check_all_there()

    def test_a_leap_is_not_believed_at_once(self):
        """Nor after another start; when the clock is right again, it is as if nothing had been."""
        self.set_clock(30)
        self.log(self.days(30))
        for _ in range(2):
            self.begin_daemon()
            self.log(self.days(0))
            self.check_all_there()
            self.stop()
        self.set_clock(0)
        self.begin_daemon()
        self.log(self.days(-1))
        self.check_all_there()
        self.stop()

    def test_what_the_clock_let_go_is_made_again(self):
        """Days that follow one another are no leap."""
        self.begin_daemon()
        self.check_all_there()
        self.set_clock(3)
        self.log(self.days(1), self.days(2), self.days(3))
        self.wait_for(lambda: self.read("log").count(b"event=raw_dropped "), lambda found: found == 2)
        self.set_clock(0)
        time.sleep(LOOK_S)
        self.log(self.days(0))
        name = f"raw.access.{self.now:%Y%m%d}"
        self.wait_for(lambda: self.base[name].count_documents({}), lambda found: found == 1)
        self.assertIn("tallyd_host_time", self.base[name].index_information())


if __name__ == "__main__":
    main()
