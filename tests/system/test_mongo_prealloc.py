#!/usr/bin/env python3
"""Documents that are made before they are needed hold no counts, take them when they come, and change no count that is there.

A daemon follows a log of some days, which it is given piece by piece; its clock is that of the events. TALLYD_MONGO names the
server. The seed is printed.
"""

import json
import re
import signal
import subprocess
from decimal import Decimal

from harness import DaemonCase, dice, dying_at, failpoints
from mongocase import KINDS, LAYOUTS, LINE, REPORTS, Int64, MongoCase, leaves, main

try:
    from bson import Decimal128
except ImportError:
    pass  # as in mongocase

PAGES = [f"/{i % 3}/page-{i}.html" for i in range(6)]
SHELL = {"_id", "metadata", "applied", "modified", "v"}
RUN = """\
%s
store: {url: "%s", validation: error, preallocate: %s, preallocate_as: %s}
sources: {access: {path: a.log}}
aggregate: {flush: 100ms}
http: {listen: "127.0.0.1:0"}
"""


def piece_of(random, day, from_hour, to_hour):
    """Each page every ten minutes."""
    return "".join(LINE % (random.randrange(256), day, hour, minute, random.randrange(60), path, random.randrange(5000), "-")
                   for hour in range(from_hour, to_hour) for minute in range(0, 60, 10) for path in PAGES).encode()


class Preallocation(MongoCase, DaemonCase):
    def setUp(self):
        super().setUp()
        self.dice = dice()
        self.log = b""
        self.write("a.log", b"")

    def follow(self, when, how="shell", **options):
        self.write("tallyd.yaml", (RUN % (REPORTS, self.store, when, how)).encode())
        self.launch("-c", "tallyd.yaml", **options)

    def add(self, piece):
        self.log += piece
        self.append("a.log", piece)

    def count_piece(self, *what):
        self.add(piece_of(self.dice, *what))
        self.wait_for(lambda: json.loads(self.get("/api/v1/status"))["stored"], lambda found: found == len(self.log))

    def metric(self, name):
        return float(re.search(rf"^tallyd_{name} (\S+)$", self.get("/metrics"), re.M).group(1))

    def names_of(self, report, kind, time):
        return {one["metadata"].get("path", one["metadata"].get("path:1"))
                for one in self.base[f"{report}.{kind}"].find({"_id": {"$regex": f"^{time}(/|$)"}})}

    def ahead(self):
        """{(report, kind): documents that hold no counts}"""
        found = {(report, kind): list(self.base[f"{report}.{kind}"].find({"applied": {}}))
                 for report, layout in LAYOUTS.items() for kind in KINDS[layout]}
        for documents in found.values():
            for one in documents:
                self.assertEqual(1, one["v"])
                self.assertIn("date", one["metadata"])
        return found

    def verify_beside(self):
        """Beside the daemon, which is at rest after a while."""
        self.wait_for(self.ledger.open_batches, lambda found: not found)
        self.check(self.log, files=["a.log"])

    # ---- when

    def test_made_before_the_day_begins(self):
        self.follow("auto")
        for hour in range(0, 24, 4):
            self.count_piece(5, hour, hour + 4)
            if hour < 4:
                self.assertLess(len(self.names_of("pages", "day", "20260106")), len(PAGES), "all at once")
        self.assertEqual(set(PAGES), self.names_of("pages", "day", "20260106"))
        self.assertEqual(1, self.base["site.day"].count_documents({"_id": "20260106"}))
        self.assertEqual(3, self.base["segments.hour"].count_documents({"_id": {"$regex": "^2026010600/"}}))
        self.assertEqual(1, self.base["moments.minute"].count_documents({"_id": "202601052351"}))
        for documents in self.ahead().values():
            for one in documents:
                self.assertEqual(SHELL, set(one))
        self.assertEqual(set(), self.names_of("pages", "day", "20260107"))
        self.verify_beside()
        begun = self.metric("documents_begun_total"), self.metric("documents_preallocated_used_total")
        self.count_piece(6, 0, 4)
        self.assertEqual([], list(self.base["pages.day"].find({"_id": {"$regex": "^20260106/"}, "applied": {}})))
        # The documents of the day: six pages, three segments, the site and the moments; and those that began within it.
        self.assertGreaterEqual(self.metric("documents_begun_total") - begun[0], 11)
        self.assertGreaterEqual(self.metric("documents_preallocated_used_total") - begun[1], 11)
        self.assertLessEqual(self.metric("documents_preallocated_used_total"), self.metric("documents_preallocated_total"))
        self.assertGreater(self.metric("documents_preallocated_unused_total"), 0)  # minutes
        self.assertGreater(self.metric("preallocation_spike"), 0)
        self.stop()
        self.check(self.log, files=["a.log"])

    def test_off_is_the_default(self):
        self.write("tallyd.yaml", (RUN % (REPORTS, self.store, "off", "shell")).replace(
            ", preallocate: off, preallocate_as: shell", "").encode())
        self.launch("-c", "tallyd.yaml")
        self.count_piece(5, 0, 24)
        self.count_piece(6, 0, 1)
        self.assertEqual([], [one for documents in self.ahead().values() for one in documents])

    # ---- what

    def test_zeros(self):
        self.follow("1/1", "zeros")
        self.count_piece(5, 0, 2)
        counts = {("day", "day"): 1440 + 24 + 1, "day": 24 + 1, "month": 28 + 1, "hour": 60 + 1, "minute": 60 + 1}
        for (report, kind), documents in self.ahead().items():
            self.assertGreater(len(documents), 0, (report, kind))
            for one in documents:
                found = {(name, *keys): cell for name in ("second", "minute", "hourly", "daily", "total")
                         for keys, cell in leaves(one, name).items()}
                self.assertEqual(counts.get((LAYOUTS[report], kind), counts[kind]), len(found), (report, one["_id"]))
                self.assertEqual({(0, 0)}, {tuple(cell) for cell in found.values()})
                self.assertEqual(set(one) - SHELL, set(one["bytes"]) | {"bytes"})
        day = self.base["pages.day"].find_one({"applied": {}})
        self.assertIsInstance(day["minute"]["23"]["59"], Int64)
        self.assertIsInstance(day["bytes"]["daily"], Int64)
        self.verify_beside()
        self.count_piece(6, 0, 2)
        self.stop()
        self.check(self.log, files=["a.log"])
        other = self.store + "_without"
        self.count("a.log", url=other)
        self.assertEqual(self.answers(other), self.answers(self.store))

    def test_zeros_with_fractions(self):
        """They are decimals, to which decimals are added."""
        reports = "reports: {loads: {measures: {n: count, sum: sum(value), mean: mean(value)}}}"
        self.write("tallyd.yaml", (RUN % (reports, self.store, "1/1", "zeros")).replace("a.log", "a.log, decode: [metric]").encode())
        self.launch("-c", "tallyd.yaml")
        values = {}
        for day in 5, 6:
            for hour in 0, 1:
                values[day, hour] = Decimal(self.dice.randrange(-10**8, 10**8)) / 10**6
                self.add(f'{{"name": "x", "ts": "2026-01-0{day}T0{hour}:30:00Z", "value": {values[day, hour]:f}}}\n'.encode())
                self.wait_for(lambda: json.loads(self.get("/api/v1/status"))["stored"], lambda found: found == len(self.log))
            if day == 5:
                ahead = self.base["loads.day"].find_one({"applied": {}})
                self.assertEqual(f"{ahead['metadata']['date']:%d}", "06")
                self.assertEqual(Decimal128("0"), ahead["sum"]["minute"]["23"]["59"])
                self.assertEqual({"units": Decimal128("0"), "count": 0}, ahead["mean"]["hourly"]["1"])
        self.stop()
        self.tallyd("verify", "-c", "tallyd.yaml", "a.log")
        found = self.base["loads.day"].find_one({"_id": {"$regex": "^20260106"}})
        self.assertEqual([values[6, hour] for hour in (0, 1)], [found["sum"]["hourly"][hour].to_decimal() for hour in "01"])

    def test_what_is_there_stays(self):
        """The next day was counted before this one."""
        next_day = piece_of(self.dice, 6, 0, 24)
        self.write("b.log", next_day)
        self.write("tallyd.yaml", (RUN % (REPORTS, self.store, "1/1", "zeros")).encode())
        self.count("b.log")
        self.assertEqual([], self.ahead()["pages", "day"], "of an import")
        before = {one["_id"]: one for one in self.base["pages.day"].find()}
        self.follow("1/1", "zeros")
        self.count_piece(5, 0, 24)
        self.stop()
        self.assertEqual(before, {one["_id"]: one for one in self.base["pages.day"].find({"_id": {"$regex": "^20260106"}})})
        self.check(self.log, next_day)

    def test_not_rolled_up(self):
        """A month of a page that has none is nothing for its year."""
        for how in "shell", "zeros":
            with self.subTest(how=how):
                self.log = b""
                self.write("a.log", b"")
                self.anew()
                self.follow("1/1", how)
                self.count_piece(5, 0, 1)
                self.add((LINE % (1, 1, 0, 0, 0, PAGES[0], 7, "-")).replace("Jan", "Feb").encode())
                self.wait_for(lambda: json.loads(self.get("/api/v1/status"))["stored"],
                              lambda found: found == len(self.log))
                self.stop()
                self.assertEqual(set(PAGES), self.names_of("pages", "month", "202602"))
                self.tallyd("job", "run", "rollup", "--now", "-c", "tallyd.yaml")
                self.assertEqual({path: {"1": 6, "2": 1} if path == PAGES[0] else {"1": 6} for path in PAGES},
                                 {one["metadata"]["path"]: one["total"] for one in self.base["pages.year"].find()})
                self.tallyd("verify", "-c", "tallyd.yaml", "a.log")

    # ---- whatever dies

    def test_killed_at_every_failpoint(self):
        self.follow("1/1", self.dice.choice(("shell", "zeros")))
        self.count_piece(5, 0, 1)
        self.stop()
        hour = 1
        for name in failpoints("mongo."):
            with self.subTest(failpoint=name):
                self.follow("1/1", self.dice.choice(("shell", "zeros")),
                            env=dying_at(f"{name}:{self.dice.randrange(1, 3)}"))
                process = self.process
                while process.poll() is None:  # each piece is at least one batch
                    self.add(piece_of(self.dice, 5 + hour // 24, hour % 24, hour % 24 + 1))
                    hour += 1
                    self.assertLess(hour, 20 * 24)
                    try:
                        process.wait(3)
                    except subprocess.TimeoutExpired:
                        pass
                self.assertEqual(-signal.SIGKILL, process.returncode)
                self.follow("1/1")
                self.wait_for(lambda: self.nexts().get("a.log"), lambda found: found == len(self.log))
                self.stop()
                self.check(self.log, files=["a.log"])
        self.assertGreater(sum(map(len, self.ahead().values())), 0)


if __name__ == "__main__":
    main()
