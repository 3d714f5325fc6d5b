#!/usr/bin/env python3
"""`tallyd import` beside a running daemon of an SQLite store: the daemon counts the file, beside its own log, each line once; whoever
is killed meanwhile.

The judge is a recount by Python. TALLYD_SEED repeats a run.
"""

import collections
import gzip
import itertools
import os
import signal
import socket
import stat
import subprocess
import threading
import time
import unittest

from harness import (EX_CONFIG, EX_DATAERR, EX_NOINPUT, EX_OK, EX_TEMPFAIL, EX_UNAVAILABLE, EX_USAGE, TIMEOUT_S, DaemonCase,
                     command, dice, draw_death, dying_at, failpoints)

PAGES = 500
SPAN = ("2026-01-05", "2026-01-06")
CONFIG = b"sources: {web: {path: live.log}}\nreports: {pages: {by: [path]}, hosts: {by: [host]}}\n"
# By how it is decoded: a line, and the bytes after which six quotes look like the end of a line of combined.
LINES_WITH_QUOTES = {"logfmt": (b'ts="2026-01-05T10:00:00Z" level="info" msg="x" duration=5\n', 46),
                     "json": (b'{"time":"2026-01-05T10:00:00Z","status":"200"}\n', 39)}


class Handover(DaemonCase):
    def setUp(self):
        super().setUp()
        self.dice = dice()
        self.written = 0
        self.write("tallyd.yaml", CONFIG)
        self.write("live.log", self.lines(10))
        self.run_daemon()

    def run_daemon(self, **options):
        self.launch("-c", "tallyd.yaml", "--listen", "127.0.0.1:0", **options)

    def lines(self, count):
        self.written += count
        return b"".join(b'192.0.2.%d - - [05/Jan/2026:%02d:00:00 +0000] "GET /%d HTTP/1.1" 200 10\n' %
                        (self.dice.randrange(256), self.dice.randrange(24), number % PAGES)
                        for number in range(self.written - count, self.written))

    def imported(self, *arguments, status=EX_OK, **options):
        return self.tallyd("import", "--store", "sqlite:tallyd.db", *arguments, status=status, **options)

    def check(self, *files):
        """Each line that was written was counted once."""
        end = time.monotonic() + TIMEOUT_S
        expected = collections.Counter(f"/{number % PAGES}" for number in range(self.written))
        found = {}
        while found != expected and time.monotonic() < end:
            found = {row["path"]: int(row["value"]) for row in self.query("pages", "--top", "1000", span=SPAN)}
            time.sleep(0.05)
        self.assertEqual(expected, found)
        self.tallyd("verify", "-c", "tallyd.yaml", "--store", "sqlite:tallyd.db", "live.log", *files)

    def test_files_of_all_kinds(self):
        self.write("a.log", self.lines(5000))
        self.write("b.log.gz", gzip.compress(self.lines(5000)))
        self.append("live.log", self.lines(5))
        said = self.imported("a.log", "b.log.gz")
        self.assertEqual(2, said.count("counted 5,000 lines, bytes 0 to "))
        self.assertIn("hosts            parsed 5,000 = counted 5,000", said)
        self.assertIn("a daemon writes this store", self.err)
        self.assertIn("nothing new: all", self.imported("a.log"))
        self.append("a.log", self.lines(7) + b"unfinished")
        said = self.imported("a.log")
        self.assertIn("counted 7 lines", said)
        self.assertIn("10 bytes of an unfinished last line are left", said)
        os.rename(self.path("a.log"), self.path("moved.log"))
        self.assertIn("was counted before as", self.imported("moved.log"))
        self.check("moved.log", "b.log.gz")

    def test_half_line_that_ends_like_a_combined_one_is_left(self):
        """By the daemon, and by an import into a store that nobody else writes."""
        self.check()
        for store, decode in itertools.product(("tallyd.db", "alone.db"), LINES_WITH_QUOTES):
            with self.subTest(store=store, decode=decode):
                (line, cut), name = LINES_WITH_QUOTES[decode], f"{decode}.{store}.log"
                arguments = ["import", "--store", f"sqlite:{store}", "--decode", decode, self.write(name, line + line[:cut])]
                before = self.booked(store) if os.path.exists(self.path(store)) else (0, 0)
                self.assertIn(f"{cut} bytes of an unfinished last line are left", self.tallyd(*arguments))
                self.append(name, line[cut:])
                self.tallyd(*arguments)
                self.assertEqual(tuple(count + 2 for count in before), self.booked(store))

    def test_what_is_refused_counts_nothing(self):
        self.write("bad.log", b"garbage\n" * 3)
        self.write("json.log", b'{"time": "2026-01-05T10:00:00Z"}\n')
        self.write("other.yaml", CONFIG + b"  # another\n".replace(b"  # another", b"limits: {line_max: 16KiB}"))
        self.write("more.yaml", CONFIG.replace(b"hosts: {by: [host]}", b"hosts: {by: [host], generation: 2}"))
        self.wait_for_log("event=source_opened")
        for status, arguments in ((EX_DATAERR, ["bad.log"]), (EX_UNAVAILABLE, ["live.log"]), (EX_NOINPUT, ["missing.log"]),
                                  (EX_NOINPUT, ["-"]), (EX_NOINPUT, ["."]), (EX_USAGE, ["--decode", "nonsense", "json.log"]),
                                  (EX_USAGE, ["--rejects", "r", "bad.log"]), (EX_CONFIG, ["-c", "more.yaml", "bad.log"])):
            with self.subTest(arguments):
                self.imported(*arguments, status=status, input=b"")
        self.check()
        self.write("c.log", self.lines(10))
        self.imported("-c", "other.yaml", "c.log")  # what it counts by is the same
        self.check("c.log")

    def restart_with(self, config):
        self.process.send_signal(signal.SIGTERM)
        self.assertEqual(EX_OK, self.process.wait(TIMEOUT_S))
        self.write("tallyd.yaml", config)
        self.run_daemon()

    def test_says_what_the_store_lacks(self):
        self.write("a.log", self.lines(50))
        self.assertNotIn("does not count", self.imported("a.log"))
        for config in CONFIG.replace(b", hosts: {by: [host]}", b""), CONFIG:
            self.restart_with(config)
            self.append("a.log", self.lines(5))
            said = self.imported("a.log")
        self.assertRegex(said, "hosts +does not count bytes [1-9]")
        self.write("bad.log", b"garbage\n" * 3)
        self.assertIn("no line of it was ever understood", self.imported("--force", "bad.log"))

    def test_socket_is_for_the_daemons_user(self):
        mode = os.stat(self.path("tallyd.db-handover")).st_mode
        self.assertTrue(stat.S_ISSOCK(mode))
        self.assertEqual(0o600, stat.S_IMODE(mode))
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(TIMEOUT_S)
        self.assertFalse(os.path.exists(self.path("tallyd.db-handover")))

    def test_strangers_at_the_socket(self):
        """The next import is served, no matter what strangers send, or if they send nothing."""
        for sent in None, b"", b"x", b"tallyd import 1\0" + b"/" * 70000:
            with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as one:
                here = os.getcwd()
                os.chdir(self.dir)
                one.connect("tallyd.db-handover")
                os.chdir(here)
                if sent is not None:
                    one.send(sent)
        self.write("a.log", self.lines(100))
        self.imported("a.log")
        self.check("a.log")

    def test_several_at_once(self):
        names = [f"{number}.log" for number in range(6)]
        for name in names:
            self.write(name, self.lines(3000))
        imports = [threading.Thread(target=self.imported, args=(name,)) for name in names]
        for one in imports:
            one.start()
        for _ in range(10):
            self.append("live.log", self.lines(20))
            time.sleep(0.02)
        for one in imports:
            one.join()
        self.check(*names)

    def test_importer_is_killed(self):
        self.write("a.log", self.lines(300000))
        for _ in range(5):
            process = subprocess.Popen([*command(), "import", "-q", "--store", "sqlite:tallyd.db", "a.log"], cwd=self.dir)
            time.sleep(self.dice.random() * 0.2)  # it only waits for the daemon: there is no failpoint on its way
            process.kill()
            process.wait()
        self.imported("a.log")
        self.check("a.log")

    def test_daemon_is_killed(self):
        self.write("a.log", self.lines(300000))
        for _ in range(5):
            self.stop()
            self.run_daemon(env=dying_at(draw_death(self.dice, ["ingest.sealed", *failpoints("store.")], 3)))
            process = subprocess.Popen([*command(), "import", "-q", "--store", "sqlite:tallyd.db", "a.log"], cwd=self.dir,
                                       stderr=subprocess.DEVNULL)
            while self.process.poll() is None:  # each flush is a pass
                self.append("live.log", self.lines(5))
                time.sleep(0.05)
            self.assertEqual(-signal.SIGKILL, self.process.returncode)
            self.assertIn(process.wait(TIMEOUT_S), (EX_OK, EX_TEMPFAIL))
            self.run_daemon()
        self.imported("a.log")
        self.check("a.log")


if __name__ == "__main__":
    unittest.main()
