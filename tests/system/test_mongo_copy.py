#!/usr/bin/env python3
"""A store is copied from SQLite to MongoDB, and back: every answer stays the same, and counting goes on where it was.

As test_copy.py. TALLYD_ROUNDS (4 by default) says how often a copy is killed at a random moment, in each direction. TALLYD_MONGO
names another server.
"""

import os
import signal

from harness import EX_CANTCREAT, EX_DATAERR, EX_NOINPUT, EX_OK, EX_TEMPFAIL, TIMEOUT_S, dice, dying_at, failpoints
from mongocase import Int64, MongoCase, log, main
from test_copy import CONFIG, KILLED, MEASURES, Copying

ROUNDS = int(os.environ.get("TALLYD_ROUNDS") or 4)
LINES = 400
FILE, BACK = "sqlite:tallyd.db", "sqlite:back.db"


class CopyCase(Copying, MongoCase):
    count, verify = Copying.count, Copying.verify

    def setUp(self):
        super().setUp()
        self.make_store(LINES)
        self.expected = self.answers(FILE)

    def databases(self):
        while True:
            self.anew()
            yield self.store


class Exact(CopyCase):
    def test_there_and_back(self):
        self.copy(FILE, self.store)
        self.assert_same(self.expected, self.store)
        self.verify(self.store)
        self.copy(self.store, BACK)
        self.assert_same(self.expected, BACK)
        self.verify(BACK)
        self.check_goes_on(FILE, self.store, BACK)

    def test_jobs_of_the_copy(self):
        """Years and rankings are made anew, and the answers stay."""
        self.copy(FILE, self.store)
        for job in "rollup", "top":
            self.job("run", job, "--now")
        self.assertGreater(self.base["all.year"].count_documents({}), 0)
        self.assert_same(self.expected, self.store)
        self.verify(self.store)
        self.copy(self.store, BACK)
        self.assert_same(self.expected, BACK)

    def test_between_databases(self):
        self.copy(FILE, self.store)
        first = self.store
        self.anew()
        self.copy(first, self.store)
        self.assert_same(self.expected, self.store)
        self.verify(self.store)

    def test_expiry_goes_on(self):
        """A copy has the watermarks of its source; its own expiry moves them on."""
        self.copy(FILE, self.store)
        self.configure("keep: {minute: 1h, hour: 1d, day: 40d}")
        self.append("a.log", self.events(50))
        self.count(self.store)
        self.count(self.store)
        self.verify(self.store)


class Followed(CopyCase):
    def follow(self, store, lines):
        """Have a daemon count the log to its end."""
        config = CONFIG % {"measures": MEASURES, "keep": "", "path": "path: b.log, "}
        config += f'store: {{url: "{store}"}}\nhttp: {{listen: "127.0.0.1:0"}}\n'
        self.write("run.yaml", config.encode())
        self.append("b.log", self.events(lines))
        daemon = self.start("run", "-c", "run.yaml")
        said = []
        for line in daemon.stderr:
            said.append(line.decode())
            if "event=caught_up" in said[-1]:
                break
        daemon.terminate()
        said.append(daemon.communicate(timeout=TIMEOUT_S)[1].decode())
        self.assertEqual(EX_OK, daemon.returncode, said)
        return "".join(said)

    def test_a_daemon_goes_on_in_the_copy(self):
        """A short log: SQLite knows no hosts."""
        self.assertIn(" from=0\n", self.follow(self.store, 10))
        place = os.path.getsize(self.path("b.log"))
        self.copy(self.store, BACK)
        self.assertIn(f" from={place}\n", self.follow(BACK, 10))
        self.tallyd("verify", "-c", "tallyd.yaml", "--store", BACK, "--decode", "metric", "b.log")


class Emptied(MongoCase):
    def test_all_files_were_taken_out(self):
        """Documents of series are copied, and no books. The copy counts on."""
        self.write("tallyd.yaml", b"reports: {pages: {by: [path]}}\n")
        self.write("a.log", log(dice(), 20))
        self.count("a.log")
        self.tallyd("forget", "-c", "tallyd.yaml", "--store", self.store, "a.log")
        self.assertLess(0, self.base["pages.series"].count_documents({}))
        from_file = f"{self.store}-back"
        for origin, target in (self.store, f"{self.store}-copy"), (self.store, FILE), (FILE, from_file):
            self.tallyd("admin", "copy", origin, target)
        for store in f"{self.store}-copy", FILE, from_file:
            self.tallyd("verify", "--store", store, "--store-only")
            self.assertIn("counted 20 lines", self.count("a.log", url=store))
            for more in ["-c", "tallyd.yaml", "a.log"], ["--store-only"]:
                self.tallyd("verify", "--store", store, *more)


class Killed(CopyCase):
    def test_at_random_moments(self):
        states = self.play_kills(FILE, self.databases(), ROUNDS + 1)
        self.assertGreater(states["unfinished"], 0, "the kills came too early or too late to test anything")
        self.anew()
        self.copy(FILE, self.store)
        self.play_kills(self.store, [f"sqlite:back-{number}.db" for number in range(ROUNDS + 1)], ROUNDS + 1)

    def test_at_every_step(self):
        for place in failpoints("copy."):
            with self.subTest(failpoint=place):
                self.anew()
                self.copy(FILE, self.store, env=dying_at(place), status=KILLED)
                self.assertEqual("unfinished", self.state_after_kill(self.store, self.expected))
                self.tallyd("admin", "restore", "--store", self.store, "nothing", status=EX_NOINPUT)
                self.copy(FILE, self.store, "--dry-run")
                self.copy(FILE, self.store)
                self.assert_same(self.expected, self.store)
                self.verify(self.store)


    def test_late_requests_of_a_killed_copy(self):
        """The server carries them out after the next copy has dropped the documents: they make some again."""
        self.copy(FILE, self.store)
        names = [f"{report}.{kind}" for report in ("all", "few") for kind in ("day", "month")]
        late = {name: list(self.base[name].find()) for name in names}
        self.assertTrue(late["all.day"] and late["all.month"])
        for share in 1, 2:
            self.anew()
            self.copy(FILE, self.store, env=dying_at("copy.marked"), status=KILLED)
            number = self.ledger.slots()["w0"]["inc"] + 1
            for name, documents in late.items():
                if documents[::share]:
                    self.base[name].insert_many([{**one, "applied": {"w0": Int64(number)}} for one in documents[::share]])
            self.copy(FILE, self.store)
            self.assert_same(self.expected, self.store)
            self.verify(self.store)


class Later(CopyCase):
    def test_a_database_of_a_later_version(self):
        """It says which version it needs."""
        self.count(self.store)
        self.ledger.change({"$set": {"v": 7}})
        for needs in "the later version that wrote it", "tallyd 0.7.1 or later":
            words = f"has format 7, this tallyd knows 1 to 6: use {needs}"
            for arguments in (["query", "all"], ["import", "-c", "tallyd.yaml", "a.log"], ["admin", "backup", "copy"],
                              ["verify", "--store-only"], ["job", "list"]):
                self.tallyd(*arguments, "--store", self.store, status=EX_DATAERR)
                self.assertIn(words, self.err)
            for stores in (self.store, BACK), (FILE, self.store):
                self.copy(*stores, status=EX_DATAERR)
                self.assertIn(words, self.err)
            self.ledger.change({"$set": {"needs": "0.7.1"}})
        self.assertFalse(os.path.exists(self.path("copy")))


class Refused(CopyCase):
    def test_a_target_that_holds_something(self):
        self.count(self.store)
        before = list(self.base["all.day"].find().sort("_id"))
        for arguments in [], ["--dry-run"]:
            self.copy(FILE, self.store, *arguments, status=EX_CANTCREAT)
        self.assertEqual(before, list(self.base["all.day"].find().sort("_id")))

    def test_a_source_that_a_daemon_writes(self):
        config = CONFIG % {"measures": MEASURES, "keep": "", "path": "path: a.log, "}
        config += f'store: {{url: "{self.store}"}}\nhttp: {{listen: "127.0.0.1:0"}}\n'
        self.write("run.yaml", config.encode())
        daemon = self.start("run", "-c", "run.yaml")
        self.wait_until(lambda: "a.log" in self.nexts())
        self.copy(self.store, BACK, status=EX_TEMPFAIL)
        self.assertIn("stop all daemons", self.err)
        daemon.terminate()
        daemon.communicate()
        self.copy(self.store, BACK)
        self.verify(BACK)

    def test_a_source_that_is_counted_meanwhile(self):
        self.count(self.store)
        copy = self.start("admin", "copy", self.store, BACK)
        self.wait_until(lambda: os.path.exists(self.path("back.db")))
        copy.send_signal(signal.SIGSTOP)
        self.assertIsNone(copy.poll())
        self.append("a.log", self.events(50))
        self.count(self.store)
        copy.send_signal(signal.SIGCONT)
        _, err = copy.communicate(timeout=TIMEOUT_S)
        self.assertEqual(EX_TEMPFAIL, copy.returncode, err)
        self.assertIn(b"while it was copied", err)
        self.tallyd("query", "all", "--store", BACK, status=EX_TEMPFAIL)
        self.copy(self.store, BACK)
        self.verify(BACK)

    def test_two_copies_into_one_database(self):
        """The second one is refused while the first lives; the first notices if it was taken for dead."""
        copy = self.start("admin", "copy", FILE, self.store)
        self.wait_until(lambda: self.base.reports.find_one() is not None)
        copy.send_signal(signal.SIGSTOP)
        if copy.poll() is None and "restoring" in self.ledger.read():
            self.copy(FILE, self.store, status=EX_TEMPFAIL)
            self.ledger.change({"$unset": {"writers.w0.lease": "", "writers.w0.pid": ""}})
            self.copy(FILE, self.store)
            copy.send_signal(signal.SIGCONT)
            _, err = copy.communicate(timeout=TIMEOUT_S)
            self.assertEqual(EX_TEMPFAIL, copy.returncode, err)
        else:
            self.assertEqual(EX_OK, copy.wait())
        self.assert_same(self.expected, self.store)

    def test_raw_events_are_told(self):
        self.count(self.store)
        self.base["raw.access"].insert_one({"_id": "x"})
        self.assertIn("not copied: raw events", self.copy(self.store, BACK))


if __name__ == "__main__":
    main()
