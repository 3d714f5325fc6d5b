"""The world to which faults are done: a topic and a file whose every event is known, and the daemons that count them.

An event is known by its path, which names the incarnation, the partition and a block of BLOCK events, and by its size, which is
BASE to the power of its place in the block. So the hits and bytes of a path say which events of the block were counted, and how
often: fewer than BASE times each.
"""

import collections
import glob
import json
import os
import random
import re
import signal
import subprocess
import time
import urllib.request

import rdkafka
from harness import EX_CONFIG, EX_DATAERR, EX_NOPERM, EX_USAGE, ROOT, command
from schedule import DAEMONS
from transaction import Transaction

BLOCK, BASE = 20, 4
IN_TRANSACTION = 0.3  # of the records, while there is one
DAY_S = 86400
LINE = '198.51.100.7 - - [%s] "GET %s HTTP/1.1" 200 %d "-" "Mozilla/5.0"'
KNOWN = re.compile(rb'"GET (\S+) HTTP/1.1" 200 (\d+) ')
LATE_DAYS, ANCIENT_DAYS = (5, 30), 5 * 365
# Statuses that do not pass by themselves. A daemon that ends so is started again only as its words say (--accept).
FINAL = (EX_USAGE, EX_DATAERR, EX_NOPERM, EX_CONFIG)
AGAIN_TURNS = 5
ACCEPT, AGAIN = re.compile(r"`tallyd run --accept (\S+)`"), re.compile("restart tallyd to resume|and start again")
DEFINITION = re.compile(r"generation \d+ of report|is generation \d+ in ")


class Lines:
    """Events of one kind, each with an identity: `times` has all that were made, {(path, size): its time}."""

    def __init__(self, dice, name):
        self.dice, self.name = random.Random(dice.random()), name
        self.times, self.counts = {}, collections.Counter()

    def line(self, incarnation, partition):
        """One line; some are late, some ancient, some no line at all."""
        chance, now = self.dice.random(), int(time.time())
        if chance < 0.005:
            return b"no line at all: %d" % self.dice.randrange(1 << 30)
        number = self.counts[incarnation, partition]
        self.counts[incarnation, partition] += 1
        if chance < 0.015:
            now -= DAY_S * ANCIENT_DAYS
        elif chance < 0.045:
            now -= self.dice.randrange(*(DAY_S * days for days in LATE_DAYS))
        path, size = f"/{self.name}/i{incarnation}/p{partition}/b{number // BLOCK}", BASE ** (number % BLOCK)
        self.times[path, size] = now
        return (LINE % (time.strftime("%d/%b/%Y:%H:%M:%S +0000", time.gmtime(now)), path, size)).encode()


def identity(line):
    """(path, size) of a line, None of one that is rejected."""
    found = KNOWN.search(line)
    return (found[1].decode(), int(found[2])) if found else None


class Topic(Lines):
    """`there`: {(incarnation, partition, offset): identity} of all records that were ever in it, as the broker itself says, but for
    those that it lost; `gone`: {(incarnation, partition): first offset that retention left}; `lost`: {(incarnation, partition):
    [(offset, identity)] of each time it lost its tail}, `cut_at` the same: the first offset that was given twice; `cuts`: {incarnation:
    times}."""

    SCHEME = "kafka:"

    def __init__(self, dice, broker, name, partitions=4):
        super().__init__(dice, "t")
        self.broker, self.topic, self.partitions, self.incarnation = broker, name, partitions, 1
        self.there, self.gone, self.was_recreated = {}, {}, False
        self.lost, self.cut_at, self.cuts = collections.defaultdict(list), {}, collections.Counter()
        self.transaction = Transaction(broker, name, partitions)
        broker.create_topic(name, partitions)
        self.producer = broker.producer()

    def produce(self, count):
        for _ in range(count):
            partition = self.dice.randrange(self.partitions)
            line, in_transaction = self.line(self.incarnation, partition), self.dice.random() < IN_TRANSACTION
            if in_transaction and self.transaction.is_open:
                self.transaction.send(partition, line, identity(line))
            else:
                self.producer.send(self.topic, partition, line)

    @property
    def aborted(self):
        return self.transaction.aborted

    def read(self):
        """The records that are in it now, but for those that a transaction hides."""
        return {(self.incarnation, message.partition, message.offset): identity(message.value)
                for message in self.broker.read(self.topic)}

    def places(self):
        """{identity: (partition, offset)} of what is there, by the names that a store has."""
        return {one: (str(partition), offset) for (_, partition, offset), one in self.there.items() if one is not None}

    def note(self):
        """Call it before anything goes."""
        self.producer.flush()
        self.there.update(self.read())

    def recreate(self):
        self.note()
        self.transaction.abandon()
        self.producer.close()
        self.broker.delete_topic(self.topic)
        self.broker.create_topic(self.topic, self.partitions)
        self.producer = self.broker.producer()
        self.incarnation += 1
        self.was_recreated = True

    def lose_tail(self, left):
        """The broker dies, and the newest segment of each partition is cut to so much of it: {partition: share}."""
        self.note()
        self.transaction.abandon()
        self.producer.close()
        self.broker.kill()
        for partition, share in left.items():
            newest = max(glob.glob(os.path.join(self.broker.home, "data", f"{self.topic}-{partition}", "*.log")))
            os.truncate(newest, int(os.path.getsize(newest) * share))
        self.broker.start()
        self.broker.wait_for_leaders(self.topic, self.partitions)
        ends = self.ends()
        self.transaction.mend()
        self.producer = self.broker.producer()
        self.note_lost({partition: ends[partition] for partition in left})
        self.was_recreated = True  # what is there is to be counted from its beginning

    def note_lost(self, ends):
        """The records that were there and are not, or are hidden because the end of their transaction is lost."""
        self.cuts[self.incarnation] += 1
        for partition, end in ends.items():
            where = self.incarnation, partition
            self.cut_at[where] = min(end, self.cut_at.get(where, end))
        now, lost = self.read(), collections.defaultdict(list)
        for key, known in sorted(self.there.items(), key=lambda one: one[0]):
            where, offset = key[:2], key[2]
            if key[0] == self.incarnation and offset >= self.gone.get(where, 0) and now.get(key, "none") != known:
                lost[where].append((offset, known))
                del self.there[key]
        for where, records in lost.items():
            self.lost[where].append(records)

    def expire(self, share):
        """As retention does: so much of each partition. A broker that was killed may have some of it again."""
        self.note()
        self.was_recreated = False  # what was done last
        before = {}
        for partition, (low, high) in self.broker.watermarks(self.topic).items():
            before[partition] = low + int((high - low) * share)
            where = self.incarnation, partition
            self.gone[where] = max(before[partition], self.gone.get(where, 0))
        self.broker.delete_records(self.topic, before)

    def ends(self):
        """{partition: offset of the next record}"""
        return {partition: high for partition, (_, high) in self.broker.watermarks(self.topic).items()}

    def restart_broker(self):
        """A transaction stays open meanwhile."""
        self.producer.flush()
        self.broker.kill()
        self.broker.start()
        self.broker.wait_for_leaders(self.topic, self.partitions)

    def length(self):
        return sum(self.counts[self.incarnation, partition] for partition in range(self.partitions))

    def close(self):
        self.transaction.close()
        self.producer.close()
        try:
            self.broker.delete_topic(self.topic)
        except rdkafka.Failed:
            pass


class LogFile(Lines):
    """A file that grows; of what is `there` the offset is the number of the line."""

    SCHEME = "file:"
    lost, cut_at, cuts, aborted = {}, {}, {}, frozenset()

    def __init__(self, dice, path):
        super().__init__(dice, "f")
        self.path, self.there, self.gone, self.incarnation, self.length = path, {}, {}, 1, 0
        self.begins, self.size = {}, 0
        self.file = open(path, "ab", buffering=0)  # noqa: SIM115 (closed by close())

    def produce(self, count):
        for _ in range(count):
            line = self.line(1, 0)
            self.there[1, 0, self.length] = identity(line)
            self.begins[identity(line)] = self.size
            self.length += 1
            self.size += len(line) + 1
            self.file.write(line + b"\n")

    def places(self):
        return {one: ("", offset) for one, offset in self.begins.items() if one is not None}

    def note(self):
        pass

    def ends(self):
        return {0: os.path.getsize(self.path)}

    def close(self):
        self.file.close()


class Daemon:
    """One that is started, killed, paused, and started again; what it ever said is in `log.*` of its folder."""

    def __init__(self, home, number, configure, topic):
        self.topic, self.home, self.number, self.configure = topic, os.path.join(home, f"d{number}"), number, configure
        self.process, self.starts, self.accepts, self.again_at, self.failpoint = None, 0, (), 0, None
        self.refusal, self.variant, self.follows = None, 1, "f" if number == DAEMONS - 1 else "t"
        os.makedirs(self.path("disk"))

    def path(self, name):
        return os.path.join(self.home, name)

    def environment(self):
        """Its clock and its disk can be spoiled while it runs: by files."""
        env = {**os.environ, "OTHERDAY_FILE": self.path("clock"), "FAULTY_PATH": self.path("disk"), "FAULTY_CALLS": "write",
               "FAULTY_AT": "1", "FAULTY_HOW": "full:" + self.path("full"),
               "LD_PRELOAD": f"{ROOT}/build/otherday.so {ROOT}/build/faulty.so"}
        if self.failpoint:
            env["TALLYD_FAILPOINT"] = self.failpoint
        return env

    def start(self):
        self.starts += 1
        with open(self.path("tallyd.yaml"), "w", encoding="utf-8") as file:
            file.write(self.configure(self))
        with open(self.path(f"log.{self.starts}"), "wb") as log:
            self.process = subprocess.Popen([*command(), "run", "-c", "tallyd.yaml", *self.accepts], cwd=self.home,
                                            stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=self.environment())
        self.failpoint = None

    def said(self):
        text = ""
        for number in range(1, self.starts + 1):
            with open(self.path(f"log.{number}"), encoding="utf-8", errors="replace") as log:
                text += log.read()
        return text

    def signal(self, number):
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(number)

    def kill(self):
        if self.process is not None:
            self.process.kill()
            self.process.wait()

    def supervise(self, turn):
        """As a service manager and an operator would: start what ended, with --accept where it asks for that."""
        if self.refusal is not None or self.process is not None and self.process.poll() is None:
            return
        status = self.process.returncode if self.process else 0
        if self.again_at == 0:
            self.again_at = turn + AGAIN_TURNS
            self.heed(status)
        elif turn >= self.again_at:
            self.again_at = 0
            self.start()

    def answer(self, asked):
        """Of TOPIC (go on) and TOPIC~ (it is another), where it asks which: an operator knows what was done to the topic."""
        return asked[-1] if self.topic.was_recreated else asked[0]

    def heed(self, status):
        with open(self.path(f"log.{self.starts}"), encoding="utf-8", errors="replace") as log:
            last = log.read()[-2000:]
        asked = ACCEPT.findall(last) if status == EX_DATAERR else []
        self.accepts = ("--accept", self.answer(asked)) if asked else ()
        asked = asked or AGAIN.search(last)
        if status in FINAL and self.starts == 1 and self.variant == 1 and "event=" not in last:
            raise RuntimeError(f"{self.home}: {last}")
        if (status in FINAL or status > 0 and DEFINITION.search(last)) and not asked:
            self.refusal = last.strip().splitlines()[-1] if last.strip() else f"exit status {status}"

    def redefine(self):
        self.variant = 2
        self.signal(signal.SIGCONT)
        self.signal(signal.SIGTERM)

    def advance(self, seconds):
        with open(self.path("clock.new"), "w", encoding="ascii") as file:
            file.write(str(seconds))
        os.replace(self.path("clock.new"), self.path("clock"))

    def fill_disk(self, full):
        if full:
            with open(self.path("full"), "w", encoding="ascii"):
                pass
        elif os.path.exists(self.path("full")):
            os.remove(self.path("full"))

    def heal(self):
        self.fill_disk(False)
        self.advance(0)
        self.signal(signal.SIGCONT)

    def status(self):
        """The status of a daemon; None: it does not answer."""
        found = re.findall(r"event=started .*listen=(\S+)", self.said())
        try:
            with urllib.request.urlopen(f"http://{found[-1]}/api/v1/status", timeout=2) as reply:
                return json.load(reply)
        except (OSError, IndexError):
            return None
