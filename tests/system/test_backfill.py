#!/usr/bin/env python3
"""`tallyd backfill`: a report that was configured late, or not all the time, has all that was counted before, once; whatever
becomes of the files, and whenever it is killed.

The judge is a recount of all lines by Python, and `tallyd verify`. TALLYD_ROUNDS says how many random histories are played
(12 by default). The seed is printed; TALLYD_SEED repeats a run.
"""

import collections
import contextlib
import gzip
import json
import os
import re
import sqlite3
import threading
import time
import unittest
import urllib.parse

from harness import (EX_CONFIG, EX_DATAERR, EX_NOINPUT, EX_OK, EX_TEMPFAIL, EX_USAGE, TIMEOUT_S, DaemonCase, draw_death, dying_at,
                     failpoints, other_day)
from recountcase import ALONE, CONFIG, LATER, SMALL, BackfillCase, log, recount, stamp, within

ROUNDS = int(os.environ.get("TALLYD_ROUNDS") or 12)


class Backfill(BackfillCase):
    def test_report_that_came_later_has_all(self):
        for config in "tallyd.yaml", "small.yaml":
            with self.subTest(config):
                store = f"{config}.db"
                a, b = log(self.dice, 20000), log(self.dice, 20000)
                for lines, which in (a, "alone.yaml"), (b, config):
                    self.append(f"{config}.log", lines)
                    self.tallied("import", "-q", f"{config}.log", config=which, store=store)
                before = self.dump(store)
                said = self.backfill("--dry-run", config=config, store=store)
                self.assertTrue(all(f"{config}.log: bytes 0 to {len(a):,}" in text for text in said), said)
                self.assertEqual(before, self.dump(store))
                said = self.backfill(config=config, store=store)
                self.assertTrue(all("20,000 lines" in text and "has counted all" in text for text in said), said)
                self.check(a + b, store=store)
                self.tallied("verify", f"{config}.log", config=config, store=store)
                after = self.dump(store)
                self.backfill(config=config, store=store)
                self.assertEqual(after, self.dump(store))
                # Counting goes on, behind what was filled in.
                self.append(f"{config}.log", a)
                self.tallied("import", "-q", f"{config}.log", config=config, store=store)
                self.check(a + b + a, store=store)

    def test_import_says_what_is_missing(self):
        """Of a file of which it counts nothing more; and where a report begins."""
        lines = log(self.dice, 500)
        self.count("a.log", lines, "alone.yaml")
        counted = "counted nothing of it: it was not configured then; `tallyd backfill -c tallyd.yaml {0}` counts it"
        for left in ("pages", "errors"), ("errors",), ():
            said = self.tallied("import", "a.log")
            for report in "site", *LATER:
                self.assertEqual(report in left, counted.format(report) in said, (report, said))
            if left:
                self.tallied("backfill", left[0])
        self.count("b.log", lines[10:], "alone.yaml")
        self.append("b.log", lines)
        self.assertRegex(self.tallied("import", "b.log"), f"errors +does not count bytes 0 to {len(lines) - 10:,}: ")

    def test_query_says_what_is_missing(self):
        """The place where an answer begins with nothing; it is gone once that was filled in."""
        old, new = log(self.dice, 500, (0, 60 * 24 * 5)), log(self.dice, 500, (60 * 24 * 10, 60 * 24 * 15))
        self.count("a.log", old, "alone.yaml")
        self.count("a.log", new, "tallyd.yaml")
        missing = f"pages was not configured when {len(old):,} bytes (of a topic: records) of 1 source were counted"
        for told in True, False:
            for said, report, *span in ((told, "pages", "01", "20"), (told, "pages", "01", "05"), (False, "pages", "12", "20"),
                                        (False, "site", "01", "20")):
                begin, end = (f"2026-01-{day}" for day in span)
                self.tallied("query", report, "--from", begin, "--to", end, "--step", "day")
                self.assertEqual(said, missing in self.err, (report, span, self.err))
            self.tallied("backfill", "pages")

    def test_query_says_that_its_middle_is_missing(self):
        """Only the first days of what the report did not count were filled in: the answer begins with counts, and has a hole."""
        old, new = log(self.dice, 500, (0, 60 * 24 * 5)), log(self.dice, 500, (60 * 24 * 10, 60 * 24 * 15))
        self.count("a.log", old, "alone.yaml")
        self.count("a.log", new, "tallyd.yaml")
        self.tallied("backfill", "pages", "--from", "2026-01-01", "--to", "2026-01-03")
        for told in True, False:
            for said, report, *span in ((told, "pages", "01", "20"), (False, "pages", "01", "03"), (False, "pages", "12", "20"),
                                        (False, "site", "01", "20")):
                begin, end = (f"2026-01-{day}" for day in span)
                out = self.tallied("query", report, "--from", begin, "--to", end, "--step", "day")
                self.assertIn(f"{begin}", out)
                self.assertEqual(said, "of these it has only events from 2026-01-01T00:00:00Z to 2026-01-03T00:00:00Z" in self.err,
                                 (report, span, self.err))
            self.tallied("backfill", "pages")

    def test_query_says_that_its_end_is_missing(self):
        """The report is not configured any more, later again. A site that is quiet has no note."""
        spans = [(60 * 24 * day, 60 * 24 * (day + 5)) for day in (0, 9, 18)]
        first, second, third = (log(self.dice, 500, span) for span in spans)

        def check(**said):
            for report, begin, end in (("pages", 1, 25), ("pages", 1, 8), ("pages", 1, 12), ("pages", 1, 5), ("site", 1, 25), ("pages", 20, 25)):
                self.tallied("query", report, "--from", f"2026-01-{begin:02}", "--to", f"2026-01-{end:02}", "--step", "day")
                told = "was not configured when" in self.err, "it counts no more" in self.err
                self.assertEqual(said.get(f"{report}_{begin}_{end}", (False, False)), told, (report, begin, end, self.err))

        self.count("a.log", first, "tallyd.yaml")
        check(pages_20_25=(False, False))  # all is counted: it is quiet
        self.count("a.log", second, "alone.yaml")
        check(pages_1_25=(True, True), pages_1_8=(True, True), pages_1_12=(True, True), pages_20_25=(True, True))
        self.count("b.log", third, "tallyd.yaml")
        check(pages_1_25=(True, False), pages_1_8=(True, False), pages_1_12=(True, False))
        self.backfill()
        check()

    def test_gaps_of_any_history_are_filled(self):
        """Files grow, are renamed and packed; reports come and go; what backfills is killed."""
        for n in range(ROUNDS):
            store, names, whole = f"{n}.db", {}, []
            with self.subTest(round=n):
                for step in range(self.dice.randrange(3, 9)):
                    name = self.dice.choice("ab")
                    path = names.setdefault(name, f"{n}-{name}.log")
                    lines = log(self.dice, self.dice.randrange(1, 4000))
                    whole.append(lines)
                    self.append(path, lines)
                    self.tallied("import", "-q", path, config=self.dice.choice(["alone.yaml", "tallyd.yaml"]), store=store)
                    if self.dice.random() < 0.3:
                        self.kill_backfill(store)
                    if self.dice.random() < 0.3:
                        names[name] = f"{n}-{name}-{step}.log"
                        os.rename(self.path(path), self.path(names[name]))
                for name, path in list(names.items()):
                    if self.dice.random() < 0.5:
                        self.write(f"{path}.gz", gzip.compress(self.read(path)))
                        os.remove(self.path(path))
                        names[name] = f"{path}.gz"
                for _ in range(self.dice.randrange(4)):
                    self.kill_backfill(store, *names.values())
                self.backfill(*names.values(), config="small.yaml", store=store)
                self.check(*whole, store=store)
                self.tallied("verify", *names.values(), store=store)

    def kill_backfill(self, store, *files):
        place = draw_death(self.dice, failpoints("store."), 4)
        self.tallyd("backfill", "-q", "-c", "small.yaml", "--store", f"sqlite:{store}", self.dice.choice(LATER), *files,
                    env=dying_at(place), status=None)
        self.assertIn(self.status, (EX_OK, EX_NOINPUT, -9), f"{place}\n{self.err}")

    def test_lines_that_were_in_the_future_stay_rejected(self):
        """Other reports did not count them, and the books say how many there were."""
        now = int(time.time())
        def lines(begin, count):
            return b"".join(time.strftime(f'192.0.2.1 - - [%d/%b/%Y:%H:%M:%S +0000] "GET /{begin + n} HTTP/1.1" 200 1\n',
                                          time.gmtime(begin + 60 * n)).encode() for n in range(count))
        self.count("a.log", lines(now - 86400, 50) + lines(now + 2 * 86400, 30) + lines(now - 3600, 20), "alone.yaml")
        said = self.tallied("backfill", "pages", env=other_day(5 * 86400))
        self.assertIn("100 lines", said)
        days = [time.strftime("%Y-%m-%d", time.gmtime(now + day * 86400)) for day in (-2, 4)]
        top = self.query("pages", "--top", "1000", "-c", "tallyd.yaml", store="tallyd.db", span=days)
        self.assertEqual(70, sum(int(row["value"]) for row in top))
        self.tallied("verify", "a.log", env=other_day(5 * 86400))

    def test_files_are_found_where_the_configuration_says(self):
        self.write("tallyd.yaml", CONFIG + b"sources: {web: {path: access.log}}\n")
        old, new = log(self.dice, 500), log(self.dice, 500)
        self.count("access.log", old, "alone.yaml")
        os.rename(self.path("access.log"), self.path("access.log.1"))
        self.count("access.log", new, "alone.yaml")
        self.write("access.log.2.gz", gzip.compress(self.read("access.log.1")))
        os.remove(self.path("access.log.1"))
        self.backfill()
        self.check(old, new)

    def test_new_generation_has_what_the_old_one_had(self):
        a = log(self.dice, 2000)
        self.count("a.log", a, "tallyd.yaml")
        self.write("tallyd.yaml", CONFIG.replace(b"pages: {by: [path, status]", b"pages: {generation: 2, by: [path, status]"))
        self.tallied("backfill", "pages")
        self.check(a)
        self.tallied("verify", "a.log")

    def test_what_has_expired_stays_expired(self):
        reports = "reports: {site: {}, pages: {by: [path], keep: {minute: 2d, hour: 5d}}}\n"
        self.write("keep.yaml", reports.encode())
        self.write("a.log", log(self.dice, 5000))
        self.tallied("import", "-q", "a.log", config="keep.yaml", store="one.db")
        self.tallied("import", "-q", "a.log", config="alone.yaml")
        self.write("keep.yaml", reports.replace("site: {}", "site: {measures: {hits: count, bytes: sum(bytes)}}").encode())
        self.tallied("backfill", "pages", config="keep.yaml")
        answers = [[self.tallied("query", "pages", "--from", "2026-01-01", "--to", "2026-03-01", "--step", step, config="keep.yaml",
                                 store=store, status=None) for step in ("day", "hour")] for store in ("one.db", "tallyd.db")]
        self.assertEqual(*answers)
        self.tallied("verify", "a.log", config="keep.yaml")


class Times(BackfillCase):
    """`--from` and `--to`: only events of these times, by their own time; the others count later, or never."""

    def pages(self, lines, store="tallyd.db"):
        paths = collections.Counter()
        for (report, _, series), (hits, _) in recount(lines).items():
            paths.update({series: hits} if report == "pages" else {})
        found = {(row["path"], row["status"]): int(row["value"]) for row in self.rows("pages", "--top", "10000", store=store)}
        self.assertEqual(dict(paths), found)

    def range(self, first=0, last=60 * 24 * 40):
        begin, end = sorted(self.dice.sample(range(first, last), 2))
        return begin, end

    def fill(self, span, *arguments, **options):
        return self.tallied("backfill", "pages", "--from", stamp(span[0]), "--to", stamp(span[1]), *arguments, **options)

    def test_any_ranges_in_any_order_and_then_the_rest(self):
        """They overlap, files grow in between, what counts is killed."""
        for n in range(ROUNDS):
            store, whole, spans = f"{n}.db", b"", []
            with self.subTest(round=n):
                for step in range(self.dice.randrange(1, 4)):
                    lines = log(self.dice, self.dice.randrange(1, 4000))
                    whole += lines
                    self.append(f"{n}.log", lines)
                    self.tallied("import", "-q", f"{n}.log", config="alone.yaml", store=store)
                    spans = [self.range()] + spans[:self.dice.randrange(2)]
                    for span in spans:
                        if self.dice.random() < 0.5:
                            self.fill(span, "-q", config="small.yaml", store=store, status=None,
                                      env=dying_at(draw_death(self.dice, failpoints("store."), 4)))
                            self.assertIn(self.status, (EX_OK, -9), self.err)
                    # Killed ones go on; then all that there is has these times.
                    for span in spans:
                        self.fill(span, "-q", config="small.yaml", store=store)
                    if step == 0:
                        self.pages(within(whole, *spans), store=store)
                    self.tallied("verify", f"{n}.log", store=store)
                self.backfill("-q", config="small.yaml", store=store)
                self.check(whole, store=store)
                self.tallied("verify", f"{n}.log", store=store)
                self.assertNotIn("lines", self.fill(self.range(), store=store))
                self.tallied("import", "-q", f"{n}.log", config="tallyd.yaml", store=store)
                self.check(whole, store=store)

    def test_a_forgotten_file_leaves_no_times(self):
        self.count("a.log", log(self.dice, 500, (0, 60 * 24 * 10)), "alone.yaml")
        self.write("none.log", b"")
        self.tallied("import", "none.log")
        self.fill((60 * 24 * 2, 60 * 24 * 5))
        self.backfill()
        books = "SELECT entry FROM book WHERE source != ''"
        with sqlite3.connect(self.path("tallyd.db")) as db:
            self.assertTrue(any(entry.startswith("filled.") for (entry,) in db.execute(books)))
        self.tallied("forget", "a.log")
        with sqlite3.connect(self.path("tallyd.db")) as db:
            self.assertEqual([], list(db.execute(books)))

    def test_books_and_answers_say_what_was_filled(self):
        day = 60 * 24
        old, new = log(self.dice, 2000, (0, day * 10)), log(self.dice, 500, (day * 20, day * 25))
        self.count("a.log", old, "alone.yaml")
        self.count("a.log", new, "tallyd.yaml")
        said = self.fill((day * 2, day * 5), "--dry-run")
        self.assertIn(f"a.log: bytes 0 to {len(old):,}", said)
        self.assertIn("has counted all of these times", self.fill((day * 2, day * 5)))
        self.assertIn("has counted all of these times", self.fill((day * 3, day * 4), "--dry-run"))
        self.assertIn("did not count", self.tallied("backfill", "pages", "--dry-run"))
        with sqlite3.connect(self.path("tallyd.db")) as db:
            books = dict(db.execute("SELECT entry, value FROM book WHERE report = (SELECT id FROM report WHERE name = 'pages') AND source != ''"))
        begin = 1767225600000
        self.assertEqual(len(old), books[f"filled.0.{begin + 2 * 86400000}.{begin + 5 * 86400000}"])
        self.assertEqual(len(old), books["since"])
        note = "; of these it has only events from 2026-01-03T00:00:00Z to 2026-01-06T00:00:00Z"
        for told, span in ((True, ("2026-01-01", "2026-01-20")), (True, ("2026-01-07", "2026-01-09")), (False, ("2026-01-03", "2026-01-06"))):
            self.tallied("query", "pages", "--from", span[0], "--to", span[1], "--step", "day", "--filter", "path=/none")
            self.assertEqual(told, "was not configured" in self.err, (span, self.err))
            self.assertEqual(told, note in self.err, (span, self.err))
        self.pages(within(old, (day * 2, day * 5)) + new)
        self.tallied("verify", "a.log")
        self.tallied("backfill", "pages", "--from", "2026-01-09", "--to", "2026-01-08", status=EX_USAGE)
        self.tallied("backfill", "pages", "--from", "soon", status=EX_USAGE)
        self.backfill()
        self.check(old, new)


class Api(BackfillCase, DaemonCase):
    def test_api_says_what_is_missing(self):
        """An answer that begins with nothing, or has a hole, has the note, in JSON, in tables and in PromQL; one that has only counts
        has none. One that ends with nothing has it if the report counts no more."""
        for is_filled, is_over in (False, False), (True, False), (False, True):
            self.check_notes(is_filled, is_over)

    def check_notes(self, is_filled, is_over):
        old, new = log(self.dice, 500, (0, 60 * 24 * 5)), log(self.dice, 500, (60 * 24 * 10, 60 * 24 * 15))
        for name in "tallyd.db", "tallyd.db-wal", "tallyd.db-shm", "a.log":
            if os.path.exists(self.path(name)):
                os.remove(self.path(name))
        self.count("a.log", old, "tallyd.yaml" if is_over else "alone.yaml")
        self.count("a.log", new, "alone.yaml" if is_over else "tallyd.yaml")
        if is_filled:
            self.tallied("backfill", "pages", "--to", "2026-01-03")
        self.write("run.yaml", CONFIG + b'sources: {in: {type: stdin, decode: [combined]}}\nhttp: {listen: "127.0.0.1:0"}\n')
        self.launch("-c", "run.yaml", "--store", "sqlite:tallyd.db")
        for told, report, begin in (True, "pages", "01"), (is_over, "pages", "12"), (False, "site", "01"):
            query = f"/api/v1/query?report={report}&from=2026-01-{begin}&to=2026-01-20&step=day"
            notes = json.loads(self.get(query)).get("notes", [])
            self.assertEqual([f"{len(new if is_over else old):,} bytes"] * told, [re.search(r"[\d,]+ bytes", note).group() for note in notes])
            self.assertEqual(notes, re.findall("^note: (.*)$", self.get(query + "&format=table"), re.MULTILINE))
            asked = "query=" + urllib.parse.quote(f"sum(increase({report}:hits[1d]))")
            steps = f"&start=2026-01-{begin}T00:00:00Z&end=2026-01-20T00:00:00Z&step=86400"
            self.assertEqual(notes, json.loads(self.get("/prometheus/api/v1/query_range?" + asked + steps)).get("warnings", []))
            self.assertNotIn("warnings", json.loads(self.get("/prometheus/api/v1/query?time=2026-01-01T00:00:00Z&" + asked)))
        self.stop()


class Refused(BackfillCase):
    """Lines that cannot be counted are reported, and nothing else is changed."""

    def setUp(self):
        super().setUp()
        self.a = log(self.dice, 2000)
        self.count("a.log", self.a, "alone.yaml")

    def refuse(self, status, said, *arguments, **options):
        before = self.dump()
        self.tallied("backfill", *arguments, status=status, **options)
        self.assertIn(said, self.err)
        left = {name: rows for name, rows in self.dump().items() if name in before and not name.startswith("report")}
        self.assertEqual({name: rows for name, rows in before.items() if not name.startswith("report")}, left)

    def test_file_that_is_gone_is_named(self):
        os.rename(self.path("a.log"), self.path("c.log"))
        self.refuse(EX_NOINPUT, f"a.log: bytes 0 to {len(self.a):,}", "pages")
        self.write("b.log", self.a[:100] + self.a)
        self.refuse(EX_NOINPUT, "b.log was never counted", "pages", "b.log")
        self.backfill("c.log")
        self.check(self.a)

    def test_file_that_has_changed(self):
        self.write("a.log", self.a[:-60] + b"x" + self.a[-59:])
        self.refuse(EX_DATAERR, "has changed before byte", "pages", "a.log")
        self.refuse(EX_NOINPUT, "has changed before byte", "pages")
        self.write("a.log", self.a[:-100])
        self.refuse(EX_DATAERR, "is shorter than", "pages", "a.log")

    def test_reports_that_are_not_there(self):
        self.refuse(EX_CONFIG, 'unknown report "page" (did you mean "pages"?): there are', "page")
        self.refuse(EX_USAGE, "which REPORT?")
        before = self.dump()
        said = self.tallied("backfill", "--dry-run", "pages")
        self.assertIn("pages~1 has counted nothing yet: what was counted into this store would be counted whole", said)
        self.assertEqual(before, self.dump())
        self.refuse(EX_NOINPUT, "there is no store", "--dry-run", "pages", store="none.db")


class Beside(BackfillCase, DaemonCase):
    """A daemon writes the store: it counts, beside its own sources."""

    def setUp(self):
        super().setUp()
        self.whole = []
        often = SMALL.replace(b"aggregate: {", b"aggregate: {flush: 100ms, flush_max: 100ms, ")
        for name, reports in ("old.yaml", ALONE), ("new.yaml", often):
            self.write(name, reports + b"sources: {a: {path: a.log}}\nstore: {url: 'sqlite:tallyd.db'}\n")

    def run_daemon(self, config, **options):
        self.launch("-c", config, "--listen", "127.0.0.1:0", **options)

    def grow(self, count):
        lines = log(self.dice, count)
        self.whole.append(lines)
        self.append("a.log", lines)

    @contextlib.contextmanager
    def growing(self):
        """Lines come all the while."""
        end = threading.Event()

        def grow():
            while not end.wait(0.003):
                self.grow(20)

        thread = threading.Thread(target=grow)
        thread.start()
        try:
            yield
        finally:
            end.set()
            thread.join()

    def wait_for_all(self):
        """Until the daemon has counted each line of its own log, too."""
        expected = sum(hits for (report, _, _), (hits, _) in recount(*self.whole).items() if report == "site")
        self.wait_for(lambda: sum(int(row["value"]) for row in self.rows("site")), lambda found: found == expected)

    def check_all(self, *files):
        self.wait_for_all()
        self.stop()
        self.check(*self.whole)
        self.tallied("verify", "a.log", *files)

    def begin(self, old=30000):
        """A daemon that counts all reports, of whose log reports that came later did not count the first lines."""
        self.grow(old)
        self.run_daemon("old.yaml")
        self.wait_for_all()
        self.stop()
        self.run_daemon("new.yaml")

    def by_daemon(self, report, *arguments, **options):
        return self.tallyd("backfill", "--store", "sqlite:tallyd.db", report, *arguments, **options)

    def test_daemon_counts_up_to_where_it_began(self):
        b = log(self.dice, 5000)
        self.write("b.log", b)
        self.tallied("import", "-q", "b.log", config="alone.yaml")
        self.whole.append(b)
        self.write("b.log.gz", gzip.compress(b))
        os.remove(self.path("b.log"))
        self.begin()
        for report in LATER:
            with self.growing():
                said = self.by_daemon(report, "a.log", "b.log.gz")
            self.assertIn("a.log: 30,000 lines", said)
            self.assertIn("b.log.gz: 5,000 lines", said)
            self.assertIn("has counted all that was counted into this store", said)
            self.assertIn("a daemon writes this store", self.err)
            self.assertNotIn("lines", self.by_daemon(report))
        self.grow(500)
        self.check_all("b.log.gz")

    def test_what_is_refused_changes_nothing(self):
        self.begin(500)
        self.write("stranger.log", log(self.dice, 100))
        self.write("bad.yaml", b"reports: {pages: {by: [host]}}\nstore: {url: 'sqlite:tallyd.db'}\n")
        self.by_daemon("nothing", status=EX_CONFIG)
        self.by_daemon("pages", "missing.log", status=EX_NOINPUT)
        self.by_daemon("pages", "stranger.log", status=EX_NOINPUT)
        self.assertIn("stranger.log was never counted", self.err)
        self.by_daemon("pages", "--decode", "nonsense", status=EX_USAGE)
        self.tallyd("backfill", "-c", "bad.yaml", "pages", status=EX_CONFIG)
        self.assertIn("its sources and reports are others", self.err)
        self.assertIn("bytes 0 to", self.by_daemon("pages", "--dry-run", "-c", "new.yaml"))
        self.by_daemon("errors", "-c", "new.yaml")
        self.assertRegex(self.by_daemon("pages"), r"(?m)^/.*/a\.log: 500 lines")
        self.check_all()

    def test_whoever_is_killed(self):
        """The daemon at a random failpoint of its store, or what asked it at a random moment; lines come all the while."""
        self.begin()
        for _ in range(ROUNDS):
            self.process.terminate()
            self.assertIn(self.process.wait(TIMEOUT_S), (EX_OK, -9))
            place = draw_death(self.dice, failpoints("store."), 8) if self.dice.random() < 0.7 else None
            self.run_daemon("new.yaml", env=dying_at(place) if place else None, started=False)
            while b"event=started" not in self.read("log") and self.process.poll() is None:
                time.sleep(0.01)
            process = self.start("backfill", "-q", "--store", "sqlite:tallyd.db", self.dice.choice(LATER))
            with self.growing():
                if place is None:
                    time.sleep(self.dice.random() * 0.1)
                    process.kill()
                _, err = process.communicate(timeout=TIMEOUT_S)
            self.assertIn(process.returncode, (EX_OK, EX_TEMPFAIL, EX_CONFIG, -9), err)
        self.process.kill()
        self.process.wait(TIMEOUT_S)
        self.run_daemon("new.yaml")
        self.grow(100)
        for report in LATER:
            self.by_daemon(report)
        self.check_all()

    def test_stop_ends_it_soon(self):
        self.begin()
        process = self.start("backfill", "-q", "--store", "sqlite:tallyd.db", "pages")
        self.wait_for_log("event=backfill_begun")
        begun = time.monotonic()
        self.stop()
        _, err = process.communicate(timeout=TIMEOUT_S)
        self.assertLess(time.monotonic() - begun, 5)
        self.assertIn(process.returncode, (EX_OK, EX_TEMPFAIL), err)
        for report in LATER:
            self.tallyd("backfill", "-c", "new.yaml", report)
        self.run_daemon("new.yaml")
        self.check_all()


if __name__ == "__main__":
    unittest.main()
