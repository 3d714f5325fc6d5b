#!/usr/bin/env python3
"""Three brokers, and an unclean election: a replica that had fallen behind becomes the leader, and others' records get the
offsets of those that were lost. Their counts stay; the daemon stops and says so, and counts nothing wrong.
"""

import os
import signal
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests", "system"))
from harness import EX_DATAERR, TIMEOUT_S, dice  # noqa: E402
from kafkacase import KafkaCase, main  # noqa: E402

import kafka  # noqa: E402 (its folder is known by kafkacase)

DAY = ("2026-01-05", "2026-01-06")
LINE = b'192.0.2.1 - - [05/Jan/2026:10:00:00 +0000] "GET /%d HTTP/1.1" 200 10 "-" "Mozilla/5.0"'
OLD, LOST, NEW = 500, 500, 3000


class Unclean(KafkaCase):
    def setUp(self):
        super().setUp()
        self.dice = dice()
        self.others = [kafka.Member(self.path(f"broker.{number}"), number, self.broker) for number in (2, 3)]
        for other in self.others:
            self.addCleanup(other.kill)
            self.addCleanup(other.close)
            other.start()

    def fill(self, topic, first, count):
        producer = self.broker.producer()
        for number in range(first, first + count):
            producer.send(topic, 0, LINE % number)
        producer.flush()
        producer.close()

    def lag_and_lose(self, topic):
        """The follower dies, more is counted of the leader, which dies; the follower leads, and is filled before the daemon
        asks it for anything."""
        leader, follower = self.others
        follower.kill()
        self.fill(topic, OLD, LOST)
        self.wait_consumed(f"kafka:{topic}", OLD + LOST)
        self.process.send_signal(signal.SIGSTOP)
        leader.kill()
        follower.start()
        self.broker.wait_for_leaders(topic, 1)
        self.assertEqual(OLD, self.broker.watermarks(topic)[0][1])
        self.fill(topic, OLD + LOST, NEW)
        self.process.send_signal(signal.SIGCONT)

    def test_records_of_the_new_leader_are_not_taken_for_those_that_were_lost(self):
        topic = "unclean"
        self.broker.create_topic(topic, 1, replicas=(2, 3), unclean_leader_election_enable="true", min_insync_replicas=1)
        self.configure({topic: "decode: [combined]"})
        self.fill(topic, 0, OLD)
        self.run_daemon()
        self.wait_consumed(f"kafka:{topic}", OLD)
        self.lag_and_lose(topic)
        self.assertEqual(EX_DATAERR, self.process.wait(TIMEOUT_S), self.said())
        self.assertIn(f"tallyd run --accept {topic}", self.said())
        self.assertIn("is another than the one counted", self.said())
        self.assertEqual(OLD + LOST, self.book(f"kafka:{topic}", "consumed"))
        self.assertEqual(OLD + LOST, self.total(span=DAY))
        self.refused(EX_DATAERR, topic)


if __name__ == "__main__":
    main()
