#!/usr/bin/env python3
"""A daemon between a real Kafka broker and a MongoDB server: whichever of them dies, each event is counted once.

TALLYD_ROUNDS (4 by default) says how often the daemon is killed by chance. The seed is printed; TALLYD_SEED repeats a run, as
far as the moments of a machine can be repeated.
"""

import os
import signal
import time

import kafkacase
import mongocase
from harness import EX_TEMPFAIL, TIMEOUT_S, dice
from kafkacase import SPAN, Feed, KafkaCase, in_envelope
from mongocase import pymongo
from test_mongo import failpoints

ROUNDS = int(os.environ.get("TALLYD_ROUNDS") or 4)


def flat(document, stem=""):
    """{"rejected.time": 1} of { rejected: { time: 1 } }"""
    found = {}
    for name, value in document.items():
        if isinstance(value, dict):
            found.update(flat(value, f"{stem}{name}."))
        else:
            found[stem + name] = value
    return found


class MongoKafka(KafkaCase):
    databases = 0

    def setUp(self):
        super().setUp()
        self.dice, self.server = dice(), mongocase.MongoCase.server
        MongoKafka.databases += 1
        name = f"k{MongoKafka.databases}"
        self.url = f"{self.server.url}/{name}"
        self.client = pymongo.MongoClient(self.server.url, serverSelectionTimeoutMS=1000 * TIMEOUT_S)
        self.addCleanup(self.client.close)
        self.base = self.client[name]
        self.write("empty.log", b"")
        self.feeds = (Feed(self, 3, "combined"), Feed(self, 2, "json:/message, combined", in_envelope))
        self.configure(self.feeds, f"store: {{url: \"{self.url}\"}}\n")

    # ---- what KafkaCase reads from a file

    def query(self, report, *arguments, span=SPAN, store=None):
        return super().query(report, *arguments, span=span, store=store or self.url)

    def total(self, measure="hits", report="site", span=SPAN, store=None):
        return super().total(measure, report, span, store or self.url)

    def nexts(self, source):
        ledger = self.base.ledger.find_one({"_id": "ledger"}) or {}
        return {int(one["partition"]): one["next"] for one in ledger.get("partitions", {}).values()
                if one["source"] == source and one.get("next", 0) > 0}

    def book(self, source, entry):
        return sum(flat(book.get("entries", {})).get(entry, 0) for book in self.base.books.find({"source": source}))

    def check_books(self):
        for book in self.base.books.find({"source": {"$gt": ""}}):
            entries = flat(book.get("entries", {}))
            rejected = sum(count for entry, count in entries.items() if entry.startswith("rejected."))
            self.assertEqual(entries.get("consumed", 0), entries.get("parsed", 0) + rejected, book)
            for report in book["reports"].values():
                self.assertEqual(report.get("parsed", 0), report.get("counted", 0) + report.get("filtered", 0), book)

    def check_prefix(self, *feeds):
        """What was sealed is counted by whoever opens the store next."""
        self.tallyd("import", "-c", "tallyd.yaml", "empty.log")
        super().check_prefix(*feeds)

    # ----

    def send(self, lines):
        for feed in self.feeds:
            feed.send(lines, seconds=60)
            feed.flush()

    def test_all_is_counted_once(self):
        self.send(1000)
        self.run_daemon()
        self.check_all(*self.feeds)

    def test_killed_at_every_failpoint(self):
        for name in failpoints():
            with self.subTest(failpoint=name):
                process = self.run_daemon(failpoint=f"{name}:{1 + self.dice.randrange(2)}", consuming=False)
                until = time.monotonic() + TIMEOUT_S / 2
                while process.poll() is None:
                    self.assertLess(time.monotonic(), until, f"failpoint {name} was not reached\n{self.said()}")
                    self.send(20)
                    time.sleep(2.5 if name == "mongo.done" else 0.1)  # which comes when nothing else does
                self.assertEqual(-signal.SIGKILL, process.returncode, self.said())
                self.check_prefix(*self.feeds)
        self.run_daemon()
        self.check_all(*self.feeds)

    def test_killed_at_random_moments(self):
        for _ in range(ROUNDS):
            self.send(self.dice.choice([20, 300]))
            self.run_daemon(consuming=self.dice.random() < 0.8)
            self.send(self.dice.choice([1, 200]))
            time.sleep(self.dice.random() ** 2)
            self.kill()
            self.check_prefix(*self.feeds)
        self.run_daemon()
        self.check_all(*self.feeds)

    def test_server_killed_and_restarted(self):
        self.run_daemon()
        for _ in range(2):
            self.send(300)
            time.sleep(self.dice.random() * 0.5)
            self.server.kill()
            self.send(300)
            time.sleep(self.dice.random())
            self.server.start()
            self.wait_counted(*self.feeds)
        self.check_all(*self.feeds)

    def test_server_that_is_away_at_the_start_is_waited_for(self):
        self.send(100)
        self.server.kill()
        self.run_daemon(consuming=False)
        self.wait_for_log("event=store_away .*next=\"waiting for it\"")
        self.assertEqual(1, self.said().count("event=store_away"))
        self.server.start()
        self.check_all(*self.feeds)

    def test_second_daemon_takes_over(self):
        self.send(300)
        first = self.run_daemon()
        self.wait_counted(*self.feeds)
        self.run_daemon()
        for _ in range(20):
            self.send(20)
            if first.poll() is not None:
                break
            time.sleep(0.2)
        self.assertEqual(EX_TEMPFAIL, first.wait(TIMEOUT_S))
        self.check_all(*self.feeds)

    def test_one_that_was_thought_dead_is_woken(self):
        self.send(300)
        first = self.run_daemon()
        self.send(300)
        time.sleep(self.dice.random() * 0.3)
        first.send_signal(signal.SIGSTOP)
        self.run_daemon()
        self.send(300)
        self.wait_counted(*self.feeds)
        first.send_signal(signal.SIGCONT)
        self.send(300)
        self.wait_for(first.poll, lambda status: status is not None)
        self.check_all(*self.feeds)


if __name__ == "__main__":
    mongocase.main(kafkacase.main)
