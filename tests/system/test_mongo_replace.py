#!/usr/bin/env python3
"""`tallyd backfill NEW --take OLD` in MongoDB: a report takes the place of another one, whole or for a range of times, in one update,
whenever it is killed, and whatever others do meanwhile.

The judge is a recount of all lines by Python, and `tallyd verify`. The seed is printed; TALLYD_SEED repeats a run. TALLYD_MONGO names
the server (tests/servers/mongo.py).
"""

import datetime
import os
import signal
import subprocess
import threading

import mongocase

from harness import EX_CONFIG, EX_NOINPUT, EX_OK, EX_TEMPFAIL, TIMEOUT_S, command, dice, dying_at, preload
from mongocase import LINES_A_BATCH, SHORT, Int64, MongoCase, log, proxy


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
        self.ledger.change({"$unset": {f"writers.{slot}.lease": "" for slot in self.ledger.slots()}})

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
        """{hour: [lines, bytes]} of the lines that are counted."""
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

    def while_it_grows(self, member, do):
        """A number of the ledger grows all the time."""
        ended = threading.Event()

        def grow():
            while not ended.is_set():
                self.ledger.change({"$inc": {member: Int64(1)}})

        grower = threading.Thread(target=grow)
        grower.start()
        try:
            do()
        finally:
            ended.set()
            grower.join()

    def test_range_is_not_taken_if_a_writer_or_a_backup_came_meanwhile(self):
        self.begin_both()
        times = ["--from", self.RANGE[0], "--to", self.RANGE[1]]
        self.tallied("backfill", "-q", "again", *times, config="both.yaml")
        was = self.found()
        meanwhile, taken = "another writer counted, or a backup began, meanwhile", "a backup is being taken, or was killed"
        for member, said in ("writers.w5.inc", meanwhile), ("noted", f"{meanwhile}|{taken}"):
            with self.subTest(grows=member):
                self.while_it_grows(member, lambda: self.take(*times, status=EX_TEMPFAIL))
                self.assertRegex(self.err, said)
        self.ledger.change({"$set": {"backups.one.until": datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(minutes=5)}})
        self.take(*times, status=EX_TEMPFAIL)
        self.assertIn(taken, self.err)
        self.ledger.change({"$unset": {"backups.one": ""}})
        self.assertEqual({"errors", "again"}, {one["_id"] for one in self.base.reports.find()})  # nothing is left of it
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
        slot = next(iter(self.ledger.open_batches()))
        self.ledger.change({"$set": {f"writers.{slot}.host": "elsewhere"}})  # it may live
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
        self.take(*self.times, env={**os.environ, "LD_PRELOAD": preload("hurry"), "HURRY": "100"})
        self.assertEqual(now, self.found_hours())
        self.assertFalse([slot for slot, writer in self.ledger.slots().items() if writer["lease"].timestamp() > 0])
        self.tallied("verify", "--store-only", config="taken.yaml")

    def test_writers_do_not_mind_what_a_killed_one_left(self):
        """One starts, and one looks at `reports` again while it counts."""
        now = self.begin_range()
        self.take(*self.times, status=-9, env=dying_at("replace.filled"))
        self.let_leases_end()
        self.tallied("import", "-q", "a.log", config="wrong.yaml")
        self.append("a.log", self.b)
        self.tallied("import", "-q", "a.log", config="both.yaml", env={**os.environ, "LD_PRELOAD": preload("hurry"), "HURRY": "100"})
        self.assertTrue(self.base.reports.find_one({"name": "errors", "dropping": True}))
        self.take(*self.times)
        for at, (hits, size) in self.hours(self.in_range, self.b).items():
            now[at] = [now.get(at, [0, 0])[0] + hits, now.get(at, [0, 0])[1] + size]
        self.assertEqual(now, self.found_hours())

    def test_report_with_an_older_generation_is_refused(self):
        self.begin_range()
        self.write("both.yaml", self.read("both.yaml").replace(b"}}}\n", b"}, generation: 2}}\n"))
        self.base.reports.update_one({"_id": "again"}, {"$set": {"generation": 2}})
        only = self.base.reports.find_one({"_id": "again"})
        for older in {"generation": 1}, {"generation": 1, "dropping": True}:
            self.base.reports.insert_one({**only, "_id": "older", **older})
            self.take(*self.times, status=EX_CONFIG)
            self.assertEqual({"errors", "again", "older"}, {one["_id"] for one in self.base.reports.find()})
            self.base.reports.delete_one({"_id": "older"})

    def test_replies_are_lost_while_the_hidden_one_is_made(self):
        """It makes it again, and adds nothing to the documents of the report whose place it takes, or of its own."""
        now, before = self.begin_range(), self.documents("again")
        update, tries = ("update", "reports"), 3
        with proxy.Proxy(self.server.port) as between:
            between.plan = lambda: proxy.FAITHFUL if between.commands[update] >= tries else proxy.Fault(lose=update)
            self.tallyd("backfill", "-c", "both.yaml", "--store", f"mongodb://127.0.0.1:{between.port}/{self.name}{SHORT}",
                        "again", "--take", "errors", *self.times, env=dying_at("replace.before_commit"), status=-9)
            self.assertGreaterEqual(between.commands["lost"], tries)
        self.assertEqual(before, self.documents("again"))
        self.let_leases_end()
        self.take(*self.times)
        self.assertEqual(now, self.found_hours())

    def test_indexes_that_are_not_wanted(self):
        self.begin_range()
        self.write("both.yaml", self.read("both.yaml").replace(b"store: {", b"store: {indexes: false, "))
        self.take(*self.times)
        for name in "day", "month":
            self.assertEqual({"_id_"}, set(self.base[f"errors~2.{name}"].index_information()))


if __name__ == "__main__":
    mongocase.main()
