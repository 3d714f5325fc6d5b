#!/usr/bin/env python3
"""The page of a store in MongoDB: its heatmap and its comparison are a recount of the log.

Needs Debian's chromium; without it the test is skipped (exit 77). TALLYD_MONGO names the server (tests/servers/mongo.py).
"""

import sys
import unittest

import mongocase
import test_page
from browser import PROGRAM

TESTS = ("test_heatmap_is_a_recount_of_the_log", "test_heatmap_follows_filter_and_step", "test_comparison_is_a_recount_of_the_log")


class MongoPageTest(test_page.PageTest):
    @classmethod
    def setUpClass(cls):
        cls.STORE = f"{mongocase.MongoCase.server.url}/page"
        super().setUpClass()


def load_tests(loader, _, __):
    return unittest.TestSuite(loader.loadTestsFromName(name, MongoPageTest) for name in TESTS)


if __name__ == "__main__":
    if PROGRAM is None:
        print("skipped: there is no chromium (Debian package chromium)")
        sys.exit(77)
    mongocase.main()
