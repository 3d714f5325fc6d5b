#!/usr/bin/env python3
"""Daemons that must not count into one database side by side: of two groups, or of two generations of a report. The second one
is refused, and says who is there; one that slept through its lease ends when it finds another in its place."""

import datetime
import signal
import socket
import time

import kafkacase
import mongocase
from harness import EX_CONFIG, EX_OK, EX_TEMPFAIL, TIMEOUT_S
from kafkacase import Feed
from mongokafkacase import MongoKafkaCase

SECOND = "reports: {site: {}, pages: {by: [path, status], generation: 2}}\n"


class Peers(MongoKafkaCase):
    def setUp(self):
        super().setUp()
        self.feeds = (Feed(self, 3, "combined"),)
        self.first_group = self.group
        self.configure_mongo()

    def begin_first(self):
        self.send(300)
        first = self.run_daemon()
        first.log_name = self.log_name
        self.wait_counted(*self.feeds)
        return first

    def use_group(self, group):
        self.group = group
        self.configure_mongo()

    def end(self, daemon):
        daemon.send_signal(signal.SIGTERM)
        self.assertEqual(EX_OK, daemon.wait(TIMEOUT_S))

    def who(self, daemon):
        return f"process {daemon.pid} on {socket.gethostname()}, group {self.first_group}, since 20"

    def make_silent(self, daemon):
        """As if its machine had slept for longer than a lease."""
        slot, = [name for name, writer in self.ledger.slots().items() if writer["pid"] == daemon.pid]
        long_ago = datetime.datetime.now(datetime.timezone.utc) - datetime.timedelta(minutes=2)
        self.ledger.change({"$set": {f"writers.{slot}.lease": long_ago, f"writers.{slot}.host": "another boot"}})

    def ends(self, daemon, *texts):
        self.assertEqual(EX_CONFIG, daemon.wait(TIMEOUT_S))
        said = self.read(daemon.log_name).decode()
        for text in texts:
            self.assertIn(text, said)

    # ---- two groups

    def test_second_group_of_a_topic_is_refused(self):
        first = self.begin_first()
        self.use_group("another")
        self.refused(EX_TEMPFAIL, "as of group another", self.who(first), self.feeds[0].topic)
        self.assertIsNone(first.poll())
        self.end(first)
        self.run_daemon()  # and goes on where the first one ended
        self.send(100)
        self.check_all(*self.feeds)

    def test_second_group_of_another_topic_is_let_in(self):
        first = self.begin_first()
        other = Feed(self, 2, "combined")
        self.feeds, before = (other,), self.feeds
        self.use_group("another")
        self.send(200)
        self.run_daemon()
        self.wait_counted(*before, other)
        self.assertIsNone(first.poll())
        self.end(first)
        self.feeds = (*before, other)
        self.configure_mongo()
        self.check_all(*self.feeds)

    def test_of_two_groups_that_come_at_once_one_is_let_in(self):
        self.send(300)
        for _ in range(4):
            daemons = []
            for group in "one", "two":
                self.group = group
                self.configure_mongo(name=f"{group}.yaml")
                daemons.append(self.run_daemon("-c", f"{group}.yaml", consuming=False))
            self.wait_for(lambda daemons=daemons: [daemon.poll() for daemon in daemons], lambda found: found != [None, None],
                          alive=False)
            time.sleep(self.dice.random() * 0.5)
            self.assertEqual({None, EX_TEMPFAIL}, {daemon.poll() for daemon in daemons})
            for daemon in daemons:
                daemon.kill()
                daemon.wait()
        self.run_daemon()
        self.check_all(*self.feeds)

    def test_one_that_slept_while_another_group_came_ends(self):
        first = self.begin_first()
        self.make_silent(first)
        self.use_group("another")
        second = self.run_daemon()
        self.send(300)
        self.ends(first, f"as of group {self.first_group}", f"process {second.pid} on ")
        self.check_all(*self.feeds)

    # ---- two generations

    def test_second_generation_beside_the_first_is_refused(self):
        first = self.begin_first()
        self.configure_mongo(more=SECOND)
        self.refused(EX_TEMPFAIL, 'generation 2 of report "pages"', "generation 1", self.who(first))
        self.assertEqual({1}, {report["generation"] for report in self.base.reports.find()})  # it left nothing behind
        self.assertIsNone(first.poll())
        self.end(first)
        self.run_daemon()
        self.send(100)
        self.wait_counted(*self.feeds)
        self.stop()
        self.configure_mongo()
        self.refused(EX_CONFIG, "is generation 2", "generation: 3")

    def test_import_of_another_generation_is_refused(self):
        first = self.begin_first()
        self.configure_mongo(more=SECOND)
        self.write("a.log", self.feeds[0].logs[0][0].raw + b"\n")
        self.tallyd("import", "-c", "tallyd.yaml", "a.log", status=EX_TEMPFAIL)
        self.assertIn(self.who(first), self.err)
        self.configure_mongo()
        self.tallyd("import", "-c", "tallyd.yaml", "a.log")
        self.assertIsNone(first.poll())

    def test_one_that_slept_while_the_second_generation_came_ends(self):
        first = self.begin_first()
        self.make_silent(first)
        self.configure_mongo(more=SECOND)
        self.run_daemon(consuming=False)
        self.send(300)
        self.ends(first, 'report "pages"', "generation 2")
        self.wait_counted(*self.feeds)

    def test_newer_generation_of_an_older_tallyd_is_found_while_running(self):
        """Which knows nothing of others, and says nothing of itself."""
        first = self.begin_first()
        second = self.run_daemon()
        self.wait_for_log("event=partitions_given")
        report = self.base.reports.find_one({"name": "pages"})
        self.base.reports.insert_one({**report, "_id": "pages~2", "generation": 2})
        self.end(second)
        self.ends(first, 'generation 2 of report "pages" is in the database now')


if __name__ == "__main__":
    mongocase.main(kafkacase.main)
