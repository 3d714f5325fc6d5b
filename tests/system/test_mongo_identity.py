#!/usr/bin/env python3
"""A database is not always what it was: put back under a daemon, a copy of a live one, one that lost what it had acknowledged.
What is then counted is exact, or refused with the reason; nothing is lost or doubled without a word.

TALLYD_MONGO names the server (tests/servers/mongo.py).
"""

import ctypes
import datetime
import os
import signal
import socket
import subprocess

from harness import EX_CONFIG, EX_DATAERR, EX_OK, EX_TEMPFAIL, TIMEOUT_S, DaemonCase, dice, dying_at
from mongocase import FOLLOWING, REPORTS, Int64, MongoCase, log, main

KILLED = -signal.SIGKILL
CLONE_NEWUTS, CLONE_NEWUSER = 0x04000000, 0x10000000  # sched.h
AHEAD = r"mongodb://.* has a document \".*\" with counts of batch \d+ of slot w\d+"
NOT_THE_SAME = "is not the database that this tallyd counted into: "


class Identity(MongoCase, DaemonCase):
    def setUp(self):
        super().setUp()
        self.dice = dice()
        self.lines = b""

    def follow(self, **options):
        self.write("tallyd.yaml", (FOLLOWING % (REPORTS, self.server.port, self.name, "")).encode())
        self.launch("-c", "tallyd.yaml", **options)

    def add(self, count=40):
        self.lines += (lines := log(self.dice, count))
        self.append("a.log", lines)

    def count_on(self):
        """The daemon has counted what is added now, and has nothing open."""
        self.add()
        self.wait_for(self.nexts, lambda found: found.get("a.log") == len(self.lines))

    def wait_until_done(self):
        self.wait_for(self.ledger.slots, lambda found: "open" not in found["w0"])

    def copy(self):
        return {name: list(self.base[name].find()) for name in self.base.list_collection_names()}

    def put_back(self, copy):
        names = [*copy, *(set(self.base.list_collection_names()) - set(copy))]
        self.dice.shuffle(names)
        for name in names:
            self.base[name].delete_many({})
            for document in copy.get(name, []):  # which the daemon may have made anew by then
                self.base[name].replace_one({"_id": document["_id"]}, document, upsert=True)

    def check_refused(self, reason):
        """The daemon ends, and says why; systemd does not start one again that ends so."""
        self.assertEqual(EX_DATAERR, self.process.wait(TIMEOUT_S), said := self.read("log").decode())
        self.assertIn(NOT_THE_SAME + reason, said)

    def check_ahead(self):
        """So it is each time, until somebody does something."""
        for _ in range(2):
            self.count("a.log", status=EX_DATAERR)
            self.assertRegex(self.err, AHEAD)


def rename_host():
    """A program's begin: its host has another name than the other programs'. A user without rights needs a namespace of users."""
    libc = ctypes.CDLL(None)
    if libc.unshare(CLONE_NEWUTS) != 0 and libc.unshare(CLONE_NEWUTS | CLONE_NEWUSER) != 0:
        raise PermissionError
    socket.sethostname("renamed")


class Renamed(Identity):
    def follow_renamed(self):
        try:
            self.follow(preexec_fn=rename_host)
        except subprocess.SubprocessError:
            self.skipTest("a program may have no host name of its own here")

    def check_once(self):
        self.count_on()
        self.stop()
        self.assertEqual(1, self.read("log").count(b"event=source_opened"))
        self.check(self.lines, files=["a.log"])

    def test_host(self):
        """The host of a log has another name: the log is counted on."""
        self.write("a.log", b"")
        self.follow()
        self.count_on()
        self.stop()
        self.add()
        self.follow_renamed()
        self.check_once()

    def test_two_hosts_of_one_file(self):
        """The file is the one's that took it last."""
        self.write("a.log", b"")
        self.follow()
        self.count_on()
        first = self.process
        self.follow_renamed()
        self.wait_for_log("event=source_opened")
        first.send_signal(signal.SIGSTOP)  # else it may be quicker
        self.count_on()
        first.send_signal(signal.SIGCONT)
        self.add()
        self.assertEqual(EX_TEMPFAIL, first.wait(TIMEOUT_S))
        self.check_once()


class PutBack(Identity):
    def test_under_a_daemon(self):
        """The daemon stops, no matter what it does meanwhile. The database then is counted on exactly, or a document is named."""
        self.write("a.log", b"")
        self.follow()
        self.count_on()
        copy = self.copy()
        self.count_on()
        self.add(200)
        self.put_back(copy)
        self.add()
        self.check_refused("")
        process = self.begin("a.log")
        said = b"".join(process.communicate(timeout=TIMEOUT_S)).decode()
        self.assertIn(process.returncode, (EX_OK, EX_DATAERR), said)
        if process.returncode == EX_OK:
            self.check(self.lines, files=["a.log"])
        else:
            self.assertRegex(said, AHEAD + "|" + "of the log of a batch")
        print(f"then: {process.returncode}")

    def test_at_rest(self):
        self.write("a.log", b"")
        self.follow()
        self.count_on()
        self.stop()
        copy = self.copy()
        self.follow()
        self.count_on()
        self.wait_until_done()
        self.process.send_signal(signal.SIGSTOP)
        self.put_back(copy)
        self.process.send_signal(signal.SIGCONT)
        self.add()
        self.check_refused("slot w0 of its ledger is in the state before this tallyd took it")
        self.finish("a.log")
        self.check(self.lines, files=["a.log"])

    def test_another_database(self):
        """Or another state of it, by whoever restored it; or none."""
        self.write("a.log", b"")
        for update, reason in (({"$set": {"identity": "0" * 32}}, "the identity in its ledger was "),
                               ({"$inc": {"epoch": 1}}, "the epoch in its ledger was "),
                               ({"$set": {"writers.w0.open": {"seq": 1}}}, "batch "),
                               (None, "its ledger is gone")):
            with self.subTest(reason=reason):
                self.follow()
                self.count_on()
                self.wait_until_done()
                if update:
                    self.ledger.change(update)
                else:
                    self.ledger.drop()
                self.add()
                self.check_refused(reason)
                self.ledger.change({"$unset": {"writers.w0.open": 1}})


class Ahead(Identity):
    """Documents that have counts of which the ledger knows nothing."""

    def test_of_a_copy_of_a_live_one(self):
        self.add()
        self.write("a.log", self.lines)
        self.count("a.log")
        ledger = self.ledger.copy()
        self.add()
        self.count("a.log")
        self.ledger.put_back(ledger)
        self.add()
        self.check_ahead()

    def test_of_another_slot(self):
        """Lines that one slot counted and that were forgotten are counted again by another."""
        self.add()
        self.write("a.log", self.lines)
        self.count("a.log")
        ledger = self.ledger.copy()
        self.add()
        self.count("a.log")
        lost = self.ledger.slots()["w0"]["seq"]
        alive = {"writers.w0.lease": datetime.datetime.utcnow() + datetime.timedelta(minutes=30), "writers.w0.host": "another"}
        self.ledger.put_back(ledger)
        last = self.ledger.slots()["w0"]["seq"]
        self.ledger.change({"$set": alive})
        self.add()
        self.check_ahead()
        with self.subTest("which has been taken anew since"):
            self.ledger.put_back(ledger)
            self.ledger.change({"$set": {**alive, "writers.w0.gap": {"after": last, "before": Int64(lost + 2)},
                                         "writers.w0.seq": Int64(lost + 2)}})
            self.check_ahead()

    def test_which_takes_the_place_while_a_writer_is_let_in(self):
        """The ledger that is there by then is none of its affair."""
        self.write("a.log", self.lines)
        self.count("a.log")
        self.put_between()
        replaced = []

        def answer(piece):
            if b"who.since" in piece and not replaced:
                replaced.append(True)
                self.base.ledger.update_one({"_id": "ledger"}, {"$set": {"epoch": Int64(7)}, "$unset": {"writers.w0.who": ""}})
        self.between.answer = answer
        self.count("a.log", url=f"mongodb://127.0.0.1:{self.between.port}/{self.name}", status=None)
        self.assertTrue(replaced)
        self.assertNotIn("who", self.ledger.slots()["w0"])

    def test_after_a_failover(self):
        """The daemon reports what it knows; a daemon that begins later finds the documents."""
        self.write("a.log", b"")
        self.follow()
        self.count_on()
        self.wait_until(lambda: not self.ledger.open_batches())  # else its log would be missing later
        ledger = self.ledger.copy()
        self.count_on()
        self.ledger.put_back(ledger)
        self.add()
        self.check_refused("the last batch of slot w0 was ")
        self.check_ahead()

    def test_numbers_are_not_used_again(self):
        self.add()
        self.write("a.log", self.lines)
        self.count("a.log")
        before = self.ledger.copy()
        last = self.ledger.slots()["w0"]["seq"]
        self.add()
        self.count("a.log")
        lost = self.ledger.slots()["w0"]
        self.ledger.put_back(before)
        self.write("b.log", log(self.dice, 40))
        self.base["pages.day"].delete_many({})
        for name in self.base.list_collection_names():
            self.base[name].update_many({"applied.w0": lost["seq"]}, {"$set": {"applied.w0": last}})
        self.count("b.log")
        now = self.ledger.slots()["w0"]
        self.assertGreater(now["inc"], lost["inc"])
        self.assertGreater(now["seq"], lost["seq"])
        self.assertEqual({"after": last, "before": now["seq"]}, now["gap"])

    def test_one_from_before_there_were_identities(self):
        self.add()
        self.write("a.log", self.lines)
        self.count("a.log")
        self.ledger.change({"$unset": {"identity": 1, "epoch": 1}})
        self.add()
        self.finish("a.log")
        self.check(self.lines, files=["a.log"])
        self.assertRegex(self.ledger.read()["identity"], "^[0-9a-f]{32}$")
        self.assertGreater(self.ledger.read()["epoch"], 0)


class Damaged(Identity):
    def damage(self, packed):
        """Another bit, with which something else is unpacked. A frame of zstd has a few bits that say nothing (RFC 8878, 3.1.1.1.1.3)."""
        def unpack(data):
            done = subprocess.run(["zstd", "-dcq"], input=data, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
            return done.stdout if done.returncode == 0 else None
        while True:
            damaged = bytearray(packed)
            damaged[self.dice.randrange(len(damaged))] ^= 1 << self.dice.randrange(8)
            if unpack(bytes(damaged)) != unpack(packed):
                return bytes(damaged)

    def test_the_log_of_a_batch(self):
        """Any of its bytes: it is named, and nothing of it is carried out; as it was, it is."""
        self.add(100)
        self.write("a.log", self.lines)
        self.end(self.begin("a.log", env=dying_at("mongo.committed")), KILLED)
        part = self.base.batches.find_one()
        for _ in range(10):
            damaged = self.damage(part["zstd"])
            self.base.batches.update_one({"_id": part["_id"]}, {"$set": {"zstd": damaged}})
            self.count("a.log", status=EX_DATAERR)
            self.assertIn(f'batches "{os.path.dirname(part["_id"])}": the log of a batch is damaged', self.err)
            self.assertEqual(0, self.base["pages.day"].count_documents({}))
        self.base.batches.replace_one({"_id": part["_id"]}, part)
        self.finish("a.log")
        self.check(self.lines, files=["a.log"])


class WriteConcern(Identity):
    def test_less_than_a_majority_is_asked_for(self):
        self.add(5)
        self.write("a.log", self.lines)
        good = self.read("tallyd.yaml")
        for option in "w=1", "w=2", "journal=false", "w=majority&journal=false", "w=tagged":
            with self.subTest(option=option):
                url = f"{self.store}?{option}"
                self.write("tallyd.yaml", good.replace(b"store: {", f'store: {{url: "{url}", '.encode()))
                self.tallyd("check", "-c", "tallyd.yaml", status=EX_CONFIG)
                self.assertRegex(self.err, "store.url: found .*, expected w=majority, .*store.unsafe_write_concern: true")
                self.tallyd("import", "-c", "tallyd.yaml", "a.log", status=EX_CONFIG)
                self.assertRegex(self.err, "store.url: found .*, expected w=majority, .*store.unsafe_write_concern: true")
        self.assertEqual([], self.base.list_collection_names())
        self.write("tallyd.yaml", good.replace(
            b"store: {", f'store: {{url: "{self.store}?w=1", unsafe_write_concern: true, '.encode()))
        self.tallyd("check", "-c", "tallyd.yaml")
        self.tallyd("import", "-c", "tallyd.yaml", "a.log")
        self.count("a.log", url=f"{self.store}?w=majority")
        self.check(self.lines, files=["a.log"])


if __name__ == "__main__":
    main()
