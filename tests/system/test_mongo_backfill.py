#!/usr/bin/env python3
"""`tallyd backfill` in MongoDB: a report that was configured late, or not all the time, has all that was counted before, once,
whenever it is killed, and while a daemon counts.

The judge is a recount of all lines by Python, and `tallyd verify`. TALLYD_ROUNDS says how many random histories are played
(3 by default). The seed is printed; TALLYD_SEED repeats a run. TALLYD_MONGO names the server (tests/servers/mongo.py).
"""

import contextlib
import os
import signal
import subprocess
import threading
import time

import mongocase

from harness import (EX_CONFIG, EX_NOINPUT, EX_OK, EX_TEMPFAIL, HURRY, TIMEOUT_S, DaemonCase, command, dice, draw_death, dying_at,
                     failpoints)
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
            place = draw_death(self.dice, failpoints("mongo.", "past."), 6)
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
        self.wait_until(lambda: "backfills" in str(self.base.ledger.find_one()))
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

    @contextlib.contextmanager
    def fills(self):
        """Other writers backfill all the while."""
        end = threading.Event()
        ledger = self.base.ledger
        key, = ledger.find_one()["partitions"]

        def fill():
            while not end.is_set():
                ledger.update_one({"_id": "ledger"}, {"$inc": {f"partitions.{key}.fills": Int64(1)}})

        thread = threading.Thread(target=fill)
        thread.start()
        try:
            yield
        finally:
            end.set()
            thread.join()

    def test_backfill(self):
        self.import_("a.log", "alone.yaml")
        with self.fills():
            self.backfill("pages", status=EX_TEMPFAIL)
        self.assertIn("run the same command again", self.err)
        self.assertEqual(0, self.base["pages.day"].count_documents({}))
        for report in LATER:
            self.assertIn("has counted all", self.backfill(report))
        self.check(self.read("a.log"), files=["a.log"])

    def test_forget(self):
        self.import_("a.log", "tallyd.yaml")
        forget = "forget", "-c", "tallyd.yaml", "--store", self.store, "a.log"
        with self.fills():
            self.tallyd(*forget, status=EX_TEMPFAIL)
        self.assertIn("a backfill counted some of", self.err)
        self.check(self.read("a.log"), files=["a.log"])
        self.tallyd(*forget)
        self.assertTrue(all(stored == {} for _, _, stored in self.compared({})))


class Replace(MongoCase):
    """A report was counted with a wrong filter: it is counted again under another name, and takes its place in one update."""

    SETTINGS = b"aggregate: {batch_size: 64KiB}\nstore: {validation: error}\n"
    WRONG, RIGHT = (b"{by: [path], where: [bytes>=%d], measures: {hits: count}%%s}" % least for least in (4000, 1000))

    def setUp(self):
        super().setUp()
        self.dice = dice()
        self.write("wrong.yaml", self.config(errors=self.WRONG % b""))
        self.write("both.yaml", self.config(errors=self.WRONG % b"", again=self.RIGHT % b""))
        self.write("taken.yaml", self.config(errors=self.RIGHT % b", generation: 2"))
        self.a, self.b = (log(self.dice, 2 * LINES_A_BATCH) for _ in range(2))

    def config(self, **reports):
        return b"reports: {" + b", ".join(b"%s: %s" % (name.encode(), report) for name, report in reports.items()) + b"}\n" + self.SETTINGS

    def begin_both(self):
        self.write("a.log", self.a)
        self.tallied("import", "-q", "a.log", config="wrong.yaml")
        self.append("a.log", self.b)
        self.tallied("import", "-q", "a.log", config="both.yaml")

    def tallied(self, command, *arguments, config, **options):
        return self.tallyd(command, "-c", config, "--store", self.store, *arguments, **options)

    def take(self, *arguments, **options):
        return self.tallied("backfill", "again", "--take", "errors", *arguments, config="both.yaml", **options)

    @staticmethod
    def days(least, *logs):
        """{day: lines} with at least so many bytes."""
        days = {}
        for line in b"".join(logs).splitlines():
            day, year, _, _, size = mongocase.LOGGED.match(line).groups()
            if size != b"-" and int(size) >= least:
                at = f"{int(year)}-01-{int(day):02}"
                days[at] = days.get(at, 0) + 1
        return days

    def found(self, report="errors", store=None):
        rows = self.query(report, "--step", "day", "--measure", "hits", span=("2026-01-01", "2026-02-01"), store=store or self.store)
        return {row["time"][:10]: int(row["value"]) for row in rows if row["value"] != "0"}

    def documents(self, key):
        days = {}
        for document in self.base[f"{key}.day"].find():
            at = document["metadata"]["date"].strftime("%Y-%m-%d")
            days[at] = days.get(at, 0) + document["daily"]
        return days

    def test_killed_at_each_place_it_is_one_or_the_other(self):
        self.begin_both()
        self.take(status=EX_NOINPUT)
        self.assertIn(f"offsets 0 to {len(self.a):,}, which errors counted: run `tallyd backfill again` first", self.err)
        self.tallied("backfill", "-q", "again", config="both.yaml")
        was, now = (self.days(least, self.a, self.b) for least in (4000, 1000))
        said = self.tallied("backfill", "again", "--compare", "errors", config="both.yaml")
        expected = [[day, "hits", str(was.get(day, 0)), str(n), str(n - was.get(day, 0))] for day, n in sorted(now.items())]
        self.assertEqual(expected, [line.split() for line in said.splitlines() if " hits " in line])
        for place, days in ("replace.before_commit", was), ("replace.after_commit", now):
            self.let_leases_end()
            self.take(status=-9, env=dying_at(place))
            self.assertEqual(days, self.found(), place)
        self.assertEqual({("again", "errors", 2), ("errors", "errors", 1)},
                         {(one["_id"], one["name"], one["generation"]) for one in self.base.reports.find()})
        self.let_leases_end()
        self.take(status=EX_NOINPUT)  # there is no such report any more
        # The old definition is refused, and so is a new report of the name that the documents have.
        for reports in {"errors": self.WRONG % b""}, {"again": self.WRONG % b""}:
            self.write("refused.yaml", self.config(**reports))
            self.tallied("import", "a.log", config="refused.yaml", status=EX_CONFIG)
        self.append("a.log", self.b)
        self.tallied("import", "-q", "a.log", config="taken.yaml")
        now = self.days(1000, self.a, self.b, self.b)
        self.assertEqual((now, now, was), (self.found(), self.documents("again"), self.documents("errors")))
        self.tallied("verify", "a.log", config="taken.yaml")
        self.tallied("verify", "--store-only", config="taken.yaml")
        self.assertIn("again.day", self.tallied("admin", "indexes", config="taken.yaml"))
        self.carry_away(now)
        self.tallied("forget", "errors~1", config="taken.yaml")
        self.assertEqual(now, self.found())
        self.assertFalse([name for name in self.base.list_collection_names() if name.startswith("errors.")])

    def carry_away(self, now):
        """A copy, and a restored backup, answer the same."""
        self.tallyd("admin", "copy", self.store, "sqlite:copy.db")
        self.assertEqual(now, self.found(store="copy.db"))
        self.tallyd("admin", "backup", "--store", self.store, "backup")
        was = self.name
        self.anew()
        self.tallyd("admin", "restore", "--store", self.store, "backup")
        self.assertEqual(now, self.found())
        self.assertEqual({"again", "errors"}, {one["_id"] for one in self.base.reports.find()})
        self.use(was)

    def let_leases_end(self):
        """As if a minute had passed since the last one was killed."""
        ledger = self.base.ledger.find_one()
        self.base.ledger.update_one({"_id": "ledger"}, {"$unset": {f"writers.{slot}.lease": "" for slot in ledger["writers"]}})

    def asking(self, do):
        """What is answered meanwhile; None: that the report was dropped."""
        answers, end = [], threading.Event()
        arguments = "query", "errors", "--store", self.store, "--step", "day", "--from", "2026-01-01", "--to", "2026-02-01", "--format", "csv-raw"

        def ask():
            while not end.is_set():
                done = subprocess.run([*command(), *arguments, "--measure", "hits"], capture_output=True, text=True, check=False, cwd=self.dir, timeout=TIMEOUT_S)
                rows = [line.split(",") for line in done.stdout.splitlines()[1:]]
                answers.append({row[0][:10]: int(row[-1]) for row in rows if row[-1] != "0"} if done.returncode == EX_OK else done.stderr)

        threads = [threading.Thread(target=ask) for _ in range(3)]
        for thread in threads:
            thread.start()
        try:
            do()
        finally:
            end.set()
            for thread in threads:
                thread.join()
        return [answer for answer in answers if not (isinstance(answer, str) and "was dropped meanwhile" in answer)]

    def test_old_one_is_dropped_and_a_third_takes_its_place(self):
        self.begin_both()
        self.tallied("backfill", "-q", "again", config="both.yaml")
        self.take("--drop-old", status=-9, env=dying_at("drop.collection:2"))
        self.assertEqual(self.days(1000, self.a, self.b), self.found())
        self.let_leases_end()
        self.assertIn("errors~1", self.tallied("forget", "errors~1", config="taken.yaml"))
        # `again~2` has a key of its own, and becomes errors~3.
        self.write("both.yaml", self.config(errors=self.RIGHT % b", generation: 2", again=self.WRONG % b", generation: 2"))
        self.tallied("import", "-q", "a.log", config="both.yaml")
        self.tallied("backfill", "-q", "again", config="both.yaml")
        was, now = self.days(1000, self.a, self.b), self.days(4000, self.a, self.b)
        answers = self.asking(lambda: self.assertIn("again is errors~3 now; errors~2 is dropped", self.take("--drop-old")))
        self.assertTrue(answers and all(found in (was, now) for found in answers), answers)
        self.assertEqual(self.days(4000, self.a, self.b), self.found())
        self.assertEqual([("again~2", "errors", 3)], [(one["_id"], one["name"], one["generation"]) for one in self.base.reports.find()])
        self.write("taken.yaml", self.config(errors=self.WRONG % b", generation: 3"))
        self.append("a.log", self.b)
        self.tallied("import", "-q", "a.log", config="taken.yaml")
        self.assertEqual(self.days(4000, self.a, self.b, self.b), self.found())
        self.tallied("verify", "a.log", config="taken.yaml")

    RANGE = "2026-01-05T12:00:00Z", "2026-01-06T06:00:00Z"

    def hours(self, is_counted, *logs):
        """{hour: [lines, bytes]} of those that are counted, by their time and bytes."""
        hours = {}
        for line in b"".join(logs).splitlines():
            day, year, clock, _, size = mongocase.LOGGED.match(line).groups()
            at = f"{int(year)}-01-{int(day):02}T{clock.decode()}Z"
            if size != b"-" and is_counted(at, int(size)):
                hit = hours.setdefault(at[:13] + ":00:00Z", [0, 0])
                hit[0], hit[1] = hit[0] + 1, hit[1] + int(size)
        return hours

    def found_hours(self):
        rows = self.query("errors", "--step", "hour", "--measure", "all", span=("2026-01-01", "2026-02-01"), store=self.store)
        return {row["time"]: [int(row["hits"]), int(row["size"])] for row in rows if row["hits"] != "0"}

    def in_range(self, at, size):
        return size >= (1000 if self.RANGE[0] <= at < self.RANGE[1] else 4000)

    def test_range_is_taken_and_killed_at_each_place_it_is_one_or_the_other(self):
        """The documents of the result are its own; the books say what is whose; verify judges the range."""
        measures = b"measures: {hits: count, size: sum(bytes), spread: histogram(bytes), paths: distinct(path)}"
        for name in "wrong.yaml", "both.yaml", "taken.yaml":
            self.write(name, self.read(name).replace(b"measures: {hits: count}", measures))
        self.begin_both()
        times = ["--from", self.RANGE[0], "--to", self.RANGE[1]]
        self.take(*times, status=EX_NOINPUT)
        self.let_leases_end()
        self.tallied("backfill", "-q", "again", *times, config="both.yaml")
        was, now = (self.hours(is_counted, self.a, self.b) for is_counted in (lambda _, size: size >= 4000, self.in_range))
        self.assertEqual(was, self.found_hours())
        places = ["replace.filled", "mongo.logged", "mongo.committed:2", "mongo.applied:2", "drop.collection:3", "replace.before_commit"]
        for place in places:
            self.let_leases_end()
            self.take(*times, status=-9, env=dying_at(place))
            self.assertEqual(was, self.found_hours(), place)
            self.assertTrue(self.base.reports.find_one({"name": "errors", "dropping": True}), place)
        self.let_leases_end()
        self.take(*times, status=-9, env=dying_at("replace.after_commit"))
        self.assertEqual(now, self.found_hours())
        found = sorted((one["generation"], one["_id"]) for one in self.base.reports.find({"name": "errors"}))
        self.assertEqual((1, "errors"), found[0])
        self.assertEqual(2, len(found), found)
        generation, key = found[1]
        self.let_leases_end()
        self.tallied("forget", "--yes", "again", config="taken.yaml")
        self.write("taken.yaml", self.read("taken.yaml").replace(b"generation: 2", b"generation: %d" % generation))
        self.append("a.log", self.b)
        self.tallied("import", "-q", "a.log", config="taken.yaml")
        now = self.hours(self.in_range, self.a, self.b)
        for at, (hits, size) in self.hours(lambda _, size: size >= 1000, self.b).items():
            now[at] = [now.get(at, [0, 0])[0] + hits, now.get(at, [0, 0])[1] + size]
        self.assertEqual(now, self.found_hours())
        said = self.tallied("verify", "a.log", config="taken.yaml")
        self.assertIn(f"not judged: its counts from 1970-01-01T00:00:00Z to {self.RANGE[0]}", said)
        self.assertIn(f"not judged: its counts from {self.RANGE[1]} to", said)
        self.tallied("verify", "--store-only", config="taken.yaml")
        self.assertTrue(self.base[f"{key}.day"].count_documents({}))
        self.tallied("job", "run", "rollup", config="taken.yaml", status=None)
        self.assertEqual(now, self.found_hours())
        self.tallied("verify", "--store-only", config="taken.yaml")
        self.assertFalse([name for name in self.base.list_collection_names() if name.startswith("again.")])
        # What was left by those that were killed is gone, and so is the old one if that is wanted.
        self.assertEqual({"errors", key}, {one["_id"] for one in self.base.reports.find()})
        self.tallied("forget", "errors~1", config="taken.yaml")
        self.assertEqual(now, self.found_hours())

    def test_range_is_not_taken_if_a_writer_came_meanwhile(self):
        self.begin_both()
        times = ["--from", self.RANGE[0], "--to", self.RANGE[1]]
        self.tallied("backfill", "-q", "again", *times, config="both.yaml")
        was, ended = self.found(), threading.Event()

        def come():
            while not ended.is_set():
                self.base.ledger.update_one({"_id": "ledger"}, {"$inc": {"writers.w5.inc": Int64(1)}})

        writer = threading.Thread(target=come)
        writer.start()
        try:
            self.take(*times, status=EX_TEMPFAIL)
        finally:
            ended.set()
            writer.join()
        self.assertIn("another writer counted meanwhile", self.err)
        self.assertEqual(was, self.found())
        self.take(*times)
        self.assertNotEqual(was, self.found())

    def begin_range(self):
        """Both are counted, and `again` has the range; so it is its place's turn. Returns {hour: [lines, bytes]} afterwards."""
        measures = b"measures: {hits: count, size: sum(bytes)}"
        for name in "wrong.yaml", "both.yaml", "taken.yaml":
            self.write(name, self.read(name).replace(b"measures: {hits: count}", measures))
        self.begin_both()
        self.times = ["--from", self.RANGE[0], "--to", self.RANGE[1]]
        self.tallied("backfill", "-q", "again", *self.times, config="both.yaml")
        self.let_leases_end()
        return self.hours(self.in_range, self.a, self.b)

    def test_hidden_one_is_forgotten_and_its_batch_is_recovered_later(self):
        now = self.begin_range()
        self.take(*self.times, status=-9, env=dying_at("mongo.committed:2"))
        slot = next(slot for slot, writer in self.base.ledger.find_one()["writers"].items() if "open" in writer)
        self.base.ledger.update_one({"_id": "ledger"}, {"$set": {f"writers.{slot}.host": "elsewhere"}})  # it may live
        self.tallied("forget", "--yes", "errors~2", config="wrong.yaml")
        self.let_leases_end()
        self.take(*self.times)
        self.assertEqual(now, self.found_hours())

    def test_hidden_one_is_forgotten_while_it_is_filled(self):
        """The one that fills it ends with an error, and what it made meanwhile does not count for the next one."""
        now = self.begin_range()
        process = self.start("backfill", "-c", "both.yaml", "--store", self.store, "again", "--take", "errors", *self.times)
        self.wait_until(lambda: self.base.reports.find_one({"dropping": True}))
        process.send_signal(signal.SIGSTOP)
        self.tallied("forget", "--yes", "errors~2", config="wrong.yaml")
        process.send_signal(signal.SIGCONT)
        _, err = process.communicate(timeout=TIMEOUT_S)
        self.assertEqual(EX_TEMPFAIL, process.returncode, err)
        self.let_leases_end()
        self.take(*self.times)
        self.assertEqual(now, self.found_hours())

    def test_range_is_taken_for_longer_than_a_heartbeat(self):
        """Its clock runs so fast that it soon looks at other writers, and at `reports`."""
        now = self.begin_range()
        self.take(*self.times, env={**os.environ, "LD_PRELOAD": HURRY, "HURRY": "100"})
        self.assertEqual(now, self.found_hours())
        self.assertFalse([slot for slot, writer in self.base.ledger.find_one()["writers"].items() if writer["lease"].timestamp() > 0])


if __name__ == "__main__":
    mongocase.main()
