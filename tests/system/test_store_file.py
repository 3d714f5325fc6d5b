#!/usr/bin/env python3
"""A daemon counts into the file that it opened, or not at all: the file is removed, replaced or linked under it."""

import os
import shutil
import unittest

from harness import EX_CONFIG, EX_DATAERR, TIMEOUT_S, DaemonCase

SPAN = ("2026-01-05", "2026-01-06")


def lines(count):
    return b'192.0.2.1 - - [05/Jan/2026:10:00:00 +0000] "GET / HTTP/1.1" 200 10\n' * count


class StoreFile(DaemonCase):
    def setUp(self):
        super().setUp()
        self.launch("--listen", "127.0.0.1:0")
        self.feed(lines(10))
        self.wait_for_consumed(10)

    def check_ends(self, what, feeds=True):
        if feeds:
            self.feed(lines(5))
        self.assertEqual(EX_DATAERR, self.process.wait(TIMEOUT_S), self.read("log").decode())
        said = self.read("log").decode()
        self.assertIn(what + " while it was open", said)
        self.assertIn("Nothing more is counted", said)

    def test_removed(self):
        os.remove(self.path("tallyd.db"))
        self.check_ends("tallyd.db was removed")
        self.assertFalse(os.path.exists(self.path("tallyd.db")))

    def test_removed_while_nothing_is_counted(self):
        os.remove(self.path("tallyd.db"))
        self.check_ends("tallyd.db was removed", feeds=False)

    def test_replaced(self):
        self.tallyd("import", "-q", "--store", "sqlite:other.db", self.write("b.log", lines(7)))
        other = self.read("other.db")
        os.rename(self.path("other.db"), self.path("tallyd.db"))
        self.check_ends("tallyd.db was replaced")
        self.assertEqual(other, self.read("tallyd.db"))

    def test_moved_away_and_put_back_is_the_same_file(self):
        os.rename(self.path("tallyd.db"), self.path("away.db"))
        os.rename(self.path("away.db"), self.path("tallyd.db"))
        self.feed(lines(5))
        self.wait_for_consumed(15)
        self.stop()
        self.assertEqual(15, self.total(span=SPAN))

    def test_log_removed(self):
        os.remove(self.path("tallyd.db-wal"))
        self.check_ends("tallyd.db-wal was removed")

    def test_index_of_the_log_replaced(self):
        shutil.copy(self.path("tallyd.db-shm"), self.path("copy"))
        os.rename(self.path("copy"), self.path("tallyd.db-shm"))
        self.check_ends("tallyd.db-shm was replaced")

    def test_linked(self):
        os.link(self.path("tallyd.db"), self.path("link.db"))
        self.feed(lines(5))
        self.wait_for_consumed(15)
        self.wait_for_log("event=store_has_names")
        self.stop()
        self.tallyd("query", "site", "--store", "sqlite:link.db", status=EX_CONFIG)
        self.assertIn("2 names (hard links)", self.err)
        os.remove(self.path("link.db"))
        self.assertEqual(15, self.total(span=SPAN))


if __name__ == "__main__":
    unittest.main()
