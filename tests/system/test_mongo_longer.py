#!/usr/bin/env python3
"""Documents of longer periods get their counts after the batch: their writer dies before, within, or after a roll-up, others
roll up what it left, and readers never miss anything meanwhile.

TALLYD_ROUNDS (4 by default) says how often what happens by chance is tried. The seed is printed; TALLYD_SEED repeats a run.
"""

import contextlib
import datetime
import os
import signal
import threading
import time

from harness import EX_DATAERR, EX_OK, EX_TEMPFAIL, TIMEOUT_S, dice, draw_death, dying_at, failpoints, preload
from mongocase import CONFIG, LINES_A_BATCH, MongoCase, add_up, log, main, proxy, recount

ROUNDS = int(os.environ.get("TALLYD_ROUNDS") or 4)
KILLED = -9
PLACES = [*failpoints("roll_up.", "replay."), "mongo.committed", "mongo.applied", "mongo.applying", "mongo.done"]


def stands(process):
    """Is it stopped at its failpoint?"""
    with open(f"/proc/{process.pid}/stat", encoding="utf-8") as of:
        return of.read().rsplit(")", 1)[1].split()[0] == "T"


class Longer(MongoCase):
    def setUp(self):
        super().setUp()
        self.dice = dice()
        self.lines = b""

    def add(self, batches=2):
        self.lines += log(self.dice, batches * LINES_A_BATCH)
        self.write("a.log", self.lines)

    def let_die(self, place):
        """An import that is killed there, if it comes there."""
        self.end(self.begin("a.log", env=dying_at(place)), EX_OK, KILLED)

    def give_slots_back(self):
        """As if every writer were gone for long."""
        self.ledger.change({"$set": {f"writers.{slot}.lease": datetime.datetime(1970, 1, 1) for slot in self.ledger.slots()}})

    def leave(self):
        """A writer is killed when its batch is applied, before it rolls up."""
        self.add()
        self.end(self.begin("a.log", env=dying_at("mongo.applied")), KILLED)
        self.assertNotEqual({}, self.ledger.unrolled())

    def counted(self):
        """The lines that are counted."""
        return self.lines[:self.nexts()["a.log"]]

    def asked(self, step, report="site", value=None):
        """{time: hits} by a query."""
        only = ["--filter", value] if value else []
        out = self.tallyd("query", report, *only, "--store", self.store, "--from", "2026-01-01", "--to", "2026-02-01", "--step", step,
                          "--measure", "hits", "--format", "csv")
        rows = [row.split(",") for row in out.splitlines()[1:]]
        return {row[0][:7 if step == "month" else 10]: int(row[1]) for row in rows if int(row[1])}

    def expected(self, step, of_path=lambda path: None, value=None):
        return {at: hits for (at, name), (hits, _) in add_up(recount(self.counted()), step, of_path).items() if name == value}

    def check_all(self):
        self.finish("a.log")
        self.check(self.lines, files=["a.log"])

    def test_readers_miss_nothing(self):
        self.leave()
        self.assertIsNone(self.base["pages.month"].find_one())
        for step in "day", "month":
            self.assertEqual(self.expected(step), self.asked(step))
            self.assertEqual(self.expected(step), self.asked(step, "moments"))
            self.assertEqual(self.expected(step, lambda path: "/" + path.split("/")[1], "/1"), self.asked(step, "segments", "path:1=/1"))
        self.check_all()
        for step in "day", "month":
            self.assertEqual(self.expected(step), self.asked(step))

    def test_killed_at_each_step(self):
        for place in PLACES:
            for number in range(max(1, ROUNDS // 2)):
                with self.subTest(place, round=number):
                    self.anew()
                    self.lines = b""
                    self.leave()  # what comes next has something to replay
                    self.add(3)
                    for _ in range(2):
                        self.let_die(f"{place}:{self.dice.randrange(1, 4)}")
                        if not self.ledger.open_batches():  # a batch under way may be in some documents
                            self.assertEqual(self.expected("day"), self.asked("day"))
                    self.check_all()

    def test_killed_by_chance(self):
        for number in range(ROUNDS):
            with self.subTest(round=number):
                self.anew()
                self.lines = b""
                for _ in range(3):
                    self.add()
                    self.let_die(draw_death(self.dice, PLACES, 4))
                    self.give_slots_back()
                self.check_all()

    @contextlib.contextmanager
    def held_roll_up(self, path):
        """A process counts the file, and the server gets its roll-up of months only after the block."""
        over, held = threading.Event(), threading.Event()
        self.addCleanup(over.set)
        with proxy.Proxy(self.server.port) as between:
            def answer(piece):
                if piece.find(b"update\0\x0c\0\0\0pages.month\0") >= 0 and not over.is_set():
                    held.set()
                    over.wait(TIMEOUT_S)

            between.answer = answer
            process = self.begin(path, url=f"mongodb://127.0.0.1:{between.port}/{self.name}")
            self.assertTrue(held.wait(TIMEOUT_S))
            yield
            over.set()
            self.end(process, EX_OK, EX_DATAERR, EX_TEMPFAIL)

    def test_a_late_roll_up(self):
        """The server carries out a part of a roll-up when another writer has replayed its batches, and has counted on."""
        self.add()
        with self.held_roll_up("a.log"):
            self.give_slots_back()
            self.add()
            self.count("a.log")
            self.check(self.lines)
        self.check_all()

    def test_a_writer_replays_beside_its_own_slot(self):
        """Another rolls up the batches of a writer that stands still, in the midst of its roll-up; it notices, and goes on."""
        self.add()
        with self.held_roll_up("a.log"):
            self.write("b.log", more := log(self.dice, LINES_A_BATCH))
            silent = datetime.datetime.utcnow() - datetime.timedelta(minutes=2)
            self.ledger.change({"$set": {"writers.w0.lease": silent, "writers.w0.host": "another"}})
            self.count("b.log")
            self.assertEqual(["w0", "w1"], sorted(self.ledger.slots()))
            self.assertEqual({}, self.ledger.unrolled())
        self.finish("a.log")
        self.check(self.lines, more, files=["a.log", "b.log"])

    # ---- reports that are dropped

    def let_lease_end(self, slot):
        """As if this writer, on another host, were gone; others leave its slot alone for a while."""
        silent = datetime.datetime.utcnow() - datetime.timedelta(minutes=2)
        self.ledger.change({"$set": {f"writers.{slot}.lease": silent, f"writers.{slot}.host": "another"}})

    def forget_pages(self, url=None):
        self.tallyd("forget", "-c", "tallyd.yaml", "--store", url or self.store, "--yes", "pages")

    def wake(self, process):
        while process.poll() is None:
            process.send_signal(signal.SIGCONT)
            time.sleep(0.1)
        self.end(process, EX_OK, EX_TEMPFAIL)

    def check_pages_anew(self):
        """What was dropped does not come back into what is counted from now on."""
        self.assertEqual([], [name for name in self.base.list_collection_names() if name.startswith("pages.")])
        self.write("b.log", more := log(self.dice, 20))
        self.count("b.log")
        for step in "day", "month":
            self.assertEqual(20, sum(self.asked(step, "pages").values()))
        self.assertEqual({at: hits for (at, _), (hits, _) in add_up(recount(more), "day", lambda path: None).items()},
                         self.asked("day", "pages"))

    def test_a_report_is_dropped_while_another_writer_replays(self):
        self.add(12)
        self.end(self.begin("a.log", env=dying_at("mongo.applied:4")), KILLED)
        self.let_lease_end("w0")
        self.write("tallyd.yaml", CONFIG.replace(b"  pages: {by: [path]}\n", b""))
        self.write("o.log", log(self.dice, 20))
        replays = self.begin("o.log", env=dying_at("replay.sent:stop"))
        self.wait_until(lambda: stands(replays))
        self.write("tallyd.yaml", CONFIG)
        self.forget_pages()
        self.wake(replays)
        self.check_pages_anew()

    def test_a_report_is_dropped_while_its_writer_sleeps_in_a_roll_up(self):
        self.write("tallyd.yaml", CONFIG.replace(b"64KiB", b"64MiB, batch_time: 1h"))  # one batch
        line = b'198.51.100.1 - - [05/Jan/2026:03:04:05 +0000] "GET /0/p-%d.html HTTP/1.1" 200 10 "-" "M"\n'
        self.write("a.log", b"".join(line % page for page in range(9000)))
        hurried = {**dying_at("roll_up.piece:stop"), "LD_PRELOAD": preload("hurry"), "HURRY": "60"}
        sleeper = self.begin("a.log", env=hurried)
        self.wait_until(lambda: stands(sleeper))
        self.let_lease_end("w0")
        self.forget_pages()
        self.wake(sleeper)
        self.check_pages_anew()

    def test_a_writer_dies_while_its_report_is_dropped(self):
        """Its lease ends when `forget` has looked for writers that are gone, and not yet for those that live."""
        self.leave()
        self.ledger.change({"$set": {"writers.w0.host": "another", "writers.w0.lease": datetime.datetime.utcnow()}})
        with proxy.Proxy(self.server.port) as between:
            def answer(piece):
                if b"find\0\x08\0\0\0reports\0" in piece and "w1" in self.ledger.slots():
                    self.let_lease_end("w0")

            between.answer = answer
            self.forget_pages(f"mongodb://127.0.0.1:{between.port}/{self.name}")
        self.check_pages_anew()

    def test_a_commit_that_does_not_stay(self):
        """A seat shows a commit that is lost with its primary: nothing of that batch may be replayed."""
        self.add(1)
        self.end(self.begin("a.log", env=dying_at("mongo.committed")), KILLED)
        seat = self.base.ledger.find_one("w0")
        before = {name: value for name, value in seat.items() if name not in ("seq", "open", "rolled", "unrolled", "gap", "at")}
        before["partitions"] = {key: {"fence": of["fence"]} for key, of in before["partitions"].items()}
        self.let_lease_end("w0")
        self.write("b.log", more := log(self.dice, LINES_A_BATCH))
        lost = threading.Event()
        with proxy.Proxy(self.server.port) as between:
            def answer(piece):
                if b"open.seq" in piece and b"update" in piece and not lost.is_set():
                    lost.set()
                    self.base.ledger.replace_one({"_id": "w0"}, before)

            between.answer = answer
            self.end(self.begin("b.log", url=f"mongodb://127.0.0.1:{between.port}/{self.name}"), EX_OK)
        self.assertTrue(lost.is_set())
        self.finish("a.log")
        self.check(self.lines, more, files=["a.log", "b.log"])

    def test_logs_stay_until_they_are_rolled_up(self):
        self.leave()
        last = max(next(iter(self.ledger.unrolled().values())).values())
        self.assertTrue(any(one["_id"].split("/")[2] == f"{last:016x}" for one in self.base.batches.find()))
        self.base.batches.delete_many({})
        self.give_slots_back()
        self.count("a.log", status=EX_DATAERR)
        self.assertIn("restore the database from a backup", self.err)

    def test_a_backup_has_what_is_not_rolled_up(self):
        self.leave()
        expected = recount(self.counted())
        self.give_slots_back()
        self.tallyd("admin", "backup", "--store", self.store, "copy")
        self.anew()
        self.tallyd("admin", "restore", "--store", self.store, "copy")
        for what, counts, stored in self.compared(expected):
            with self.subTest(what):
                self.assertEqual(counts, stored)
        self.assertEqual({}, self.ledger.unrolled())
        self.check_all()

    def test_a_database_of_format_5(self):
        """Its seats and positions stay; an older tallyd would not know what is not rolled up."""
        self.add()
        self.count("a.log")
        before = self.nexts()
        self.base.ledger.update_one({"_id": "ledger"}, {"$set": {"v": 5}})
        self.base.ledger.update_many({}, {"$unset": {"rolled": "", "unrolled": ""}})
        self.give_slots_back()
        self.add()
        self.count("a.log")
        self.assertEqual(6, self.base.ledger.find_one("ledger")["v"])
        self.assertGreater(self.nexts()["a.log"], before["a.log"])
        self.check_all()

    def test_what_a_dead_writer_left_is_no_moment_to_verify(self):
        self.leave()
        self.tallyd("verify", "-c", "tallyd.yaml", "--store", self.store, "a.log", status=EX_TEMPFAIL)
        self.assertIn("start it once more to finish its batch", self.err)
        self.check_all()


if __name__ == "__main__":
    main()
