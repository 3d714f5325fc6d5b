#!/usr/bin/env python3
"""`newest: N` of a topic: whatever is killed or read again, and however its partitions interleave, the same events are kept.

The judge sorts what was produced by Python. The seed is printed; TALLYD_SEED repeats a run.
"""

import calendar
import collections
import json
import re
import time

from harness import dice
from kafkacase import Feed, KafkaCase, main

REPORTS = "  pages: {by: [path], newest: 9}\n"
WHOLE = "reports:\n  site: {}\n"
STAMP = re.compile(rb"\[(\S+) \+0000\]")


class KafkaNewest(KafkaCase):
    def setUp(self):
        super().setUp()
        self.dice = dice()
        self.feed = Feed(self, partitions=3)

    def expected(self):
        """{path: [(time, at) of the newest, the newest first]}"""
        pages = collections.defaultdict(list)
        for partition, entries in enumerate(self.feed.logs):
            for offset, entry in enumerate(entries):
                if entry.minute is not None:
                    at = calendar.timegm(time.strptime(STAMP.search(entry.raw).group(1).decode(), "%d/%b/%Y:%H:%M:%S"))
                    pages[entry.path].append((at, f"{self.feed.source}/{partition}/{offset:019}"))
        return {path: sorted(some, reverse=True)[:9] for path, some in pages.items()}

    def check_newest(self):
        expected = self.expected()
        self.assertGreater(len(expected), 2)
        for path, newest in expected.items():
            out = self.tallyd("query", "pages", "-c", "tallyd.yaml", "--newest", "9", "--filter", f"path={path}", "--format", "json")
            self.assertEqual([at for _, at in newest], [one["at"] for one in json.loads(out)["newest"]], path)
        for more in [], ["--store-only"]:
            self.tallyd("verify", "-c", "tallyd.yaml", *more)

    def send(self, lines):
        self.feed.send(lines, seconds=120)
        self.feed.flush()

    def test_killed_daemon_and_backfill(self):
        self.configure([self.feed], WHOLE + REPORTS)
        self.count_by_killed(self.feed.source, 3, lambda: self.send(2000))
        self.run_daemon()
        self.send(500)
        self.wait_counted(self.feed)
        self.stop()
        self.check_newest()
        self.configure([self.feed], WHOLE + REPORTS + REPORTS.replace("pages", "pages2"))
        self.tallyd("backfill", "-q", "-c", "tallyd.yaml", "pages2")
        self.tallyd("backfill", "-q", "-c", "tallyd.yaml", "pages2", "--take", "pages", "--drop-old")
        self.check_newest()


if __name__ == "__main__":
    main()
