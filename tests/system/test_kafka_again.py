#!/usr/bin/env python3
"""A topic that is another than the one counted any more, while the daemon runs, sleeps or is down: nothing of it is
counted as if it were. The daemon stops and says why, and what it has stored is exact."""

import glob
import os
import re
import signal

from harness import EX_DATAERR, TIMEOUT_S, dice
from kafkacase import KafkaCase, main

DAY = ("2026-01-05", "2026-01-06")
LINE = b'192.0.2.1 - - [05/Jan/2026:10:00:00 +0000] "GET /%d HTTP/1.1" 200 10 "-" "Mozilla/5.0"'
OLD, NEW = 1000, 3000  # records of the first topic and of what comes in its place
# After a broker went away, so long until the daemon comes again: everything can be changed before that.
SLOW = ", properties: {reconnect.backoff.ms: 8000, reconnect.backoff.max.ms: 8000}"


class Again(KafkaCase):
    def setUp(self):
        super().setUp()
        self.dice = dice()

    def fill(self, topic, values, partition=0, **properties):
        producer = self.broker.producer(**properties)
        for value in values:
            producer.send(topic, partition, value)
        producer.flush()
        producer.close()

    def count_old(self, *arguments, member="", count=OLD):
        """A daemon that has counted so many records and runs; the topic."""
        topic = self.new_topic(1)
        self.fill(topic, [LINE % i for i in range(count)])
        self.configure({topic: "decode: [combined]"}, member=member)
        self.run_daemon(*arguments)
        self.wait_consumed(f"kafka:{topic}", count)
        return topic

    def create_again(self, topic, fill=True):
        self.broker.delete_topic(topic)
        self.broker.create_topic(topic, 1)
        if fill:
            self.fill(topic, [LINE % i for i in range(OLD, OLD + NEW)])

    def stopped(self, topic, *texts, count=OLD):
        """The daemon has ended by itself, for this reason; nothing was counted that it did not have before."""
        self.assertEqual(EX_DATAERR, self.process.wait(TIMEOUT_S), self.said())
        for text in (topic, f"tallyd run --accept {topic}", *texts):
            self.assertIn(text, self.said())
        self.assertEqual(count, self.book(f"kafka:{topic}", "consumed"))
        self.assertEqual(count, self.total(span=DAY))
        self.refused(EX_DATAERR, topic)  # and it stays refused

    def accepted(self, topic):
        self.run_daemon("--accept", topic)
        self.wait_consumed(f"kafka:{topic}~2", NEW)
        self.stop()
        self.assertEqual(OLD + NEW, self.total(span=DAY))

    def test_created_again_while_the_daemon_is_paused(self):
        topic = self.count_old()
        self.process.send_signal(signal.SIGSTOP)
        self.create_again(topic)
        self.process.send_signal(signal.SIGCONT)
        self.stopped(topic, "is another than the one counted")
        self.accepted(topic)

    def test_partition_of_the_new_topic_that_had_no_record_before(self):
        """It has no record that could be compared; its neighbour has. Otherwise it is counted as the old topic, and again when
        the new one is accepted."""
        topic = self.new_topic(2)
        self.fill(topic, [LINE % i for i in range(OLD)])
        self.configure({topic: "decode: [combined]"})
        self.run_daemon()
        self.wait_consumed(f"kafka:{topic}", OLD)
        self.process.send_signal(signal.SIGSTOP)
        self.broker.delete_topic(topic)
        self.broker.create_topic(topic, 2)
        self.fill(topic, [LINE % i for i in range(OLD)])  # so that the old one's end is there
        self.fill(topic, [LINE % i for i in range(OLD, OLD + NEW)], partition=1)
        self.process.send_signal(signal.SIGCONT)
        self.stopped(topic, "is another than the one counted")

    def test_created_again_while_it_is_paused_and_accepted(self):
        topic = self.count_old()
        self.kill()
        self.run_daemon("--accept", topic)
        self.process.send_signal(signal.SIGSTOP)
        self.create_again(topic)
        self.process.send_signal(signal.SIGCONT)
        self.wait_consumed(f"kafka:{topic}~2", NEW)
        self.stop()
        self.assertEqual(OLD + NEW, self.total(span=DAY))
        self.check_books()

    def test_created_again_while_its_broker_is_away(self):
        topic = self.count_old(member=SLOW)
        self.broker.kill()
        self.wait_for_log("event=kafka")
        self.broker.start()
        self.create_again(topic)
        self.stopped(topic, "the topic was re-created")  # or, where it came before the records, "ends at"
        self.accepted(topic)

    def cut(self, topic):
        """Take the last records from a dead broker's log."""
        log = glob.glob(os.path.join(self.broker.home, "data", f"{topic}-0", "*.log"))[0]
        os.truncate(log, os.path.getsize(log) * self.dice.randrange(30, 90) // 100)

    def test_a_broker_that_lost_its_last_records_and_was_refilled(self):
        topic = self.new_topic(1)
        for first in range(0, OLD, 50):  # many batches, so that a part of them is left
            self.fill(topic, [LINE % i for i in range(first, first + 50)])
        self.configure({topic: "decode: [combined]"}, member=SLOW)
        self.run_daemon()
        self.wait_consumed(f"kafka:{topic}", OLD)
        self.broker.kill()
        self.wait_for_log("event=kafka")
        self.cut(topic)
        self.broker.start()
        self.assertLess(self.broker.watermarks(topic)[0][1], OLD)
        self.fill(topic, [LINE % i for i in range(OLD, OLD + NEW)])
        self.stopped(topic, "last records")  # they were lost, or lost and others taken

    def test_without_a_new_record_the_daemon_finds_out_by_itself(self):
        """The new topic ends where the old one did: nothing is fetched, and nothing is out of range."""
        topic = self.count_old()
        self.process.send_signal(signal.SIGSTOP)
        self.create_again(topic, fill=False)
        self.fill(topic, [LINE % i for i in range(OLD)])
        self.process.send_signal(signal.SIGCONT)
        self.stopped(topic, "is another than the one counted")

    def test_of_a_single_record_the_daemon_finds_out_by_itself(self):
        """The only record that can be compared is at offset 0, and no other comes."""
        topic = self.count_old(count=1)
        self.process.send_signal(signal.SIGSTOP)
        self.create_again(topic, fill=False)
        self.fill(topic, [LINE % 1])
        self.process.send_signal(signal.SIGCONT)
        self.stopped(topic, "is another than the one counted", count=1)

    # ---- while it is down

    def test_retention_of_a_new_topic_before_it_was_counted_is_said(self):
        topic = self.count_old()
        self.stop()
        self.create_again(topic)
        self.broker.delete_records(topic, {0: 100})
        self.run_daemon("--accept", topic)
        self.wait_consumed(f"kafka:{topic}~2", NEW - 100)
        self.assertIn(f"event=records_lost topic={topic} partition=0 from=0 to=100", self.said())
        self.stop()

    def test_retention_of_a_new_partition_before_it_was_counted_is_said(self):
        topic = self.count_old()
        self.stop()
        self.assertNotIn("records_lost", self.said())
        self.broker.add_partitions(topic, 3)
        for partition in 1, 2:
            self.fill(topic, [LINE % i for i in range(10)], partition)
        self.broker.delete_records(topic, {1: 4})
        self.run_daemon()
        self.wait_consumed(f"kafka:{topic}", OLD + 16)
        self.assertEqual([("1", "0", "4")],
                         re.findall(rf"event=records_lost topic={topic} partition=(\d+) from=(\d+) to=(\d+)", self.said()))
        self.kill()
        self.run_daemon()
        self.stop()
        self.assertNotIn("records_lost", self.said())  # it was said

    def test_no_record_at_the_offset_of_the_last_one_that_was_counted(self):
        topic = self.count_old()
        self.stop()
        self.create_again(topic, fill=False)
        producer = self.broker.producer(transactional_id=topic)
        for first, last in (0, OLD - 1), (OLD - 1, NEW):  # the marker of the first is at OLD - 1
            producer.begin()
            for i in range(first, last):
                producer.send(topic, 0, LINE % (OLD + i))
            producer.commit()
        producer.close()
        self.refused(EX_DATAERR, topic, f"tallyd run --accept {topic}")
        self.assertEqual(OLD, self.book(f"kafka:{topic}", "consumed"))
        self.run_daemon("--accept", f"{topic}~")
        self.wait_consumed(f"kafka:{topic}~2", NEW)
        self.stop()
        self.assertEqual(OLD + NEW, self.total(span=DAY))

    def test_retention_of_all_witnesses_is_said(self):
        topic = self.count_old()
        self.stop()
        self.broker.delete_records(topic, {0: OLD})
        self.fill(topic, [LINE % 1])
        self.run_daemon()
        self.wait_consumed(f"kafka:{topic}", OLD + 1)
        self.assertIn("event=topic_unproven", self.said())
        self.assertRegex(self.get("/metrics"), r"(?m)^tallyd_unproven_total [1-9]$")
        self.stop()


if __name__ == "__main__":
    main()
