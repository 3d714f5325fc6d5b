#!/usr/bin/env python3
"""`tallyd backfill` in MongoDB: a report that was configured late, or not all the time, has all that was counted before, once,
whenever it is killed, and while a daemon counts.

The judge is a recount of all lines by Python, and `tallyd verify`. TALLYD_ROUNDS says how many random histories are played
(3 by default). The seed is printed; TALLYD_SEED repeats a run. TALLYD_MONGO names the server (tests/servers/mongo.py).
"""

import contextlib
import os
import signal
import threading
import time

import mongocase

from harness import EX_NOINPUT, EX_OK, EX_TEMPFAIL, TIMEOUT_S, DaemonCase, dice, draw_death, dying_at, failpoints
from mongocase import LINES_A_BATCH, Int64, MongoCase, log

ROUNDS = int(os.environ.get("TALLYD_ROUNDS") or 3)
ALONE = mongocase.CONFIG.replace(b"  pages: {by: [path]}\n", b"").replace(b'  segments: {by: ["path:1"], layout: hour}\n', b"")
LATER = "pages", "segments"


class BackfillCase(MongoCase):
    def setUp(self):
        super().setUp()
        self.dice = dice()
        self.write("alone.yaml", ALONE)

    def lines(self, batches):
        return log(self.dice, batches * LINES_A_BATCH)

    def import_(self, name, config):
        self.tallyd("import", "-q", "-c", config, "--store", self.store, name)

    def backfill(self, report, *arguments, **options):
        return self.tallyd("backfill", "-c", "tallyd.yaml", "--store", self.store, report, *arguments, **options)


class Backfill(BackfillCase):
    def test_report_that_came_later_has_all(self):
        a, b = self.lines(3), self.lines(1)
        self.write("a.log", a)
        self.import_("a.log", "alone.yaml")
        self.append("a.log", b)
        self.import_("a.log", "tallyd.yaml")
        before = list(self.base.books.find())
        for report in LATER:
            self.assertIn(f"a.log: bytes 0 to {len(a):,}", self.backfill(report, "--dry-run"))
            self.tallyd("query", report, "--store", self.store, "--from", "2025-12-01", "--to", "2026-02-01", "--step", "day")
            self.assertIn("`tallyd backfill` counts what", self.err)
        self.assertEqual(before, list(self.base.books.find()))
        for report in LATER:
            said = self.backfill(report)
            self.assertIn(f"{3 * LINES_A_BATCH} lines", said)
            self.assertIn("has counted all", said)
        self.check_at_rest()
        self.check(a, b, files=["a.log"])
        after = list(self.base.books.find())
        self.backfill("pages")
        self.assertEqual(after, list(self.base.books.find()))
        # Counting goes on, behind what was filled in; and the file may be forgotten whole.
        self.append("a.log", a)
        self.import_("a.log", "tallyd.yaml")
        self.check(a, b, a, files=["a.log"])
        self.tallyd("forget", "-c", "tallyd.yaml", "--store", self.store, "a.log")
        self.assertTrue(all(stored == {} for _, _, stored in self.compared({})))

    def test_gaps_of_any_history_are_filled(self):
        """Files grow, and reports come and go; what backfills is killed."""
        kills = 0
        for n in range(ROUNDS):
            self.anew()
            names, whole = [f"{n}-a.log", f"{n}-b.log"], []
            for _ in range(self.dice.randrange(2, 5)):
                name, lines = self.dice.choice(names), self.lines(self.dice.randrange(1, 4))
                whole.append(lines)
                self.append(name, lines)
                self.import_(name, self.dice.choice(["alone.yaml", "tallyd.yaml"]))
                if self.dice.random() < 0.3:
                    kills += self.kill_backfill()
            for _ in range(self.dice.randrange(1, 4)):
                kills += self.kill_backfill()
            files = [name for name in names if os.path.exists(self.path(name))]
            self.import_(files[0], "tallyd.yaml")  # finishes open batches, and registers the reports
            for report in LATER:
                self.backfill(report, *files)
            self.check(*whole, files=files)
        print(f"{ROUNDS} histories, {kills} kills")

    def kill_backfill(self):
        place = draw_death(self.dice, failpoints("mongo."), 4)
        times = ["--from", f"2026-01-{self.dice.randrange(4, 8):02}"] if self.dice.random() < 0.5 else []
        self.backfill(self.dice.choice(LATER), "-q", *times, env=dying_at(place), status=None)
        self.assertIn(self.status, (EX_OK, EX_NOINPUT, -9), f"{place}\n{self.err}")
        return self.status == -9

    def test_killed_at_each_place(self):
        a = self.lines(3)
        self.write("a.log", a)
        for place in failpoints("mongo."):
            with self.subTest(place):
                self.anew()
                self.import_("a.log", "alone.yaml")
                self.write("none.log", b"")
                self.import_("none.log", "tallyd.yaml")
                self.backfill("pages", status=-9, env=dying_at(place))
                self.backfill("pages")
                self.backfill("segments")
                self.check(a, files=["a.log"])

    def test_times_that_were_filled_go_with_a_file_that_is_forgotten(self):
        """Killed in between, the rest is counted again without the report: it has none of its events, of no times."""
        a = self.lines(4)
        self.write("a.log", a)
        self.write("none.log", b"")
        self.import_("a.log", "alone.yaml")
        self.import_("none.log", "tallyd.yaml")
        self.backfill("pages", "--from", "2026-01-04", "--to", "2026-01-07")
        for report in LATER:
            self.backfill(report)
        entries = [one["reports"]["pages"] for one in self.base.books.find({"source": {"$exists": True}})]
        self.assertTrue(any("filled" in one for one in entries), entries)
        self.tallyd("forget", "-c", "tallyd.yaml", "--store", self.store, "a.log", status=-9, env=dying_at("forget.taken"))
        self.import_("a.log", "alone.yaml")
        self.import_("none.log", "tallyd.yaml")
        for report in LATER:
            self.backfill(report)
        self.check(a, files=["a.log"])
        self.tallyd("forget", "-c", "tallyd.yaml", "--store", self.store, "a.log")
        self.assertTrue(all(one["reports"] == {} for one in self.base.books.find({"source": {"$exists": True}})))


class Beside(BackfillCase, DaemonCase):
    """A daemon counts into the database, with the reports that are backfilled; it never ends because of that."""

    def setUp(self):
        super().setUp()
        often = mongocase.CONFIG.replace(b"aggregate: {", b"aggregate: {flush: 100ms, flush_max: 100ms, ")
        self.write("run.yaml", b"sources: {access: {path: [a.log, b.log]}}\nhttp: {listen: '127.0.0.1:0'}\n" + often)
        self.whole = []

    def begin(self, batches=2):
        """Both logs were counted without the later reports. The daemon does not count before a line comes."""
        for name in "a.log", "b.log":
            self.grow(name, batches * LINES_A_BATCH)
            self.import_(name, "alone.yaml")
        self.run_daemon()

    def run_daemon(self, **options):
        self.launch("-c", "run.yaml", "--store", self.store, **options)

    def grow(self, name, count=20):
        lines = log(self.dice, count)
        self.whole.append(lines)
        self.append(name, lines)

    @contextlib.contextmanager
    def growing(self, name="a.log"):
        """Lines come all the while."""
        end = threading.Event()

        def grow():
            while not end.wait(0.02):
                self.grow(name, 5)

        thread = threading.Thread(target=grow)
        thread.start()
        try:
            yield
        finally:
            end.set()
            thread.join()

    def wait_for_all(self):
        sizes = {name: os.path.getsize(self.path(name)) for name in ("a.log", "b.log")}
        self.wait_until(lambda: self.nexts() == sizes)

    def check_all(self):
        self.wait_for_all()
        self.assertIsNone(self.process.poll(), self.read("log").decode())
        self.stop()
        self.check_at_rest()
        self.check(*self.whole, files=["a.log", "b.log"])

    def test_daemon_counts_up_to_where_it_began(self):
        """One log grows, the other is quiet until its history is filled in."""
        self.begin()
        with self.growing():
            for report in LATER:
                self.assertIn("has counted all", self.backfill(report))
                self.assertIsNone(self.process.poll(), self.read("log").decode())
        self.grow("b.log")
        self.wait_for_all()
        for report in LATER:
            self.assertNotIn("lines", self.backfill(report))
        self.grow("b.log")
        self.check_all()

    def test_log_that_grows_as_it_is_claimed(self):
        """A quiet log is claimed by what backfills; then its lines come, and the daemon claims it again."""
        self.begin(4)
        with self.growing("a.log"), self.growing("b.log"):
            for report in LATER:
                self.backfill(report, "--from", "2026-01-06")
                self.assertIn("has counted all", self.backfill(report))
        self.check_all()

    def test_whoever_is_killed(self):
        """The daemon, or what backfills, at a failpoint or at a random moment; lines come all the while."""
        self.begin()
        for _ in range(2 * ROUNDS):
            who = self.dice.choice(["daemon", "backfill", "moment"])
            place = draw_death(self.dice, failpoints("mongo.", "slot.", "claim.", "past."), 6)
            if who == "daemon":
                self.process.terminate()
                self.assertEqual(EX_OK, self.process.wait(TIMEOUT_S), self.read("log").decode())
                self.run_daemon(env=dying_at(place), started=False)
                while b"event=started" not in self.read("log") and self.process.poll() is None:
                    time.sleep(0.01)
            times = ["--from", f"2026-01-{self.dice.randrange(4, 8):02}"] if self.dice.random() < 0.3 else []
            with self.growing(self.dice.choice(["a.log", "b.log"])):
                process = self.start("backfill", "-c", "tallyd.yaml", "--store", self.store, "-q", *times, self.dice.choice(LATER),
                                     **({"env": dying_at(place)} if who == "backfill" else {}))
                if who == "moment":
                    time.sleep(self.dice.random())
                    process.kill()
                _, err = process.communicate(timeout=TIMEOUT_S)
            self.assertIn(process.returncode, (EX_OK, EX_NOINPUT, -9), f"{who} {place}\n{err.decode()}")
            if self.process.poll() is not None:
                self.assertEqual((-9, "daemon"), (self.process.returncode, who), self.read("log").decode())
            if who == "daemon":
                self.process.kill()
                self.process.wait(TIMEOUT_S)
                self.run_daemon()
        for report in LATER:
            self.assertIn("has counted all", self.backfill(report))
        self.grow("a.log")
        self.grow("b.log")
        self.check_all()

    def test_another_backfill_is_refused(self):
        self.begin()
        first = self.start("backfill", "-c", "tallyd.yaml", "--store", self.store, "pages")
        self.wait_until(lambda: "backfills" in str(self.ledger.slots()))
        first.send_signal(signal.SIGSTOP)
        self.backfill("segments", status=EX_TEMPFAIL)
        self.assertIn("another backfill runs", self.err)
        first.send_signal(signal.SIGCONT)
        self.assertIn(b"has counted all", first.communicate(timeout=TIMEOUT_S)[0])
        self.backfill("segments")
        self.check_all()


class Outrun(BackfillCase):
    """Each time that the commit comes, another writer was quicker: nothing is counted, or taken out, and the next run does all."""

    def setUp(self):
        super().setUp()
        self.write("a.log", self.lines(3))

    def outrun(self, *arguments):
        """Runs a command. Before each of its commits, another writer has backfilled some."""
        key, = self.ledger.partitions()
        process = self.start(*arguments, env=dying_at("mongo.logged:stop"))
        while os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT).si_code == os.CLD_STOPPED:
            self.ledger.change({"$inc": {f"partitions.{key}.fills": Int64(1)}})
            process.send_signal(signal.SIGCONT)
        self.err = process.communicate(timeout=TIMEOUT_S)[1].decode()
        self.assertEqual(EX_TEMPFAIL, process.returncode, self.err)

    def test_backfill(self):
        self.import_("a.log", "alone.yaml")
        self.outrun("backfill", "-c", "tallyd.yaml", "--store", self.store, "pages")
        self.assertIn("run the same command again", self.err)
        for report in LATER:
            self.assertIn("has counted all", self.backfill(report))
        self.check(self.read("a.log"), files=["a.log"])

    def test_forget(self):
        self.import_("a.log", "tallyd.yaml")
        forget = "forget", "-c", "tallyd.yaml", "--store", self.store, "a.log"
        self.outrun(*forget)
        self.assertIn("a backfill counted some of", self.err)
        self.check(self.read("a.log"), files=["a.log"])
        self.tallyd(*forget)
        self.assertTrue(all(stored == {} for _, _, stored in self.compared({})))


if __name__ == "__main__":
    mongocase.main()
