"""Shared by the tests with a real Kafka broker: the broker, the records fed into its topics, and a daemon that counts them.

A Feed knows every line it produced, by partition and offset, and what each must count: so after any crash the store
can be asked whether it holds exactly the lines before its offsets, and in the end whether it holds all of them.
"""

import collections
import contextlib
import json
import os
import random
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
import unittest

from harness import EX_OK, ROOT, TIMEOUT_S, Case, command, dying_at, get, get_reply

sys.path.insert(0, os.path.join(ROOT, "tests", "servers"))
import kafka  # noqa: E402 (found only now)
import rdkafka  # noqa: E402

SPAN = ("2026-01-05", "2026-01-06")
LINE = b'198.51.100.%d - - [05/Jan/2026:%02d:%02d:%02d +0000] "GET %s HTTP/1.1" 200 %d "-" "Mozilla/5.0"'
Entry = collections.namedtuple("Entry", "minute path bytes raw")  # minute None: it is rejected
PATHS = [b"/%d/%d.html" % (i % 7, i) for i in range(60)]
MINUTES_A_DAY = 1440


def in_envelope(line):
    """As a shipper of logs wraps it."""
    return json.dumps({"@timestamp": "2026-01-05T00:00:00Z", "agent": {"name": "a"}, "message": line.decode()}).encode()


def as_is(line):
    return line


class Feed:
    """Lines produced into one topic."""

    def __init__(self, case, partitions=4, decode="combined", wrap=as_is, bad=0.01, **properties):
        self.decode, self.wrap, self.bad = decode, wrap, bad
        self.broker, self.dice = case.broker, random.Random(case.dice.random())
        self.topic = case.new_topic(partitions)
        self.source = f"kafka:{self.topic}"
        self.logs = [[] for _ in range(partitions)]  # of Entry, by offset
        self.properties, self.producer = properties, self.broker.producer(**properties)
        case.addCleanup(lambda: self.producer.close())
        self.second = 0

    def entry(self):
        """One line; most go on in time a little, so that hours end."""
        dice = self.dice
        if dice.random() < self.bad:
            line = b"no line at all: %d" % dice.randrange(1 << 30)
            return Entry(None, None, 0, self.wrap(line) if dice.random() < 0.5 else line)
        at = max(0, self.second - (dice.randrange(180) if dice.random() < 0.05 else 0)) % (MINUTES_A_DAY * 60)
        path, size = dice.choice(PATHS), dice.randrange(5000)
        line = LINE % (dice.randrange(256), at // 3600, at // 60 % 60, at % 60, path, size)
        return Entry(at // 60, path.decode(), size, self.wrap(line))

    def send(self, lines, seconds=0, partitions=None):
        """Produce so many new lines over so many seconds of their own time, into the first so many partitions."""
        begin = self.second
        for number in range(lines):
            self.second = begin + seconds * number // lines
            self._produce(self.dice.randrange(partitions or len(self.logs)), self.entry())
        self.second = begin + seconds

    def _produce(self, partition, entry):
        self.logs[partition].append(entry)
        try:
            self.producer.send(self.topic, partition, entry.raw)
        except rdkafka.Lost:
            pass  # flush() will find out as well

    def again(self):
        """The same lines once more: new events."""
        for partition, log in enumerate(self.logs):
            for entry in list(log):
                self._produce(partition, entry)

    def flush(self):
        try:
            self.producer.flush()
        except rdkafka.Lost as error:
            print(f"{self.topic}: {error}", flush=True)
            self._begin_anew()

    def add_partitions(self, count):
        """To the topic; a producer knows of them only after a while, or anew."""
        self.flush()
        self.broker.add_partitions(self.topic, len(self.logs) + count)
        self.logs += [[] for _ in range(count)]
        self.producer.close()
        self.producer = self.broker.producer(**self.properties)

    def create_anew(self):
        """The topic, under its name; a producer that knew the old one may take the new one for unknown."""
        self.broker.delete_topic(self.topic)
        self.broker.create_topic(self.topic, len(self.logs))
        self.logs = [[] for _ in self.logs]
        self.producer.close()
        self.producer = self.broker.producer(**self.properties)

    def _begin_anew(self):
        """A broker that was killed may answer OUT_OF_ORDER_SEQUENCE_NUMBER, which ends a producer: what it had sent is
        what the topic holds."""
        self.producer.close()
        self.broker.wait_for_leaders(self.topic, len(self.logs))
        known = {entry.raw: entry for log in self.logs for entry in log}
        self.logs = [[] for _ in self.logs]
        for message in self.broker.read(self.topic):
            self.logs[message.partition].append(known[message.value])
        self.producer = self.broker.producer(**self.properties)

    def until(self, nexts):
        """The entries before these offsets {partition: next}."""
        for partition, log in enumerate(self.logs):
            yield from log[:nexts.get(partition, 0)]

    def lengths(self):
        return {partition: len(log) for partition, log in enumerate(self.logs) if log}


class Recount:
    """The counts that entries must have, by a naive recount."""

    def __init__(self, entries):
        self.minutes, self.pages = collections.defaultdict(lambda: [0, 0]), collections.defaultdict(lambda: [0, 0])
        self.lines = self.rejected = self.hits = self.bytes = 0
        for entry in entries:
            self.lines += 1
            if entry.minute is None:
                self.rejected += 1
                continue
            for cell in self.minutes[entry.minute], self.pages[entry.path]:
                cell[0] += 1
                cell[1] += entry.bytes
            self.hits += 1
            self.bytes += entry.bytes


class KafkaCase(Case):
    broker = None  # of the whole program; see main()
    topics = 0

    def setUp(self):
        super().setUp()
        self.process, self.starts, self.configured = None, 0, []
        self.group = os.path.basename(self.dir)

    # ---- topics and the configuration

    def new_topic(self, partitions=4, **config):
        KafkaCase.topics += 1
        name = f"t{KafkaCase.topics}"
        self.broker.create_topic(name, partitions, **config)
        return name

    def new_compacted_topic(self):
        """With one partition. Its broker compacts whatever is in a segment that is over."""
        return self.new_topic(1, cleanup_policy="compact", min_cleanable_dirty_ratio=0.01, segment_ms=200, max_compaction_lag_ms=200)

    def compact(self, topic, before, most, roll):
        """Wait until at most so many records are left before an offset; roll() produces a record, which ends a segment."""
        until = time.monotonic() + TIMEOUT_S
        count = last = None
        while count is None or count > most or count != last:
            self.assertLess(time.monotonic(), until, f"{count} messages, and no compaction")
            roll()
            time.sleep(0.4)
            count, last = sum(message.offset < before for message in self.broker.read(topic)), count

    def configure(self, sources, more="", flush="100ms", member="", name="tallyd.yaml"):
        """`sources`: {topic: what stands below it, in one line}, or Feeds; `member`: more of `kafka`."""
        rows = []
        if not isinstance(sources, dict):
            sources = {feed.topic: f"decode: [{feed.decode}]" for feed in sources}
        self.configured = list(sources)
        for topic, rest in sources.items():
            rows.append(f"  {topic}: {{type: kafka{', ' if rest else ''}{rest}}}\n")
        text = (f"kafka: {{brokers: \"{self.broker.address}\", group: {self.group}{member}}}\nsources:\n{''.join(rows)}"
                f"aggregate: {{flush: {flush}}}\nhttp: {{listen: \"127.0.0.1:0\"}}\n{more}")
        self.write(name, text.encode())

    # ---- the daemon

    def run_daemon(self, *arguments, failpoint=None, consuming=True):
        """Start it, and wait until it consumes. How long that took is in self.start_s."""
        environment = dying_at(failpoint) if failpoint else None
        self.starts += 1
        self.log_name = f"log.{self.starts}"
        begun = time.monotonic()
        with open(self.path(self.log_name), "wb") as log:
            self.process = subprocess.Popen([*command(), "run", "-c", "tallyd.yaml", *arguments], cwd=self.dir,
                                            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=log,
                                            env=environment)
        self.addCleanup(self.process.wait)
        self.addCleanup(self.process.kill)
        if consuming:
            self.wait_for_log("event=consuming ")
            self.start_s = time.monotonic() - begun
        return self.process

    def said(self):
        return self.read(self.log_name).decode(errors="replace")

    def wait_for(self, what, good, alive=True, timeout_s=TIMEOUT_S):
        """Until good(what()); the daemon must live for it."""
        end = time.monotonic() + timeout_s
        while not good(found := what()):
            self.assertLess(time.monotonic(), end, f"last: {found}\n{self.said()}")
            if alive:
                self.assertIsNone(self.process.poll(), f"last: {found}\n{self.said()}")
            time.sleep(0.01)
        return found

    def wait_for_log(self, pattern):
        return self.wait_for(lambda: re.search(pattern, self.said()), bool)

    def listening(self):
        """Where it answers by HTTP."""
        return "http://" + self.wait_for_log(r"event=started .*listen=(\S+)").group(1)

    def get(self, path):
        return get(self.listening() + path)

    def get_reply(self, path):
        """(status, body)"""
        return get_reply(self.listening() + path)

    def kill(self):
        self.process.kill()
        self.process.wait()

    def count_by_killed(self, source, rounds, send):
        """Daemons count what is sent; each is killed once it has stored some of it."""
        for _ in range(rounds):
            self.run_daemon()
            before = sum(self.nexts(source).values())
            send()
            self.wait_for(lambda: sum(self.nexts(source).values()), lambda found, before=before: found > before)
            self.kill()

    def stop(self, number=signal.SIGTERM):
        self.wait_for_log("event=started ")  # before, a signal ends it as any process
        self.process.send_signal(number)
        self.wait_for(self.process.poll, lambda status: status is not None, alive=False)
        self.assertEqual(EX_OK, self.process.returncode, self.said())
        self.assertIn("event=stopped", self.said())

    def refused(self, status, *texts):
        """A daemon that must not start, but say why."""
        self.run_daemon(consuming=False)
        self.assertEqual(status, self.process.wait(TIMEOUT_S), self.said())
        for part in texts:
            self.assertIn(part, self.said())

    # ---- what is in the store

    def sql(self, question, *values):
        """Its rows. Read-only, so that what a crash left behind is still there for the daemon."""
        if not os.path.exists(self.path("tallyd.db")):
            return []
        base = sqlite3.connect(f"file:{self.path('tallyd.db')}?mode=ro", uri=True, timeout=TIMEOUT_S)
        with contextlib.closing(base):
            try:
                return base.execute(question, values).fetchall()
            except sqlite3.OperationalError as error:
                # A store that was not made whole yet: it has a rollback journal only until it has its tables.
                if "no such table" in str(error) or os.path.exists(self.path("tallyd.db-journal")):
                    return []
                raise

    def nexts(self, source):
        """{partition: offset of the next message to count}, where it is not 0"""
        return dict(self.sql("SELECT CAST(part AS INTEGER), next FROM position WHERE source = ? AND next > 0", source))

    def book(self, source, entry):
        """An entry of the books of a source, over its partitions."""
        found = self.sql("SELECT sum(value) FROM book WHERE source = ? AND report = 0 AND entry = ?", source, entry)
        return found[0][0] or 0 if found else 0

    def wait_consumed(self, source, count):
        self.wait_for(lambda: self.book(source, "consumed"), lambda found: found >= count)
        self.assertEqual(count, self.book(source, "consumed"))

    def wait_counted(self, *feeds):
        """Until all that was fed is in the store."""
        for feed in feeds:
            feed.flush()
            try:
                self.wait_for(lambda feed=feed: self.nexts(feed.source),
                              lambda found, feed=feed: found == feed.lengths())
            except AssertionError:
                print(f"sent: {feed.lengths()}, in the topic: {self.broker.watermarks(feed.topic)}")
                raise

    # ---- is it exact?

    def check_books(self):
        """They balance, whatever was going on."""
        books = collections.defaultdict(collections.Counter)
        for source, part, report, entry, value in self.sql("SELECT source, part, report, entry, value FROM book"):
            books[source, part, report][entry] += value
        for (source, part, report), book in books.items():
            where = f"{source} {part} report {report}: {dict(book)}"
            if source and report == 0:
                rejected = sum(value for entry, value in book.items() if entry.startswith("rejected."))
                self.assertEqual(book["consumed"], book["parsed"] + rejected, where)
            elif source:
                self.assertEqual(book["parsed"], book["counted"] + book["filtered"] + book["late"], where)

    def check_prefix(self, *feeds):
        """With the daemon dead: the store holds exactly what is before its offsets."""
        self.check_books()
        expected = Recount([])
        for feed in feeds:
            feed.flush()
            nexts = self.nexts(feed.source)
            for partition, at in nexts.items():
                self.assertLessEqual(at, len(feed.logs[partition]))
            of_feed = Recount(feed.until(nexts))
            self.assertEqual((of_feed.lines, of_feed.hits),
                             (self.book(feed.source, "consumed"), self.book(feed.source, "parsed")), feed.source)
            expected.hits += of_feed.hits
            expected.bytes += of_feed.bytes
        if expected.hits > 0:
            self.assertEqual((expected.hits, expected.bytes),
                             tuple(self.total(measure, span=SPAN) for measure in ("hits", "bytes")))

    def verify(self):
        for topic in self.configured:
            self.broker.watermarks(topic)  # each partition has its leader: the broker may just have been started
        for more in [], ["--store-only"]:
            self.tallyd("verify", "-c", "tallyd.yaml", *more)

    def check_all(self, *feeds):
        """All is counted, once, minute by minute and page by page."""
        self.wait_counted(*feeds)
        if self.process.poll() is None:
            self.stop()
        self.check_prefix(*feeds)
        expected = Recount(entry for feed in feeds for log in feed.logs for entry in log)
        found = {(int(row["time"][11:13]) * 60 + int(row["time"][14:16])): [int(row["hits"]), int(row["bytes"])]
                 for row in self.query("site", "--step", "minute", "--measure", "all", span=SPAN) if row["hits"] != "0"}
        self.assertEqual(dict(expected.minutes), found)
        pages = {row["path"]: [int(row["hits"]), int(row["bytes"])]
                 for row in self.query("pages", "--top", "1000", "--measure", "all", span=SPAN)}
        self.assertEqual(dict(expected.pages), pages)
        self.verify()


def main(heap_mib=512):
    """unittest.main() with a broker for all tests of a program; without one, a skip."""
    home = tempfile.mkdtemp(prefix="tallyd-kafka-")
    try:
        kafka.install()
        KafkaCase.broker = kafka.Broker(home, heap_mib).start()
    except kafka.Missing as error:
        shutil.rmtree(home, ignore_errors=True)
        print(f"skipped: {error}")
        sys.exit(77)
    try:
        unittest.main(argv=sys.argv[:1] + sys.argv[1:])
    finally:
        KafkaCase.broker.kill()
        shutil.rmtree(home, ignore_errors=True)
