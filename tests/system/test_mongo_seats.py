#!/usr/bin/env python3
"""Positions move from seat to seat, into the ledger, and back. Writers die in between, and each line still counts once.

A slot is taken from an import by a lease that a test writes: then it takes the next one. TALLYD_ROUNDS (4 by default) says how often what
happens by chance is tried. The seed is printed; TALLYD_SEED repeats a run.
"""

import collections
import datetime
import os
import socket
import time

from harness import EX_DATAERR, EX_OK, EX_TEMPFAIL, TIMEOUT_S, DaemonCase, dice, draw_death, dying_at, failpoints
from mongocase import LINES_A_BATCH, Int64, MongoCase, log, main, proxy

ROUNDS = int(os.environ.get("TALLYD_ROUNDS") or 4)
KILLED = -9
PLACES = failpoints("slot.", "claim.")


def brings_home(request):
    return b"update\0\x07\0\0\0ledger\0" in request and b".held\0" in request and b"$gte\0" in request and b".fence\0" not in request


class Seats(MongoCase):
    def setUp(self):
        super().setUp()
        self.dice = dice()
        self.lines = b""

    def add(self, count=2 * LINES_A_BATCH):
        self.lines += log(self.dice, count)
        self.write("a.log", self.lines)

    def occupy(self, *slots):
        """These have a writer on another machine, and no other has one."""
        alive = datetime.datetime.utcnow() + datetime.timedelta(minutes=30)
        for slot in "w0", "w1", "w2":
            lease = alive if slot in slots else datetime.datetime(1970, 1, 1)
            self.ledger.change({"$set": {f"writers.{slot}.lease": lease, f"writers.{slot}.host": "another"}})

    def forget(self, url=None, **options):
        self.occupy()
        self.tallyd("forget", "-c", "tallyd.yaml", "--store", url or self.store, "a.log", **options)

    def by(self, between):
        """The store by way of a proxy."""
        return f"mongodb://127.0.0.1:{between.port}/{self.name}"

    def seat(self, slot):
        """What it has of the file."""
        return next(iter(self.base.ledger.find_one(slot).get("partitions", {}).values()), {})

    def home(self):
        """What the ledger itself has of the file."""
        return next(iter(self.base.ledger.find_one("ledger")["partitions"].values()))

    def check_all(self):
        self.check_at_rest()
        self.check(self.lines, files=["a.log"])

    def test_a_position_moves_between_seats(self):
        for taken, slot in ((), "w0"), (("w0",), "w1"), ((), "w0"), (("w0", "w1"), "w2"), (("w0", "w1"), "w2"):
            self.add()
            self.occupy(*taken)
            self.count("a.log")
            self.assertEqual([slot], self.home()["from"])
            self.assertNotIn("next", self.home())
            self.assertEqual(self.home()["epoch"], self.seat(slot)["held"])
        self.check_all()
        self.occupy()
        self.add()
        self.count("a.log")  # by w0, which removes what it had first
        self.check_all()

    def test_killed_at_each_step(self):
        for place in PLACES:
            with self.subTest(place):
                self.anew()
                self.lines = b""
                self.add()
                self.count("a.log")
                if place == "claim.home":
                    self.forget(status=KILLED, env=dying_at(place))
                else:
                    self.add()
                    self.occupy("w0")
                    self.count("a.log", status=KILLED, env=dying_at(place))
                self.occupy(*self.dice.sample(("w0", "w1"), self.dice.randrange(2)))
                self.add(10)
                self.finish("a.log")
                self.check_all()

    def test_a_late_bring_home_is_refused(self):
        """It was asked for before another claimed the file, and counted more of it."""
        self.add()
        self.count("a.log")
        self.occupy()
        with proxy.Holding(self.server.port, brings_home) as between:
            late = self.start("forget", "-c", "tallyd.yaml", "--store", self.by(between), "a.log")
            self.assertTrue(between.arrived.wait(TIMEOUT_S))
            self.add()
            self.count("a.log")
            before = self.home(), self.seat("w1")
            between.let_go()
            _, err = late.communicate(timeout=TIMEOUT_S)
        self.assertEqual((EX_TEMPFAIL, before), (late.returncode, (self.home(), self.seat("w1"))), err)
        self.assertIn(b"another writer claims the same", err)
        self.assertEqual(["w1"], self.home()["from"])
        self.occupy()
        self.check_all()

    def test_a_bring_home_that_is_repeated_late_is_refused(self):
        """Its position has moved at home since then, under the same claim."""
        self.add()
        self.count("a.log")
        self.occupy()
        requests = []
        with proxy.Proxy(self.server.port, heard=requests) as between:
            self.forget(url=self.by(between), status=KILLED, env=dying_at("forget.taken"))
        before = self.home()
        self.assertLess(0, before["next"])
        late, = filter(brings_home, requests)
        with socket.create_connection(("127.0.0.1", self.server.port)) as server:
            server.sendall(late)
            self.assertTrue(server.recv(1000))
        self.assertEqual(before, self.home())
        self.occupy()
        self.finish("a.log")
        self.check_all()

    def test_killed_anywhere(self):
        """By writers of three slots, with files taken out in between."""
        kills = 0
        for _ in range(ROUNDS):
            self.anew()
            self.lines = b""
            for _ in range(8):
                self.add(self.dice.randrange(1, 2 * LINES_A_BATCH))
                self.occupy(*self.dice.sample(("w0", "w1", "w2"), self.dice.randrange(3)))
                death = draw_death(self.dice, PLACES + failpoints("mongo."), 2)
                if self.dice.random() < 0.2:
                    self.occupy()
                    self.tallyd("forget", "-c", "tallyd.yaml", "--store", self.store, "a.log", status=None, env=dying_at(death))
                else:
                    self.count("a.log", status=None, env=dying_at(death))
                    kills += self.status == KILLED
            self.occupy()
            self.finish("a.log")
            self.check_all()
        self.assertGreaterEqual(kills, ROUNDS // 2, "the kills came too late to test anything")

    def test_taken_out_its_seat_lets_it_go(self):
        """Whoever takes the slot removes the old position of its seat, whatever is counted then."""
        self.add()
        self.count("a.log")
        self.forget()
        self.assertLess(0, self.seat("w0")["next"])
        self.write("b.log", log(self.dice, 1))
        self.occupy()
        self.count("b.log")
        self.assertEqual(["b.log"], [os.path.basename(one["label"]) for one in self.base.ledger.find_one("w0")["partitions"].values()])

    def test_taken_out_it_stays_gone(self):
        """A writer of w0 may live on, claim the file again, and be killed: then the ledger names its seat, which has the old position."""
        self.add()
        self.count("a.log")
        self.forget()
        key, = self.ledger.partitions()
        self.ledger.change({"$set": {f"partitions.{key}.from": ["w0"]}})
        self.assertLess(0, self.seat("w0")["next"])
        self.tallyd("verify", "--store", self.store, "--store-only")
        self.tallyd("admin", "copy", self.store, f"{self.store}-copy")
        self.occupy("w0")
        for store in f"{self.store}-copy", self.store:
            self.assertRegex(self.count("a.log", url=store), f"counted {len(self.lines.splitlines())} ")
        self.assertEqual(["w1"], self.home()["from"])
        self.check_all()

    def test_taken_out_between_reading_its_position_and_the_claim(self):
        """An import sleeps for longer than its lease, and the file is taken out meanwhile. The import must not count its end alone."""
        self.add()
        self.count("a.log")
        self.add()
        with proxy.Holding(self.server.port, lambda request: b"find\0\x05\0\0\0past\0" in request) as between:  # the ledger has been read
            asleep = self.begin("a.log", url=self.by(between))
            self.assertTrue(between.arrived.wait(TIMEOUT_S))
            self.ledger.change({"$set": {"writers.w0.lease": datetime.datetime(2020, 1, 1), "writers.w0.host": "another"}})
            self.tallyd("forget", "-c", "tallyd.yaml", "--store", self.store, "a.log")
            between.let_go()
            self.assertIn("was taken out", self.end(asleep, EX_TEMPFAIL))
        self.occupy()
        self.count("a.log")
        self.check_all()

    def test_the_seat_is_gone(self):
        self.add()
        self.count("a.log")
        self.base.ledger.delete_one({"_id": "w0"})
        self.add()
        for taken in ("w0",), ():
            self.occupy(*taken)
            self.count("a.log", status=EX_DATAERR)
            self.assertIn("document w0 of collection ledger", self.err)

    def test_claims_are_settled_though_one_of_them_is_lost(self):
        self.add()
        self.count("a.log")
        self.write("b.log", b"".join(self.lines.splitlines(True)[::-1]))
        self.count("b.log")
        self.occupy("w0")
        first, second = sorted(self.base.ledger.find_one("ledger")["partitions"])
        for name in "a.log", "b.log":
            self.append(name, log(dice(), LINES_A_BATCH))
        with proxy.Holding(self.server.port, lambda request: b".from\0" in request and b"$addToSet" not in request) as between:
            process = self.begin("a.log", "b.log", url=self.by(between))
            self.assertTrue(between.arrived.wait(TIMEOUT_S))
            self.ledger.change({"$inc": {f"partitions.{first}.epoch": Int64(1)}})
            between.let_go()
            self.end(process, EX_OK)
        partitions = self.base.ledger.find_one("ledger")["partitions"]
        self.assertEqual((["w0", "w1"], ["w1"]), (partitions[first]["from"], partitions[second]["from"]))

    def test_claims_follow_each_other(self):
        """It waits until they pause, and does not read all the time meanwhile."""
        self.add()
        self.count("a.log")
        key = next(iter(self.base.ledger.find_one("ledger")["partitions"]))
        readings = collections.Counter()
        until = time.monotonic() + 3

        def claim(piece):
            if b"find\0\x07\0\0\0ledger\0" in piece:
                readings["all"] += 1
                if time.monotonic() < until:
                    readings["early"] += 1
                    self.ledger.change({"$inc": {f"partitions.{key}.epoch": 1}})

        with proxy.Proxy(self.server.port) as between:
            between.answer = claim
            self.add()
            self.count("a.log", url=f"mongodb://127.0.0.1:{between.port}/{self.name}")
        self.assertTrue(3 < readings["early"] < 80, readings)
        self.assertGreater(readings["all"], readings["early"])
        self.check_all()

    def test_a_seat_goes_while_it_is_recalled(self):
        """The import has seen it, and claims."""
        self.add()
        self.count("a.log")
        self.add()
        self.occupy("w0")
        with proxy.Holding(self.server.port, lambda request: b"$addToSet" in request) as between:
            process = self.begin("a.log", url=self.by(between))
            self.assertTrue(between.arrived.wait(TIMEOUT_S))
            self.base.ledger.delete_one({"_id": "w0"})
            between.let_go()
            self.assertIn("document w0 of collection ledger", self.end(process, EX_DATAERR))
        self.assertEqual({}, self.seat("w1"))

    def lose(self, seat):
        """Nobody takes a lower position for that of the seat."""
        self.occupy()
        self.base.ledger.delete_one({"_id": seat})
        missed = f"its ledger says that document {seat} of collection ledger has positions, and there is none"
        for command in ["backup", "--store", self.store, "backup"], ["copy", self.store, f"{self.store}-copy"]:
            with self.subTest(command[0]):
                self.tallyd("admin", *command, status=EX_DATAERR)
                self.assertIn(missed, self.err)
        for files in ["--store-only"], ["-c", "tallyd.yaml", "a.log"]:
            with self.subTest(files):
                self.tallyd("verify", "--store", self.store, *files, status=1 if files == ["--store-only"] else EX_DATAERR)
                self.assertIn(missed, self.err)
        self.add(1)
        self.count("a.log", status=EX_DATAERR)
        self.assertIn(missed, self.err)

    def test_a_seat_is_gone_and_the_ledger_has_an_older_position(self):
        self.add()
        self.count("a.log")
        self.forget(status=KILLED, env=dying_at("forget.taken"))
        self.finish("a.log")
        self.assertLess(self.home()["next"], self.seat("w0")["next"])
        self.assertLess(0, self.home()["next"])
        self.lose("w0")

    def test_a_seat_is_gone_and_another_has_an_older_position(self):
        self.add()
        self.count("a.log")
        self.add()
        self.occupy("w0")
        self.count("a.log", status=KILLED, env=dying_at("claim.settling"))
        self.assertEqual(["w0", "w1"], self.home()["from"])
        self.assertLess(self.seat("w0")["next"], self.seat("w1")["next"])
        self.lose("w1")


class Daemons(MongoCase, DaemonCase):
    def test_a_slot_that_was_taken_in_vain_is_free(self):
        """A daemon takes the slot of one that was killed, and loses the server when it finishes its batch."""
        self.put_between()
        lines = log(dice(), LINES_A_BATCH)
        self.write("a.log", lines)
        self.count("a.log", status=KILLED, env=dying_at("mongo.committed"))
        lost = proxy.Fault(lose=("insert", "site.day"))
        self.between.plan = lambda: proxy.FAITHFUL if self.between.commands[lost.lose] else lost
        self.launch("-c", "tallyd.yaml")
        self.wait_until(lambda: self.nexts().get("a.log") == len(lines) and not self.base.ledger.find_one("w0").get("open"))
        self.stop()
        self.assertEqual(1, self.between.commands["lost"])
        self.assertEqual(["w0"], list(self.ledger.slots()))
        self.check(lines, files=["a.log"])


if __name__ == "__main__":
    main()
