"""make bench-kafka: the daemon against a bare consumer, on a real broker, and writes the table, reached or not.

Two topics of the same lines, one compressed, are counted in turn by the bare consumer (bare.c) and by the daemon into
a fresh store, round after round; medians are compared. The daemon's clock runs from its start until the last message is
durable. Then: how old an event is when a query first sees it (pace.c), and how soon a killed daemon consumes again.
What was counted is compared with what was produced, and by `tallyd verify`: where it differs, the exit status is 1.
"""

import argparse
import collections
import contextlib
import csv
import functools
import http.client
import os
import re
import signal
import sqlite3
import statistics
import subprocess
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path[:0] = [os.path.join(ROOT, "bench"), os.path.join(ROOT, "tests", "servers")]

import daemon  # noqa: E402
import kafka  # noqa: E402
import measure  # noqa: E402
from measure import spread  # noqa: E402

DAY = ("2026-01-05", "2026-01-07")
PARTITIONS = 4
COUNT_S_MAX = 600  # of one round
POLL_S = 0.02
RESTARTS = 10
BOUND_MIB, BOUND_RATIO, BOUND_SKETCHES, BOUND_AGE_S, BOUND_RESTART_S = 400, 0.7, 0.6, 1.5, 1.0
SKETCHES = ", measures: {hits: count, bytes: sum(bytes), sizes: histogram(bytes), hosts: distinct(host)}"
NAME = "bench-kafka"
say = functools.partial(measure.say, NAME)


def parse_arguments():
    parser = argparse.ArgumentParser(description="Measure tallyd with a real Kafka broker; write bench/RESULTS.md.")
    parser.add_argument("--rounds", type=int, default=5, help="rounds of everything (default 5)")
    parser.add_argument("--messages", type=int, default=10_000_000, help="messages of a topic (default 10,000,000)")
    parser.add_argument("--rate", type=int, default=50_000, help="messages a second, for the age (default 50,000)")
    parser.add_argument("--seconds", type=int, default=60, help="for the age and the restarts (default 60)")
    measure.add_arguments(parser)
    return parser.parse_args()


class Daemon(daemon.Daemon):
    def __init__(self, build, work, address, topic, name, more="", measures=""):
        self.topic = topic
        age = "  age: {by: [slot]}\n" if more else ""
        super().__init__(build, os.path.join(work, name),
                         f'kafka: {{brokers: "{address}", group: bench-{name}}}\n'
                         f"sources:\n  {topic}: {{type: kafka, decode: [combined]{more}}}\n"
                         f"aggregate: {{flush: 1s}}\nreports:\n  site: {{}}\n  pages: {{by: [path]{measures}}}\n{age}")

    def start(self, stdin=subprocess.DEVNULL):
        self.begun = time.monotonic()
        super().start(stdin)

    def wait_until(self, good, what):
        while not (found := good()):
            self.check()
            if time.monotonic() > self.begun + COUNT_S_MAX:
                raise measure.Failed(f"{what}: not within {COUNT_S_MAX} s")
            time.sleep(POLL_S)
        return found

    def wait_for_log(self, pattern):
        return self.wait_until(lambda: re.search(pattern, self.said()), pattern)

    def stored(self):
        """Messages that are durable."""
        path = os.path.join(self.dir, "tallyd.db")
        if not os.path.exists(path):
            return 0
        base = sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=10)
        with contextlib.closing(base):
            try:
                return base.execute("SELECT coalesce(sum(next), 0) FROM position").fetchone()[0]
            except sqlite3.OperationalError:
                return 0  # it is being made

    def end(self, number=signal.SIGTERM):
        """Processor seconds in all."""
        self.process.send_signal(number)
        _, _, usage = os.wait4(self.process.pid, 0)
        self.process.returncode = 0
        return usage.ru_utime + usage.ru_stime

    def query(self, *arguments):
        argv = [self.program, "query", *arguments, "--format", "csv"]
        done = subprocess.run(argv, cwd=self.dir, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise measure.Failed(done.stderr.strip())
        return list(csv.DictReader(done.stdout.splitlines()))

    def verify(self):
        """The text of what it found wrong, or nothing."""
        done = subprocess.run([self.program, "verify", "-c", "tallyd.yaml"], cwd=self.dir, capture_output=True,
                              text=True, check=False)
        return [] if done.returncode == 0 else [f"tallyd verify: {(done.stdout + done.stderr).strip()}"]


class Runs:
    """Messages a second of the bare consumer and of the daemon on one topic."""

    def __init__(self, topic, measures=""):
        self.topic, self.measures = topic, measures
        self.bare, self.daemon, self.cpu_s, self.anon_mib, self.batch = [], [], [], [], []

    def ratio(self):
        return statistics.median(self.daemon) / statistics.median(self.bare)


def load(build, broker, topic, messages, codec):
    broker.create_topic(topic, PARTITIONS)
    traffic = subprocess.Popen([os.path.join(build, "traffic"), "--lines", str(messages), "--seed", "1", "--start",
                                DAY[0] + "T00:00:00Z"], stdout=subprocess.PIPE)
    loader = subprocess.run([os.path.join(build, "kafka_load"), broker.address, topic, str(PARTITIONS),
                             f"compression.codec={codec}"], stdin=traffic.stdout, capture_output=True, text=True,
                            check=False)
    if loader.returncode != 0 or traffic.wait() != 0 or int(loader.stdout) != messages:
        raise measure.Failed(f"topic {topic} could not be filled: {loader.stderr.strip()}")


def run_bare(build, address, topic, messages, *options):
    done = measure.run([os.path.join(build, "kafka_bare"), *options, address, topic, str(messages)])
    return messages / float(done.out.split()[2])


def run_daemon(build, work, address, runs, messages):
    name = f"{runs.topic}-{'sketches' if runs.measures else 'store'}"
    tallyd = Daemon(build, work, address, runs.topic, name, measures=runs.measures)
    measure.settle()
    tallyd.start()
    try:
        with measure.watching_memory(tallyd.process.pid) as peak:
            tallyd.wait_until(lambda: tallyd.stored() >= messages, "counting all messages")
            seconds = time.monotonic() - tallyd.begun
    finally:
        cpu_s = tallyd.end()
    runs.daemon.append(messages / seconds)
    runs.cpu_s.append(cpu_s)
    runs.anon_mib.append(peak[0] / 1024)
    return tallyd


def compare(tallyd, messages):
    """The faults in the counts of the last run, and the number of its series."""
    total = int(tallyd.query("site", "--from", DAY[0], "--to", DAY[1])[0]["value"])
    wrong = [] if total == messages else [f"{tallyd.topic}: {total:,} hits instead of {messages:,}"]
    base = sqlite3.connect(os.path.join(tallyd.dir, "tallyd.db"))
    with contextlib.closing(base):
        rows = base.execute("SELECT value FROM book WHERE entry = 'consumed'").fetchall()
    consumed = sum(value for (value,) in rows)
    if consumed != messages:
        wrong.append(f"{tallyd.topic}: {consumed:,} consumed instead of {messages:,}")
    return wrong + tallyd.verify()


# ---- how old is an event when a query can first see it?


class Reader(threading.Thread):
    """Asks for the count of every slot, again and again."""

    def __init__(self, host):
        super().__init__()
        self.connection = http.client.HTTPConnection(host, timeout=10)
        self.enough = threading.Event()
        self.seen = []  # (when answered, {slot: count})
        self.trouble = None

    def run(self):
        path = f"/api/v1/query?report=age&top=64&from=-2h&to={int(time.time()) + 3600}&format=csv"
        try:
            while not self.enough.is_set():
                begun = time.time()
                self.connection.request("GET", path)
                reply = self.connection.getresponse()
                text = reply.read().decode()
                if reply.status == 200:
                    rows = csv.DictReader(text.splitlines())
                    self.seen.append((time.time(), {int(row["slot"]): int(row["value"]) for row in rows}))
                elif reply.status not in (404, 503):
                    raise measure.Failed(f"the query was answered with {reply.status}: {text.strip()}")
                self.enough.wait(max(0.0, begun + POLL_S - time.time()))
        except (OSError, http.client.HTTPException, KeyError, ValueError, measure.Failed) as error:
            self.trouble = error


def ages(seen, start_s, slot_s, slots, per_slot):
    """{age in ms: events}: of each event from the begin of its slot until the answer that first counted it."""
    histogram, before = collections.Counter(), collections.Counter()
    for at, counts in seen:
        for slot, count in counts.items():
            known = before[slot]
            while known < count:  # lap by lap
                lap = known // per_slot
                some = min(count, (lap + 1) * per_slot) - known
                histogram[round(1000 * (at - start_s - (lap * slots + slot) * slot_s))] += some
                known += some
            before[slot] = count
    return histogram


def percentile(histogram, share):
    left = share * sum(histogram.values())
    for value in sorted(histogram):
        left -= histogram[value]
        if left <= 0:
            return value
    return max(histogram)


def measure_age(build, work, broker, rate, seconds):
    """(histogram of ages in ms, the most that the producer was behind in ms)"""
    broker.create_topic("paced", PARTITIONS)
    tallyd = Daemon(build, work, broker.address, "paced", "paced-store", ", fields: {slot: key}")
    tallyd.start()
    host = tallyd.wait_for_log(r"event=started .*listen=(\S+)").group(1)
    tallyd.wait_for_log("event=consuming ")
    producer = subprocess.Popen([os.path.join(build, "kafka_pace"), broker.address, "paced", str(PARTITIONS), str(rate),
                                 str(seconds)], stdout=subprocess.PIPE, text=True)
    start_ms, slot_ms, slots, per_slot = map(int, producer.stdout.readline().split())
    reader = Reader(host)
    reader.start()
    try:
        behind_ms = int(producer.communicate(timeout=seconds + 60)[0])
        tallyd.wait_until(lambda: tallyd.stored() >= rate * seconds, "counting what was paced")
        time.sleep(0.5)
    finally:
        reader.enough.set()
        reader.join()
        tallyd.end()
    if reader.trouble:
        raise measure.Failed(f"the reader: {reader.trouble}")
    histogram = ages(reader.seen, start_ms / 1000, slot_ms / 1000, slots, per_slot)
    if sum(histogram.values()) != rate * seconds:
        raise measure.Failed(f"{sum(histogram.values()):,} events were seen of {rate * seconds:,}")
    return histogram, behind_ms


def measure_restarts(build, work, broker, rate):
    """Seconds from the start of a daemon, whose forerunner was killed under load, until it says that it consumes; and
    until the store has more than before."""
    broker.create_topic("restarts", PARTITIONS)
    tallyd = Daemon(build, work, broker.address, "restarts", "restarts-store")
    producer = subprocess.Popen([os.path.join(build, "kafka_pace"), broker.address, "restarts", str(PARTITIONS),
                                 str(rate), str(600)], stdout=subprocess.DEVNULL)
    consuming, counted = [], []
    try:
        for number in range(RESTARTS + 1):
            before = tallyd.stored()
            tallyd.start()
            tallyd.wait_for_log("event=consuming ")
            consuming.append(time.monotonic() - tallyd.begun)
            tallyd.wait_until(lambda before=before: tallyd.stored() > before, "counting again")
            counted.append(time.monotonic() - tallyd.begun)
            time.sleep(1.5 + number * 0.1)
            tallyd.end(signal.SIGKILL)
    finally:
        producer.kill()
        producer.wait()
    return consuming[1:], counted[1:]  # the first was no restart


# ---- the table


def attempt(function, *arguments):
    """(result, None), or (None, why there is none)."""
    try:
        return function(*arguments), None
    except (measure.Failed, kafka.Missing, kafka.rdkafka.Failed, OSError, ValueError, sqlite3.Error) as error:
        say(error)
        return None, str(error)


def row(figure, least, value, reached):
    return [figure, least, value, "reached" if reached else "**missed**"]


def ratio_row(figure, runs, bound=BOUND_RATIO):
    ratio = runs.ratio()
    rates = f"{statistics.median(runs.daemon):,.0f} of {statistics.median(runs.bare):,.0f} messages/s"
    return row(figure, f"≥ {bound} ×", f"{ratio:.2f} × ({rates})", ratio >= bound)


def figures(plain, packed, sketched, age, restarts):
    rows = [["figure", "at least", "measured", "verdict"],
            ratio_row("daemon, Kafka → durable SQLite, against a bare C consumer", plain),
            row("peak anonymous memory (`RssAnon`) in that run", f"≤ {BOUND_MIB} MiB", f"{max(plain.anon_mib):.0f} MiB",
                max(plain.anon_mib) <= BOUND_MIB),
            ratio_row("the same with zstd-compressed messages", packed),
            ratio_row("the first with `histogram(bytes)` and `distinct(host)` by path", sketched, BOUND_SKETCHES)]
    if age[0]:
        p99_s = percentile(age[0][0], 0.99) / 1000
        rows.append(row("age of an event when a query first sees it, p99", f"≤ {BOUND_AGE_S} s", f"{p99_s:.2f} s",
                        p99_s <= BOUND_AGE_S))
    else:
        rows.append(["age of an event when a query first sees it, p99", f"≤ {BOUND_AGE_S} s", f"not measured: {age[1]}", ""])
    if restarts[0]:
        worst_s = max(restarts[0][0])
        rows.append(row(f"restart after SIGKILL until consuming again, worst of {RESTARTS}", f"≤ {BOUND_RESTART_S:g} s",
                        f"{worst_s:.2f} s", worst_s <= BOUND_RESTART_S))
    else:
        rows.append(["restart after SIGKILL until consuming again", f"≤ {BOUND_RESTART_S:g} s",
                     f"not measured: {restarts[1]}", ""])
    return rows


def beside(plain, packed, messages, age, restarts):
    rows = [["what", "plain", "zstd"]]
    for what, of in (("bare consumer, `rd_kafka_consumer_poll`, messages/s", lambda r: spread(r.bare, "", 0)),
                     ("bare consumer, `rd_kafka_consume_batch_queue`", lambda r: spread(r.batch, "", 0)),
                     ("daemon, messages/s", lambda r: spread(r.daemon, "", 0)),
                     ("daemon, processor time a message", lambda r: f"{statistics.median(r.cpu_s) / messages * 1e6:.2f} µs"),
                     ("daemon, peak `RssAnon`", lambda r: spread(r.anon_mib, " MiB", 0))):
        rows.append([what, of(plain), of(packed)])
    if age[0]:
        shares = ", ".join(f"p{share * 100:g} {percentile(age[0][0], share) / 1000:.2f} s" for share in (0.5, 0.9, 0.99, 1))
        rows.append(["age of an event", shares, f"the producer was at most {age[0][1]} ms behind its time"])
    if restarts[0]:
        rows.append(["restart until consuming", spread(restarts[0][0], digits=2), ""])
        rows.append(["restart until more is stored", spread(restarts[0][1], digits=2), ""])
    return rows


def report(arguments, work, plain, packed, sketched, age, restarts, wrong):
    about = (("SQLite", measure.library("sqlite3")), ("librdkafka", measure.library("rdkafka")),
             ("Apache Kafka", f"{kafka.VERSION}, one node on this machine"), ("Java", measure.first_line("java", "-version")))
    equal = f"Every run counted {arguments.messages:,} messages, and `tallyd verify` found no difference."
    return f"""
{measure.table(figures(plain, packed, sketched, age, restarts))}

Combined lines of 212 bytes over 100,000 paths, {PARTITIONS} partitions, {arguments.messages:,} messages in each topic; medians of
{arguments.rounds} rounds, bare consumer and daemon in turn, each from its start to its last message; the daemon's are then durable.
Broker, consumer and daemon share the machine. The age is that of each of {arguments.rate * arguments.seconds:,} events at
{arguments.rate:,} a second, flushed every second, from the begin of the 50 ms in which it was produced until the
answer to a question asked every 20 ms first counted it.

{measure.equality(wrong, equal)}

{measure.table(beside(plain, packed, arguments.messages, age, restarts))}

{measure.about(work, *about)}
"""


def measure_all(arguments, work, broker):
    """The faults, and the text."""
    build, messages = arguments.build, arguments.messages
    plain, packed, sketched = Runs("plain"), Runs("packed"), Runs("plain", SKETCHES)
    sketched.bare = plain.bare
    for runs, codec in ((plain, "none"), (packed, "zstd")):
        say(f"filling the topic {runs.topic}")
        load(build, broker, runs.topic, messages, codec)
    wrong = []
    for number in range(1, arguments.rounds + 1):
        say(f"round {number} of {arguments.rounds}, load {os.getloadavg()[0]:.2f}")
        for runs in plain, packed:
            runs.bare.append(run_bare(build, broker.address, runs.topic, messages))
            tallyd = run_daemon(build, work, broker.address, runs, messages)
            runs.batch.append(run_bare(build, broker.address, runs.topic, messages, "--batch"))
            say(f"{runs.topic}: bare {runs.bare[-1]:,.0f}, daemon {runs.daemon[-1]:,.0f}, batch {runs.batch[-1]:,.0f} "
                f"messages/s; {runs.anon_mib[-1]:.0f} MiB")
            if number == arguments.rounds:
                wrong += compare(tallyd, messages)
        tallyd = run_daemon(build, work, broker.address, sketched, messages)
        say(f"plain, with sketches: daemon {sketched.daemon[-1]:,.0f} messages/s; {sketched.anon_mib[-1]:.0f} MiB")
        if number == arguments.rounds:
            wrong += compare(tallyd, messages)
    say("the age of events")
    age = attempt(measure_age, build, work, broker, arguments.rate, arguments.seconds)
    say("restarts")
    restarts = attempt(measure_restarts, build, work, broker, arguments.rate)
    return wrong, report(arguments, work, plain, packed, sketched, age, restarts, wrong)


def run_all(arguments, work):
    kafka.install()
    broker = kafka.Broker(os.path.join(work, "broker"), heap_mib=1024).start(kafka.THOROUGHLY)
    try:
        return measure_all(arguments, work, broker)
    finally:
        broker.kill()


if __name__ == "__main__":
    sys.exit(measure.run_bench(NAME, parse_arguments(), run_all, (kafka.Missing, kafka.rdkafka.Failed)))
