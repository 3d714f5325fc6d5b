#!/usr/bin/env python3
"""The server ends documents that reports need not keep (store.ttl), and no answer ever has a hole by that: not where no
tallyd runs meanwhile, nor while the index is made, changed and dropped, wherever that is killed.

As test_mongo_expire.py. TALLYD_MONGO names another server.
"""

import datetime
import re
import time

from harness import EX_CONFIG, EX_OK, EX_UNAVAILABLE, DaemonCase, dying_at, failpoints, other_day
from mongocase import MongoCase, main, mongo
from test_expire import DAY, HOUR, KEEP, KILLED, Expiring, iso
from test_mongo_expire import config as kept

LINES = 400
SERVER_S = 400  # it looks every minute
MARGIN, SETTLE, GRACE = HOUR, 600, 900
NAME, CANNOT_CREATE_INDEX = "tallyd_ttl", 67
LONGER = "keep: {minute: 6h, hour: 9d, day: 300d}"
# By kind of document: how long a bucket waits at most for the others of its period, and which buckets are read from it.
PERIODS = {"second": 60, "minute": HOUR, "hour": DAY}
KINDS = (("site", "day", ("minute", "hour")), ("pages", "hour", ("minute",)), ("pages", "day", ("hour",)),
         ("moments", "minute", ("second",)), ("moments", "hour", ("minute",)), ("moments", "day", ("hour",)))
SECONDS = {"s": 1, "m": 60, "h": HOUR, "d": DAY}


def keep_of(text):
    """{"minute": 10800}; seconds are kept an hour."""
    found = {span: int(number) * SECONDS[unit] for span, number, unit in re.findall(r"(\w+): (\d+)(\w)", text)}
    return {"second": HOUR, **found} if found else {}


def config(keep=KEEP, ttl=True, more=""):
    return kept(keep, f", ttl: {str(ttl).lower()}{more}")


class Ttl(MongoCase, DaemonCase, Expiring):
    pages = 6
    minutes_gone = 30 * HOUR

    def fill(self, keep=""):
        """All is there, and the server ends nothing."""
        self.write("a.log", self.make_log(LINES))
        self.configure(keep, False)
        self.count("a.log")
        self.check()

    def configure(self, *arguments):
        self.write("tallyd.yaml", config(*arguments))

    def check(self, *_, **__):
        Expiring.check(self)

    def said(self, report):
        return self.base.reports.find_one({"_id": report}).get("ttl")

    def index(self, report, kind):
        return self.base[f"{report}.{kind}"].index_information().get(NAME)

    def check_said(self):
        """No index that is in force ends what readers do not know of."""
        for report, kind, buckets in KINDS:
            index = self.index(report, kind)
            for bucket in buckets if index else ():
                self.assertEqual([("metadata.date", -1)], list(index["key"]))
                known = index["expireAfterSeconds"] - PERIODS[buckets[-1]] - MARGIN
                self.assertLessEqual(self.said(report)[bucket], 1000 * known, (report, kind, bucket))

    def check_made(self, keep):
        """It is as configured."""
        keeps = keep_of(keep)
        for report, kind, buckets in KINDS:
            index = self.index(report, kind)
            if keep:
                self.assertEqual(keeps[buckets[-1]] + PERIODS[buckets[-1]] + MARGIN, index["expireAfterSeconds"])
            else:
                self.assertIsNone(index, (report, kind))
        for report in "site", "pages", "moments":
            for kind in "month", "year":
                self.assertIsNone(self.index(report, kind))
        self.check_said()

    def pass_time(self, seconds):
        """For changes of indexes only."""
        before = datetime.datetime.now(datetime.timezone.utc) - datetime.timedelta(seconds=seconds)
        self.base.reports.update_many({"ttl.since": {"$exists": True}}, {"$set": {"ttl.since": before}})

    def settle(self):
        self.pass_time(SETTLE + 5)
        self.count("a.log")

    def check_settled(self, keep):
        keeps = keep_of(keep)
        for report, kind, buckets in KINDS:
            said = self.said(report) or {}
            for bucket in buckets:
                self.assertEqual(1000 * keeps[buckets[-1]] if keep else None, said.get(bucket), (report, kind, bucket))
        if not keep:
            self.assertEqual(0, self.base.reports.count_documents({"ttl": {"$exists": True}}))

    def kill(self, places, pauses):
        """Until an import gets through. How often it did not."""
        for kills in range(100):
            env = dying_at(f"{self.dice.choice(places)}:{1 + self.dice.randrange(4)}")
            process = self.begin("a.log", env=env)
            self.end(process, 0, KILLED)
            self.check_said()
            if process.returncode == 0:
                return kills
            self.pass_time(self.dice.choice(pauses))
        return self.fail("it never gets through")

    def test_killed_while_it_is_changed(self):
        """On, shorter, longer, off: by each way from one to the next."""
        kills = 0
        self.fill()
        for keep, ttl in (LONGER, True), (KEEP, True), (LONGER, True), (LONGER, False):
            self.configure(keep, ttl)
            kills += self.kill(failpoints("ttl."), (3, 3, 3, 0))
            self.check_made(keep if ttl else "")
            self.check()
            self.pass_time(SETTLE + 5)
            kills += self.kill(["ttl.settled"], [SETTLE + 5])
            self.count("a.log")
            self.check_settled(keep if ttl else "")
            self.check()
        self.check_refused()
        self.tallyd("verify", "-c", "tallyd.yaml", "--store", self.store, "a.log")
        print(f"{kills} kills")
        self.assertGreater(kills, 0)

    def test_several_start_at_once(self):
        self.fill()
        for keep in LONGER, KEEP:
            self.configure(keep, True)
            for process in [self.begin("a.log") for _ in range(3)]:
                self.end(process)
            self.check_made(keep)
        self.check()

    def older(self, report, kind, seconds):
        date = datetime.datetime.now(datetime.timezone.utc) - datetime.timedelta(seconds=seconds)
        return self.base[f"{report}.{kind}"].count_documents({"metadata.date": {"$lt": date}})

    def test_server_ends_documents(self):
        self.fill()
        before = {(report, kind): self.base[f"{report}.{kind}"].count_documents({}) for report, kind, _ in KINDS}
        self.configure(KEEP, True)
        self.count("a.log")
        self.assertNotIn("ttl_left", self.err)
        self.check_made(KEEP)
        until = time.monotonic() + SERVER_S
        ages = {(report, kind): self.index(report, kind)["expireAfterSeconds"] for report, kind, _ in KINDS}
        while any(self.older(*of, age) for of, age in ages.items()):
            self.assertLess(time.monotonic(), until)
            self.check()
            time.sleep(2)
        self.check_refused()
        self.tallyd("verify", "-c", "tallyd.yaml", "--store", self.store, "a.log")
        for (report, kind), count in before.items():
            left = self.base[f"{report}.{kind}"].count_documents({})
            self.assertTrue(0 < left < count, (report, kind, left, count))
            self.assertGreater(self.older(report, kind, ages[report, kind] - 2 * HOUR - PERIODS["hour"]), 0)

    def ask_later(self, days, step, status):
        """The query's clock is that many days ahead; nobody has counted since."""
        self.tallyd("query", "site", "--step", step, "--from", iso(self.hour - HOUR), "--to", iso(self.hour), "--store",
                    self.store, status=status, env=other_day(days * DAY))

    def test_readers_go_by_the_clock(self):
        """Buckets that the server may have ended are refused, though nobody moved a watermark meanwhile."""
        self.fill(KEEP)
        for step in "minute", "hour":
            self.ask_later(30, step, EX_OK)
        self.configure(KEEP, True)
        self.count("a.log")
        self.ask_later(0, "minute", EX_OK)
        self.ask_later(0, "hour", EX_OK)
        self.ask_later(4, "minute", EX_UNAVAILABLE)
        self.assertIn("or by day", self.err)
        self.ask_later(4, "hour", EX_UNAVAILABLE)
        self.assertIn("or by day", self.err)
        self.tallyd("query", "moments", "--step", "minute", "--from", iso(self.hour - HOUR), "--to", iso(self.hour),
                    "--store", self.store, status=EX_UNAVAILABLE, env=other_day(6 * HOUR))
        day = self.now // DAY * DAY
        self.tallyd("query", "site", "--step", "day", "--from", iso(day - 7 * DAY), "--to", iso(day), "--store",
                    self.store, env=other_day(30 * DAY))

    def test_writers_go_by_the_marks(self):
        """A daemon whose clock is ahead counts everything: it decides nothing about expiry."""
        self.make_log(0)
        self.write("a.log", b"")
        more = f', url: "{self.store}"'
        follow = b'sources: {access: {path: a.log}}\naggregate: {flush: 100ms}\nhttp: {listen: "127.0.0.1:0"}\n'
        self.write("tallyd.yaml", config(KEEP, True, more) + follow)
        self.tallyd("import", "-c", "tallyd.yaml", self.write("b.log", self.line(self.now)))
        self.launch("-c", "tallyd.yaml", env=other_day(30 * DAY))
        recent = [self.now - self.dice.randrange(HOUR) for _ in range(LINES)]
        log = b"".join(self.line(at) for at in recent)
        self.at = [self.now, *recent]
        self.write("a.log", log)
        self.wait_for_consumed(LINES)
        self.stop()
        self.assertIn("event=clock_ahead", self.read("log").decode())
        self.check()

    def ask_of_before(self, step, back):
        self.tallyd("query", "pages", "--step", step, "--from", iso(self.hour - back), "--to", iso(self.hour), "--store",
                    self.store, status=EX_UNAVAILABLE)

    def test_marks_are_where_they_were_when_it_is_off(self):
        """Buckets that the server ended before are never shown as zeros, also when nobody goes by the clock any more."""
        self.fill(KEEP)
        self.configure(KEEP, True)
        self.count("a.log")
        marks = self.base.reports.find_one({"_id": "pages"})["expired"]
        self.base.reports.update_many({}, {"$unset": {"expired": 1}})
        self.configure("", False)
        self.count("a.log")
        self.check_made("")
        for _ in range(2):
            self.ask_of_before("minute", 10 * HOUR)
            self.ask_of_before("hour", 4 * DAY)
            self.settle()
        self.check_settled("")
        moved = self.base.reports.find_one({"_id": "pages"})["expired"]
        self.assertLessEqual(marks["minute"], moved["minute"])
        self.assertNotIn("day", moved)

    def test_tallyd_deletes_what_the_server_left(self):
        """A server that takes the index, and does nothing: all is over by the clock of tallyd only, and an operator's word."""
        self.fill()
        self.configure(KEEP, True)
        self.count("a.log")
        self.count("a.log", env=other_day(GRACE - 60))
        self.assertNotIn("ttl_left", self.err)
        self.job("run", "expire", "--now", env=other_day(20 * DAY))
        self.assertRegex(self.err, "event=ttl_left collection=site.day documents=[1-9]")
        for report, kind, buckets in KINDS:
            self.assertEqual(0, self.base[f"{report}.{kind}"].count_documents({}), (report, kind, buckets))
        self.assertEqual(len(self.at), sum(one["total"] for one in self.base["site.month"].find()))

    def test_readers_have_time_to_know_though_the_clock_of_the_server_went_back(self):
        """An index is missing, and readers were told of it at a time that is still to come."""
        self.fill()
        self.configure(KEEP, True)
        self.count("a.log")
        self.base["site.day"].drop_index(NAME)
        ahead = datetime.datetime.utcnow() + datetime.timedelta(hours=1)
        self.base.reports.update_many({}, {"$set": {"ttl.since": ahead}}, bypass_document_validation=True)
        begun = time.monotonic()
        self.count("a.log")
        self.assertGreater(time.monotonic() - begun, 2)
        self.assertIsNotNone(self.index("site", "day"))

    def test_what_the_server_refuses_is_said(self):
        """Another index of the same key is in the way, for servers that cannot be made to refuse."""
        if self.FAIL_COMMAND:
            self.client.admin.command("configureFailPoint", "failCommand", mode="alwaysOn",
                                      data={"failCommands": ["createIndexes"], "errorCode": CANNOT_CREATE_INDEX})
            self.addCleanup(self.client.admin.command, "configureFailPoint", "failCommand", mode="off")
        else:
            self.base["site.day"].create_index([("metadata.date", -1)], name="mine", expireAfterSeconds=7)
        self.write("a.log", self.make_log(LINES))
        self.configure(KEEP, True, ", indexes: false")
        self.count("a.log", status=EX_CONFIG)
        self.assertRegex(self.err, f"found store.ttl: true, but in .*site.day cannot have the index {NAME} .metadata.date: -1.*refuses")

    def test_it_is_none_of_the_indexes_for_queries(self):
        self.write("a.log", self.make_log(LINES))
        self.configure(KEEP, True, ", indexes: false")
        self.count("a.log")
        self.assertEqual({"_id_", NAME}, set(self.base["pages.hour"].index_information()))

    def test_other_stores_end_nothing(self):
        self.write("a.log", self.make_log(LINES))
        self.configure(KEEP, True)
        self.count("a.log", url="sqlite:a.db", status=EX_CONFIG)
        self.assertIn("found store.ttl: true with a store whose server ends nothing", self.err)
        self.count("--dry-run", "a.log", url="sqlite:a.db")
        self.assertIn("note: store.ttl needs a store in MongoDB", self.tallyd("check", "-c", "tallyd.yaml"))

    def test_admin_says_it(self):
        self.configure(KEEP, True)
        args = ["admin", "indexes", "-c", "tallyd.yaml", "--store", self.store]
        self.assertIn(f"// pages.hour: {NAME}, by which the server expires documents after 18000 s, is missing: ",
                      self.tallyd(*args))
        self.tallyd(*args, "--apply")
        self.assertIsNone(self.index("pages", "hour"))
        self.write("a.log", self.make_log(LINES))
        self.count("a.log")
        self.assertIn(f"// pages.hour: {NAME}, by which the server expires documents after 18000 s, is there\n",
                      self.tallyd(*args))
        self.configure(LONGER, False)
        self.assertIn(f"// pages.hour: {NAME} exists, and `run` or `import` will drop it\n", self.tallyd(*args))


if mongo.CHOSEN == "secantus":  # it can be told to refuse nothing, and takes two indexes of one key
    del Ttl.test_what_the_server_refuses_is_said


if __name__ == "__main__":
    main()
