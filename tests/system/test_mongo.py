#!/usr/bin/env python3
"""The MongoDB store counts each line exactly once, whatever dies: an import, the server, or the network between them.

Imports are compared with the embedded store and, document by document, with a recount. TALLYD_MONGO names the server
(tests/servers/mongo.py); only one of them can be told to refuse commands. TALLYD_ROUNDS (4 by default) says how often what happens
by chance is tried. The seed is printed; TALLYD_SEED repeats a run, as far as the moments of a machine can be repeated.
"""

import datetime
import os
import signal
import string
import threading
import time

from harness import EX_DATAERR, EX_OK, EX_TEMPFAIL, DaemonCase, dice, draw_death, dying_at, failpoints, traffic
from mongocase import (CONFIG, FIRST_DAY, KINDS, LAYOUTS, LINE, LINES_A_BATCH, PASSING, REPORTS, SHORT, MongoCase, add_up, log,
                       main, proxy, recount)

ROUNDS = int(os.environ.get("TALLYD_ROUNDS") or 4)
BATCHES = 6
KILLED = -signal.SIGKILL
DEADLOCK = 16908292  # as FerretDB says it: 40P01


class Import(MongoCase):
    def test_answers_what_the_embedded_store_answers(self):
        self.write("a.log", traffic(300))
        self.tallyd("import", "a.log")
        self.count("a.log")
        self.assertEqual(self.answers(), self.answers(self.store))
        self.assertEqual(300, self.total(store=self.store))
        self.check(self.read("a.log"), files=["a.log"])

    def test_odd_names(self):
        names = ["/%other", "/a.b/$c", "/$", "/.", "/\u00fc/\u20ac/\U0001f600", "/%25/%2F", "/%2525", "//", "/w0", "/-",
                 "/" + "a" * 700, "/" + "a" * 699 + "b", "/" * 600, "/" * 700, "/" + "\u00fc" * 240, "*", "http://a/b"]
        line = '192.0.2.1 - - [%02d/Jan/2026:%02d:01:02 +0000] "GET %s HTTP/1.1" 200 %d "-" "-"\n'
        lines = "".join(line % (5 + i % 2, i % 3, name, i) for i, name in enumerate(names)).encode()
        self.write("a.log", lines)
        self.tallyd("import", "a.log")
        self.count("a.log")
        self.count("a.log")
        self.assertEqual(self.answers(), self.answers(self.store))
        self.tallyd("verify", "--store", self.store, "a.log")
        for row in self.query("pages", "--top", "100"):
            filtered = [self.query("pages", "--filter", f"path={row['path']}", store=store)
                        for store in ("tallyd.db", self.store)]
            self.assertEqual(filtered[0], filtered[1], row["path"])

    def test_longest_names(self):
        """Longer than what a server takes for an `_id`, and perhaps for a key of an index."""
        letters = string.ascii_letters + string.digits  # which cannot be packed to make them fit
        stem = "/" + "".join(dice().choices(letters, k=4094))
        names = [stem + end for end in letters[:6]]
        self.write("tallyd.yaml", CONFIG + b"limits: {dimension_max: 4KiB}\n")
        self.write("a.log", "".join(LINE % (i, FIRST_DAY, 0, 1, 2, name, i, "-") for i, name in enumerate(names)).encode())
        self.count("a.log")
        self.check(self.read("a.log"), files=["a.log"])

    def test_a_file_is_counted_once_and_continued(self):
        lines = log(dice(), 3 * LINES_A_BATCH)
        half = lines.index(b"\n", len(lines) // 2) + 1
        self.write("a.log", lines[:half])
        self.count("a.log")
        self.check(lines[:half])
        self.assertFalse(self.finish("a.log"))
        self.check(lines[:half])
        self.write("a.log", lines)
        self.assertTrue(self.finish("a.log"))
        self.assertFalse(self.finish("a.log"))
        self.check(lines, files=["a.log"])

    def test_a_small_batch_takes_few_connections(self):
        """One for each collection: series, days, months, rankings, books, jobs."""
        self.write("tallyd.yaml", b"reports: {pages: {by: [path]}}\nstore: {connections: 32}\n")
        lines = log(dice(), 10)
        self.write("a.log", lines)
        with proxy.Proxy(self.server.port) as between:
            self.count("a.log", url=f"mongodb://127.0.0.1:{between.port}/{self.name}")
            self.assertEqual({"none": 6}, dict(between.faults))
        self.assertEqual(add_up(recount(lines), "minute"), self.stored("pages", "day", "minute"))


class Documents(MongoCase):
    """A chart needs one document, found by its name or by its path and date, with nothing of tallyd."""

    def setUp(self):
        super().setUp()
        self.log = log(dice(), 800, pages=5, days=4, minutes=20)
        self.write("a.log", self.log)
        self.count("a.log")
        self.cells = recount(self.log)
        self.page = "/1/page-1.html"
        self.escaped = "%2F1%2Fpage-1.html"

    def hits(self, span):
        """{time: hits} of the page, by recount"""
        return {at: hits for (at, path), (hits, _) in add_up(self.cells, span).items() if path == self.page}

    def test_an_hour_by_minute_is_a_part_of_one_document(self):
        wanted = self.hits("minute")
        hour = max(wanted)[:13]  # the last with anything in it
        found = self.base["pages.day"].find_one({"_id": f"{hour[:10].replace('-', '')}/{self.escaped}"},
                                                {"minute." + str(int(hour[11:])): 1})
        self.assertEqual({"_id", "minute"}, set(found))
        self.assertEqual([str(int(hour[11:]))], list(found["minute"]))
        self.assertEqual({int(at[14:16]): hits for at, hits in wanted.items() if at.startswith(hour)},
                         {int(at): hits for at, hits in found["minute"][str(int(hour[11:]))].items()})

    def test_a_day_by_hour_is_one_document(self):
        found = self.base["pages.day"].find_one({"metadata.path": self.page,
                                                 "metadata.date": datetime.datetime(2026, 1, 6)}, {"hourly": 1})
        wanted = self.hits("hour")
        self.assertEqual({int(at[11:]): hits for at, hits in wanted.items() if at.startswith("2026-01-06")},
                         {int(at): hits for at, hits in found["hourly"].items()})

    def test_days_by_hour_are_a_range_of_dates(self):
        begin, until = datetime.datetime(2026, 1, 6), datetime.datetime(2026, 1, 8)
        found = {}
        dates = []
        for one in self.base["pages.day"].find({"metadata.path": self.page,
                                                "metadata.date": {"$gte": begin, "$lt": until}},
                                               {"hourly": 1, "metadata.date": 1}).sort("metadata.date", 1):
            dates.append(one["metadata"]["date"])
            for hour, hits in one["hourly"].items():
                found[f"{dates[-1]:%Y-%m-%d}T{int(hour):02}"] = hits
        self.assertEqual([begin, begin + datetime.timedelta(1)], dates)
        wanted = self.hits("hour")
        self.assertEqual({at: hits for at, hits in wanted.items() if "2026-01-06" <= at[:10] < "2026-01-08"}, found)

    def test_a_month_by_day_is_one_document(self):
        found = self.base["pages.month"].find_one({"_id": f"202601/{self.escaped}"})
        wanted = self.hits("day")
        self.assertEqual({int(at[8:]): hits for at, hits in wanted.items()},
                         {int(day): hits for day, hits in found["daily"].items()})
        self.assertEqual(sum(wanted.values()), found["total"])

    def test_documents_are_sorted_by_time_and_say_what_they_are(self):
        digits = {"month": "%Y%m", "day": "%Y%m%d", "hour": "%Y%m%d%H", "minute": "%Y%m%d%H%M"}
        for report, layout in LAYOUTS.items():
            for kind in KINDS[layout]:
                found = list(self.base[f"{report}.{kind}"].find().sort("_id", 1))
                dates = [one["metadata"]["date"] for one in found]
                self.assertEqual(sorted(dates), dates)
                self.assertGreater(len(found), 0)
                for one in found:
                    date = one["metadata"]["date"]
                    time, *_ = one["_id"].split("/")
                    self.assertEqual(date.strftime(digits[kind]), time)
                    self.assertEqual(datetime.datetime.strptime(time, digits[kind]), date)
                    self.assertEqual(1, one["v"])
                    self.assertIsInstance(one["modified"], datetime.datetime)
                    self.assertGreaterEqual(one["applied"]["w0"], 1)

    def test_verify_sees_every_span_of_every_layout(self):
        """One figure changed in one document, where that span is read from."""
        places = (("moments", "minute", "second", "second"), ("moments", "hour", "minute", "minute"),
                  ("moments", "day", "hourly", "hour"), ("moments", "month", "daily", "day"),
                  ("segments", "hour", "minute", "minute"), ("segments", "month", "total", "month"),
                  ("pages", "day", "minute", "minute"))
        for report, kind, member, span in places:
            with self.subTest(report=report, kind=kind, member=member):
                collection = self.base[f"{report}.{kind}"]
                one = collection.find_one()
                path, value = member, one[member]
                while isinstance(value, dict):
                    key = next(iter(value))
                    path, value = f"{path}.{key}", value[key]
                collection.update_one({"_id": one["_id"]}, {"$inc": {path: 1}})
                said = self.tallyd("verify", "-c", "tallyd.yaml", "--store", self.store, "a.log", status=1)
                self.assertRegex(said, rf"{report} .* by {span}: stored {value + 1}, recounted {value}\n")
                self.assertIn("1 difference", said)
                collection.update_one({"_id": one["_id"]}, {"$inc": {path: -1}})


class OfOneLog(MongoCase):
    def setUp(self):
        super().setUp()
        self.dice = dice()
        self.log = log(self.dice, BATCHES * LINES_A_BATCH)
        self.write("a.log", self.log)


class Crash(OfOneLog):
    def check_end(self):
        """Run on to the end; all is counted once. True: there was something left."""
        left = self.finish("a.log")
        self.check(self.log, files=["a.log"])
        return left

    def test_killed_at_every_failpoint(self):
        for name in failpoints("mongo."):
            for times in 1, 2:
                with self.subTest(failpoint=name, times=times):
                    self.anew()
                    process = self.begin("a.log", env=dying_at(f"{name}:{times}"))
                    # A batch is done by the seal of the next one: only the last one is done by itself.
                    once = (name, times) == ("mongo.done", 2)
                    self.end(process, EX_OK if once else KILLED)
                    self.check_end()

    def test_killed_while_it_finishes_what_another_left(self):
        for number in range(ROUNDS):
            with self.subTest(round=number):
                self.anew()
                for name in "mongo.committed", "mongo.applying", self.dice.choice(failpoints("mongo.")):
                    process = self.begin("a.log", env=dying_at(name))
                    self.end(process, KILLED)
                self.check_end()

    def test_killed_anywhere(self):
        within = 0
        for number in range(ROUNDS):
            with self.subTest(round=number):
                self.anew()
                process = None
                while process is None or (process.returncode != EX_OK and self.dice.random() < 0.5):
                    process = self.begin("a.log", env=dying_at(draw_death(self.dice, failpoints("mongo."), BATCHES)))
                    self.end(process, EX_OK, KILLED)
                was_begun = len(self.nexts()) > 0
                within += self.check_end() and was_begun
        print(f"{ROUNDS} rounds; in {within} the last run went on within the file")
        self.assertGreaterEqual(within, ROUNDS // 5, "the kills came too late to test anything")

    def test_the_server_is_killed(self):
        whole_s = self.timed("a.log")
        for number in range(max(2, ROUNDS // 3)):
            with self.subTest(round=number):
                self.anew()
                process = self.begin("a.log", url=f"{self.store}{SHORT}")
                time.sleep(self.dice.random() * whole_s)  # by time: the server has no failpoints
                self.server.kill()
                self.end(process, EX_OK, *PASSING)
                self.server.start()
                self.check_end()


def fault_of(dice, hello=False):
    """The fault of the next connection: most break within one batch. With `hello` they begin well: the driver does not
    try a server for 5 s that did not even answer to that."""
    roll = dice.random()
    if roll < 0.1 and not hello:
        return proxy.Fault("refuse")
    how = dice.choice(["reset", "close", "half", "silent"])
    at = int(10 ** (2 + 3 * dice.random()))
    up, down = (at + 2000 * hello, None) if roll < 0.55 else (None, at // 10 + 1500 * hello)
    return proxy.Fault(how, up, down, 0.001 if dice.random() < 0.2 else 0)


class Network(MongoCase):
    def test_connections_are_cut_anywhere(self):
        self.dice = dice()
        lines = log(self.dice, 6 * LINES_A_BATCH)
        self.write("a.log", lines)
        faults = None
        for number in range(max(2, ROUNDS // 3)):
            with self.subTest(round=number), proxy.Proxy(
                    self.server.port, lambda: fault_of(self.dice)) as between:
                self.anew()
                url = f"mongodb://127.0.0.1:{between.port}/{self.name}{SHORT}"
                tries = 0
                while tries < 12 and self.end(process := self.begin("a.log", url=url), EX_OK, *PASSING):
                    tries += 1
                    if process.returncode == EX_OK:
                        break
                faults = between.faults if faults is None else faults + between.faults
                self.finish("a.log")
                self.check(lines, files=["a.log"])
        print(f"connections: {dict(faults)}")


class Daemon(MongoCase, DaemonCase):
    """One that follows a file asks again until it has an answer, and may never count twice by that."""

    def setUp(self):
        super().setUp()
        self.dice = dice()
        self.log = log(self.dice, 600)
        self.write("a.log", b"")
        self.put_between()
        self.launch("-c", "tallyd.yaml")

        self.first, *self.rest = self.pieces()
        self.append("a.log", self.first)
        self.wait_for(self.nexts, bool)  # where it is to begin is asked once

    def pieces(self):
        """The log, a piece each time."""
        lines = self.log.splitlines(keepends=True)
        while lines:
            count = self.dice.randrange(1, 40)
            yield b"".join(lines[:count])
            lines = lines[count:]

    def check_end(self):
        """All that was appended gets counted once. Its last word, that all is done, may be lost with a connection."""
        self.wait_for(lambda: self.nexts().get("a.log"), lambda found: found == len(self.log))
        self.stop()
        self.check(self.log, files=["a.log"])

    def test_connections_are_cut_anywhere(self):
        self.between.plan = lambda: fault_of(self.dice, hello=True)
        self.between.cut()
        for piece in self.rest:
            self.append("a.log", piece)
            time.sleep(self.dice.random() * 0.3)
            self.assertIsNone(self.process.poll(), self.read("log").decode())
        self.between.plan = lambda: proxy.FAITHFUL
        self.between.cut()
        print(f"connections: {dict(self.between.faults)}")
        self.check_end()

    def test_commands_are_refused(self):
        """Some before they are carried out; with an error of the write concern, though they are."""
        answers = [{"errorCode": code} for code in (91, 189, 10107, 11602, DEADLOCK)] + [
            {"closeConnection": True}, {"writeConcernError": {"code": 64, "errmsg": "waiting timed out"}}]
        for piece in self.rest:
            self.client.admin.command("configureFailPoint", "failCommand", mode={"times": self.dice.randrange(1, 4)},
                                      data={"failCommands": [self.dice.choice(["insert", "update", "findAndModify"])],
                                            **self.dice.choice(answers)})
            self.append("a.log", piece)
            time.sleep(self.dice.random() * 0.3)
            self.assertIsNone(self.process.poll(), self.read("log").decode())
        self.client.admin.command("configureFailPoint", "failCommand", mode="off")
        self.assertIn(b"store_failed", self.read("log"))
        self.check_end()

    def is_counted(self):
        consumed = sum(book.get("entries", {}).get("consumed", 0) for book in self.base.books.find())
        return consumed == self.log.count(b"\n") and all(
            counts == stored for _, counts, stored in self.compared(recount(self.log)))

    def test_connections_that_broke_before_the_end(self):
        """Its last word is that nothing is open."""
        self.append("a.log", b"".join(self.rest))
        self.wait_for(self.is_counted, bool)
        self.between.cut()
        self.stop()
        self.check_at_rest()
        self.check(self.log)

    def test_the_server_is_killed(self):
        deaths = self.dice.sample(range(len(self.rest)), 3)
        for number, piece in enumerate(self.rest):
            self.append("a.log", piece)
            time.sleep(self.dice.random() * 0.1)  # by time: the server has no failpoints
            if number in deaths:
                self.server.kill()
                self.server.start()
        self.check_end()

    def test_one_without_events_is_no_dead_one(self):
        """For longer than a lease there was nothing to count: whoever comes must not end it by that."""
        long_ago = datetime.datetime(2020, 1, 1)
        self.ledger.change({"$set": {"writers.w0.lease": long_ago}})
        self.write("b.log", other := log(self.dice, 50))
        self.count("b.log", url=self.store)
        self.append("a.log", b"".join(self.rest))
        self.wait_for(lambda: self.nexts().get("a.log"), lambda found: found == len(self.log))
        self.stop()
        self.check(self.log, other, files=["a.log", "b.log"])


if not MongoCase.FAIL_COMMAND:
    del Daemon.test_commands_are_refused


class Beginning(MongoCase, DaemonCase):
    def test_the_store_is_away_when_a_file_is_first_asked_for(self):
        """The daemon runs: it waits for the store then as it does at any other time."""
        self.write("a.log", b"")
        self.write("tallyd.yaml", f"""\
{REPORTS}
store: {{url: "{self.store}{SHORT}"}}
sources: {{access: {{path: a.log}}}}
http: {{listen: "127.0.0.1:0"}}
""".encode())
        self.launch("-c", "tallyd.yaml")
        self.server.kill()
        lines = log(dice(), 50)
        try:
            self.write("a.log", lines)
            time.sleep(0.5)
        finally:
            self.server.start()
        self.wait_for(lambda: self.nexts().get("a.log"), lambda found: found == len(lines))
        self.stop()
        self.check(lines)


    def test_a_begin_that_fails_takes_no_slot(self):
        """The connection ends, time and again, once the slot is taken: the daemon begins anew, and is one writer."""
        self.put_between()
        ended = []

        def answer(piece):
            if b"\x02count\0" in piece and b"pages.series" in piece and len(ended) < 3:
                ended.append(piece)
                return b""
            return None
        self.between.answer = answer
        self.write("a.log", lines := log(dice(), 50))
        self.launch("-c", "tallyd.yaml")
        self.wait_for(lambda: self.nexts().get("a.log"), lambda found: found == len(lines))
        self.assertEqual(3, len(ended))
        self.assertEqual({"w0"}, {*self.ledger.slots()})
        self.stop()
        self.check(lines)


class Together(OfOneLog):
    """Two imports at a time, of one database."""

    def test_of_two_files(self):
        other = log(self.dice, 6 * LINES_A_BATCH)
        self.write("b.log", other)
        both = self.begin("a.log"), self.begin("b.log")
        for process in both:
            self.end(process)
        self.check(self.log, other, files=["a.log", "b.log"])
        self.check_at_rest()

    def test_of_one_file(self):
        for number in range(max(2, ROUNDS // 3)):
            with self.subTest(round=number):
                self.anew()
                first = self.begin("a.log")
                time.sleep(self.dice.random() * 0.2)
                second = self.begin("a.log")
                for process in first, second:
                    self.end(process, EX_OK, EX_DATAERR, EX_TEMPFAIL)
                self.finish("a.log")
                self.check(self.log, files=["a.log"])

    def test_logs_go_while_an_import_lasts(self):
        self.anew()
        self.write("a.log", lines := log(self.dice, 160 * LINES_A_BATCH))
        process, most = self.begin("a.log"), 0
        while process.poll() is None:
            most = max(most, self.base.batches.count_documents({}))
            time.sleep(0.05)
        self.end(process)
        self.assertGreater(self.ledger.slots()["w0"]["seq"], 100)
        self.assertLess(most, 90)
        self.check(lines, files=["a.log"])
        self.check_at_rest()

    def test_very_many_logs_are_deleted_by_and_by(self):
        """As a long backup leaves them: one command for all of them might take longer than a reply may."""
        self.anew()
        self.count(self.write("b.log", log(self.dice, 10)))
        old = [{"_id": f"w0/{0:016x}/{number:016x}/0000", "prev": number - 1, "zstd": b"old"} for number in range(2500)]
        self.base.batches.insert_many(old)
        between = proxy.Proxy(self.server.port)
        self.addCleanup(between.close)
        self.count("a.log", url=f"mongodb://127.0.0.1:{between.port}/{self.name}")
        self.assertEqual(0, self.base.batches.count_documents({}))
        self.assertGreaterEqual(between.commands["delete", "batches"], 3)

    def test_both_finish_what_a_third_left(self):
        for number in range(max(2, ROUNDS // 3)):
            with self.subTest(round=number):
                self.anew()
                times = self.dice.choice("123")
                self.end(self.begin("a.log", env=dying_at("mongo.committed:" + times)), KILLED)
                both = self.begin("a.log"), self.begin("a.log")
                for process in both:
                    self.end(process, EX_OK, EX_DATAERR, EX_TEMPFAIL)
                self.finish("a.log")
                self.check(self.log, files=["a.log"])

    def test_a_last_batch_is_finished_though_its_writer_never_returns(self):
        """It is sealed: the file has nothing left to count, and the next import another slot."""
        waiting = self.stop_within()
        other = log(self.dice, 50)
        self.write("b.log", other)
        self.end(self.begin("b.log", env=dying_at("mongo.committed")), KILLED)
        waiting.send_signal(signal.SIGCONT)
        self.end(waiting)
        self.count("b.log")
        self.check(self.log, other, files=["a.log", "b.log"])
        self.check_at_rest()

    def stop_within(self):
        """An import that stands still after some of its batches were sealed, where it sends the log of the next one."""
        between, over, sealed = proxy.Proxy(self.server.port), threading.Event(), self.dice.randrange(1, 5)
        self.addCleanup(between.close)
        self.addCleanup(over.set)

        def is_next():
            return between.commands["insert", "batches"] > sealed

        between.answer = lambda _: over.wait() and None if is_next() else None
        process = self.begin("a.log", url=f"mongodb://127.0.0.1:{between.port}/{self.name}")
        self.wait_until(is_next)
        process.send_signal(signal.SIGSTOP)
        over.set()
        self.assertTrue(0 < self.nexts()["a.log"] < len(self.log))
        return process

    def go_on(self, process):
        process.send_signal(signal.SIGCONT)
        self.end(process, EX_DATAERR, EX_TEMPFAIL)
        self.check(self.log, files=["a.log"])
        self.assertFalse(self.finish("a.log"))
        self.check(self.log)

    def test_one_that_was_thought_dead_goes_on(self):
        process = self.stop_within()
        self.count("a.log")
        self.check(self.log)
        self.go_on(process)

    def test_one_whose_slot_was_taken_goes_on(self):
        process = self.stop_within()
        given_back = datetime.datetime(1970, 1, 1)
        self.ledger.change({"$set": {"writers.w0.lease": given_back}})
        self.count("a.log")
        self.assertEqual(["w0"], list(self.ledger.slots()))
        self.go_on(process)


if __name__ == "__main__":
    main()
