#!/usr/bin/env python3
"""Months that are over, rolled up into the documents of their years: each year is what a recount of the logs says of its months,
whatever is killed, comes late, or goes on at once. TALLYD_MONGO names the server (tests/servers/mongo.py).
"""

import collections
import datetime
import os
import re
import signal
import time

from harness import EX_OK, EX_TEMPFAIL, EX_USAGE, TIMEOUT_S, dice, draw_death, dying_at, failpoints
from mongocase import FOLLOWING, Int64, MongoCase, main, proxy

KILLED = -signal.SIGKILL
ROUNDS = int(os.environ.get("TALLYD_ROUNDS", "6"))
CONFIG = """\
reports:
  pages: {by: [path], measures: {hits: count, bytes: sum(bytes), most: max(bytes), least: min(bytes), usual: mean(bytes), newest: last(bytes)}}
  site: {layout: hour}
aggregate: {batch_size: 64KiB}
store: {validation: error}
"""
# In whatever order a server has them: that of their bytes is relied on.
ODD = ["a", "B", "_", "~", "Ä", "ß", "日本", "%25", "-", "0", "🙂"]
LINE = '198.51.100.7 - - [%s +0000] "GET %s HTTP/1.1" 200 %d "-" "-"\n'


def log(dice, lines, years=(2024, 2025), pages=5):
    out = []
    for _ in range(lines):
        at = datetime.datetime(dice.choice(years), dice.randrange(1, 13), dice.randrange(1, 29), dice.randrange(24),
                               dice.randrange(60), dice.randrange(60))
        page = f"/{ODD[dice.randrange(pages) % len(ODD)]}-{dice.randrange(pages)}.html" if dice.random() < 0.3 else (
            f"/page-{dice.randrange(pages)}.html")
        out.append(LINE % (at.strftime("%d/%b/%Y:%H:%M:%S"), page, dice.randrange(5000)))
    return "".join(out).encode()


def each_month(years=(2024, 2025)):
    """One line of /page-1.html in each."""
    return "".join(LINE % (datetime.datetime(year, month, 15, 12).strftime("%d/%b/%Y:%H:%M:%S"), "/page-1.html", 7)
                   for year in years for month in range(1, 13)).encode()


LOGGED = re.compile(rb'\S+ \S+ \S+ \[(\S+) \S+\] "\S+ (\S+)[^"]*" \d+ (\d+) ')


def recount(lines):
    """{(year, month, path): [the values in order]} by nothing that tallyd has."""
    cells = collections.defaultdict(list)
    for line in lines.splitlines():
        clock, path, size = LOGGED.match(line).groups()
        at = datetime.datetime.strptime(clock.decode(), "%d/%b/%Y:%H:%M:%S")
        cells[at.year, at.month, path.decode()].append((at, int(size)))
    return cells


class RollupCase(MongoCase):
    def setUp(self):
        super().setUp()
        self.dice = dice()
        self.write("tallyd.yaml", CONFIG.encode())

    def count_lines(self, lines):
        self.write("a.log", lines)
        self.count("a.log")

    def years(self):
        """{(year, month, path): (count, sum, max, min, mean)} of the documents of years."""
        cells = {}
        for year in self.base["pages.year"].find():
            for month, hits in year["total"].items():
                mean = year["usual"]["total"][month]
                self.assertEqual(hits, mean["count"])
                self.assertIsInstance(mean["at"], datetime.datetime)
                cells[year["metadata"]["date"].year, int(month), year["metadata"]["path"]] = (
                    hits, *(year[name]["total"][month] for name in ("bytes", "most", "least")), mean["mean"])
        return cells

    def check_years(self, lines):
        expected = {cell: (len(values), sum(sizes), max(sizes), min(sizes), sum(sizes) / len(sizes))
                    for cell, values in recount(lines).items() for sizes in [[size for _, size in values]]}
        self.assertEqual(expected, self.years())
        site = collections.Counter()
        for (year, month, _), values in recount(lines).items():
            site[year, month] += len(values)
        self.assertEqual(site, {(one["metadata"]["date"].year, int(month)): hits for one in self.base["site.year"].find()
                                for month, hits in one["total"].items()})
        newest = {cell: max(values, key=lambda one: one[0])[0] for cell, values in recount(lines).items()}
        for year in self.base["pages.year"].find():
            for month, last in year["newest"]["total"].items():
                self.assertEqual(newest[year["metadata"]["date"].year, int(month), year["metadata"]["path"]],
                                 last["t"].replace(microsecond=0))

    def check(self, lines):
        """Also what is answered, from whatever documents."""
        expected = collections.Counter()
        for (year, month, path), values in recount(lines).items():
            expected[f"{year}-{month:02}"] += len(values) if path == "/page-1.html" else 0
        answer = self.tallyd("query", "pages", "--filter", "path=/page-1.html", "--from", "2021-01-01", "--to", "2026-01-01",
                             "--step", "month", "--measure", "hits", "--format", "csv-raw", "--store", self.store)
        found = {line.split(",")[0][:7]: int(line.split(",")[-1]) for line in answer.splitlines()[1:]}
        self.assertEqual(+expected, +collections.Counter(found))
        self.tallyd("verify", "-c", "tallyd.yaml", "--store", self.store, "a.log")

    def documents_read(self):
        plan = self.tallyd("query", "pages", "--filter", "path=/page-1.html", "--from", "2024-01-01", "--to", "2025-01-01",
                           "--step", "month", "--explain", "--store", self.store)
        return int(re.search(r"read (\d+) rows", plan + self.err).group(1))


class Rollup(RollupCase):
    def test_months_that_are_over_are_in_their_years(self):
        lines = log(self.dice, 2000) + each_month()
        self.count_lines(lines)
        self.assertEqual(12, self.documents_read())
        self.assertIn("pages 2024-01 waits", self.roll("--dry-run"))
        self.assertEqual({}, self.years())
        said = self.roll()
        self.assertEqual(48, said.count("rolled up"), said)  # of two reports
        self.check_years(lines)
        self.check(lines)
        self.assertEqual(1, self.documents_read())
        self.assertIn("nothing waits", self.roll())

    def test_late_events_are_rolled_up_again(self):
        lines = log(self.dice, 600)
        self.count_lines(lines)
        self.roll()
        late = LINE % ("07/Mar/2024:10:00:00", "/page-1.html", 9)
        lines += late.encode() * 3
        self.count_lines(lines)
        self.check(lines)  # read from the month's own document
        self.assertEqual(2, self.documents_read())
        self.assertRegex(self.job("list"), r"rollup +pages +1 ")
        said = self.roll()
        self.assertEqual(2, said.count("rolled up"), said)
        self.check_years(lines)
        self.check(lines)

    def test_a_month_that_goes_on_waits(self):
        now = datetime.datetime.now(datetime.timezone.utc)
        lines = log(self.dice, 100) + (LINE % (now.strftime("%d/%b/%Y:%H:%M:%S"), "/page-1.html", 9)).encode()
        self.count_lines(lines)
        self.assertNotIn(now.strftime("%Y-%m"), self.roll())
        self.assertIn(now.strftime("pages %Y-%m: 1 documents"), self.roll("--now"))
        self.check_years(lines)

    def test_rebuilt_after_another_hand(self):
        lines = log(self.dice, 300) + each_month()
        self.count_lines(lines)
        self.roll()
        self.base["pages.year"].update_many({"total.3": {"$exists": True}}, {"$set": {"total.3": Int64(10**9)}})
        self.assertIn("nothing waits", self.roll())
        said = self.roll("--rebuild", "2024-03-01", "2025-04-01")
        self.assertEqual(26, said.count("rolled up"), said)
        self.check_years(lines)

    def test_what_was_counted_before_there_were_stamps(self):
        """Also behind years without documents."""
        lines = log(self.dice, 300, years=(2021, 2024))
        self.count_lines(lines)
        self.base.jobs.drop()
        self.check(lines)
        self.roll()
        self.check_years(lines)
        self.check(lines)

    def test_stamps_that_are_gone_begin_above_what_guards_the_years(self):
        lines = log(self.dice, 300)
        self.count_lines(lines)
        self.roll()
        self.base.jobs.drop()
        lines += (LINE % ("07/Mar/2024:10:00:00", "/page-1.html", 9)).encode() * 3
        self.count_lines(lines)
        self.roll()
        self.check_years(lines)
        self.check(lines)

    def test_documents_of_another_hand_are_no_first_or_last_month(self):
        lines = log(self.dice, 300)
        self.count_lines(lines)
        self.base.jobs.drop()
        for name in ("", "zzz"):
            self.base["pages.month"].insert_one({"_id": name}, bypass_document_validation=True)
        self.roll()
        self.check_years(lines)

    def test_what_others_bring_in_and_add(self):
        """A month without a stamp is read from its own documents, until a rebuild; members of others' stay theirs."""
        lines = log(self.dice, 600)
        self.count_lines(lines)
        self.roll()
        self.base.jobs.update_many({}, {"$unset": {"written.202403": "", "rolled.202403": ""}})
        self.base["pages.year"].update_many({"_id": {"$lt": "2025"}}, {"$unset": {"total.3": ""}})
        self.check(lines)
        self.base["pages.month"].update_many({}, {"$set": {"metadata.team": "blue"}})
        late = (LINE % ("07/Mar/2024:10:00:00", "/page-1.html", 9)).encode()
        lines += late
        self.count_lines(lines)
        self.roll("--rebuild", "2024-01-01", "2026-01-01")
        self.check_years(lines)
        self.check(lines)

    def test_nothing_to_do(self):
        self.write("empty.yaml", b"{}")
        self.tallyd("import", "-q", "-c", "empty.yaml", "--store", "sqlite:embedded.db", self.write("empty.log", b""))
        self.assertIn("nothing waits", self.tallyd("job", "run", "rollup", "-c", "empty.yaml", "--store", "sqlite:embedded.db"))
        for words in (["run"], ["run", "sleep"], ["list", "--now"], ["run", "rollup", "--rebuild", "2024-01-01"],
                      ["run", "rollup", "--rebuild", "2025-01-01", "2024-01-01"]):
            self.job(*words, status=EX_USAGE)

    def test_a_lease_is_left_to_who_has_it(self):
        lines = log(self.dice, 300)
        self.count_lines(lines)
        soon = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=30)
        self.base.jobs.update_many({}, {"$set": {"fence": 7, "until": soon, "owner": "another 42"}})
        self.assertIn("pages: another 42 works on it", self.roll(status=EX_TEMPFAIL))
        self.assertIn("another 42", self.job("list"))
        self.base.jobs.update_many({}, {"$set": {"until": soon - datetime.timedelta(seconds=31)}})
        self.roll()
        self.check_years(lines)

    def test_a_lease_of_a_clock_that_was_ahead_is_none(self):
        lines = log(self.dice, 300)
        self.write("a.log", lines)
        environment = dying_at("mongo.committed")
        self.end(self.begin("a.log", env=environment), KILLED)
        ahead = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(days=365)
        self.ledger.change({"$set": {"writers.w0.lease": ahead, "writers.w0.host": "another"}})
        self.base.jobs.update_many({}, {"$set": {"fence": 7, "until": ahead, "owner": "another 42"}})
        self.write("b.log", b"")
        self.count("b.log")  # whoever comes finishes what is open
        self.count("a.log")
        self.roll()
        self.check_years(lines)

    def test_one_that_was_stopped_and_goes_on_changes_nothing(self):
        lines = log(self.dice, 300, pages=40)
        for _ in range(3):
            self.count_lines(lines)
            sleeper = self.begin_job("rollup")
            self.wait_until(lambda job=sleeper: job.poll() is not None or self.base.jobs.find_one({"until": {"$gt": datetime.datetime(2021, 1, 1)}}))
            time.sleep(self.dice.choice([0, self.dice.random() * 0.1]))
            sleeper.send_signal(signal.SIGSTOP)
            self.forget_leases()
            lines += log(self.dice, 300, pages=40)
            self.count_lines(lines)
            self.roll()
            self.check_years(lines)
            held = datetime.datetime.now(datetime.timezone.utc).replace(microsecond=0, tzinfo=None) + datetime.timedelta(minutes=1)
            self.base.jobs.update_many({"fence": {"$exists": True}}, {"$set": {"until": held, "owner": "another"}})
            sleeper.send_signal(signal.SIGCONT)
            self.assertIn(self.ended(sleeper), (EX_OK, EX_TEMPFAIL), self.output)  # it says so if another has the lease on a report
            self.assertEqual({held}, {one["until"] for one in self.base.jobs.find({"fence": {"$exists": True}})})  # it gives back its own only
            self.check_years(lines)
            self.check(lines)
            self.forget_leases()

    def test_many_that_are_alike(self):
        """One update sets those that are there, an insert makes the others; what a later holder of the lease has set stays."""
        def alike(pages, months):
            return "".join(LINE % (datetime.datetime(2024, month, 15, 12).strftime("%d/%b/%Y:%H:%M:%S"), f"/page-{page}.html", 7)
                           for month in months for page in pages).encode()

        def check(lines):
            self.assertEqual({cell: len(values) for cell, values in recount(lines).items()},
                             {(2024, int(month), one["metadata"]["path"]): hits for one in self.base["pages.year"].find()
                              for month, hits in one["total"].items()})

        self.write("tallyd.yaml", b"reports: {pages: {by: [path]}}\n")
        lines = alike(range(100), (1, 2))
        self.count_lines(lines)
        self.roll()
        check(lines)
        lines += alike(range(150), (3,))
        self.count_lines(lines)
        with proxy.Proxy(self.server.port) as between:
            own, self.store = self.store, f"mongodb://127.0.0.1:{between.port}/{self.name}"
            self.roll()
            self.store = own
        self.assertEqual((1, 1), tuple(between.commands[name, "pages.year"] for name in ("update", "insert")))
        check(lines)
        self.check(lines)
        later, mark = self.base.jobs.find_one({"_id": "rollup/pages"})["fence"] + 1000, {"total.3": Int64(99)}
        theirs = {"metadata.path": {"$in": [f"/page-{page}.html" for page in range(0, 150, 3)]}}
        self.base["pages.year"].update_many(theirs, {"$set": {**mark, "applied.rollup": Int64(later)}})
        self.count_lines(lines + alike(range(150), (3,)))
        self.roll()
        self.assertEqual({99: 50, 2: 100}, collections.Counter(one["total"]["3"] for one in self.base["pages.year"].find()))
        self.assertEqual(50, self.base["pages.year"].count_documents({**theirs, "applied.rollup": later, **mark}))

    def test_killed_at_named_places(self):
        lines = log(self.dice, 300)
        self.count_lines(lines)
        for place in ("rollup.sent", "rollup.stamping:2", "rollup.sent:3"):
            killed = self.begin_job("rollup", env=dying_at(place))
            self.assertEqual(KILLED, self.ended(killed), self.output)
            self.check(lines)
            self.forget_leases()
        self.roll()
        self.check_years(lines)
        self.check(lines)

    def test_it_waits_for_a_batch_that_is_applied_in_part(self):
        """The writer died after some of its requests: the job finishes its batch before it reads any document."""
        lines = log(self.dice, 40)
        self.count_lines(lines)
        for passes in range(1, 7):
            lines += log(self.dice, 10) + LINE.encode() % (b"07/Mar/2024:10:00:00", b"/page-1.html", 9)
            self.write("a.log", lines)
            self.assertEqual(KILLED, self.ended(self.begin("a.log", env=dying_at(f"mongo.applying:{passes}"))), self.output)
            self.roll()
            with self.subTest(passes=passes):
                self.check(lines)

    def test_killed_anywhere_while_it_counts(self):
        """Late events all the time, writers and jobs that die anywhere; in the end every year is as the logs say."""
        lines, held = log(self.dice, 20), 0
        self.count_lines(lines)
        for _ in range(ROUNDS):
            lines += log(self.dice, 400)
            self.write("a.log", lines)
            writer = self.begin("a.log", env=dying_at(draw_death(self.dice, failpoints("mongo."), 3)))
            job = self.begin_job("rollup", "--now", env=dying_at(draw_death(self.dice, failpoints("rollup."), 4)))
            for one in writer, job:
                self.assertIn(self.ended(one), (EX_OK, EX_TEMPFAIL, KILLED), self.output)
            held += self.base.jobs.count_documents({"until": {"$gt": datetime.datetime.now(datetime.timezone.utc)}})
            self.forget_leases()
        self.count("a.log")
        self.roll("--now")
        self.check_years(lines)
        self.check(lines)
        print(f"leases found held: {held} of {ROUNDS * 2}")


class Daemon(RollupCase):
    def test_the_daemon_does_it(self):
        lines = log(self.dice, 500)
        self.write("a.log", lines)
        following = FOLLOWING % (CONFIG.split("aggregate:")[0], self.server.port, self.name, "")
        self.write("tallyd.yaml", (following + "jobs: {rollup_after: 1s}\n").encode())
        daemon = self.start("run", "-c", "tallyd.yaml")
        try:
            self.wait_for_job(lambda: len(self.years()) == len(recount(lines)))
            late = (LINE % ("07/Mar/2024:10:00:00", "/page-1.html", 9)).encode()
            lines += late
            self.append("a.log", late)
            hits = len(recount(lines)[2024, 3, "/page-1.html"])
            self.wait_for_job(lambda: self.years().get((2024, 3, "/page-1.html"), [0])[0] == hits)
        finally:
            daemon.terminate()
            daemon.communicate(timeout=TIMEOUT_S)
        self.roll()  # it may have been told to stop before the other report
        self.check_years(lines)
        self.check(lines)


if __name__ == "__main__":
    main()
