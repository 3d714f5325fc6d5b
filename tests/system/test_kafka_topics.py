#!/usr/bin/env python3
"""Everything that a real Kafka broker can put into a topic, or do to it, is counted, rejected or refused as it should be."""

import collections
import json
import os
import signal
import sqlite3
import subprocess
import time

from harness import EX_CONFIG, EX_DATAERR, EX_OK, EX_UNAVAILABLE, TIMEOUT_S, dice, recount, traffic
from kafkacase import Feed, KafkaCase, in_envelope, main

DAY = ("2026-01-05", "2026-01-07")
LINE = b'192.0.2.1 - - [05/Jan/2026:10:00:00 +0000] "GET /%d HTTP/1.1" 200 10 "-" "Mozilla/5.0"'
AT_S = 1767607200  # the time of LINE
REPORTS = "reports:\n  site: {}\n"


def metric(name, value, **tags):
    return json.dumps({"name": name, "ts": AT_S, "value": value, "tags": tags}).encode()


class Topics(KafkaCase):
    def setUp(self):
        super().setUp()
        self.dice = dice()

    def fill(self, topic, values, partition=0, **properties):
        producer = self.broker.producer(**properties)
        for value in values:
            producer.send(topic, partition, value)
        producer.flush()
        producer.close()

    def count_all(self, topic, consumed, status=EX_OK, **more):
        """Run until so many lines were consumed, stop, verify."""
        self.run_daemon(**more)
        self.wait_consumed(f"kafka:{topic}", consumed)
        self.stop()
        self.check_books()
        self.verify()
        self.assertEqual(EX_OK, status)

    def rows(self, report, *arguments):
        return self.query(report, *arguments, span=DAY)

    # ---- messages

    def test_all_compressions_count_as_a_recount_of_the_log_says(self):
        topic, log = self.new_topic(4), b""
        for number, codec in enumerate(("none", "gzip", "snappy", "lz4", "zstd")):
            part = traffic(4000, seed=number)
            subprocess.run(["kcat", "-P", "-q", "-b", self.broker.address, "-t", topic, "-z", codec],
                           input=part, check=True, timeout=TIMEOUT_S)
            log += part
        self.configure({topic: "decode: [combined]"})
        self.count_all(topic, 20000)
        by_minute, by_page = collections.Counter(), collections.Counter()
        for (minute, page), (hits, size) in recount(log).items():
            by_minute[minute] += hits
            by_page[page] += size
        self.assertEqual(by_minute, {row["time"]: int(row["value"]) for row in self.rows("site", "--step", "minute")
                                     if row["value"] != "0"})
        for row in self.rows("pages", "--top", "1000", "--measure", "bytes"):
            self.assertEqual(by_page[row["path"]], int(row["value"]), row["path"])

    def test_topics_with_different_decoders_at_once(self):
        plain = Feed(self, 3, "combined")
        filebeat = Feed(self, 2, "json:/message, combined", in_envelope)
        syslog = Feed(self, 1, "syslog, combined", lambda line: b"<134>Jan  5 10:00:00 web1 nginx[77]: " + line)
        syslog5424 = Feed(self, 1, "syslog, combined", lambda line: b"<134>1 2026-01-05T10:00:00Z web1 nginx 77 - - " + line)
        automatic = Feed(self, 1, "auto")
        feeds = [plain, filebeat, syslog, syslog5424, automatic]
        for feed in feeds:
            feed.send(3000, 3600)
            feed.flush()
        self.configure(feeds)
        self.run_daemon()
        self.check_all(*feeds)

    def test_json_log_events_by_path(self):
        topic = self.new_topic(2)
        for number in range(300):
            self.fill_one(topic, number % 2, json.dumps({"@timestamp": "2026-01-05T10:00:00Z", "http": {
                "path": f"/{number % 3}", "status": 200, "bytes": number}}).encode())
        self.fill_one(topic, 0, b'{"@timestamp": "2026-01-05T10:00:00Z", "http": ')
        self.fill_one(topic, 0, b'{"http": {"path": "/none"}}')
        self.configure({topic: 'decode: [json], time: "/@timestamp", fields: {path: /http/path, bytes: /http/bytes}'})
        self.count_all(topic, 302)
        expected = {f"/{i}": [100, sum(range(i, 300, 3))] for i in range(3)}
        self.assertEqual(expected, {row["path"]: [int(row["hits"]), int(row["bytes"])]
                                    for row in self.rows("pages", "--top", "10", "--measure", "all")})
        self.assertEqual(2, self.book(f"kafka:{topic}", "consumed") - self.book(f"kafka:{topic}", "parsed"))

    def fill_one(self, topic, partition, value, **rest):
        if not hasattr(self, "producer"):
            self.producer = self.broker.producer()
            self.addCleanup(self.producer.close)
        self.producer.send_full(topic, partition, value, **rest)
        self.producer.flush()

    def test_metric_events_one_or_many_a_message(self):
        topic = self.new_topic(1)
        events = [metric("session", number, userid=f"u{number % 2}") for number in range(10)]
        self.fill(topic, [events[0], b"[" + b",".join(events[1:]) + b"]", b"[]", metric("other", 1e15)])
        self.configure({topic: "decode: [metric], fields: {userid: tag:userid}"},
                       "reports:\n  sessions: {by: [name, userid], measures: {n: count, total: sum(value)}}\n")
        self.run_daemon()
        self.wait_for(lambda: self.nexts(f"kafka:{topic}"), lambda found: found == {0: 4})
        self.stop()
        self.verify()
        self.assertEqual({"u0": ("5", 20.0), "u1": ("5", 25.0)}, {
            row["userid"]: (row["n"], float(row["total"]))
            for row in self.rows("sessions", "--top", "10", "--measure", "all")})
        self.assertEqual(1, self.book(f"kafka:{topic}", "rejected.number"))

    def test_keys_headers_tombstones_and_brokers_facts_as_fields(self):
        topic = self.new_topic(2)
        for number in range(60):
            self.fill_one(topic, number % 2, LINE % number, key=b"device-%d" % (number % 3),
                          headers=[("dc", b"wrong"), ("dc", b"dc-%d" % (number % 5))])
        self.fill_one(topic, 0, LINE % 99)
        self.fill_one(topic, 1, None, key=b"device-0")
        self.configure({topic: "decode: [combined], fields: {device: key, dc: header:dc, part: partition}"},
                       "reports:\n  devices: {by: [device, dc]}\n  parts: {by: [part]}\n")
        self.count_all(topic, 62)
        expected = collections.Counter((f"device-{i % 3}", f"dc-{i % 5}") for i in range(60))
        expected["-", "-"] = 1
        self.assertEqual(expected, {(row["device"], row["dc"]): int(row["value"])
                                    for row in self.rows("devices", "--top", "100")})
        self.assertEqual({"0": 31, "1": 30}, {row["part"]: int(row["value"]) for row in self.rows("parts", "--top", "9")})
        self.assertEqual(1, self.book(f"kafka:{topic}", "rejected.tombstone"))

    def test_several_lines_in_a_message(self):
        topic = self.new_topic(1)
        self.fill(topic, [b"\n".join(LINE % i for i in range(5)), b"\n".join(LINE % i for i in range(3)) + b"\n",
                          b"\r\n".join(LINE % i for i in range(2)), LINE % 1, b"bad\n" + LINE % 1])
        self.configure({topic: "decode: [combined]"})
        self.count_all(topic, 13)
        self.assertEqual(12, self.total(span=DAY))
        self.assertEqual({0: 5}, self.nexts(f"kafka:{topic}"))

    def test_huge_messages_are_rejected_and_do_not_stop_it(self):
        topic = self.new_topic(1, max_message_bytes=12 << 20)
        huge = b'192.0.2.1 - - [05/Jan/2026:10:00:00 +0000] "GET /' + b"x" * (10 << 20) + b' HTTP/1.1" 200 10 "-" "-"'
        self.fill(topic, [LINE % 1, huge, LINE % 2], message_max_bytes=12 << 20)
        self.configure({topic: "decode: [combined]"})
        self.count_all(topic, 3)
        self.assertEqual(2, self.total(span=DAY))
        self.assertEqual(1, self.book(f"kafka:{topic}", "rejected.too_long"))

    # ---- topics that are not simply one message after the other

    def test_transactions_count_when_committed_only(self):
        topic = self.new_topic(2)
        producer = self.broker.producer(transactional_id=topic)
        self.addCleanup(producer.close)
        committed = 0
        for number in range(30):
            producer.begin()
            for i in range(20):
                producer.send(topic, i % 2, LINE % number)
            if number % 3 == 0:
                producer.flush()
                producer.abort()
            else:
                committed += 20
                producer.commit()
        self.configure({topic: "decode: [combined]"})
        self.run_daemon()
        self.wait_consumed(f"kafka:{topic}", committed)
        producer.begin()
        for _ in range(50):
            producer.send(topic, 0, LINE % 1)
        producer.flush()
        time.sleep(0.5)
        self.assertEqual(committed, self.book(f"kafka:{topic}", "consumed"))
        self.kill()
        self.run_daemon()
        producer.commit()
        self.wait_consumed(f"kafka:{topic}", committed + 50)
        self.stop()
        self.verify()
        self.assertEqual(committed + 50, self.total(span=DAY))
        # It ends in aborted ones: nothing of them, and it goes on behind them.
        producer.begin()
        producer.send(topic, 0, LINE % 2)
        producer.flush()
        producer.abort()
        self.run_daemon()
        time.sleep(0.3)
        self.kill()
        self.fill(topic, [LINE % 3])
        self.count_all(topic, committed + 51)

    def test_compacted_topic_with_gaps(self):
        topic = self.new_topic(1, cleanup_policy="compact", min_cleanable_dirty_ratio=0.01, segment_ms=200,
                               max_compaction_lag_ms=200)
        source = f"kafka:{topic}"
        producer = self.broker.producer()
        self.addCleanup(producer.close)

        def write(numbers, key):
            for number in numbers:
                producer.send(topic, 0, LINE % number, key or b"%d" % (number % 7))
            producer.flush()
            time.sleep(0.3)  # the segment is over

        def compacted(below):
            """Wait until the cleaner has been here; how many messages are left."""
            end = time.monotonic() + TIMEOUT_S
            count = before = -1
            while count < 0 or count >= below or count != before:
                self.assertLess(time.monotonic(), end, f"{count} messages, and no compaction to below {below}")
                producer.send(topic, 0, LINE % 0, b"roll")  # a new message ends the segment before
                producer.flush()
                time.sleep(0.4)
                count, before = sum(m.key != b"roll" for m in self.broker.read(topic)), count
            return len(self.broker.read(topic))

        write(range(500), None)
        compacted(20)
        self.configure({topic: "decode: [combined]"})
        self.run_daemon()
        last = self.broker.watermarks(topic)[0][1]
        self.wait_for(lambda: self.nexts(source), lambda found: found == {0: last})
        self.kill()
        counted = self.total(span=DAY)
        self.assertLess(counted, 100)
        self.assertGreater(last, 500)
        # The last counted record is compacted away as well: nothing is left that shows that it is the same topic.
        write(range(50), b"roll")
        compacted(20)
        self.refused(EX_DATAERR, "the topic was compacted or re-created", f"--accept {topic}~")
        self.run_daemon("--accept", topic)
        self.assertIn("event=topic_unproven", self.said())
        producer.send(topic, 0, LINE % 1, b"end")
        producer.flush()
        last = self.broker.watermarks(topic)[0][1]
        self.wait_for(lambda: self.nexts(source), lambda found: found == {0: last})
        self.stop()
        self.assertGreater(self.total(span=DAY), counted)
        self.check_books()

    def test_new_partitions_of_a_known_topic_from_their_beginning(self):
        topic = self.new_topic(1)
        self.configure({topic: "start: latest, decode: [combined]"})
        self.fill(topic, [LINE % 1] * 10)
        self.run_daemon()
        self.fill(topic, [LINE % 1] * 10)
        self.wait_consumed(f"kafka:{topic}", 10)
        self.kill()
        self.broker.add_partitions(topic, 3)
        self.fill(topic, [LINE % 2] * 7, partition=2)
        self.run_daemon()
        self.wait_consumed(f"kafka:{topic}", 17)
        self.stop()
        self.verify()
        self.assertEqual({0: 20, 2: 7}, self.nexts(f"kafka:{topic}"))

    def test_first_start_at_the_latest_or_at_a_time(self):
        now_ms = int(time.time() * 1000)
        at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(now_ms / 1000 - 3600))
        for start, expected in (("latest", 0), (at, 20), ("earliest", 50)):
            with self.subTest(start=start):
                for name in os.listdir(self.dir):
                    os.remove(self.path(name))
                topic = self.new_topic(2)
                for number in range(50):
                    age_s = 7200 if number < 30 else 1800
                    self.fill_one(topic, number % 2, LINE % number, timestamp_ms=now_ms - age_s * 1000)
                self.configure({topic: f'start: "{start}", decode: [combined]'})
                self.run_daemon()
                self.fill(topic, [LINE % 1] * 5, partition=1)
                self.wait_consumed(f"kafka:{topic}", expected + 5)
                self.kill()
                self.fill(topic, [LINE % 1] * 5, partition=1)
                self.count_all(topic, expected + 10)  # the start is of the first start only

    # ---- topics that are not what they were

    def lose(self, topic, change, *texts):
        """After `change` a topic is refused, by `run` and whatever it is asked again."""
        source = f"kafka:{topic}"
        self.configure({topic: "decode: [combined]"})
        self.count_all(topic, sum(high for _, high in self.broker.watermarks(topic).values()))
        before = (self.nexts(source), self.book(source, "consumed"))
        change()
        for _ in range(2):
            self.refused(EX_DATAERR, topic, f"tallyd run --accept {topic}", *texts)
        self.assertEqual(before, (self.nexts(source), self.book(source, "consumed")))

    def test_topic_created_again_is_refused_until_accepted(self):
        for messages in 3, 40:  # fewer than were counted, and more
            with self.subTest(messages=messages):
                for name in os.listdir(self.dir):
                    os.remove(self.path(name))
                topic = self.new_topic(2)
                self.fill(topic, [LINE % 1] * 10, 0)
                self.fill(topic, [LINE % 2] * 10, 1)

                def again(topic=topic, messages=messages):
                    self.broker.delete_topic(topic)
                    self.broker.create_topic(topic, 2)
                    self.fill(topic, [LINE % 5] * messages, 0)
                    self.fill(topic, [LINE % 6] * messages, 1)

                self.lose(topic, again)
                self.run_daemon("--accept", topic)
                self.wait_consumed(f"kafka:{topic}~2", 2 * messages)
                self.kill()
                self.fill(topic, [LINE % 7] * 5)
                self.run_daemon()  # accepted is accepted
                self.wait_consumed(f"kafka:{topic}~2", 2 * messages + 5)
                self.stop()
                self.assertEqual(20, self.book(f"kafka:{topic}", "consumed"))
                self.assertEqual(20 + 2 * messages + 5, self.total(span=DAY))
                self.check_books()

    def test_offsets_lost_to_retention_are_refused_until_accepted(self):
        topic = self.new_topic(2)
        self.fill(topic, [LINE % 1] * 10, 0)
        self.fill(topic, [LINE % 1] * 10, 1)

        def expire():
            self.fill(topic, [LINE % 2] * 20, 0)
            self.broker.delete_records(topic, {0: 25})

        self.lose(topic, expire)
        self.run_daemon("--accept", topic)
        self.wait_consumed(f"kafka:{topic}", 25)
        self.kill()
        self.run_daemon()
        self.stop()
        self.assertEqual({0: 30, 1: 10}, self.nexts(f"kafka:{topic}"))
        self.assertEqual(25, self.total(span=DAY))
        self.check_books()

    def test_what_expired_after_it_was_counted_is_no_loss(self):
        topic = self.new_topic(1)
        self.fill(topic, [LINE % 1] * 10)
        self.configure({topic: "decode: [combined]"})
        for before in 5, 10:
            self.count_all_unverified(topic, 10)
            self.broker.delete_records(topic, {0: before})
        self.run_daemon()
        self.fill(topic, [LINE % 1] * 3)
        self.wait_consumed(f"kafka:{topic}", 13)
        self.stop()

    def count_all_unverified(self, topic, consumed):
        self.run_daemon()
        self.wait_consumed(f"kafka:{topic}", consumed)
        self.stop()

    # ---- rejects

    BAD = [b"no line", LINE % 1, b"", (LINE % 3).replace(b"05/Jan", b"99/Jan"), LINE % 2, b"\x00\xff\xfe binary"]

    def test_rejects_go_to_a_topic_with_their_origin(self):
        topic, rejects = self.new_topic(1), self.new_topic(1)
        for number, value in enumerate(self.BAD):
            self.fill_one(topic, 0, value, key=b"key-%d" % number)
        self.fill_one(topic, 0, None, key=b"gone")
        self.configure({topic: "decode: [combined]"}, f"rejects: {{topic: {rejects}}}\n")
        self.count_all(topic, 7)
        found = {}
        for message in self.broker.read(rejects):
            said = dict(message.headers)
            self.assertEqual((topic.encode(), b"0"), (said["tallyd.topic"], said["tallyd.partition"]))
            found[int(said["tallyd.offset"])] = (message.key, message.value, said["tallyd.reason"])
        reasons = {0: b"identity", 2: b"empty", 3: b"time_range", 5: b"identity"}
        self.assertEqual({at: (b"key-%d" % at, self.BAD[at], reason) for at, reason in reasons.items()}, found)
        self.assertEqual(1, self.book(f"kafka:{topic}", "rejected.tombstone"))  # of which nothing is left to keep

    def test_rejects_go_to_a_file(self):
        topic = self.new_topic(1)
        self.fill(topic, self.BAD)
        self.configure({topic: "decode: [combined]"}, "rejects: {file: rejected}\n")
        self.count_all(topic, 6)
        lines = [line.split(b"\t", 3) for line in self.read("rejected").splitlines()]
        self.assertEqual([(f"{topic}/0/{at}".encode(), self.BAD[at]) for at in (0, 2, 3, 5)],
                         [(line[0], line[3]) for line in lines])

    # ---- a store that is slow

    def rss_anon_kib(self):
        with open(f"/proc/{self.process.pid}/status", encoding="ascii") as status:
            return next(int(line.split()[1]) for line in status if line.startswith("RssAnon:"))

    def test_locked_store_bounds_memory_and_is_caught_up_with(self):
        feed = Feed(self, 4)
        feed.send(1000, 60)
        self.configure([feed])
        with open(self.path("tallyd.yaml"), "a", encoding="ascii") as config:
            config.write("limits: {line_max: 16KiB}\n")
        text = self.read("tallyd.yaml").replace(b"kafka: {", b"kafka: {queue_size: 4MiB, ")
        self.write("tallyd.yaml", text)
        self.run_daemon()
        self.wait_counted(feed)
        base = sqlite3.connect(self.path("tallyd.db"), timeout=TIMEOUT_S, isolation_level=None)
        base.execute("PRAGMA wal_autocheckpoint = 0")
        base.execute("BEGIN IMMEDIATE")
        begun, peak, at_first = time.monotonic(), 0, self.rss_anon_kib()
        while time.monotonic() < begun + 7:  # longer than a writer waits for a lock
            if time.monotonic() < begun + 5:
                feed.send(20000, 60)
            time.sleep(0.05)
            peak = max(peak, self.rss_anon_kib())
            self.assertIsNone(self.process.poll(), self.said())
        produced = sum(len(entry.raw) for log in feed.logs for entry in log)
        stuck = self.book(feed.source, "consumed")
        base.execute("ROLLBACK")
        base.close()
        self.assertLess(stuck, sum(feed.lengths().values()))
        print(f"{produced >> 20} MiB came while it was locked; memory {at_first >> 10} MiB, at most {peak >> 10} MiB")
        if not os.environ.get("TALLYD"):  # a sanitizer keeps what was freed
            self.assertLess(peak - at_first, 64 << 10)
        self.check_all(feed)

    # ---- what is wrong is said

    def test_misspelt_property_is_said_with_its_line(self):
        topic = self.new_topic(1)
        self.configure({topic: ""})
        self.write("tallyd.yaml", self.read("tallyd.yaml").replace(
            b"kafka: {", b"kafka: {properties: {fetch.wait.maxms: 5}, "))
        self.tallyd("check", "-c", "tallyd.yaml", status=EX_CONFIG)
        self.assertIn("tallyd.yaml:1:", self.err)
        self.assertIn("fetch.wait.maxms", self.err)
        self.refused(EX_CONFIG, "fetch.wait.maxms")

    def test_properties_are_passed_through(self):
        feed = Feed(self, 2)
        feed.send(100, 60)
        feed.flush()
        self.configure([feed])
        self.write("tallyd.yaml", self.read("tallyd.yaml").replace(
            b"kafka: {", b"kafka: {threads: 2, properties: {client.id: me, fetch.wait.max.ms: 20}, "))
        self.run_daemon()
        self.check_all(feed)

    def test_broker_that_is_away_at_the_start_is_waited_for(self):
        feed = Feed(self, 2)
        feed.send(100, 60)
        feed.flush()
        self.configure([feed])
        self.broker.kill()
        self.run_daemon(consuming=False)
        time.sleep(1)
        self.assertIsNone(self.process.poll(), self.said())
        self.broker.start()
        self.wait_for_log("event=consuming ")
        self.check_all(feed)

    def test_it_can_be_told_to_end_while_the_broker_is_away(self):
        feed = Feed(self, 2)
        feed.send(100, 60)
        feed.flush()
        self.configure([feed], "run: {stop_timeout: 8s}\n")
        self.run_daemon()
        self.wait_counted(feed)
        self.broker.kill()
        try:
            begun = time.monotonic()
            self.process.send_signal(signal.SIGTERM)
            self.assertEqual(EX_OK, self.process.wait(TIMEOUT_S), self.said())
            self.assertLess(time.monotonic() - begun, 20)  # 8 s, and what a busy computer adds
            self.tallyd("verify", "-c", "tallyd.yaml", status=EX_UNAVAILABLE)  # it cannot tell
            self.assertIn("check that a broker of kafka.brokers is reachable", self.err)
        finally:
            self.broker.start()
        self.verify()


if __name__ == "__main__":
    main()
