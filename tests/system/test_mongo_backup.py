#!/usr/bin/env python3
"""A database is copied while imports count into it, put back under another name, and gone on from: each line counts once.

The judge reads the documents and recounts the logs, by nothing that tallyd has. TALLYD_ROUNDS (1 by default) says how often a
copy is taken at a random moment. The seed is printed; TALLYD_SEED repeats a run, as far as the moments of a machine can be
repeated.
"""

import collections
import ctypes
import datetime
import glob
import json
import os
import re
import signal
import threading
import time

from harness import EX_CANTCREAT, EX_DATAERR, EX_NOINPUT, EX_OK, EX_TEMPFAIL, TIMEOUT_S, dice, dying_at, failpoints, other_day
from mongocase import CONFIG, FOLLOWING, LINES_A_BATCH, REPORTS, MongoCase, log, main, proxy, recount

try:
    import bson
except ImportError:
    bson = None  # main() begins again by a Python that has it

RETIRED_MIN = 32  # files that have ended, at least, are moved to `past` at once
ROUNDS = int(os.environ.get("TALLYD_ROUNDS") or 1)


class BackupCase(MongoCase):
    BATCHES = 6  # of each log, of which there are two

    def setUp(self):
        super().setUp()
        self.dice = dice()
        self.logs = [log(self.dice, self.BATCHES * LINES_A_BATCH) for _ in range(2)]
        for name, data in zip(("a.log", "b.log"), self.logs):
            self.write(name, data)

    def admin(self, *arguments, **options):
        return self.tallyd("admin", *arguments, "-c", "tallyd.yaml", "--store", self.store, **options)

    def restore(self, copy, *arguments, differences=0, **options):
        """Into a database of its own, which is the one from then on."""
        self.anew()
        said = self.admin("restore", copy, *arguments, **options)
        if options.get("status", EX_OK) == EX_OK:
            audit = self.tallyd("verify", "--store-only", "--store", self.store, status=min(differences, 1))
            self.assertIn(f" {differences} differences", audit)
        return said

    def pause(self, what, copy, has_begun):
        """A backup or restore that has done little yet."""
        process = self.start("admin", what, copy, "-c", "tallyd.yaml", "--store", self.store)
        self.wait_until(has_begun)
        process.send_signal(signal.SIGSTOP)
        self.assertIsNone(process.poll())
        return process

    def has_noted(self):
        """A backup called copy has noted itself, and which batches documents may lack: its first file is there."""
        return glob.glob(self.path("copy-partial/*/*.bson"))

    def go_on(self, process, status=EX_OK):
        process.send_signal(signal.SIGCONT)
        out, err = process.communicate(timeout=TIMEOUT_S)
        self.assertEqual(status, process.returncode, err.decode())
        return out.decode(), err.decode()

    def check_all(self):
        for name in "a.log", "b.log":
            self.count(name)
        self.check(*self.logs, files=["a.log", "b.log"])
        self.check_at_rest()
        self.roll("--now")
        self.check_years()

    def check_years(self):
        """Documents of years are those of their only month."""
        months = {one["_id"].removeprefix("202601"): {"1": one["total"]} for one in self.base["pages.month"].find()}
        self.assertEqual(months, {one["_id"].removeprefix("2026"): one["total"] for one in self.base["pages.year"].find()})


class Beside(BackupCase):
    def is_counting(self):
        return any("seq" in slot for slot in self.ledger.slots().values())

    def batches(self, out):
        return int(re.search(r"and (\d+) batches", out)[1])

    def play_round(self, number, whole_s):
        """A copy taken while two imports go on; how many batches were counted while it was taken."""
        self.anew()
        imports = [self.begin(name) for name in ("a.log", "b.log")]
        self.wait_until(self.is_counting)
        time.sleep(self.dice.random() * whole_s * 0.5)
        out = self.admin("backup", f"copy-{number}")
        for process in imports:
            if self.dice.random() < 0.5:
                process.send_signal(signal.SIGKILL)  # by time: the backup is over, wherever the import is
            process.communicate()
        self.assertEqual({}, self.ledger.read()["backups"])
        self.restore(f"copy-{number}")
        self.check_all()
        return self.batches(out)

    def test_at_random_moments(self):
        whole_s = self.timed("a.log", "b.log")
        batches = [self.play_round(number, whole_s) for number in range(ROUNDS)]
        print(f"batches that were counted while they were copied: {batches}")

    def test_writers_keep_their_logs_for_one_that_takes_long(self):
        """An import that comes to its end deletes its logs; but not while a backup goes on."""
        self.count("a.log")
        backup = self.pause("backup", "copy", self.has_noted)
        self.count("b.log")
        self.roll("--now")
        self.assertGreater(self.base.batches.count_documents({}), 3)
        out, _ = self.go_on(backup)
        self.assertGreater(self.batches(out), 3)
        self.restore("copy")
        self.assertEqual({"a.log", "b.log"}, set(self.nexts()))
        self.check_all()

    def test_a_log_that_is_damaged_is_found_before_anything_is_dropped(self):
        """An older tallyd copied it as it was; its file has the sum of what it contains."""
        self.count("a.log")
        backup = self.pause("backup", "copy", self.has_noted)
        self.count("b.log")
        self.go_on(backup)
        path, names = self.path(f"copy/{self.name}/batches.bson"), self.path("copy/tallyd-backup.json")
        with open(path, "rb") as file:
            documents = bson.decode_all(file.read())
        documents[1]["zstd"] = documents[1]["zstd"][:-1] + bytes([documents[1]["zstd"][-1] ^ 4])
        data = b"".join(map(bson.encode, documents))
        with open(path, "wb") as file:
            file.write(data)
        with open(names, encoding="utf-8") as file:
            said = json.load(file)
        one, = (one for one in said["files"] if one["collection"] == "batches")
        xxh3 = ctypes.CDLL("libxxhash.so.0").XXH3_64bits
        xxh3.restype, xxh3.argtypes = ctypes.c_uint64, (ctypes.c_char_p, ctypes.c_size_t)
        one["xxh3"] = f"{xxh3(data, len(data)):016x}"
        with open(names, "w", encoding="utf-8") as file:
            json.dump(said, file)
        before = list(self.base["pages.day"].find())
        self.admin("restore", "--force", "copy", status=EX_DATAERR)
        self.assertIn("the log of a batch in the backup, of slot w0: take another backup", self.err)
        self.assertEqual(before, list(self.base["pages.day"].find()))

    def test_two_at_once(self):
        """The one that ends first leaves the other its note, so its logs stay; it takes away what a killed one has left."""
        self.count("a.log")
        backup = self.pause("backup", "copy", self.has_noted)
        note, = self.ledger.read()["backups"]
        long_ago = {"until": datetime.datetime(2020, 1, 1), "owner": "another 42"}
        self.ledger.change({"$set": {"backups.killed": long_ago}})
        self.admin("backup", "other")
        self.assertEqual({note}, set(self.ledger.read()["backups"]))
        self.count("b.log")
        out, _ = self.go_on(backup)
        self.assertGreater(self.batches(out), 3)
        self.restore("copy")
        self.check_all()

    def grow_and_claim(self, names, ends):
        """Imports the growing files again and again, in any order. An import that finds more of a file claims it from its last owner."""
        while not ends.is_set():
            self.begin("-q", *self.dice.sample(names, len(names))).communicate()

    def claims(self):
        return sum(one["epoch"] for one in self.ledger.partitions().values())

    def test_while_four_writers_claim_from_each_other(self):
        """A position moves from seat to seat while they are read."""
        names = [f"{number}.log" for number in range(4)]
        logs, ends = dict.fromkeys(names, b""), threading.Event()
        self.addCleanup(ends.set)
        writers = [threading.Thread(target=self.grow_and_claim, args=(names, ends)) for _ in range(4)]
        number = 0
        while number < 3 * ROUNDS or self.claims() <= 2 * len(names):  # some from others
            claims = self.claims()
            for name in names:
                logs[name] += (more := log(self.dice, self.dice.randrange(1, LINES_A_BATCH)))
                self.append(name, more)
            if number == 0:
                for writer in writers:
                    writer.start()
                self.wait_until(lambda: len(self.ledger.positions()) == len(names))
            if number < 3 * ROUNDS:
                self.admin("backup", f"copy-{number}")
            self.wait_until(lambda before=claims: self.claims() > before)
            number += 1
        ends.set()
        for writer in writers:
            writer.join()
        for number in range(3 * ROUNDS):
            self.restore(f"copy-{number}")
            self.count("-q", *names)
            self.check(*logs.values(), files=names)
            self.check_at_rest()

    def hold_at(self, collection):
        """A backup by way of a proxy, which holds it when it has copied this collection."""
        pages = []

        def has_copied(piece):
            found = proxy.COMMAND.match(piece)
            pages.extend([piece] if found and found.groups() == (b"find", collection.encode()) else [])
            return len(pages) == 2  # the first one found all

        between = proxy.Holding(self.server.port, has_copied)
        self.addCleanup(between.close)
        process = self.start("admin", "backup", "copy", "-c", "tallyd.yaml", "--store", f"mongodb://127.0.0.1:{between.port}/{self.name}")
        self.assertTrue(between.arrived.wait(TIMEOUT_S))
        return process, between

    def test_a_writer_whose_clock_is_ahead_moves_files_to_past(self):
        """The writer believes that the backup has ended. The positions that it moves are neither in the copied `past` nor in the ledger."""
        names = [f"{number}.log" for number in range(RETIRED_MIN + 1)]
        for name in names:
            self.write(name, log(self.dice, 2, pages=2, days=1, minutes=1))
        self.write("none.log", b"")
        for files in names, ["none.log"]:  # all are in the seat, and nothing is open
            self.count("-q", *files, env=dying_at("claim.home"), status=-9)
        backup, between = self.hold_at("books")
        self.count("-q", "none.log", env=other_day(3700))
        self.assertGreaterEqual(self.base.past.count_documents({}), RETIRED_MIN)
        between.let_go()
        _, err = backup.communicate(timeout=TIMEOUT_S)
        self.assertEqual(EX_TEMPFAIL, backup.returncode, err.decode())
        self.assertIn(b"the ledger has forgotten this backup", err)
        self.admin("backup", "copy")
        self.restore("copy")
        known = [*self.ledger.positions(), *self.base.past.find()]
        self.assertEqual(set(names), {os.path.basename(one["label"]) for one in known})

    def end_backup(self, backup, between):
        between.let_go()
        _, err = backup.communicate(timeout=TIMEOUT_S)
        self.assertEqual(EX_OK, backup.returncode, err.decode())

    def test_a_file_of_past_is_taken_out_beside_it(self):
        """`past` was copied before, and the ledger after: no position of it holds."""
        names = [f"{number}.log" for number in range(RETIRED_MIN + 1)]
        logs = [log(self.dice, 2, pages=2, days=1, minutes=1) for _ in names]
        for name, lines in zip(names, logs):
            self.write(name, lines)
        self.count("-q", *names)
        self.assertGreaterEqual(self.base.past.count_documents({}), RETIRED_MIN)
        backup, between = self.hold_at("past")
        self.tallyd("forget", "-c", "tallyd.yaml", "--store", self.store, names[0])
        self.end_backup(backup, between)
        self.restore("copy")
        self.count("-q", *names)
        self.check(*logs, files=names)

    def test_reports_are_copied_while_its_note_is_there(self):
        """Else a report could take another one's place, and be in the copy without its books."""
        self.count("a.log")
        backup, between = self.hold_at("reports")
        self.assertEqual(1, len(self.ledger.read()["backups"]))
        self.end_backup(backup, between)

    def lease(self, slot, year):
        """To a program of another computer, until that year."""
        self.ledger.change({"$set": {f"writers.{slot}.host": "another", f"writers.{slot}.lease": datetime.datetime(year, 1, 1)}})

    def test_a_file_was_counted_by_one_slot_and_then_by_an_earlier_one(self):
        """Its books say how far it is counted: as the last batch says, whichever slot that had."""
        self.count("a.log")
        backup, between = self.hold_at("books")
        for year in 2100, 1970:  # w0 is taken, and then it is free
            self.lease("w0", year)
            self.logs[0] += (more := log(self.dice, LINES_A_BATCH))
            self.append("a.log", more)
            self.count("a.log")
        self.assertEqual({"w0", "w1"}, set(self.ledger.slots()))
        between.let_go()
        out, err = backup.communicate(timeout=TIMEOUT_S)
        self.assertEqual(EX_OK, backup.returncode, err.decode())
        self.assertGreater(self.batches(out.decode()), 1)
        self.restore("copy")
        self.check_all()

    def test_logs_that_are_gone_fail_it(self):
        """They were deleted by hand, or by whoever knows nothing of backups."""
        self.count("a.log")
        backup = self.pause("backup", "copy", self.has_noted)
        self.count("b.log")
        self.base.batches.delete_one({"prev": {"$gt": 0}})
        _, err = self.go_on(backup, EX_TEMPFAIL)
        self.assertRegex(err, "the log of batch .* is gone")
        self.assertFalse(os.path.exists(self.path("copy")) or os.path.exists(self.path("copy-partial")))
        self.assertEqual({}, self.ledger.read()["backups"])

    def test_a_daemon_goes_on_from_it(self):
        text = FOLLOWING % (REPORTS, self.server.port, self.name, "")
        self.write("tallyd.yaml", text.encode())
        self.write("a.log", self.logs[0][:len(self.logs[0]) // 2])
        daemon = self.start("run", "-c", "tallyd.yaml")
        self.wait_until(self.is_counting)
        self.append("a.log", self.logs[0][len(self.logs[0]) // 2:])
        self.admin("backup", "copy")
        self.wait_until(lambda: self.nexts().get("a.log") == len(self.logs[0]))
        self.admin("restore", "--force", "copy", status=EX_TEMPFAIL)
        self.assertRegex(self.err, "a tallyd counts into it .*: stop all daemons")
        daemon.terminate()
        daemon.communicate()
        self.admin("restore", "--force", "copy")
        self.write("tallyd.yaml", CONFIG)
        self.check_all()


class Refused(BackupCase):
    BATCHES = 2

    def setUp(self):
        super().setUp()
        self.count("a.log")
        self.admin("backup", "copy")
        self.origin = self.name

    def test_killed_at_every_step_and_begun_again(self):
        for place in failpoints("backup."):
            with self.subTest(failpoint=place):
                self.admin("backup", f"copy-{place}", env=dying_at(place), status=-9)
                self.assertFalse(os.path.exists(self.path(f"copy-{place}")))
        self.count("b.log")
        self.admin("backup", "copy-backup.page")
        for place in failpoints("restore."):
            with self.subTest(failpoint=place):
                self.restore("copy-backup.page", env=dying_at(place), status=-9)
                self.count("a.log", status=EX_TEMPFAIL)
                self.assertIn("is being restored, or its restore has not ended", self.err)
                self.admin("backup", "copy-2", status=EX_NOINPUT)
                self.admin("restore", "copy-backup.page", status=EX_CANTCREAT)
        self.admin("restore", "--force", "copy-backup.page")
        self.check_all()

    def test_a_daemon_that_starts_meanwhile_leaves_no_report_without_its_watermarks(self):
        at = datetime.datetime(2026, 1, 5)
        self.base.reports.update_one({"_id": "pages"}, {"$set": {"expired.minute": at, "swept.minute": at}})
        self.admin("backup", "marked")
        self.anew()
        restore = self.pause("restore", "marked", self.ledger.read)
        self.count("a.log", status=EX_TEMPFAIL)
        self.go_on(restore)
        report = self.base.reports.find_one({"_id": "pages"})
        self.assertEqual({"minute": at}, report["expired"])
        self.assertNotIn("swept", report)

    def test_a_store_that_is_not_empty(self):
        self.admin("restore", "copy", status=EX_CANTCREAT)
        self.assertIn("--force", self.err)
        self.base["mine.own"].insert_one({"_id": 7})
        self.base["pages.hour"].insert_one({"_id": "of another day"})
        self.count("b.log")
        self.admin("restore", "--force", "copy")
        self.assertEqual({"_id": 7}, self.base["mine.own"].find_one())
        self.assertIsNone(self.base["pages.hour"].find_one())
        self.assertEqual({"a.log"}, set(self.nexts()))
        self.check_all()

    def test_seats_of_the_database_that_is_replaced(self):
        """They have a later claim and a later position, and slots that the copy lacks."""
        self.logs[0] += (more := log(self.dice, LINES_A_BATCH))
        self.append("a.log", more)
        self.count("a.log")
        seat = self.base.ledger.find_one("w0")
        self.base.ledger.insert_one({**seat, "_id": "w1"})
        self.admin("restore", "--force", "copy")
        for slot in "w0", "w1":
            found = self.base.ledger.find_one(slot)
            self.assertNotIn("partitions", found)
            self.assertGreater(found["inc"], seat["inc"])
            self.assertLessEqual(found["inc"], self.ledger.slots()[slot]["inc"])
        self.tallyd("verify", "--store-only", "--store", self.store)
        self.check_all()

    def test_what_is_there_is_not_overwritten(self):
        self.admin("backup", "copy", status=EX_CANTCREAT)
        self.count("b.log")
        self.admin("backup", "--force", "copy")
        self.assertEqual(["copy"], [name for name in os.listdir(self.dir) if name.startswith("copy")])
        self.restore("copy")
        self.check_all()

    def test_a_copy_that_is_damaged(self):
        pages = self.path(f"copy/{self.origin}/pages.day.bson")
        names = self.path("copy/tallyd-backup.json")
        with open(pages, "rb") as file:
            whole = file.read()
        for what, data in (("a bit", whole[:3000] + bytes([whole[3000] ^ 4]) + whole[3001:]), ("its end", whole[:-5]),
                           ("a document", whole[int.from_bytes(whole[:4], "little"):])):
            with self.subTest(damaged=what):
                with open(pages, "wb") as file:
                    file.write(data)
                self.restore("copy", status=EX_DATAERR)
                self.assertIn("pages.day.bson is damaged", self.err)
                self.assertEqual([], self.base.list_collection_names())
        os.remove(pages)
        self.restore("copy", status=EX_DATAERR)
        os.remove(names)
        self.restore("copy", status=EX_NOINPUT)
        self.assertIn("is no backup", self.err)

    def test_a_database_that_another_program_restored_from_it(self):
        """It may lack batches that its ledger has."""
        self.anew()
        for name in os.listdir(self.path(f"copy/{self.origin}")):
            if name.endswith(".bson"):
                with open(self.path(f"copy/{self.origin}/{name}"), "rb") as file:
                    documents = bson.decode_all(file.read())
                if documents:
                    self.base[name[:-5]].insert_many(documents)
        self.count("a.log", status=EX_TEMPFAIL)
        self.assertIn("another program put back", self.err)
        self.admin("restore", "--force", "copy")
        self.check_all()

    def test_a_database_without_anything(self):
        self.anew()
        self.admin("backup", "copy-2", status=EX_NOINPUT)
        self.assertEqual([], self.base.list_collection_names())


class Kept(BackupCase):
    """The content of a database beside counts."""

    BATCHES = 2

    def roll_up(self):
        self.roll("--now")

    def test_documents_of_weeks(self):
        """They were rolled up before and after they were copied: they are set again, and by the newest counts."""
        self.write("tallyd.yaml", CONFIG + b"jobs: {weeks: true}\n")
        self.count("a.log")
        self.roll_up()
        backup = self.pause("backup", "copy", self.has_noted)
        self.count("b.log")
        self.roll_up()
        self.go_on(backup)
        self.restore("copy")
        self.assertEqual([], [one["_id"] for one in self.base.jobs.find() if "rolled" in one or "until" in one])
        self.check_all()
        hits = collections.Counter()
        for (_, path), (count, _) in recount(*self.logs).items():
            hits[path] += count
        self.assertEqual(hits, {one["metadata"]["path"]: one["weekly"] for one in self.base["pages.week"].find()})

    def test_indexes_documents_of_others_and_raw_events(self):
        self.write("c.log", self.logs[0][:20000])
        text = FOLLOWING % (REPORTS, self.server.port, self.name, "")
        text = text.replace("path: a.log", "path: c.log, raw: all, raw_growth: database per month")
        self.write("run.yaml", text.encode())
        daemon = self.start("run", "-c", "run.yaml")
        self.wait_until(lambda: "c.log" in self.nexts())
        daemon.terminate()
        daemon.communicate()
        self.base["pages.day"].insert_one({"_id": 7, "mine": True})
        self.base["pages.day"].create_index([("daily", -1)], name="mine")
        raws = [name for name in self.client.list_database_names() if name.startswith(f"{self.name}_raw_")]
        self.assertEqual(1, len(raws))
        raw = list(self.client[raws[0]]["raw.access"].find().sort("_id"))
        self.assertTrue(raw)
        pages = list(self.base["pages.day"].find().sort("_id"))
        origin = self.name
        self.admin("backup", "copy")
        self.restore("copy", differences=1)  # the document of another hand is told
        self.assertEqual(pages, list(self.base["pages.day"].find().sort("_id")))
        self.assertIn("mine", self.base["pages.day"].index_information())
        self.assertEqual(raw, list(self.client[raws[0].replace(origin, self.name)]["raw.access"].find().sort("_id")))


if __name__ == "__main__":
    main()
