#!/usr/bin/env python3
"""A bit of a store that flips gives an error or changes nothing: never another answer with exit status 0.

Each round copies a store, flips one bit of its file or of its log (-wal) and asks questions; every third counts the
source from where the store says, and asks once more. TALLYD_ROUNDS says how many rounds (18 by default); the bits are random, by a seed
that is printed. tests/unit/test_sqlite_flips.c does many more.
"""

import os
import unittest

from harness import EX_DATAERR, EX_OK, DaemonCase, dice, traffic

ROUNDS = int(os.environ.get("TALLYD_ROUNDS") or 18)
CONFIG = b"sources: {access: {path: access.log}}\nhttp: {listen: '127.0.0.1:0'}\nstore: {url: 'sqlite:tallyd.db'}\n"
SPAN = ("--from", "2026-01-01", "--to", "2026-03-01")
QUESTIONS = (("site", "--step", "minute", "--measure", "all"), ("pages", "--step", "day", "--measure", "bytes"),
             ("pages", "--top", "1000"), ("pages", "--filter", "path=/index.html", "--step", "hour"))


class Flips(DaemonCase):
    def setUp(self):
        super().setUp()
        self.dice = dice()
        self.write("tallyd.yaml", CONFIG)
        self.figures = {"refused": 0, "answered": 0}

    def ask(self):
        """The answer to each question: text, or None if it was refused in words that name the file."""
        answers = []
        for question in QUESTIONS:
            answer = self.tallyd("query", *question, *SPAN, "--format", "csv-raw", status=None)
            answers.append(answer if self.status == EX_OK else self.check_refused())
        return answers

    def check_refused(self):
        self.assertEqual(EX_DATAERR, self.status, self.err)
        self.assertIn("tallyd.db", self.err)

    def put_down(self, files):
        for name in os.listdir(self.dir):
            if name.startswith("tallyd.db"):
                os.remove(self.path(name))
        for name, data in files.items():
            self.write(name, data)

    def check_answers(self, right, where):
        for question, answer, expected in zip(QUESTIONS, self.ask(), right):
            if answer is None:
                self.figures["refused"] += 1
            else:
                self.figures["answered"] += 1
                self.assertEqual(expected, answer, f"{where}: {question}")

    def flip_and_ask(self, files, right, name):
        at, bit = self.dice.randrange(len(files[name])), self.dice.randrange(8)
        where = f"byte {at} of {name}, bit {bit}"
        bad = bytearray(files[name])
        bad[at] ^= 1 << bit
        self.put_down({**files, name: bytes(bad)})
        self.check_answers(right, where)
        if self.dice.randrange(3) > 0:
            return
        self.tallyd("import", "-q", "-c", "tallyd.yaml", "access.log", status=None)
        if self.status != EX_OK:
            self.check_refused()
        else:
            self.check_answers(right, where + ", counted further")

    def check(self, files, names, rounds):
        self.put_down(files)
        right = self.ask()
        self.assertNotIn(None, right)
        for _ in range(rounds):
            self.flip_and_ask(files, right, self.dice.choice(names))
        print(f"{rounds} flipped bits of {'/'.join(sorted(set(names)))}: {self.figures['refused']} answers refused, "
              f"{self.figures['answered']} right")

    def count_live(self, log, chunks):
        """The store as a daemon has it that counted `log` in so many batches."""
        self.append("access.log", b"")
        self.launch("-c", "tallyd.yaml")
        lines, done = log.splitlines(keepends=True), 0
        for i in range(chunks):
            upto = len(lines) * (i + 1) // chunks
            self.append("access.log", b"".join(lines[done:upto]))
            done = upto
            self.wait_for_consumed(done)
        files = {name: self.read(name) for name in ("tallyd.db", "tallyd.db-wal")}
        self.stop()
        return files

    def test_file(self):
        self.write("access.log", traffic(20000))
        self.tallyd("import", "-q", "-c", "tallyd.yaml", "access.log")
        self.check({"tallyd.db": self.read("tallyd.db")}, ["tallyd.db"], ROUNDS * 2 // 3)
        self.assertGreater(self.figures["refused"], 0)

    def test_log_of_a_daemon_that_was_killed(self):
        files = self.count_live(traffic(3000), 5)
        self.assertGreater(len(files["tallyd.db-wal"]), 100000)
        self.check(files, ["tallyd.db-wal", "tallyd.db-wal", "tallyd.db"], ROUNDS // 3)
        self.assertGreater(self.figures["refused"], 0)


if __name__ == "__main__":
    unittest.main()
