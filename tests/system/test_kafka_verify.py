#!/usr/bin/env python3
"""`tallyd verify` where a real Kafka broker has deleted counted records: by retention, by compaction, with the whole topic. What
is left is judged and what is not is named, and a status says which it was. A store that lacks or has too much is found out all the
same.

The seed is printed; TALLYD_SEED repeats a run.
"""

import contextlib
import re
import shutil
import sqlite3

from harness import dice
from kafkacase import LINE, Feed, KafkaCase, main

DIFFERENCES, NOT_GIVEN, EXPIRED = 1, 2, 3
REPORTS = "reports:\n  site: {}\n  pages: {by: [path], measures: {hits: count, bytes: sum(bytes), low: min(bytes), high: max(bytes)}}\n"


class Expired(KafkaCase):
    def setUp(self):
        super().setUp()
        self.dice = dice()

    def judge(self, status, *words, file="tallyd.yaml"):
        said = self.tallyd("verify", "-c", file, status=status)
        for pattern in words:
            self.assertRegex(said, pattern)
        return said

    def counted(self, *feeds, **more):
        self.configure(list(feeds), REPORTS, **more)
        self.run_daemon()
        self.wait_counted(*feeds)
        self.stop()
        self.judge(0)

    @contextlib.contextmanager
    def changed(self, *changes):
        """The store with something else in it."""
        shutil.copy(self.path("tallyd.db"), self.path("whole"))
        with contextlib.closing(sqlite3.connect(self.path("tallyd.db"))) as base:
            for sql in changes:
                base.execute(sql)
            base.commit()
            base.execute("VACUUM")  # else pages do not match their checksums
        yield
        shutil.copy(self.path("whole"), self.path("tallyd.db"))

    def test_what_retention_has_left_is_judged(self):
        feed = Feed(self, 3)
        feed.send(3000, 20 * 3600)
        self.counted(feed)
        gone = {0: 400, 1: len(feed.logs[1])}
        self.broker.delete_records(feed.topic, gone)
        bad = sum(entry.minute is None for part, count in gone.items() for entry in feed.logs[part][:count])
        left = len(feed.logs[0]) - 400 + len(feed.logs[2])
        self.judge(EXPIRED, rf"(?m)^{feed.source}/0 .* 400 to {len(feed.logs[0]):,} +400  its records before offset 400 are deleted$",
                   rf"(?m)^{feed.source}/1 .* nothing +{len(feed.logs[1]):,}  its records before offset \d+ are deleted$",
                   rf"site: {sum(gone.values()) - bad} events are of records that are gone", rf"(?m)^{left:,} events of 3 sources recounted")
        for sql, words in (("DELETE FROM hour_2 WHERE at = (SELECT max(at) FROM hour_2)", "by minute: stored 0, recounted .* of what is left"),
                           ("DELETE FROM day_2", "by hour: stored 0, recounted"), ("DELETE FROM month_1", "by day: stored 0, recounted"),
                           ("DELETE FROM year_2", "low .* by month: stored nothing, recounted"),
                           ("INSERT INTO year_1 SELECT at + (1 << 24), body FROM year_1", "site: its months have .* events more than what is left"),
                           ("UPDATE book SET value = 1 WHERE entry = 'consumed' AND part = '0'", "consumed is 1, recounted"),
                           ("UPDATE book SET value = value + 1 WHERE entry IN ('parsed', 'counted') AND part = '0'", "events more than what is left")):
            with self.subTest(sql=sql), self.changed(sql):
                self.judge(DIFFERENCES, words)
        self.judge(EXPIRED)

    def test_report_that_came_after_what_is_gone_is_compared_as_ever(self):
        feed = Feed(self, 1)
        feed.send(500, 3600)
        self.counted(feed)
        feed.send(500, 3600)
        self.configure([feed], REPORTS + "  codes: {by: [status]}\n")
        self.run_daemon()
        self.wait_counted(feed)
        self.stop()
        self.broker.delete_records(feed.topic, {0: 300})
        said = self.judge(EXPIRED, "site: .* events are of records that are gone")
        self.assertNotIn("codes: ", said)
        with self.changed("INSERT INTO hour_3 SELECT at + (1 << 30), body FROM hour_3 LIMIT 1"):
            self.judge(DIFFERENCES, "codes .* by minute: stored .*, recounted 0\n")

    def compacted_topic(self):
        """A topic, and a function that fills it with lines of ten keys."""
        topic = self.new_compacted_topic()
        producer = self.broker.producer()
        self.addCleanup(producer.close)

        def fill(numbers):
            for number in numbers:
                producer.send(topic, 0, LINE % (number % 250, 10, number % 60, 0, b"/%d" % (number % 7), number), b"%d" % (number % 10))
            producer.flush()

        return topic, fill

    def test_what_compaction_has_left_is_judged(self):
        """By key: of each only the last record is left."""
        topic, fill = self.compacted_topic()
        fill(range(200))
        self.configure({topic: "decode: [combined]"}, REPORTS)
        self.run_daemon()
        self.wait_consumed(f"kafka:{topic}", 200)
        self.stop()
        self.compact(topic, 200, 20, lambda: fill([7]))
        self.judge(EXPIRED, rf"(?m)^kafka:{topic}/0 .* 0 to 200 +1\d\d  offsets are missing in between: it is compacted$",
                   r"site: 1\d\d events are of records that are gone")
        with self.changed("DELETE FROM hour_1"):
            self.judge(DIFFERENCES, "by minute: stored 0, recounted .* of what is left")

    def test_what_compaction_deleted_before_it_was_counted_is_told(self):
        """The books agree with what is left, and yet most records were never counted."""
        topic, fill = self.compacted_topic()
        fill(range(200))
        self.compact(topic, 200, 20, lambda: fill([7]))
        self.configure({topic: "decode: [combined]"}, REPORTS)
        self.run_daemon()
        self.wait_for(lambda: self.nexts(f"kafka:{topic}").get(0), lambda found: found == self.broker.watermarks(topic)[0][1])
        empty = self.nexts(f"kafka:{topic}")[0] - self.book(f"kafka:{topic}", "consumed")
        self.assertGreaterEqual(empty, 180)
        self.wait_for(lambda: self.get("/metrics"), lambda found: self.empty(topic, found) == empty)
        self.stop()
        said = self.judge(EXPIRED, r"(?m): 0 differences$")
        # More may be compacted meanwhile: then some counted records are gone, too.
        self.assertRegex(said, rf"(?m)^kafka:{topic}/0 .* 0 to \d+ +\d+  (it is compacted: \d+ offsets have no record any more, "
                               r"and may never have been counted|offsets are missing in between: it is compacted)$")
        self.assertEqual(1, len(re.findall(rf"(?m)^level=warn event=topic_compacted topic={topic} next=", self.said())), self.said())
        fill([1])
        self.run_daemon()
        self.wait_for(lambda: self.nexts(f"kafka:{topic}").get(0), lambda found: found == self.broker.watermarks(topic)[0][1])
        self.stop()
        self.assertIn(f"event=topic_compacted topic={topic} ", self.said())

    @staticmethod
    def empty(topic, metrics):
        found = re.search(rf'^tallyd_partition_offsets_without_record_total{{source="{topic}",partition="0"}} (\d+)$', metrics, re.M)
        return int(found.group(1)) if found else None

    def test_offsets_of_transactions_are_whole(self):
        topic = self.new_topic(1)
        producer = self.broker.producer(transactional_id=topic)
        self.addCleanup(producer.close)
        for _ in range(3):  # with a marker each
            producer.begin()
            for number in range(10):
                producer.send(topic, 0, LINE % (number, 10, 0, 0, b"/", 1))
            producer.commit()
        self.configure({topic: "decode: [combined]"}, REPORTS)
        self.run_daemon()
        self.wait_for(lambda: self.nexts(f"kafka:{topic}"), lambda found: found == {0: 33})
        self.wait_for(lambda: self.get("/metrics"), lambda found: self.empty(topic, found) == 3)
        self.stop()
        self.assertNotIn("topic_compacted", self.said())
        self.judge(0)

    def test_topics_that_are_gone_are_named(self):
        kept, gone, anew, out = (Feed(self, 2) for _ in range(4))
        for feed in kept, gone, anew, out:
            feed.send(200, 3600)
        self.counted(kept, gone, anew, out)
        self.broker.delete_topic(gone.topic)
        anew.create_anew()
        anew.send(50, 60)
        anew.flush()
        said = self.judge(EXPIRED, rf"(?m)^{gone.source}/0 .* nothing .*  the topic is deleted$",
                          rf"(?m)^{anew.source}/1 .* nothing .*  it ends at offset \d+: another topic of that name, or its end is lost$")
        self.assertNotIn(kept.source + "/", said)
        with self.changed("DELETE FROM hour_1"):
            self.judge(DIFFERENCES)
        self.configure([kept, gone, anew], REPORTS, name="less.yaml")
        self.judge(NOT_GIVEN, rf"(?m)^{out.source}/0 .*  not given: its topic is not in the configuration$", file="less.yaml")
        self.configure([kept, anew, out], REPORTS)
        self.run_daemon("--accept", anew.topic)
        self.wait_for(lambda: self.nexts(anew.source + "~2"), lambda found: found == anew.lengths())
        self.stop()
        self.configure([kept, gone, anew, out], REPORTS)
        said = self.judge(EXPIRED, rf"(?m)^{anew.source}/0 .* nothing .*  another topic has this name now$")
        self.assertNotIn(anew.source + "~2/", said)


if __name__ == "__main__":
    main()
