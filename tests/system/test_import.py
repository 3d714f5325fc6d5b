#!/usr/bin/env python3
"""`tallyd import` end to end: what it counts is what is there, whatever the file is called or packed with, and
whatever is wrong is said and changes nothing."""

import bz2
import collections
import glob
import gzip
import itertools
import json
import lzma
import os
import shutil
import signal
import sqlite3
import subprocess
import tarfile
import time
import unittest

from harness import (DAY, EX_CANTCREAT, EX_CONFIG, EX_DATAERR, EX_IOERR, EX_NOINPUT, EX_NOPERM, EX_OK, EX_TEMPFAIL,
                     EX_USAGE, NOBODY, ROOT, TIMEOUT_S, Case, command, other_day, recount, traffic)

REAL_LOG = os.path.join(os.path.dirname(ROOT), "shared/data/access-2015.log")
REAL_SPAN = ("2015-05-17", "2015-05-21")

# A line, the minute and the page under which it counts, and its bytes; or a line and why it is rejected.
PLAIN = b'198.51.100.7 - - [%s] "%s" 200 %s'
TAIL = b' "-" "Mozilla/5.0"'
ODD_LINES = [
    (PLAIN % (b"29/Feb/2016:23:59:60 +0000", b"GET /leap HTTP/1.1", b"1"), "2016-03-01T00:00:00Z", "/leap", 1),
    (PLAIN % (b"01/Mar/2016:05:29:59 +0530", b"GET /zone HTTP/1.1", b"2") + TAIL, "2016-02-29T23:59:00Z", "/zone", 2),
    (PLAIN % (b"29/Feb/2016:10:00:00 +0000", b"GET /none HTTP/1.1", b"-"), "2016-02-29T10:00:00Z", "/none", 0),
    (PLAIN % (b"29/Feb/2016:10:00:00 +0000", b"GET /q?a=b&c HTTP/2.0", b"4") + b"\r", "2016-02-29T10:00:00Z", "/q", 4),
    (PLAIN % (b"29/Feb/2016:10:00:01 +0000", b"GET /old", b"8") + TAIL, "2016-02-29T10:00:00Z", "/old", 8),
    (PLAIN % (b"29/Feb/2016:10:00:01 +0000", b"-", b"16") + TAIL, "2016-02-29T10:00:00Z", "-", 16),
    (PLAIN % (b"29/Feb/2016:10:00:01 +0000", rb"\x16\x03\x01", b"32") + TAIL, "2016-02-29T10:00:00Z", "-", 32),
    (PLAIN % (b"29/Feb/2016:10:01:01 +0000", rb"GET /\"quo\\te\" HTTP/1.1", b"64"), "2016-02-29T10:01:00Z",
     '/"quo\\te"', 64),
    (PLAIN % (b"29/Feb/2016:10:01:01 +0000", b"GET /\xff\x00 HTTP/1.1", b"128"), "2016-02-29T10:01:00Z", "/%FF%00", 128),
    (b"www.example.com:80 2001:db8::1 - a user [29/Feb/2016:10:02:00 +0000] \"GET /v6 HTTP/1.1\" 200 256" + TAIL,
     "2016-02-29T10:02:00Z", "/v6", 256),
    (b"", "empty"),
    (b"one word", None),
    (PLAIN % (b"30/Feb/2016:10:00:00 +0000", b"GET / HTTP/1.1", b"1"), None),
    (PLAIN % (b"29/Feb/9999:10:00:00 +0000", b"GET / HTTP/1.1", b"1"), None),
    (PLAIN % (b"28/Feb/9999:10:00:00 +0000", b"GET / HTTP/1.1", b"1"), "future"),
    (b"x" * (1 << 20), None),
    (b"x" * ((1 << 20) + 1), "too_long"),
]
FUTURE = PLAIN % (b"28/Feb/9999:10:00:00 +0000", b"GET / HTTP/1.1", b"1") + b"\n"
ODD_SPAN = ("2016-02-29", "2016-03-02")


def read_odd():
    """The log, its counts by minute and by page, and the rejects' reasons, None for any."""
    log, by_minute, by_page, reasons = b"\xef\xbb\xbf", collections.Counter(), collections.Counter(), []
    for line, *expected in ODD_LINES:
        log += line + b"\n"
        if len(expected) == 3:
            by_minute[expected[0]] += 1
            by_page[expected[1]] += expected[2]
        else:
            reasons += expected
    return log, by_minute, by_page, reasons


class Counts(Case):
    def test_generated_log_counts_as_a_naive_recount_says(self):
        log = traffic(30000)
        self.tallyd("import", self.write("a.log", log))
        by_minute, by_page = collections.Counter(), collections.defaultdict(lambda: [0, 0])
        for (minute, page), (hits, size) in recount(log).items():
            by_minute[minute] += hits
            by_page[page][0] += hits
            by_page[page][1] += size
        answer = {row["time"]: int(row["value"]) for row in self.query("site", "--step", "minute") if row["value"] != "0"}
        self.assertEqual(by_minute, answer)
        for row in self.query("pages", "--top", "1000", "--measure", "all"):
            self.assertEqual(by_page[row["path"]], [int(row["hits"]), int(row["bytes"])], row["path"])
        self.assertEqual(30000, sum(by_minute.values()))
        self.tallyd("verify", "a.log")

    def test_threads_make_no_difference(self):
        log = self.write("a.log", traffic(50000))
        for threads in "1", "2", "5":
            self.tallyd("import", "-j", threads, "--store", f"sqlite:{threads}.db", log)
        digests = {self.answers(f"{threads}.db") for threads in "125"}
        self.assertEqual(1, len(digests))

    def test_odd_lines_count_or_are_rejected_with_a_reason(self):
        log, by_minute, by_page, reasons = read_odd()
        self.tallyd("import", "--rejects", "rejects", self.write("odd.log", log))
        rows = self.query("site", "--step", "minute", span=ODD_SPAN)
        self.assertEqual(by_minute, {row["time"]: int(row["value"]) for row in rows if row["value"] != "0"})
        pages = self.query("pages", "--top", "100", "--measure", "all", span=ODD_SPAN)
        self.assertEqual(by_page, {row["path"]: int(row["bytes"]) for row in pages})
        rejects = [line.split(b"\t", 3) for line in self.read("rejects").split(b"\n")[:-1]]
        rejects.sort(key=lambda row: int(row[0]))  # each thread writes its own in order
        self.assertEqual(len(reasons), len(rejects))
        for reason, (offset, why, column, line) in zip(reasons, rejects):
            self.assertIn(reason or why.decode(), why.decode())
            self.assertGreaterEqual(int(column), 1)
            self.assertTrue(log[int(offset):].startswith(line))
        self.assertEqual((len(ODD_LINES), len(ODD_LINES) - len(reasons)), self.booked())

    @unittest.skipUnless(os.path.exists(REAL_LOG), "the real log is not beside the project")
    def test_an_answer_of_some_series_says_what_it_may_lack(self):
        self.write("few.yaml", b"reports: {pages: {by: [path], series_max: 2}}\n")
        self.write("a.log", b"".join(b'1.2.3.4 - - [05/Jan/2026:12:00:00 +0000] "GET /%c HTTP/1.1" 200 1\n' % page for page in b"aabcc"))
        self.tallyd("import", "-c", "few.yaml", "a.log")
        day = "--from", "2026-01-05", "--to", "2026-01-06"
        lacks = "2 events of series beyond `series_max` are counted as (other): this answer may lack some of them"
        for some in ("--filter", "path=/c"), ("--where", "path!=/b"):
            self.tallyd("query", "pages", *some, *day)
            self.assertIn(lacks, self.err)
            self.assertIn(lacks, json.loads(self.tallyd("query", "pages", *some, *day, "--format", "json"))["notes"])
        self.tallyd("query", "pages", "--top", "9", *day)
        self.assertNotIn("lack", self.err)

    def test_real_log_has_its_known_totals(self):
        self.tallyd("import", REAL_LOG)
        rows = self.query("site", "--step", "day", span=REAL_SPAN)
        self.assertEqual(["1632", "2893", "2896", "2579"], [row["value"] for row in rows])
        self.assertEqual(2747282740, self.total("bytes", span=REAL_SPAN))
        rows = self.query("pages", "--filter", "path=/favicon.ico", "--measure", "hits", span=REAL_SPAN)
        self.assertEqual(807, int(rows[0]["value"]))
        self.assertEqual(1000, len(self.query("pages", "--top", "1000", span=REAL_SPAN)))
        self.tallyd("verify", REAL_LOG)


class Sources(Case):
    """Which file is this, and how much of it is counted already?"""

    def setUp(self):
        super().setUp()
        self.log = traffic(5000)
        self.write("a.log", self.log)

    def check_known(self, name):
        before = self.answers()
        self.assertIn("nothing new", self.tallyd("import", name))
        self.assertEqual(before, self.answers())
        self.assertEqual(5000, self.total())

    def test_same_file_again_changes_nothing_and_says_so(self):
        self.tallyd("import", "a.log")
        self.check_known("a.log")

    def test_packed_copies_are_the_same_file(self):
        members = gzip.compress(self.log[:100001]) + gzip.compress(self.log[100001:])
        zstd = subprocess.run(["zstd", "-q"], input=self.log, stdout=subprocess.PIPE, check=True).stdout
        self.tallyd("import", "a.log")
        for name, packed in (("a.gz", gzip.compress(self.log)), ("two.gz", members), ("a.bz2", bz2.compress(self.log)),
                             ("a.xz", lzma.compress(self.log)), ("a.zst", zstd), ("gzip without a name", members)):
            with self.subTest(name):
                self.check_known(self.write(name, packed))
                self.tallyd("import", "--store", "sqlite:packed.db", name)
                self.assertEqual(self.answers(), self.answers("packed.db"))
                os.remove(self.path("packed.db"))

    def test_renamed_file_is_the_same_file(self):
        self.tallyd("import", "a.log")
        os.rename(self.path("a.log"), self.path("a.log.1"))
        self.check_known("a.log.1")

    def test_replaced_file_is_another(self):
        self.tallyd("import", "a.log")
        self.write("a.log", traffic(3000, seed=2))
        self.assertIn("new content under an old name", self.tallyd("import", "a.log"))
        self.assertEqual(8000, self.total())

    def test_grown_file_is_continued(self):
        line_ends = [i + 1 for i, byte in enumerate(self.log) if byte == 10]
        for step, lines in enumerate((1, 7, 20, 2000, 5000)):
            name = self.write("a.log", self.log[:line_ends[lines - 1]])
            if step % 2:
                name = self.write("a.gz", gzip.compress(self.read(name)))
            begin = self.import_start(self.tallyd("import", name))
            self.assertEqual(0 if step == 0 else line_ends[(1, 7, 20, 2000)[step - 1] - 1], begin)
            self.assertEqual(lines, self.total())
        self.tallyd("verify", "a.log")

    def test_unfinished_last_line_is_left_for_later(self):
        cut = self.log.index(b'"', 1000) + 3
        whole = self.log.count(b"\n", 0, cut)
        self.write("a.log", self.log[:cut])
        self.assertIn("unfinished last line", self.tallyd("import", "a.log"))
        self.assertEqual(whole, self.total())
        self.write("a.log", self.log)
        self.tallyd("import", "a.log")
        self.assertEqual(5000, self.total())

    def test_last_line_without_line_feed_counts_once(self):
        self.write("a.log", self.log[:-1])
        self.tallyd("import", "a.log")
        self.assertEqual(5000, self.total())
        self.write("a.log", self.log + self.log)
        self.tallyd("import", "a.log")
        self.assertEqual(10000, self.total())

    def test_truncated_or_changed_file_is_refused(self):
        self.tallyd("import", "a.log")
        before = self.answers()
        at = len(self.log) - 2000
        for what, log in (("shorter", self.log[:500000]), ("has changed", self.log[:at] + b"X" + self.log[at + 1:])):
            with self.subTest(what):
                self.tallyd("import", self.write("a.log", log), status=EX_DATAERR)
                self.assertIn(what, self.err)
                self.assertIn("--source-id", self.err)
                self.assertEqual(before, self.answers())
        self.tallyd("import", "--source-id", "second", "a.log")
        self.assertEqual(10000, self.total())

    def test_standard_input_is_a_file_like_any(self):
        self.tallyd("import", "-", input=self.log)
        self.check_known("a.log")
        self.assertIn("nothing new", self.tallyd("import", "-", input=gzip.compress(self.log)))
        self.assertEqual(5000, self.total())

    def test_empty_file_is_nothing(self):
        self.assertIn("empty", self.tallyd("import", self.write("empty", b"")))

    def test_dry_run_stores_nothing(self):
        self.assertIn("would count 5,000 lines", self.tallyd("import", "--dry-run", "a.log"))
        self.assertEqual(["a.log"], os.listdir(self.dir))
        self.tallyd("import", "-q", self.write("b.log", traffic(100, seed=3)))
        before = self.answers()
        self.tallyd("import", "--dry-run", "a.log")
        self.assertEqual(before, self.answers())


class Troubles(Case):
    def setUp(self):
        super().setUp()
        self.log = traffic(2000)
        self.write("a.log", self.log)

    def test_exit_statuses(self):
        self.write("bad.yaml", b"reports:\n  pages: {bye: [path]}\n")
        for status, arguments in (
                (EX_USAGE, ["--nonsense"]), (EX_USAGE, ["nonsense"]), (EX_USAGE, []), (EX_USAGE, ["import"]),
                (EX_USAGE, ["import", "--nonsense", "a.log"]), (EX_USAGE, ["import", "-j", "none", "a.log"]),
                (EX_USAGE, ["import", "--store", "nonsense:a", "a.log"]), (EX_USAGE, ["query", "nonsense"]),
                (EX_USAGE, ["query"]), (EX_USAGE, ["verify"]), (EX_USAGE, ["check", "bad.yaml", "a.log"]),
                (EX_NOINPUT, ["import", "missing.log"]), (EX_NOINPUT, ["import", "."]),
                (EX_NOINPUT, ["import", "-c", "missing.yaml", "a.log"]),
                (EX_NOINPUT, ["query", "site", "--store", "sqlite:missing.db"]),
                (EX_CANTCREAT, ["import", "--store", "sqlite:missing/a.db", "a.log"]),
                (EX_CANTCREAT, ["import", "--rejects", "missing/rejects", "a.log"]),
                (EX_CONFIG, ["import", "-c", "bad.yaml", "a.log"]), (EX_CONFIG, ["check", "-c", "bad.yaml"]),
                (EX_CONFIG, ["check", "bad.yaml"]), (EX_USAGE, ["check", "-c", "bad.yaml", "bad.yaml"]), (EX_USAGE, ["help", "nonsense"]),
                (EX_USAGE, ["-c", "bad.yaml"]),
                (0, ["--help"]), (0, ["import", "--help"]), (0, ["--version"]), (0, ["check"]), (0, ["help"])):
            with self.subTest(arguments):
                self.tallyd("import", "-q", "a.log")
                self.tallyd(*arguments, status=status)
                self.assertTrue(status == 0 or self.err.strip(), "nothing was said")

    def test_store_that_this_user_may_not_read_is_named(self):
        """And is not taken for one that is missing: neither the file, nor its log, nor what is in a closed folder."""
        os.mkdir(self.path("closed"))
        self.tallyd("import", "-q", "--store", "sqlite:closed/a.db", "a.log")
        self.write("closed/a.db-wal", b"")
        for closed in "closed/a.db", "closed/a.db-wal", "closed":
            with self.subTest(closed):
                mode = os.stat(self.path(closed)).st_mode
                os.chmod(self.path(closed), 0)
                done = subprocess.run(["setpriv", "--bounding-set=-dac_override,-dac_read_search", *command(), "query", "site", "--store",
                                       "sqlite:closed/a.db"] if os.geteuid() == 0 else
                                      [*command(), "query", "site", "--store", "sqlite:closed/a.db"], cwd=self.dir, check=False,
                                      stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, timeout=TIMEOUT_S)
                os.chmod(self.path(closed), mode)
                self.assertIn(b"closed/a.db may not be read by this user", done.stderr)
                self.assertEqual(EX_NOPERM, done.returncode)

    def test_file_of_which_no_line_can_be_parsed_is_refused(self):
        """With any name and packing; files beside it count, and nothing of it hinders another decode."""
        self.write("a.json", b'{"time": "2026-01-05T12:00:00Z", "path": "/"}\n' * 3)
        self.write("a.json.gz", gzip.compress(b'{"time": "2026-01-05T12:00:00Z", "path": "/gz"}\n' * 2000))
        self.write("b.log", traffic(10, seed=2))
        for name, lines in (("a.json", "3"), ("a.json.gz", "1,000"), ("-", "3")):
            with self.subTest(name):
                self.tallyd("import", "--rejects", "rejects", "--store", "sqlite:none.db", name, status=EX_DATAERR,
                            input=self.read("a.json"))
                for said in f"none of its first {lines} lines", "as [auto]", "Line 1, column", "--decode", "--force", \
                        'found "{"time', name if name != "-" else "":
                    self.assertIn(said, self.err)
                self.tallyd("import", "--dry-run", name, status=EX_DATAERR, input=self.read("a.json"))
        self.assertEqual(b"", self.read("rejects"))
        with sqlite3.connect(self.path("none.db")) as store:
            for table in "position", "book":
                self.assertEqual((0,), store.execute(f"SELECT count(*) FROM {table}").fetchone())
        store.close()
        self.tallyd("import", "a.json", "b.log", status=EX_DATAERR)
        self.assertEqual(10, self.total())
        self.assertNotIn("--decode", self.tallyd("import", "--decode", "json", "a.json", "a.json.gz"))
        self.assertEqual(2013, self.total())

    def test_first_thousand_lines_decide(self):
        bad = b"one word\n"
        for name, log, status in (("last.log", bad * 999 + traffic(1), EX_OK), ("late.log", bad * 1000 + traffic(1, 2), EX_DATAERR),
                                  ("cut.log", bad[:-1], EX_OK), ("future.log", FUTURE + bad, EX_OK),
                                  ("wide.log", b"x" * (1 << 21) + b"\n" + traffic(2, 3), EX_OK)):
            with self.subTest(name):
                self.tallyd("import", "--store", f"sqlite:{name}.db", self.write(name, log), status=status)
                if status != EX_OK:
                    self.assertIn("none of its first 1,000 lines", self.err)
                    self.tallyd("import", "--store", f"sqlite:{name}.db", "--force", name)
                    self.assertEqual((1001, 1), self.booked(f"{name}.db"))

    def test_known_file_is_judged_only_if_none_of_its_lines_was_parsed(self):
        bad, log = b"one word\n", traffic(1)
        self.tallyd("import", self.write("good.log", log))
        self.append("good.log", bad * 2000)
        self.tallyd("import", "good.log")
        self.assertEqual((2001, 1), self.booked())
        self.tallyd("import", "--last-line", self.write("bad.log", bad * 3), status=EX_DATAERR)
        self.assertIn("tallyd forget", self.tallyd("import", "--force", "bad.log"))
        self.append("bad.log", bad * 5)
        self.tallyd("import", "bad.log", status=EX_DATAERR)
        self.assertIn("none of its next 5 lines", self.err)
        self.append("bad.log", log)
        self.tallyd("import", "bad.log")
        self.assertEqual((2001 + 3 + 6, 1 + 1), self.booked())

    def test_address_of_a_database_that_is_wrong(self):
        for address, said in (("u:sec@ret@127.0.0.1:1/a", "%40"), ("u:sec:ret@127.0.0.1:1/a", "%3A"),
                              ("u:secret@127.0.0.1:1/a?tsl=true", '"tsl"')):
            with self.subTest(address):
                self.tallyd("import", "--store", f"mongodb://{address}", "a.log", status=EX_CONFIG)
                self.assertIn(said, self.err)
                self.assertNotIn("ret", self.err)

    def say_into(self, out, *arguments):
        done = subprocess.run([*command(), *arguments], cwd=self.dir, stdin=subprocess.DEVNULL, stdout=out,
                              stderr=subprocess.PIPE, check=False, timeout=TIMEOUT_S)
        return done.returncode, done.stderr

    def test_reader_that_has_seen_enough_is_told_nothing(self):
        self.tallyd("import", "a.log")
        for arguments in (["query", "pages", "--from", "2026-01-05", "--to", "2026-01-06", "--step", "minute"],
                          ["check", "--print"], ["import", "--dry-run", "--store", "sqlite:b.db", "a.log"]):
            with self.subTest(arguments), open("/dev/full", "wb") as full:
                reader, gone = os.pipe()
                os.close(reader)
                self.assertEqual((-signal.SIGPIPE, b""), self.say_into(gone, *arguments))
                os.close(gone)
                status, said = self.say_into(full, *arguments)
                self.assertEqual((EX_IOERR, 1), (status, len(said.splitlines())), said)
                self.assertIn(b"No space left", said)

    def test_missing_file_does_not_keep_others_from_being_counted(self):
        self.tallyd("import", "missing.log", "a.log", status=EX_NOINPUT)
        self.assertEqual(2000, self.total())

    def test_cut_off_packed_file_counts_up_to_the_cut(self):
        packed = gzip.compress(self.log)
        self.tallyd("import", self.write("a.gz", packed[:len(packed) // 2]), status=EX_DATAERR)
        self.assertIn("a.gz", self.err)
        self.assertGreater(self.total(), 500)
        self.tallyd("import", self.write("a.gz", packed))
        self.assertEqual(2000, self.total())
        self.tallyd("verify", "a.log")

    def test_damaged_packed_file_is_said_to_be(self):
        packed = bytearray(gzip.compress(self.log))
        packed[len(packed) // 2] ^= 0xFF
        self.tallyd("import", self.write("a.gz", bytes(packed)), status=EX_DATAERR)
        self.assertIn("a.gz", self.err)

    def test_archive_is_named_and_nothing_of_it_is_counted(self):
        log = b"".join(PLAIN % (b"29/Feb/2016:10:00:01 +0000", b"GET / HTTP/1.1", b"1") + TAIL + b"\n" for _ in range(9))
        self.write("a.log", log)
        for how, form in itertools.product(("w:", "w:gz", "w:xz"), (tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT)):
            with tarfile.open(self.path("a.tar"), how, format=form) as archive:
                archive.add(self.path("a.log"), "a.log")
            self.tallyd("import", "a.tar", status=EX_DATAERR)
            self.assertIn("is a tar archive, expected a log", self.err)
        shutil.make_archive(self.path("a"), "zip", self.dir, "a.log")
        for name in "a.zip", "-":
            self.tallyd("import", name, input=self.read("a.zip"), status=EX_DATAERR)
            self.assertIn("is a zip archive", self.err)
        self.assertIn("parsed 9", self.tallyd("import", "a.log"))

    def test_two_copies_are_one_source_to_a_dry_run(self):
        log = self.write("a.log", traffic(1000))
        self.assertIn("nothing new", self.tallyd("import", "--dry-run", log, self.write("a.log.gz", gzip.compress(self.read("a.log")))))

    def test_lines_once_in_the_future_verify_when_they_are_past(self):
        def line(at_s):
            at = time.strftime("%d/%b/%Y:%H:%M:%S +0000", time.gmtime(at_s))
            return f'192.0.2.1 - - [{at}] "GET / HTTP/1.1" 200 10\n'.encode()
        self.write("tallyd.yaml", b"limits: {future_max: 1s}\n")
        now = time.time()
        for books, lines, more in ((2, 1), line(now) + line(now + 400), {}), ((3, 2), line(now + 450), {"env": other_day(500)}):
            self.append("b.log", lines)
            self.tallyd("import", "-c", "tallyd.yaml", "b.log", **more)
            self.assertEqual(books, self.booked())
        self.tallyd("verify", "-c", "tallyd.yaml", "b.log", **more)

    def test_second_writer_is_told_of_the_first(self):
        first = self.start("import", "-")
        first.stdin.write(self.log)
        first.stdin.flush()
        deadline = time.monotonic() + 20
        while not os.path.exists(self.path("tallyd.db")) and time.monotonic() < deadline:
            time.sleep(0.01)
        self.tallyd("import", "a.log", status=EX_TEMPFAIL)
        self.assertIn("another tallyd", self.err)
        first.communicate(timeout=30)
        self.assertEqual(0, first.returncode)
        self.assertEqual(2000, self.total())

    def begin_by_hand(self):
        """An import that has counted something, and waits for more."""
        first = self.start("import", "-q", "-")
        first.stdin.write(b"".join(b'h - - [05/Jan/2026:13:00:00 +0000] "GET /a%d HTTP/1.1" 200 1 "-" "-"\n' % (i % 100) for i in range(40000)))
        first.stdin.flush()
        deadline = time.monotonic() + 20
        while not self.is_counted() and time.monotonic() < deadline:
            time.sleep(0.01)
        return first

    def is_counted(self):
        try:
            with sqlite3.connect(f"file:{self.path('tallyd.db')}?mode=ro", uri=True) as base:
                return base.execute("SELECT count(*) FROM book").fetchone()[0] > 0
        except sqlite3.Error:
            return False

    def test_a_link_to_the_store_is_the_store(self):
        first = self.begin_by_hand()
        os.makedirs(self.path("elsewhere"))
        os.symlink(self.path("tallyd.db"), self.path("elsewhere/link.db"))
        self.tallyd("import", "--store", "sqlite:elsewhere/link.db", "a.log", status=EX_TEMPFAIL)
        self.assertIn("another tallyd", self.err)
        first.communicate(timeout=30)
        self.assertEqual(0, first.returncode)

    def test_lock_is_not_written_through_a_link(self):
        self.write("a.log", traffic(10))
        self.write("precious", b"do not overwrite")
        os.symlink(self.path("precious"), self.path("tallyd.db-lock"))
        self.tallyd("import", "a.log", status=EX_NOPERM)
        self.assertIn("is a symbolic link", self.err)
        self.assertEqual(b"do not overwrite", self.read("precious"))
        os.unlink(self.path("tallyd.db-lock"))
        self.tallyd("import", "a.log")
        self.assertEqual([0o640] * 2, [os.stat(self.path("tallyd.db" + end)).st_mode & 0o777 for end in ("", "-lock")])

    def test_a_link_to_no_store_yet_is_the_store(self):
        os.makedirs(self.path("elsewhere"))
        os.symlink(self.path("elsewhere/real.db"), self.path("tallyd.db"))
        first = self.begin_by_hand()
        for store in "tallyd.db", "elsewhere/real.db":
            self.tallyd("import", "--store", "sqlite:" + store, "a.log", status=EX_TEMPFAIL)
            self.assertIn("another tallyd", self.err)
        first.communicate(timeout=30)
        self.assertEqual(0, first.returncode)

    def lines_of(self, name, count):
        return b"".join(b'h - - [05/Jan/2026:13:00:00 +0000] "GET /%s%d HTTP/1.1" 200 1 "-" "-"\n' % (name, i) for i in range(count))

    def test_what_another_wrote_is_read_before_more_is_counted(self):
        """No lock keeps out another program."""
        first = self.begin_by_hand()
        with sqlite3.connect(self.path("tallyd.db"), timeout=30) as base:
            base.execute("UPDATE book SET value = value + 1 WHERE entry = 'consumed' AND source = ''")
            base.execute("INSERT INTO book VALUES ('', '', 0, 'other', 0)")
        base.close()
        first.stdin.write(self.lines_of(b"c", 500))
        _, err = first.communicate(timeout=30)
        self.assertEqual(0, first.returncode, err)
        self.assertIn(b"event=store_changed ", err)
        self.assertEqual(40500, self.total())

    def test_second_writer_is_refused_though_the_lock_was_removed(self):
        first = self.begin_by_hand()
        os.remove(self.path("tallyd.db-lock"))
        self.tallyd("import", "-q", self.write("b.log", self.lines_of(b"b", 300)), status=EX_TEMPFAIL)
        self.assertIn("another tallyd", self.err)
        first.communicate(timeout=30)
        self.assertEqual(0, first.returncode)

    def test_second_writer_is_refused_by_another_name_of_the_file(self):
        first = self.begin_by_hand()
        os.makedirs(self.path("elsewhere"))
        os.link(self.path("tallyd.db"), self.path("elsewhere/link.db"))
        linked = "sqlite:elsewhere/link.db"
        self.tallyd("import", "--store", linked, "a.log", status=EX_TEMPFAIL)
        self.assertIn("another tallyd", self.err)
        self.tallyd("query", "site", "--store", linked, status=EX_CONFIG)
        self.assertIn("2 names (hard links)", self.err)
        first.stdin.write(self.lines_of(b"c", 500))
        _, err = first.communicate(timeout=30)
        self.assertEqual(0, first.returncode)
        self.assertIn(b"event=store_has_names ", err)
        self.tallyd("import", "a.log", status=EX_CONFIG)
        self.assertIn("2 names (hard links)", self.err)
        os.remove(self.path("elsewhere/link.db"))
        self.assertEqual(40500, self.total())

    def test_store_that_is_no_file_is_refused(self):
        for path in ":memory:", "file:a.db", "file::memory:?cache=shared", "":
            with self.subTest(path):
                self.tallyd("import", "--store", "sqlite:" + path, "a.log", status=EX_USAGE)
                self.tallyd("query", "site", "--store", "sqlite:" + path, status=EX_USAGE)
                self.write("a.yaml", b"store: {url: 'sqlite:%s'}\n" % path.encode())
                self.tallyd("check", "-c", "a.yaml", status=EX_CONFIG)
                self.assertIn("sqlite:PATH", self.err)
        self.assertEqual({"a.log", "a.yaml"}, {name for name in os.listdir(self.dir) if name.startswith(("a.", "t"))})

    def test_interrupted_import_stores_what_it_read_and_goes_on(self):
        first = self.start("import", "-")
        first.stdin.write(self.log[:200000])
        first.stdin.flush()
        deadline = time.monotonic() + 20
        while not os.path.exists(self.path("tallyd.db")) and time.monotonic() < deadline:
            time.sleep(0.01)
        time.sleep(0.3)
        first.send_signal(signal.SIGINT)
        self.assertEqual(128 + signal.SIGINT, first.wait(timeout=30))
        _, err = first.communicate()
        self.assertIn(b"interrupted", err)
        self.tallyd("import", "a.log")
        self.assertEqual(2000, self.total())
        self.tallyd("verify", "a.log")

    def test_what_is_no_store_is_refused_and_left_alone(self):
        self.tallyd("import", "a.log")
        good = self.read("tallyd.db")
        for what, data in (("text", self.log), ("noise", os.urandom(50000)), ("cut", good[:5000]),
                           ("noise within", good[:4096] + os.urandom(len(good) - 4096))):
            with self.subTest(what):
                self.write("bad.db", data)
                self.tallyd("import", "--store", "sqlite:bad.db", self.write("b.log", traffic(100, seed=2)),
                            status=EX_DATAERR)
                self.assertIn("bad.db", self.err)
                self.assertEqual(data, self.read("bad.db"))


class Permissions(Case):
    """As a user who may not do everything: root is given up for it."""

    def setUp(self):
        super().setUp()
        self.write("a.log", traffic(2000))
        program = command()[-1]
        shutil.copy(program, self.path("tallyd"))
        self.identity = {"user": NOBODY, "group": NOBODY, "extra_groups": []} if os.geteuid() == 0 else {}
        self.prefix = command()[:-1]
        os.chmod(self.dir, 0o755)

    def run_unprivileged(self, *arguments):
        done = subprocess.run([*self.prefix, self.path("tallyd"), *arguments], cwd=self.dir, stdin=subprocess.DEVNULL,
                              capture_output=True, timeout=60, check=False, **self.identity)
        return done.returncode, done.stderr.decode()

    def test_directory_that_may_not_be_written(self):
        os.chmod(self.dir, 0o555)
        status, err = self.run_unprivileged("import", "a.log")
        os.chmod(self.dir, 0o755)
        self.assertIn(status, (EX_NOPERM, EX_CANTCREAT), err)
        self.assertIn("must be writable", err)
        self.assertEqual(["a.log", "tallyd"], sorted(os.listdir(self.dir)))

    def test_store_of_another_user_can_be_read(self):
        self.tallyd("import", "a.log")
        question = ["query", "site", "--from", DAY[0], "--to", DAY[1]]
        self.assertEqual(EX_NOPERM, self.run_unprivileged(*question)[0])  # unless its owner lets everybody
        subprocess.run(["chmod", "a+r", *glob.glob(self.path("tallyd.db*"))], check=True)
        self.assertEqual((EX_OK, ""), self.run_unprivileged(*question))
        self.assertEqual((EX_OK, ""), self.run_unprivileged("verify", "a.log"))

    def test_file_that_may_not_be_read(self):
        os.chmod(self.path("a.log"), 0)
        os.chmod(self.dir, 0o777)
        status, err = self.run_unprivileged("import", "a.log")
        self.assertEqual(EX_NOPERM, status, err)
        self.assertIn("a.log", err)
        self.assertEqual(EX_NOPERM, self.run_unprivileged("check", "-c", "a.log")[0])

    def test_store_that_may_not_be_written(self):
        self.tallyd("import", "a.log")
        for name in os.listdir(self.dir):
            if name.startswith("tallyd.db"):
                os.chmod(self.path(name), 0o444)
        os.chmod(self.dir, 0o777)
        before = self.answers()
        status, err = self.run_unprivileged("import", "a.log")
        self.assertIn(status, (EX_NOPERM, EX_CANTCREAT), err)
        self.assertIn("tallyd.db", err)
        self.assertEqual(before, self.answers())


if __name__ == "__main__":
    unittest.main()
