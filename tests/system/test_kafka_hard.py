#!/usr/bin/env python3
"""Cases that once were counted wrongly, or stopped the counting, found by reading the code: topics that are re-created under some
partitions only, poison messages, a future that moves while the store is away, transaction marks under retention."""

import glob
import json
import os
import sqlite3
import time

from harness import TIMEOUT_S
from kafkacase import LINE, SPAN, KafkaCase, main

BAD = b"no line at all"


class Hard(KafkaCase):
    def line(self, i):
        return LINE % (i % 256, 1, 2, 3, b"/x", 5)

    def rss_mib(self):
        with open(f"/proc/{self.process.pid}/status", encoding="ascii") as status:
            return next(int(line.split()[1]) for line in status if line.startswith("VmRSS:")) >> 10

    def recreate(self, full):
        """A topic with records in partition `full` only is counted, and made anew with records in both."""
        topic = self.new_topic(2)
        producer = self.broker.producer()
        for i in range(100):
            producer.send(topic, full, self.line(i))
        producer.flush()
        producer.close()
        for path in glob.glob(self.path("tallyd.db*")):
            os.unlink(path)
        self.group = topic
        self.configure({topic: "decode: [combined]"})
        self.run_daemon()
        self.wait_consumed(f"kafka:{topic}", 100)
        self.stop()
        self.broker.delete_topic(topic)
        self.broker.create_topic(topic, 2)
        producer = self.broker.producer()
        for i in range(3000):
            producer.send(topic, i % 2, self.line(i + 7))
        producer.flush()
        producer.close()
        return topic

    def test_nothing_of_a_recreated_topic_is_counted_before_it_is_refused(self):
        for full in 0, 1:
            topic = self.recreate(full)
            self.run_daemon(consuming=False)
            self.assertEqual(65, self.process.wait(TIMEOUT_S), self.said())
            self.assertIn("--accept", self.said())
            self.assertEqual(100, sum(dict(self.nexts(f"kafka:{topic}")).values()))
            self.run_daemon("--accept", topic)
            self.wait_consumed(f"kafka:{topic}~2", 3000)
            self.assertEqual(100, sum(dict(self.nexts(f"kafka:{topic}")).values()))
            self.stop()

    def test_a_letter_larger_than_its_topic_takes_is_cut(self):
        topic, letters = self.new_topic(1, max_message_bytes=20000000), self.new_topic(1)
        producer = self.broker.producer(message_max_bytes=20000000)
        producer.send(topic, 0, b"x" * 3000000)
        for i in range(10):
            producer.send(topic, 0, self.line(i))
        producer.flush()
        producer.close()
        self.configure({topic: "decode: [combined]"}, more=f"rejects: {{topic: {letters}}}\n")
        self.run_daemon()
        self.wait_consumed(f"kafka:{topic}", 11)
        self.stop()
        headers = [dict(letter.headers) for letter in self.broker.read(letters)]
        self.assertIn("3000000", [one.get("tallyd.bytes", b"").decode() for one in headers])

    def test_an_envelope_of_many_bad_lines_is_one_letter(self):
        topic, letters = self.new_topic(1), self.new_topic(1)
        envelope = json.dumps({"message": "bad\n" * 20000}).encode()
        producer = self.broker.producer()
        producer.send(topic, 0, envelope)
        producer.flush()
        producer.close()
        self.configure({topic: "decode: ['json:/message', combined]"}, more=f"rejects: {{topic: {letters}}}\n")
        self.run_daemon()
        self.wait_consumed(f"kafka:{topic}", 20000)
        self.assertLess(self.rss_mib(), 200)
        self.stop()
        self.assertEqual([envelope], [letter.value for letter in self.broker.read(letters)])

    def test_full_producer_queue_and_a_broker_that_dies(self):
        topic, letters = self.new_topic(1), self.new_topic(1)
        producer = self.broker.producer()
        for _ in range(100):
            producer.send(topic, 0, BAD)
        producer.flush()
        producer.close()
        self.configure({topic: "decode: [combined]"}, flush="2s", more=f"rejects: {{topic: {letters}}}\n")
        text = self.read("tallyd.yaml").decode()
        self.write("tallyd.yaml", text.replace(
            f"group: {self.group}",
            f"group: {self.group}, properties: {{message.timeout.ms: 2000, queue.buffering.max.messages: 10}}").encode())
        self.run_daemon()
        self.broker.kill()
        time.sleep(6)
        self.broker.start()
        self.wait_consumed(f"kafka:{topic}", 100)
        self.stop()

    def test_the_present_is_no_future_while_the_store_is_away(self):
        topic = self.new_topic(1)
        producer = self.broker.producer()

        def send(ahead_s, sent_s=0):
            now = int(time.time())
            producer.send_full(topic, 0, json.dumps({"name": "a", "ts": now + ahead_s, "value": 1}).encode(),
                               timestamp_ms=(now + sent_s) * 1000)
            producer.flush()

        self.configure({topic: "decode: [metric]"}, more="limits: {future_max: 2s}\nreports: {m: {by: [name]}}\n")
        self.run_daemon()
        send(0)
        self.wait_consumed(f"kafka:{topic}", 1)
        base = sqlite3.connect(self.path("tallyd.db"), timeout=10, isolation_level=None)
        base.execute("BEGIN IMMEDIATE")
        for later_s in range(0, 490, 70):  # of the batch's minute is but the first
            send(later_s, later_s)
        send(660, 490)
        base.execute("COMMIT")
        base.close()
        self.wait_consumed(f"kafka:{topic}", 9)
        self.assertEqual(1, self.book(f"kafka:{topic}", "rejected.future"))
        self.stop()
        self.verify()

    def test_a_clock_that_is_wrong_for_long_does_not_fill_the_books(self):
        topic = self.new_topic(1)
        producer = self.broker.producer()
        self.configure({topic: "decode: [metric]"}, more="reports: {m: {by: [name]}}\n")
        self.run_daemon()
        for batch in range(5):
            for ahead_s in 0, 3 * 86400:
                event = {"name": "a", "ts": int(time.time()) + ahead_s, "value": 1}
                producer.send(topic, 0, json.dumps(event).encode())
            producer.flush()
            self.wait_consumed(f"kafka:{topic}", 2 * (batch + 1))
        entries = self.sql("SELECT entry FROM book WHERE entry LIKE 'latest.%'")
        self.assertIn(len(entries), (1, 2))  # the hour may have ended
        self.assertEqual(5, self.book(f"kafka:{topic}", "rejected.future"))
        self.stop()
        self.verify()

    def test_a_backlog_behind_the_last_records_hides_none(self):
        topic = self.new_topic(8)
        producer = self.broker.producer()
        for i in range(80):
            producer.send(topic, i % 8, self.line(i))
        producer.flush()
        self.configure({topic: "decode: [combined]"})
        self.run_daemon()
        self.wait_consumed(f"kafka:{topic}", 80)
        self.stop()
        for i in range(200000):
            producer.send(topic, i % 8, self.line(i))
        producer.flush()
        producer.close()
        self.run_daemon()
        self.wait_consumed(f"kafka:{topic}", 200080)
        self.stop()

    def test_retention_of_transaction_marks_loses_nothing(self):
        topic = self.new_topic(1)
        producer = self.broker.producer(transactional_id=topic)
        producer.begin()
        for i in range(10):
            producer.send(topic, 0, self.line(i))
        producer.commit()
        self.configure({topic: "decode: [combined]"})
        self.run_daemon()
        self.wait_for(lambda: dict(self.nexts(f"kafka:{topic}")), lambda found: found == {0: 11})
        self.stop()
        self.verify()
        self.broker.delete_records(topic, {0: 11})
        self.run_daemon()
        self.stop()

    def test_a_topic_of_which_all_is_rejected_is_told_beside_a_good_one(self):
        good, bad = self.new_topic(2), self.new_topic(2)
        producer = self.broker.producer()
        for i in range(200):
            producer.send(good, i % 2, self.line(i))
            producer.send(bad, i % 2, b'{"time":"2026-01-05T10:00:00Z","path":"/%d"}' % i)
        for _ in range(20):
            producer.send(good, 0, None)  # deletes a key: no line at all
        producer.flush()
        producer.close()
        self.configure({good: "decode: [combined]", bad: "decode: [combined]"})
        self.run_daemon()
        self.wait_for_log(f'event=all_rejected source="{bad}" lines=[0-9]+ reason=.* fits="json" next=')
        self.wait_consumed(f"kafka:{bad}", 200)
        self.assertIn(f'tallyd_source_rejected_total{{source="{bad}"}} 200\n', self.get("/metrics"))
        self.assertNotIn(f'all_rejected source="{good}"', self.said())
        self.stop()

    def flip(self, topic, value):
        """Change a byte of a record on the broker's disk, as a bad disk does, or change it back."""
        path = glob.glob(os.path.join(self.broker.home, "data", f"{topic}-0", "*.log"))[0]
        with open(path, "r+b") as log:
            at = log.read().index(value[1:])
            log.seek(at - 1)
            old = log.read(1)
            log.seek(at - 1)
            log.write(bytes([old[0] ^ 1]))

    def test_a_corrupt_batch_is_not_passed_over(self):
        topic = self.new_topic(1)
        for batch in range(3):
            producer = self.broker.producer()
            for i in range(10):
                producer.send(topic, 0, LINE % (i, 1, 2, 3, b"/batch/%d/%d" % (batch, i), 5))
            producer.flush()
            producer.close()
        source, bad = f"kafka:{topic}", LINE % (5, 1, 2, 3, b"/batch/1/5", 5)
        self.flip(topic, bad)
        self.configure({topic: "decode: [combined]"}, "reports: {site: {}}\n")
        self.run_daemon()
        why = self.wait_for_log("event=session_ended reason=(.*)").group(1)
        for text in topic, "partition 0", "offset 10":
            self.assertIn(text, why)
        self.wait_consumed(source, 10)
        self.assertEqual({0: 10}, self.nexts(source))
        self.flip(topic, bad)
        self.wait_consumed(source, 30)
        self.stop()
        self.assertEqual(30, self.total("hits", span=SPAN))
        # Who reads them again does not pass over them, either.
        self.flip(topic, bad)
        self.tallyd("verify", "-c", "tallyd.yaml", status=69)
        self.assertIn("offset 10", self.err)
        self.configure({topic: "decode: [combined]"}, "reports: {site: {}, pages: {by: [path]}}\n")
        self.tallyd("backfill", "-c", "tallyd.yaml", "pages", status=69)
        self.assertIn("offset 10", self.err)
        self.flip(topic, bad)
        self.tallyd("backfill", "-c", "tallyd.yaml", "pages")
        self.assertEqual(30, self.total("hits", report="pages", span=SPAN))
        self.verify()


if __name__ == "__main__":
    main()
