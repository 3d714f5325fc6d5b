#!/usr/bin/env python3
"""A daemon whose clock is wrong by days, at its start or for seconds, expires nothing that must stay, and says so.

Lines are of the last 60 hours, one a minute; minutes are kept for 48 hours. otherday.so moves the daemon's clock. Answers are
held against a recount of the lines. The seed is printed; TALLYD_SEED repeats a run.
"""

import json
import os
import re
import sqlite3
import sys
import time
import unittest

from harness import EX_UNAVAILABLE, DaemonCase, dice, other_day, preload, store_url
from test_expire import DAY, HOUR, Expiring, config, iso

KEPT, WRITTEN, AHEAD = 48 * HOUR, 60 * HOUR, 6 * DAY
KEEP = "keep: {minute: 48h}"


class WrongClock(Expiring, DaemonCase):
    pages = 3

    def setUp(self):
        super().setUp()
        self.dice = dice()
        self.now = int(time.time())
        self.hour = self.now // HOUR * HOUR
        self.at = list(range(self.now - WRITTEN, self.now + 1, 60))  # the newest is of this hour
        self.write("a.log", b"".join(self.line(at) for at in self.at))
        self.write("tallyd.yaml", config(""))
        self.tallyd("import", "-c", "tallyd.yaml", "a.log", "-q")
        self.write("tallyd.yaml", config(KEEP, "sources: {access: {path: a.log}}\naggregate: {flush: 100ms}"))

    def go_on(self):
        """Lines of now, which must be counted in minutes, too."""
        more = [int(time.time())] * 5
        self.append("a.log", b"".join(self.line(at) for at in more))
        self.at += more
        whole = len(self.read("a.log"))
        self.wait_for(lambda: json.loads(self.get("/api/v1/status")), lambda status: status["stored"] == whole)
        self.check_minutes()

    def check_minutes(self):
        begin, end = self.hour - KEPT + HOUR, self.hour + 2 * HOUR
        self.assertEqual(self.recount(begin, end, 60), self.ask(begin, end, "minute"))

    def test_at_its_start(self):
        self.launch("-c", "tallyd.yaml", env=other_day(AHEAD))
        said = self.wait_for_log(r"event=clock_ahead clock=(\S+) newest_events=(\S+)")
        self.assertEqual(time.strftime("%Y-%m-%dT%H:00:00Z", time.gmtime(self.at[-1])), said[2])
        self.go_on()
        self.stop()
        self.assertRegex(self.read("log").decode(),
                         r'event=expiring report=site span=minute from=first to=\S+ keep=2d now=\S+ by="newest events"')
        self.launch("-c", "tallyd.yaml")
        self.go_on()
        self.stop()
        self.assertNotIn("clock_ahead", self.read("log").decode())

    def test_for_seconds(self):
        """The clock is put back, and minutes are counted as before."""
        self.write("ahead", b"0")
        self.launch("-c", "tallyd.yaml", env={**os.environ, "LD_PRELOAD": preload("otherday"), "OTHERDAY_FILE": self.path("ahead")})
        self.wait_for_log(r"event=expiring report=site span=minute .* by=clock")
        self.wait_for_log(r"event=expired rows=[1-9]")
        self.write("ahead", b"%d" % AHEAD)
        self.wait_for_log(r"event=clock_ahead")
        ahead = re.search(r"(?m)^tallyd_expire_clock_ahead_seconds (\d+)", self.get("/metrics"))
        self.assertAlmostEqual(AHEAD, int(ahead[1]), delta=HOUR)
        self.go_on()
        self.write("ahead", b"0")
        self.go_on()
        self.assertEqual(2, len(re.findall(r"event=expiring", self.read("log").decode())))  # site and pages, before
        self.stop()

    def test_watermark_that_is_ahead(self):
        """As a version before left it, of four days after all events: it moves back to the end of the newest hour."""
        ahead = 1000 * (self.hour + 4 * DAY)
        with sqlite3.connect(self.path("tallyd.db")) as connection:
            connection.executemany("INSERT INTO book VALUES ('', '', ?, 'expired.minute', ?)",
                                   ((report, ahead) for report in (1, 2)))
            connection.execute("DELETE FROM hour_1")
            connection.execute("DELETE FROM hour_2")
        connection.execute("VACUUM")  # pages have checksums: whoever changes them says that it is meant
        connection.close()
        self.launch("-c", "tallyd.yaml")
        said = self.wait_for_log(r"event=watermark_restored report=site span=minute from=(\S+) to=(\S+)")
        restored = (self.at[-1] // HOUR + 1) * HOUR
        self.assertEqual((iso(self.hour + 4 * DAY), iso(restored)), said.groups())
        more = [restored + 60 * self.dice.randrange(60) for _ in range(50)]  # of the next hour: within limits.future_max
        self.append("a.log", b"".join(self.line(at) for at in more))
        self.at += more
        whole = len(self.read("a.log"))
        self.wait_for(lambda: json.loads(self.get("/api/v1/status")), lambda status: status["stored"] == whole)
        self.assertEqual(self.recount(restored, restored + HOUR, 60), self.ask(restored, restored + HOUR, "minute"))
        self.tallyd("query", "site", "--step", "minute", "--from", iso(restored - HOUR), "--to", iso(restored),
                    "--store", store_url("tallyd.db"), status=EX_UNAVAILABLE)
        self.stop()
        self.tallyd("verify", "-c", "tallyd.yaml", "a.log")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + ["--failfast"] + sys.argv[1:])
