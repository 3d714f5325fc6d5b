#!/usr/bin/env python3
"""Disks that fill up, fail, or do less than asked; processes that die between two writes.

faulty.so spoils the Nth write (or read) of an import, for N over all the writes that an unspoilt import makes. After
each, a run without faults goes on, and every total is exact. TALLYD_SWEEP says how many of all N are tried, "all" or
about how many of each kind (12 by default); which ones is random, by a seed that is printed.
"""

import errno
import gzip
import os
import resource
import signal
import sys
import unittest
import urllib.error

from harness import DAY, EX_IOERR, Case, DaemonCase, dice, preload, traffic

SWEEP = os.environ.get("TALLYD_SWEEP") or "12"
LINES = 2000  # two batches: an import reads 256 KiB before it writes
CONFIG = b"aggregate: {batch_size: 64KiB}\n"


class Faults(Case):
    def setUp(self):
        super().setUp()
        if "LD_PRELOAD" in os.environ or os.environ.get("TALLYD"):
            self.fail("these tests load a library into build/tallyd, and cannot do it beside another")
        self.dice = dice()
        self.log = traffic(LINES)
        self.write("a.log", self.log)
        self.write("a.gz", gzip.compress(self.log))
        self.write("tallyd.yaml", CONFIG)
        self.tallyd("import", "-c", "tallyd.yaml", "--store", "sqlite:whole.db", "a.log")
        self.expected = self.answers("whole.db")

    def faulty(self, path, calls, at, how, log="a.log", status=None):
        """An import with faults. Its status; the calls there were are in self.calls."""
        environment = {"LD_PRELOAD": preload("faulty"), "FAULTY_PATH": path, "FAULTY_CALLS": calls,
                       "FAULTY_AT": str(at), "FAULTY_HOW": how, "FAULTY_COUNT": self.path("count")}
        self.tallyd("import", "-q", "-c", "tallyd.yaml", "-j", "2", log, status=status, env={**os.environ, **environment})
        self.calls = int(self.read("count")) if os.path.exists(self.path("count")) else None
        return self.status

    def answers(self, store="tallyd.db", span=DAY):
        """Every minute of all and every page: hour by hour, `tallyd verify` compares the rest."""
        return [self.query(*question, "--measure", "all", span=span, store=store)
                for question in (["site", "--step", "minute"], ["pages", "--top", "1000"])]

    def remove_store(self):
        for name in os.listdir(self.dir):
            if name.startswith("tallyd.db") or name == "count":
                os.remove(self.path(name))

    def check_recovers(self, log="a.log"):
        self.tallyd("import", "-q", "-c", "tallyd.yaml", log)
        self.tallyd("verify", "-c", "tallyd.yaml", log)
        self.assertEqual(self.expected, self.answers())

    def check_said(self, what):
        self.assertIn(what, self.err)
        self.assertEqual(1, self.err.count("\n"), self.err)

    def numbers(self, path, calls):
        """Which calls to spoil, of all those that there are."""
        self.faulty(path, calls, 0, "", status=0)
        count = self.calls
        self.remove_store()
        self.assertGreater(count, 5, "the library saw no calls: it tests nothing")
        wanted = count if SWEEP == "all" else min(int(SWEEP), count)
        return sorted(self.dice.sample(range(1, count + 1), wanted))

    def sweep(self, how, failure):
        """Spoil writes of the store one after another; a spoilt import may end well where nothing hung on the write."""
        good = 0
        numbers = self.numbers("tallyd.db", "write")
        for at in numbers:
            with self.subTest(how=how, at=at):
                status = self.faulty("tallyd.db", "write", at, how)
                self.assertIn(status, (0, failure), self.err)
                good += status == 0
                if status == 0:
                    self.assertEqual(self.expected, self.answers())
                elif status > 0:
                    self.check_said("tallyd.db")
                self.check_recovers()
            self.remove_store()
        print(f"{len(numbers)} writes, {how}: {good} imports ended well")
        self.assertLess(good, len(numbers) * 3 / 4)  # one in five does: of few, more may by chance

    def test_disk_that_stays_full_is_said_and_loses_nothing(self):
        self.sweep(str(errno.ENOSPC), EX_IOERR)

    def test_disk_full_for_a_moment_loses_nothing(self):
        self.sweep(f"{errno.ENOSPC} once", EX_IOERR)

    def test_failing_disk_is_said_and_loses_nothing(self):
        self.sweep(str(errno.EIO), EX_IOERR)

    def test_writes_that_fail_once_lose_nothing(self):
        self.sweep(f"{errno.EIO} once", EX_IOERR)

    def test_process_killed_between_two_writes_loses_nothing(self):
        self.sweep("kill", -signal.SIGKILL)

    def test_short_writes_change_nothing(self):
        self.faulty("tallyd.db", "write", 1, "short", status=0)
        self.check_recovers()

    def test_short_reads_change_nothing(self):
        for log in "a.log", "a.gz":
            self.faulty(self.path(log), "read", 1, "short", log=log, status=0)
            self.assertGreater(self.calls, os.path.getsize(self.path(log)))
            self.check_recovers(log)
            self.remove_store()

    def test_log_that_cannot_be_read_further_is_counted_up_to_there(self):
        for at in 1, 2, 3:
            self.faulty(self.path("a.log"), "read", at, str(errno.EIO), status=EX_IOERR)
            self.check_said("a.log")
            self.check_recovers()
            self.remove_store()

    def test_file_size_limit_is_an_error_like_a_full_disk(self):
        def limit(size):
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))

        for kib in 2, 40, 70, 100, 150:
            with self.subTest(kib=kib):
                self.tallyd("import", "-q", "-c", "tallyd.yaml", "a.log", status=EX_IOERR,
                            preexec_fn=lambda kib=kib: limit(kib * 1024))
                self.check_said("tallyd.db")
                self.check_recovers()
            self.remove_store()


class FullRejects(DaemonCase):
    """A disk that fills up in the middle of a rejected line."""

    BAD = [b"no line %03d" % number for number in range(200)]

    def setUp(self):
        super().setUp()
        self.write("a.log", b"".join(line + b"\n" for line in self.BAD))
        self.environment = {**os.environ, "LD_PRELOAD": preload("faulty"), "FAULTY_PATH": "rejected",
                            "FAULTY_CALLS": "write", "FAULTY_AT": "1", "FAULTY_HOW": "full:" + self.path("full")}
        self.write("tallyd.yaml", b"sources: {access: {path: a.log}}\naggregate: {flush: 100ms}\n"
                                  b"rejects: {file: rejected}\nhttp: {listen: '127.0.0.1:0'}\n")

    def rejected(self):
        """The lines kept, which must be whole."""
        lines = self.read("rejected").split(b"\n")
        self.assertEqual(b"", lines.pop())
        rows = [line.split(b"\t") for line in lines]
        self.assertEqual({4}, {len(row) for row in rows}, rows)
        return [row[3] for row in rows]

    def not_ready(self):
        try:
            return self.get("/readyz") and ""
        except urllib.error.HTTPError as error:
            with error:
                return error.read().decode()

    def test_daemon_of_a_file_waits_for_room(self):
        self.write("full", b"")
        self.launch("-c", "tallyd.yaml", env=self.environment)
        self.wait_for_log("event=rejects_failed .*rejected: No space left on device.* next=.retrying")
        self.wait_for(self.not_ready, lambda why: "No space left on device" in why)
        os.remove(self.path("full"))
        self.wait_for_log("event=retry_succeeded")
        self.wait_for_consumed(len(self.BAD))
        self.stop()
        self.assertEqual(self.BAD, self.rejected())

    def test_line_torn_by_a_kill_is_ended(self):
        self.write("rejected", b"0\tnot_a_line\t1\tno li")
        self.launch("-c", "tallyd.yaml")
        self.wait_for_consumed(len(self.BAD))
        self.stop()
        self.assertEqual([b"no li", *self.BAD], self.rejected())

    def test_import_ends_and_leaves_no_torn_line(self):
        self.write("full", b"")
        arguments = ["import", "--force", "-q", "-j", "1", "--rejects", "rejected", "a.log"]
        self.tallyd(*arguments, status=EX_IOERR, env=self.environment)
        self.assertIn("rejected: No space left on device", self.err)
        self.assertEqual(b"", self.read("rejected"))
        self.tallyd(*arguments)
        self.assertEqual(self.BAD, self.rejected())


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + ["--failfast"] + sys.argv[1:])
