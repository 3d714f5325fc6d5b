#!/usr/bin/env python3
"""`tallyd backfill` in MongoDB from the topics of a real Kafka broker, also while a daemon counts them: a report that came later
has all, once, whenever what counts is killed; also records from before a topic was counted.

The judge is a recount by Python of what was produced, and `tallyd verify`. TALLYD_MONGO names the server. TALLYD_ROUNDS (3 by
default) says how often it is killed. The seed is printed; TALLYD_SEED repeats a run.
"""

import os
import threading

import kafkacase
import mongocase
from harness import EX_OK, draw_death, dying_at, failpoints
from kafkacase import Feed
from mongokafkacase import MongoKafkaCase

ROUNDS = int(os.environ.get("TALLYD_ROUNDS") or 3)
SITE = "reports:\n  site: {measures: {hits: count, bytes: sum(bytes)}}\n"
PAGES = SITE + "  pages: {by: [path], measures: {hits: count, bytes: sum(bytes)}}\n"


class Backfill(MongoKafkaCase):
    def setUp(self):
        super().setUp()
        self.feeds = (Feed(self, 2),)

    def count(self, reports, start="latest"):
        feed = self.feeds[0]
        self.configure({feed.topic: f"decode: [combined], start: {start}"}, f'store: {{url: "{self.url}"}}\n{reports}')
        self.run_daemon()
        feed.send(600, 3600)
        self.wait_counted(feed)
        self.stop()

    def backfill(self, report, *arguments, **options):
        return self.tallyd("backfill", "-c", "tallyd.yaml", report, *arguments, **options)

    def test_report_that_came_later_has_all(self):
        feed = self.feeds[0]
        feed.send(500, 3600)
        feed.flush()
        begun = feed.lengths()
        self.count(SITE)
        self.count(PAGES)
        for _ in range(ROUNDS):
            place = draw_death(self.dice, failpoints("mongo."), 2)
            self.backfill(self.dice.choice(["pages", "site"]), "-q", env=dying_at(place), status=None)
            self.assertIn(self.status, (EX_OK, -9), f"{place}\n{self.err}")
        for report in "pages", "site":
            self.assertIn("has counted all", self.backfill(report))
        self.assertEqual(sum(len(log) - begun[n] for n, log in enumerate(feed.logs)), self.book(feed.source, "consumed"))
        expected = kafkacase.Recount(entry for log in feed.logs for entry in log)
        found = {row["path"]: [int(row["hits"]), int(row["bytes"])]
                 for row in self.query("pages", "--top", "1000", "--measure", "all")}
        self.assertEqual(dict(expected.pages), found)
        self.assertEqual(expected.hits, self.total())
        self.verify()
        self.run_daemon()
        self.backfill("pages", "--dry-run")
        feed.send(100, 60)
        self.wait_counted(feed)
        self.stop()
        self.assertEqual(kafkacase.Recount(entry for log in feed.logs for entry in log).hits, self.total())
        self.verify()

    def test_daemon_counts_meanwhile(self):
        """First its partitions are quiet, and one is claimed by what backfills. Then records come, and what backfills is killed."""
        feed, sent = self.feeds[0], threading.Event()
        self.count(SITE)
        self.configure({feed.topic: "decode: [combined]"}, f'store: {{url: "{self.url}"}}\n{PAGES}')
        self.run_daemon()
        self.backfill("pages", "-q", env=dying_at("mongo.applying"), status=-9)

        def send():
            while not sent.wait(0.02):
                feed.send(20, 60)

        thread = threading.Thread(target=send)
        thread.start()
        try:
            for _ in range(ROUNDS):
                self.backfill("pages", "-q", env=dying_at(draw_death(self.dice, failpoints("mongo."), 2)), status=None)
                self.assertIn(self.status, (EX_OK, -9), self.err)
            self.assertIn("has counted all", self.backfill("pages"))
        finally:
            sent.set()
            thread.join()
        self.wait_counted(feed)
        self.stop()
        said = self.read(self.log_name).decode()
        self.assertIn("a backfill took over", said)
        self.assertNotIn("session_ended", said)
        expected = kafkacase.Recount(entry for log in feed.logs for entry in log)
        found = {row["path"]: [int(row["hits"]), int(row["bytes"])]
                 for row in self.query("pages", "--top", "1000", "--measure", "all")}
        self.assertEqual((dict(expected.pages), expected.hits), (found, self.total()))
        self.verify()


if __name__ == "__main__":
    mongocase.main(kafkacase.main)
