#!/usr/bin/env python3
"""Positions of files that have ended leave the ledger of MongoDB, and come back when more of such a file is counted: exactly, whenever
a tallyd is killed, paused, copied or taken out meanwhile.

The judge is a recount by Python. The seed is printed; TALLYD_SEED repeats a run. TALLYD_MONGO names the server
(tests/servers/mongo.py).
"""

import datetime
import os
import re
import signal

import mongocase

from harness import EX_OK, EX_TEMPFAIL, ROOT, TIMEOUT_S, dice, dying_at, failpoints
from mongocase import LINES_A_BATCH, MongoCase, log, proxy

with open(os.path.join(ROOT, "store/mongo/writer/retire.h"), encoding="utf-8") as header:
    MIN = int(re.search(r"MONGO_RETIRED_MIN (\d+)", header.read())[1])


UPDATE = b"update\0\x07\0\0\0ledger\0"
# What a writer sends at each step, in the first piece of its request.
STEPS = {"home": lambda request: UPDATE in request and b".held\0" in request and b"$gte\0" in request and b".fence\0" not in request,
         "past": lambda request: b"update\0\x05\0\0\0past\0" in request,
         "removal": lambda request: UPDATE in request and b".next\0" in request and b"$unset\0" in request and b".held\0" not in request,
         "seat": lambda request: UPDATE in request and b".fence\0" in request and b"$gt\0" in request}
CONFIG = b"reports: {site: {measures: {hits: count, bytes: sum(bytes)}}}\naggregate: {batch_size: 64KiB}\n"


class Past(MongoCase):
    def setUp(self):
        super().setUp()
        self.dice = dice()
        self.logs = {}
        self.write("tallyd.yaml", CONFIG)

    def tallyd(self, *arguments, **options):
        """An import of so many files takes long on a busy computer."""
        return super().tallyd(*arguments, **{"timeout": 10 * TIMEOUT_S, **options})

    def put(self, count):
        """Write so many more files; returns their names."""
        names = [f"{len(self.logs) + i:04}.log" for i in range(count)]
        for name in names:
            self.logs[name] = log(self.dice, self.dice.randrange(1, 3), pages=2, days=1, minutes=1)
            self.write(name, self.logs[name])
        return names

    def grow(self, *names):
        for name in names:
            more = log(self.dice, 1, pages=2, days=1, minutes=1)
            self.logs[name] += more
            self.append(name, more)

    def in_ledger(self):
        return {one["source"] for one in self.ledger.positions()}

    def in_past(self):
        return {one["source"] for one in self.base.past.find({"next": {"$gte": 0}})}

    def in_past_by_label(self):
        return {os.path.basename(one["label"]) for one in self.base.past.find({"next": {"$gte": 0}})}

    def check_all(self):
        """All files that were written are counted once, whatever was where."""
        self.count("-q", *self.logs)
        self.check_counts(self.logs)

    def check_counts(self, names):
        expected = mongocase.recount(*(self.logs[name] for name in names))
        for bucket in "minute", "hour":
            self.assertEqual(mongocase.add_up(expected, bucket, lambda path: None), self.stored("site", "day", bucket))
        for more in names, ["--store-only"]:
            self.tallyd("verify", "-c", "tallyd.yaml", "--store", self.store, *more)

    def forget(self, *arguments, **options):
        return self.tallyd("forget", "-c", "tallyd.yaml", "--store", self.store, *arguments, **options)

    def test_ended_files_leave_the_ledger_and_come_back(self):
        names = self.put(MIN)
        self.count("-q", *names)
        self.assertEqual((MIN, 0), (len(self.in_ledger()), len(self.in_past())), "one of them was counted last: they are too few")
        self.count("-q", *self.put(1))
        self.assertEqual((1, MIN), (len(self.in_ledger()), len(self.in_past())))
        self.count(*names)
        self.assertEqual(1, len(self.in_ledger()), "a file without more lines stays where it is")
        self.grow(names[0], names[MIN // 2])
        self.check_all()
        self.assertEqual(3, len(self.in_ledger()))
        self.count("-q", *self.put(MIN))
        self.assertEqual(1, len(self.in_ledger()), "those that had come back left again")
        past = {os.path.basename(one["label"]): one["next"] for one in self.base.past.find()}
        self.assertEqual({name: len(text) for name, text in self.logs.items()}, {**past, **self.nexts()})
        self.check_all()

    def test_killed_at_each_step(self):
        places = [place for place in failpoints("past.") if place != "past.void"]
        self.assertEqual(3, len(places))
        for place in *places, "claim.home":
            with self.subTest(place):
                self.anew()
                self.logs = {}
                names = self.put(MIN + 2)
                if place == "past.claimed":
                    self.count("-q", *names)
                    self.assertLess(MIN - 1, len(self.in_past()))
                    self.grow(*names[:3])
                    self.count(*names[:3], status=-9, env=dying_at(f"{place}:{self.dice.randrange(1, 4)}"))
                else:
                    self.count(*names, status=-9, env=dying_at(place))
                    self.assertEqual(place != "claim.home", len(self.in_past()) > MIN)
                if self.dice.random() < 0.5:
                    self.grow(*self.dice.sample(names, 2))
                self.check_all()

    def test_taken_out_of_past_and_counted_anew(self):
        names = self.put(MIN + 1)
        names.append("long.log")
        self.logs["long.log"] = log(self.dice, 3 * LINES_A_BATCH)
        self.write("long.log", self.logs["long.log"])
        self.count("-q", *reversed(names))
        for name, place in (names[3], None), (names[5], "past.void"), ("long.log", "past.void"), ("long.log", "forget.taken"):
            with self.subTest(f"{name} {place}"):
                self.assertEqual(place != "forget.taken", name in self.in_past_by_label())
                if place:
                    self.forget(name, status=-9, env=dying_at(place))
                self.forget(name)
                self.check_counts([other for other in self.logs if other != name])
                self.check_all()

    def test_nothing_leaves_while_a_backup_goes_on(self):
        self.count("-q", *self.put(1))
        self.tallyd("admin", "backup", "--store", self.store, "torn", status=-9, env=dying_at("backup.held"))
        self.count("-q", *self.put(MIN + 1))
        self.assertEqual(set(), self.in_past())
        self.ledger.change({"$unset": {"backups": ""}})
        self.count("-q", *self.put(1))
        self.assertGreater(len(self.in_past()), MIN)
        self.tallyd("admin", "backup", "--store", self.store, "whole")
        self.anew()
        self.tallyd("admin", "restore", "--store", self.store, "whole")
        self.assertGreater(len(self.in_past()), MIN)
        self.grow(*self.dice.sample(sorted(self.logs), 3))
        self.check_all()

    def test_copied_there_and_back(self):
        self.count("-q", *self.put(MIN + 2))
        before = {one["source"]: one["next"] for one in self.base.past.find()}
        self.tallyd("admin", "copy", self.store, "sqlite:copy.db")
        self.anew()
        self.tallyd("admin", "copy", "sqlite:copy.db", self.store)
        self.assertEqual(set(), self.in_ledger())
        after = {one["source"]: one["next"] for one in self.base.past.find()}
        self.assertEqual(before, {source: after[source] for source in before})
        self.grow(*self.dice.sample(sorted(self.logs), 3))
        self.check_all()

    def paused_writer(self):
        """A writer that is paused within a file, and the file's name. One that ended before is another file's."""
        for number in range(20):
            name = f"slow{number}.log"
            self.logs[name] = log(self.dice, 3 * LINES_A_BATCH)
            self.write(name, self.logs[name])
            slow = self.begin(name, env={**os.environ, "TALLYD_FAILPOINT": ""})
            self.wait_until(lambda: self.nexts().get(name))
            slow.send_signal(signal.SIGSTOP)
            if slow.poll() is None:
                return slow, name
            self.end(slow, EX_OK)
        return self.fail("each writer ended before it could be paused")

    def test_moved_under_a_paused_writer(self):
        """Its lease is over: its file may go, and its next commit is refused as if another had claimed the file."""
        slow, name = self.paused_writer()
        old = datetime.datetime.now(datetime.timezone.utc) - datetime.timedelta(minutes=3)
        slot = next(slot for slot, one in self.ledger.slots().items() if one.get("pid") == slow.pid)
        self.ledger.change({"$set": {f"writers.{slot}.lease": old}})
        self.count("-q", *self.put(MIN + 1))
        has_moved = any(one["label"].endswith(name) for one in self.base.past.find())
        slow.send_signal(signal.SIGCONT)
        said = self.end(slow, EX_OK, EX_TEMPFAIL)
        self.assertTrue(has_moved)
        self.assertIn("start again", said + "start again" * (slow.returncode == EX_OK))
        self.check_all()

    def hold(self, step):
        """An import that has counted its files, and that is held at a step of moving all but the last one."""
        self.anew()
        self.logs = {}
        names = self.put(MIN + 2)
        between = proxy.Holding(self.server.port, STEPS[step])
        self.addCleanup(between.close)
        first = self.begin("-q", *names, url=f"mongodb://127.0.0.1:{between.port}/{self.name}")
        self.assertTrue(between.arrived.wait(10 * TIMEOUT_S))
        return first, between, names

    def set_lease(self, year):
        """The writer of w0 is on another machine, and gave its slot back (1970), or is silent."""
        self.ledger.change({"$set": {"writers.w0.lease": datetime.datetime(year, 1, 1), "writers.w0.host": "another"}})

    def check_positions(self):
        """The ledger's count, and beside it those that only `past` has."""
        past = {os.path.basename(one["label"]): one["next"] for one in self.base.past.find({"next": {"$gte": 0}})}
        self.assertEqual({name: len(text) for name, text in self.logs.items()}, {**past, **self.nexts()})

    def let_go(self, first, between):
        between.let_go()
        self.end(first, EX_OK, EX_TEMPFAIL)
        between.close()
        self.check_positions()
        self.set_lease(1970)
        self.grow(*self.dice.sample(sorted(self.logs), 3))
        self.check_all()
        self.check_positions()

    def test_two_move_the_same_files(self):
        """One is late: some of the files have grown and were counted, and it is silent for longer than a lease. The other has a slot of its
        own, or takes the slot of the first."""
        for step in STEPS:
            for year, owner in (2020, "w1"), (1970, "w0"):
                with self.subTest(step, by=owner):
                    first, between, names = self.hold(step)
                    grown = self.dice.sample(names[:-1], 3)
                    self.grow(*grown)
                    self.count("-q", *grown)
                    self.set_lease(year)
                    last, = self.put(1)
                    self.count("-q", last)
                    self.assertEqual([owner], [one["owner"] for one in self.ledger.positions() if one["label"].endswith(last)])
                    self.assertEqual(step != "seat", set(grown).isdisjoint(self.nexts()))
                    self.let_go(first, between)

    def test_files_grow_while_they_are_moved(self):
        """By another writer, beside the first one: in its seat are the later positions."""
        for step in STEPS:
            with self.subTest(step):
                first, between, names = self.hold(step)
                grown = self.dice.sample(names[:-1], 3)
                self.grow(*grown)
                self.count("-q", *grown)
                self.check_positions()
                self.let_go(first, between)

    def test_a_seat_keeps_what_was_claimed_again(self):
        """As if the writer had claimed a moved file again, before its late request to remove the entries is carried out."""
        for member in "fence", "held":
            with self.subTest(member):
                first, between, names = self.hold("seat")
                seat = self.base.ledger.find_one("w0")
                key = self.dice.choice([key for key, one in seat["partitions"].items() if not one["label"].endswith(names[-1])])
                fence = seat["partitions"][key]["fence"]
                self.base.ledger.update_one({"_id": "w0"}, {"$set": {f"partitions.{key}.{member}": fence + 1}})
                before = self.base.ledger.find_one("w0")["partitions"][key]
                between.let_go()
                self.end(first, EX_OK)
                self.assertEqual(before, self.base.ledger.find_one("w0")["partitions"].get(key))

    def test_older_writers_end(self):
        """A ledger of format 1: the first writer raises it, and the epoch with it."""
        self.count("-q", *self.put(2))
        self.ledger.make_format_4()
        self.ledger.change({"$set": {"v": 1}, "$unset": {"needs": ""}})
        epoch = self.ledger.read()["epoch"]
        self.assertIn("format 1", self.tallyd("admin", "upgrade", "--dry-run", "--store", self.store))
        self.assertEqual(1, self.ledger.read()["v"])
        if self.dice.random() < 0.5:
            self.assertIn("format 6", self.tallyd("admin", "upgrade", "--store", self.store))
        self.check_all()
        ledger = self.ledger.read()
        self.assertEqual((6, True), (ledger["v"], ledger["epoch"] > epoch))
        self.assertRegex(ledger["needs"], r"^\d+\.\d+\.\d+$")
        self.assertIn("nothing to do", self.tallyd("admin", "upgrade", "--store", self.store))


if __name__ == "__main__":
    mongocase.main()
