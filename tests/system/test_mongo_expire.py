#!/usr/bin/env python3
"""MongoDB loses what has expired and nothing else, wherever a tallyd is killed while it deletes, and however many delete
at once.

As test_expire.py; documents are read by pymongo, too. TALLYD_MONGO names another server.
"""

import os
import re
import subprocess
import time

from harness import command, dying_at, failpoints, other_day
from mongocase import MongoCase, main
from test_expire import DAY, HOUR, KEEP, KILLED, Expiring, iso

LINES = 600


def config(keep, store=""):
    seconds = keep.replace("minute:", "second: 1h, minute:")
    return f"""
reports:
  site: {{{keep}}}
  pages: {{by: [path], layout: hour, {keep}}}
  moments: {{layout: minute, {seconds}}}
store: {{validation: error{store}}}
""".encode()


class MongoExpire(MongoCase, Expiring):
    pages = 6
    minutes_gone = 30 * HOUR  # documents of a day go when all of it may

    def setUp(self):
        super().setUp()
        self.write("a.log", self.make_log(LINES))
        self.write("b.log", self.make_log(LINES)[:-1])

    def fill(self):
        """All is there at first; then some keep is configured."""
        self.anew()
        self.write("a.log", self.make_log(LINES))
        self.write("tallyd.yaml", config(""))
        self.count("a.log")
        self.check()
        self.write("tallyd.yaml", config(KEEP))

    def verify(self, *files):
        for more in files, ["--store-only"]:
            self.tallyd("verify", "-c", "tallyd.yaml", "--store", self.store, *more)

    def check(self, *_, **__):
        Expiring.check(self)

    def marks(self, report):
        return self.base.reports.find_one({"_id": report})["expired"]

    def check_documents(self):
        """Nothing is left that is gone, and what is not has all that it counts."""
        for report, kind, mark in (("site", "day", "hour"), ("pages", "hour", "minute"), ("pages", "day", "hour"),
                                   ("moments", "minute", "second"), ("moments", "hour", "minute")):
            with self.subTest(report=report, documents=kind):
                first = self.base[f"{report}.{kind}"].find_one(sort=[("_id", 1)])
                self.assertGreaterEqual(first["metadata"]["date"], self.marks(report)[mark])
        for kind, span, member in (("day", "minute", "minute"), ("month", "day", "daily")):
            mark = self.marks("site")[span]
            documents = list(self.base[f"site.{kind}"].find())
            self.assertGreater(sum(one["metadata"]["date"] < mark for one in documents), 0)
            for one in documents:
                is_gone = one["metadata"]["date"] < mark
                self.assertEqual(is_gone, member not in one, one)
                self.assertEqual(is_gone, member not in one["bytes"], one)
                self.assertTrue(one["applied"])
        total = sum(one["total"] for one in self.base["site.month"].find())
        self.assertEqual(len(self.at), total)

    def test_killed_while_it_lets_go(self):
        kills = 0
        for place in failpoints("expire."):
            times = 1
            self.fill()
            while True:
                process = self.begin("a.log", env=dying_at(f"{place}:{times}"))
                self.end(process, 0, KILLED)
                self.check()
                if process.returncode == 0:
                    break
                kills += 1
                times += self.dice.randrange(3)
            self.verify("a.log")
            self.check_refused()
            self.check_documents()
        print(f"{kills} kills")
        self.assertGreaterEqual(kills, len(failpoints("expire.")))

    def test_several_let_go_at_once(self):
        self.fill()
        for process in [self.begin("a.log") for _ in range(3)]:
            self.end(process)
        self.check()
        self.check_refused()
        self.check_documents()
        self.verify("a.log")

    def test_let_go_by_hand(self):
        """A document's buckets go together: what is said beforehand is what is done."""
        self.fill()
        words = ("-c", "tallyd.yaml", "--store", self.store)
        clock = other_day(-(int(time.time()) % 60))  # both within a minute, by which marks move
        said = re.findall(r"(?m)^(\w+) +(\w+) +the first +(\S+)$",
                          self.tallyd("job", "run", "expire", "--dry-run", *words, env=clock))
        self.assertNotIn("expired", self.base.reports.find_one({"_id": "site"}))
        self.assertRegex(self.tallyd("job", "run", "expire", *words, env=clock), r"(?m)^[\d,]{3,} rows or documents expired$")
        marks = [(report, span, self.marks(report)[span].strftime("%Y-%m-%dT%H:%M:%SZ"))
                 for report in ("site", "pages", "moments") for span in ("second", "minute", "hour", "day")
                 if span in self.marks(report)]
        self.assertEqual(sorted(marks), sorted(said))
        self.assertRegex(self.tallyd("job", "list", *words, env=clock), r"(?m)^expire +moments +0 ")
        self.check()
        self.check_documents()
        self.verify("a.log")

    def test_late_events_leave_no_slots(self):
        """A document is not made anew for what is gone of it."""
        self.fill()
        clock = other_day(-(int(time.time()) % HOUR))  # both within an hour, by which marks of documents of a day move
        self.count("a.log", env=clock)
        marks = self.marks("site")
        at = self.at
        self.write("b.log", self.make_log(LINES))
        self.count("b.log", env=clock)
        self.at += at
        self.assertEqual(marks, self.marks("site"))
        self.check()
        self.check_documents()
        self.verify("a.log", "b.log")

    def follow(self, number, **options):
        """A daemon on a log of its own, which is there with a line; where it writes what it says."""
        more = f'sources: {{access: {{path: {number}.log}}}}\naggregate: {{flush: 100ms}}\nhttp: {{listen: "127.0.0.1:0"}}\n'
        keep, url = "keep: {minute: 48h}", f', url: "{self.store}"'
        self.write(f"{number}.yaml", config(keep, url).replace(b"second: 1h, ", b"second: 48h, ") + more.encode())
        self.write(f"{number}.log", self.line(self.now))
        self.at.append(self.now)
        with open(self.path(f"{number}.said"), "wb") as said:
            process = subprocess.Popen([*command(), "run", "-c", f"{number}.yaml"], cwd=self.dir, stdin=subprocess.DEVNULL,
                                       stdout=said, stderr=said, **options)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def test_one_clock_of_three_is_ahead(self):
        """By six days, from its start on: it expires nothing that the others would not."""
        self.at = list(range(self.now - 60 * HOUR, self.now, 600))
        self.write("a.log", b"".join(self.line(at) for at in self.at))
        self.write("tallyd.yaml", config(""))
        self.count("a.log")
        daemons = [self.follow(number, env=other_day(6 * DAY if number == 1 else 0)) for number in range(3)]
        self.wait_until(lambda: b"event=clock_ahead" in self.read("1.said"))
        for number in range(3):
            self.wait_until(lambda name=f"{number}.log": self.nexts().get(name) == os.path.getsize(self.path(name)))
        time.sleep(3)  # nothing is deleted for two seconds after a watermark moved
        for number in range(3):
            now = int(time.time())
            self.append(f"{number}.log", self.line(now))
            self.at.append(now)
            self.wait_until(lambda name=f"{number}.log": self.nexts().get(name) == os.path.getsize(self.path(name)))
        for process in daemons:
            process.terminate()
            self.assertEqual(0, process.wait(60))
        begin, end = self.hour - 47 * HOUR, self.hour + 2 * HOUR
        self.assertEqual(self.recount(begin, end, 60), self.ask(begin, end, "minute"))
        self.assertLessEqual(self.marks("moments")["second"].timestamp() + 3600 * 48, time.time() + time.timezone)
        self.verify("a.log", *(f"{number}.log" for number in range(3)))

    def test_years_go_with_their_months(self):
        """Also those that are rolled up; what is later than all is late."""
        self.fill()
        at = self.at
        self.roll("--now")
        keep = KEEP.replace("}", ", month: 100d}")
        self.write("tallyd.yaml", config(keep))
        first = int(iso(self.now - 100 * DAY)[:4])
        self.assertLess(self.base["site.year"].find_one(sort=[("_id", 1)])["_id"][:4], str(first))
        self.count("a.log")
        for kind in ("year", "month"):
            self.assertGreaterEqual(self.base[f"site.{kind}"].find_one(sort=[("_id", 1)])["_id"][:4], str(first))
        self.write("b.log", self.make_log(LINES))
        late = sum(int(iso(when)[:4]) < first for when in self.at)
        self.assertIn(f"late {late:,}", self.count("b.log"))
        years = self.query("site", "--step", "year", span=(f"{first}-01-01", iso(self.now + DAY)), store=self.store)
        kept = sum(int(iso(when)[:4]) >= first for when in at + self.at)
        self.assertEqual(kept, sum(int(row["value"]) for row in years))
        self.verify("a.log", "b.log")

    def test_import_leaves_out_what_is_gone(self):
        self.write("tallyd.yaml", config(KEEP))
        self.count("a.log", "b.log")
        self.assertEqual(0, self.base["site.day"].count_documents({"metadata.date": {"$lt": self.marks("site")["hour"]}}))
        self.assertEqual(0, self.base["pages.hour"].count_documents(
            {"metadata.date": {"$lt": self.marks("pages")["minute"]}}))
        self.verify("a.log", "b.log")


if __name__ == "__main__":
    main()
