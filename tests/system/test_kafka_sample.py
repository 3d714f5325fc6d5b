#!/usr/bin/env python3
"""`sample: 1/N` of a topic: whatever is killed, rebalanced or read again, the same events are drawn, by their partition and offset.

The judge draws by Python (samplecase.py). The seed is printed; TALLYD_SEED repeats a run.
"""

import collections

from harness import dice
from kafkacase import SPAN, Feed, KafkaCase, main
from samplecase import draws, salt

REPORTS = "  few: {by: [path], sample: 1/7}\n"
WHOLE = "reports:\n  site: {}\n"


class KafkaSample(KafkaCase):
    def setUp(self):
        super().setUp()
        self.dice = dice()
        self.feed = Feed(self, partitions=3)

    def drawn(self):
        pages = collections.defaultdict(lambda: [0, 0])
        for partition, entries in enumerate(self.feed.logs):
            salted = salt(self.feed.source, str(partition))
            for offset, entry in enumerate(entries):
                if entry.minute is not None and draws(salted, offset, 7):
                    pages[entry.path][0] += 7
                    pages[entry.path][1] += 7 * entry.bytes
        return dict(pages)

    def check_drawn(self):
        found = {row["path"]: [int(row["hits"]), int(row["bytes"])]
                 for row in self.query("few", "--top", "1000", "--measure", "all", span=SPAN)}
        self.assertEqual(self.drawn(), found)
        for more in [], ["--store-only"]:
            self.tallyd("verify", "-c", "tallyd.yaml", *more)

    def send(self, lines):
        self.feed.send(lines, seconds=120)
        self.feed.flush()

    def test_killed_daemon(self):
        self.configure([self.feed], WHOLE + REPORTS)
        self.count_by_killed(self.feed.source, 4, lambda: self.send(3000))
        self.run_daemon()
        self.send(500)
        self.wait_counted(self.feed)
        self.stop()
        self.check_drawn()

    def test_backfill(self):
        self.configure([self.feed], WHOLE)
        self.send(4000)
        self.run_daemon()
        self.wait_counted(self.feed)
        self.stop()
        self.configure([self.feed], WHOLE + REPORTS)
        self.run_daemon()
        self.send(1000)
        self.wait_counted(self.feed)
        self.stop()
        self.tallyd("backfill", "-q", "-c", "tallyd.yaml", "few")
        self.check_drawn()


if __name__ == "__main__":
    main()
