#!/usr/bin/env python3
"""Positions move between the seats of slots, and into the ledger and out again: each line counts once, whoever dies in between.

A slot is taken from an import by a lease that a test writes: then it takes the next one. TALLYD_ROUNDS (4 by default) says how often what
happens by chance is tried. The seed is printed; TALLYD_SEED repeats a run.
"""

import collections
import datetime
import os
import time

from harness import EX_DATAERR, DaemonCase, dice, draw_death, dying_at, failpoints
from mongocase import LINES_A_BATCH, MongoCase, log, main, proxy

ROUNDS = int(os.environ.get("TALLYD_ROUNDS") or 4)
KILLED = -9
PLACES = failpoints("slot.", "claim.")


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

    def forget(self, **options):
        self.occupy()
        self.tallyd("forget", "-c", "tallyd.yaml", "--store", self.store, "a.log", **options)

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

    def test_taken_out_it_stays_gone(self):
        """Whoever takes the slot removes the old position of its seat; and the ledger says that there is none."""
        self.add()
        self.count("a.log")
        self.forget()
        self.assertLess(0, self.seat("w0").get("next", 0))
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
