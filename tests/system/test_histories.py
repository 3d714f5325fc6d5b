#!/usr/bin/env python3
"""A log is followed through every kind of rotation, whatever its daemon did meanwhile: each line is counted once, or told.

tests/chaos/histories.py plays many more of the same histories; TALLYD_ROUNDS says how many are played here, and TALLYD_HISTORY which is the first.
"""

import argparse
import os
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import unittest

from harness import ROOT, command

sys.path.insert(0, os.path.join(ROOT, "tests/chaos"))
import steady  # noqa: E402 (found only now)
from histories import play_all, summarize  # noqa: E402
from history import History  # noqa: E402
from rotation import Habits  # noqa: E402

ROUNDS, SEED = int(os.environ.get("TALLYD_ROUNDS") or 20), int(os.environ.get("TALLYD_HISTORY") or 1)
RATE, ROTATIONS, BETWEEN_S, PUT_S = 2000, 20, 0.5, 0.005  # lines a second; pause of the writer


class Histories(unittest.TestCase):
    def test_random_histories(self):
        begun = time.monotonic()
        played = play_all(argparse.Namespace(rounds=ROUNDS, jobs=4, speed=8, keep=False, verbose=False), SEED)
        summarize(played, time.monotonic() - begun)
        self.assertEqual([], [f"{one.seed}: {one.verdict}" for one in played if not one.verdict.is_good()])


class StandIn:
    """In place of a daemon: it has counted what the test says."""

    def __init__(self, counted, headers=2, told=False, mute=()):
        self.counts, self.has_told, self.mute = lambda: (counted, headers), lambda: told, mute


class Judge(unittest.TestCase):
    """Lines 1 to 3 are in access.log.1, 4 to 6 in access.log."""

    def setUp(self):
        home = tempfile.mkdtemp(prefix="tallyd-test-")
        self.addCleanup(shutil.rmtree, home)
        self.history = History(home, random.Random(1), 1, Habits(header=True))
        log = self.history.log
        self.addCleanup(log.close)
        log.linger = lambda: None
        log.write(3)
        log.begin()
        log.finish()
        log.write(3)

    def check(self, word, counted, **options):
        self.history.daemon = StandIn({number: 1 for number in counted}, **options)
        self.assertEqual(word, self.history.judge().word)

    def test_nothing_is_gone(self):
        self.check("exact", range(1, 7))
        self.check("SILENT", (1, 2, 4, 5, 6))
        self.check("SILENT", range(1, 7), headers=1)
        self.check("DOUBLED", range(1, 7), headers=3)
        self.check("LEFT", (1, 2, 4, 5, 6), told=True)
        self.check("told too much", range(1, 7), told=True)  # files that begin alike
        self.history.habits = Habits()
        self.check("FALSE ALARM", range(1, 7), told=True)
        self.history.daemon = StandIn({number: 1 + (number == 3) for number in range(1, 7)}, told=True)
        self.assertEqual("DOUBLED", self.history.judge().word)

    def test_a_file_is_deleted(self):
        self.history.log.lose(self.history.log.rotated()[0])
        self.check("told too much", range(1, 7), told=True)
        self.check("told", (1, 4, 5, 6), told=True)
        self.check("MUTE", (1, 4, 5, 6), told=True, mute=[1])
        self.check("SILENT", (1, 4, 5, 6))
        self.check("SILENT", (4, 5, 6))  # there is no access.log.1
        self.check("LEFT", (1, 4, 5), told=True)
        self.history.log.gone[0].can_hide = True
        self.check("untellable", (4, 5, 6))
        self.check("SILENT", (1, 4, 5, 6))

    def test_lines_that_may_be_counted(self):
        self.history.log.free.add(6)
        self.check("exact", range(1, 6))
        self.check("exact", range(1, 7))


class Rotations(unittest.TestCase):
    """Histories that no dice draw, each of which once lost lines without a word."""

    def setUp(self):
        self.home = tempfile.mkdtemp(prefix="tallyd-test-")
        self.addCleanup(shutil.rmtree, self.home)

    def follow(self, habits):
        history = History(self.home, random.Random(SEED), 8, habits)
        self.addCleanup(history.daemon.kill_quietly)
        return history

    def rotate(self, log, count):
        """Once; then so many lines."""
        log.begin()
        log.finish()
        log.write(count)

    def end(self, history, word):
        history.finish()
        verdict = history.judge()
        self.assertEqual(word, verdict.word, verdict.why)

    def test_a_file_comes_and_goes_while_the_daemon_is_paused_and_the_next_one_is_rotated_after(self):
        history = self.follow(Habits(keep=1))
        history.begin()
        history.wait(lambda: b"event=caught_up" in history.daemon.log(), 5)
        history.pause()
        self.rotate(history.log, 5)  # these lines go with the next rotation
        self.rotate(history.log, 5)
        third = os.stat(history.log.path).st_ino
        history.resume()
        files = f"/proc/{history.daemon.process.pid}/fd"

        def is_held():
            return any(os.stat(os.path.join(files, fd)).st_ino == third for fd in os.listdir(files))

        self.assertTrue(history.wait(is_held, 5))
        self.rotate(history.log, 5)
        self.end(history, "told")

    def play_headers(self, keep, word):
        """Only a header was counted when the daemon was killed, and all files begin with it; the log is nothing else again."""
        history = self.follow(Habits(header=True, keep=keep, pack="gzip"))
        log, daemon = history.log, history.daemon
        log.write(0)
        daemon.start()
        self.assertTrue(history.wait(daemon.total, 5))
        daemon.kill()
        log.write(5)
        for count in (5, 5, 5, 0):
            self.rotate(log, count)
        daemon.start()
        history.catch_up()
        daemon.stop()
        log.close()
        verdict = history.judge()
        self.assertEqual(word, verdict.word, verdict.why)
        self.assertIn(b"files of this log may have been deleted", daemon.log())
        verify = subprocess.run([*command(), "verify", "-c", "tallyd.yaml"], cwd=self.home, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                check=False)
        self.assertEqual(4, verify.returncode, verify.stdout)

    def test_files_that_begin_with_the_same_header_are_deleted_while_the_daemon_is_down(self):
        self.play_headers(2, "told")

    def test_files_that_begin_with_the_same_header(self):
        self.play_headers(99, "told too much")  # nobody can know that none was deleted


class CopyTruncate(unittest.TestCase):
    """Every line is either in a copy or in the log: nothing is written between the end of a copy and the truncation."""

    def setUp(self):
        home = tempfile.mkdtemp(prefix="tallyd-test-")
        self.addCleanup(shutil.rmtree, home)
        self.dice, self.over = random.Random(SEED), threading.Event()
        self.history = History(home, self.dice, 1, Habits(mode="copytruncate"))
        self.addCleanup(self.history.daemon.kill_quietly)

    def write(self):
        """RATE lines a second, until it is over."""
        log, begun = self.history.log, time.monotonic()
        while not self.over.wait(PUT_S):
            due = int((time.monotonic() - begun) * RATE) - log.count
            if due > 0:
                log.write(due, halves=self.dice.random() < 0.05)

    def play(self, meanwhile):
        """`meanwhile` is called between two rotations."""
        history = self.history
        writer = threading.Thread(target=self.write)
        history.begin()
        first, begun = history.log.count, time.monotonic()
        writer.start()
        try:
            for number in range(ROTATIONS):
                time.sleep(BETWEEN_S)
                meanwhile(number)
                history.log.begin()
                history.log.finish()
            time.sleep(BETWEEN_S)
        finally:
            self.over.set()
            writer.join()
        rate = (history.log.count - first) / (time.monotonic() - begun)
        history.finish()
        verdict = history.judge()
        print(f"{history.log.count} lines, {rate:.0f} a second, {history.log.rotations} rotations: {verdict}")
        self.assertEqual(("exact", ""), (verdict.word, verdict.why))
        self.assertGreater(rate, RATE * 0.8)

    def test_2000_lines_a_second(self):
        self.play(lambda number: None)

    def test_2000_lines_a_second_and_a_daemon_that_is_killed_and_stopped(self):
        history = self.history

        def meanwhile(number):
            if number % 4 == 1:
                (history.daemon.kill if number % 8 == 1 else history.daemon.stop)()
            elif number % 4 == 3:
                history.daemon.start()

        self.play(meanwhile)


@unittest.skipUnless(shutil.which("logrotate"), "no logrotate here")
class ByLogrotate(unittest.TestCase):
    """The real logrotate truncates the log while it is written: what it leaves is counted once. `make histories RESULTS=yes` plays it longer."""

    def test_2000_lines_a_second(self):
        home = tempfile.mkdtemp(prefix="tallyd-test-")
        self.addCleanup(shutil.rmtree, home)
        one = steady.play(home, random.Random(SEED), ROTATIONS, BETWEEN_S / 2)
        print(one)
        self.assertTrue(one.is_exact(), one)
        self.assertGreater(one.rate, RATE * 0.8)


if __name__ == "__main__":
    unittest.main()
