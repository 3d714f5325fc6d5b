#!/usr/bin/env python3
"""Every event of a real Kafka broker is counted exactly once, no matter what is killed, paused or restarted.

Two topics with different decoders are fed while the daemon is killed at random moments and at every failpoint, stopped
and woken, told to end; while the broker is killed; while the store is locked by another; with the group's committed
offsets reset. After each death the store must hold exactly the lines before its offsets, by a recount of what was
produced; in the end all of them, and `tallyd verify` finds no difference.

    TALLYD_ROUNDS=N    kills at random moments (8 by default); with more, the rest is longer as well
    TALLYD_MINUTES=N   instead: as many as there are in so many minutes
    TALLYD_SEED=N      repeats a run, as far as the moments of a machine can be repeated
"""

import contextlib
import os
import random
import signal
import sqlite3
import threading
import time

from harness import EX_OK, TIMEOUT_S, dice, draw_death, failpoints
from kafkacase import SPAN, Feed, KafkaCase, in_envelope, main

ROUNDS = int(os.environ.get("TALLYD_ROUNDS") or 8)
MINUTES = float(os.environ.get("TALLYD_MINUTES") or 0)
# Then both topics and the store begin anew, so that they stay small enough to be recounted often.
STEPS_OF_EPOCH = 25
LINES_OF_EPOCH_MAX = 60000


def places():
    """All failpoints but those of the store in MongoDB, and of commands that the daemon does not run here."""
    others = ("mongo.", "rollup.", "top.", "weeks.", "ttl.", "raw.", "expire.", "forget.", "drop.", "backup.", "restore.", "copy.",
              "past.", "upgrade.", "replace.", "condense.", "slot.", "claim.", "roll_up.", "replay.")
    return [name for name in failpoints() if not name.startswith(others)]


class Exactness(KafkaCase):
    def setUp(self):
        super().setUp()
        self.dice = dice()

    def feeds(self):
        """Two topics: the same lines by different ways, a few of them bad."""
        return (Feed(self, 4, "combined", compression_codec=self.dice.choice(["none", "lz4", "zstd"])),
                Feed(self, 2, "json:/message, combined", in_envelope))

    def begin(self):
        for name in os.listdir(self.dir):
            os.remove(self.path(name))
        self.pair = self.feeds()
        self.rejects = self.new_topic(1)
        self.configure(self.pair, f"rejects: {{topic: {self.rejects}}}\n")

    def check_rejects(self):
        """Each rejected line is in the dead-letter topic at least once, as it came and with its place."""
        found = set()
        for message in self.broker.read(self.rejects):
            said = dict(message.headers)
            place = (said["tallyd.topic"].decode(), int(said["tallyd.partition"]), int(said["tallyd.offset"]))
            found.add((*place, message.value))
        expected = {(feed.topic, partition, offset, entry.raw) for feed in self.pair
                    for partition, log in enumerate(feed.logs) for offset, entry in enumerate(log)
                    if entry.minute is None}
        self.assertEqual(set(), expected ^ found if len(expected ^ found) < 20 else sorted(expected ^ found)[:20])

    # ---- every failpoint, once and again

    def die_at(self, name, times):
        """Feed the daemon until it has died at that place."""
        process = self.run_daemon(failpoint=f"{name}:{times}", consuming=False)
        until, told = time.monotonic() + TIMEOUT_S, False
        while process.poll() is None:
            self.assertLess(time.monotonic(), until, f"failpoint {name}:{times} was not reached\n{self.said()}")
            for feed in self.pair:
                feed.send(100, seconds=60)
                feed.flush()
            time.sleep(0.05)
            if name == "stop.drained" and not told and "event=consuming" in self.said():
                process.send_signal(signal.SIGTERM)
                told = True
        self.assertEqual(-signal.SIGKILL, process.returncode, self.said())

    def test_killed_at_every_failpoint(self):
        self.begin()
        names = places()
        self.assertGreater(len(names), 8)
        for name in names:
            for times in [1] if ROUNDS <= 8 or name == "stop.drained" else [1, 2, 3]:
                with self.subTest(failpoint=name, times=times):
                    self.die_at(name, times)
                    self.check_prefix(*self.pair)
        self.run_daemon()
        self.check_all(*self.pair)
        self.check_rejects()

    # ---- anything at random moments

    def feed_on(self):
        """In a thread: bursts and pauses, until told to stop."""
        own = random.Random(self.seed_of_feeder)
        try:
            while not self.enough.is_set():
                feed = own.choice(self.pair)
                if sum(sum(feed.lengths().values()) for feed in self.pair) < LINES_OF_EPOCH_MAX:
                    feed.send(own.choice([1, 30, 300, 2000]), seconds=own.choice([0, 10, 60, 300]))
                self.enough.wait(own.random() * 0.1)
        except Exception as error:  # pylint: disable=broad-except; said by the main thread
            self.trouble = error

    def doze(self):
        """A moment, short ones more often. It is by time: the threads of librdkafka and of the broker have no failpoints."""
        time.sleep(self.dice.random() ** 2 * 0.8)

    def be_killed(self):
        self.doze()
        self.kill()

    def be_killed_at_a_failpoint(self):
        self.kill()
        self.check_prefix_fed()
        self.run_daemon(failpoint=draw_death(self.dice, places(), 5), consuming=False)
        try:
            self.process.wait(0.2 + self.dice.random())
        except Exception:  # pylint: disable=broad-except; it was not passed so often
            self.kill()

    def be_paused(self):
        self.process.send_signal(signal.SIGSTOP)
        self.doze()
        if self.dice.random() < 0.7:
            self.process.send_signal(signal.SIGCONT)
            self.doze()
        self.kill()

    def be_told_to_end(self):
        self.doze()
        self.stop(self.dice.choice([signal.SIGTERM, signal.SIGINT]))

    def have_the_broker_killed(self):
        self.broker.kill()
        if self.dice.random() < 0.3:
            self.kill()
            self.broker.start()
            return
        self.broker.start()
        self.doze()
        self.kill()

    def have_the_offsets_reset(self):
        self.doze()
        self.kill()
        for feed in self.pair:
            self.broker.commit(self.group, feed.topic, dict.fromkeys(range(len(feed.logs)), 0))

    def have_the_store_locked(self):
        if not os.path.exists(self.path("tallyd.db")):
            return self.be_killed()
        base = sqlite3.connect(self.path("tallyd.db"), timeout=TIMEOUT_S, isolation_level=None)
        base.execute("PRAGMA wal_autocheckpoint = 0")
        base.execute("BEGIN IMMEDIATE")
        self.doze()
        if self.dice.random() < 0.5:
            self.kill()
            base.execute("ROLLBACK")
        else:
            base.execute("ROLLBACK")
            self.doze()
            self.kill()
        base.close()
        return None

    STEPS = [(be_killed, 5), (be_killed_at_a_failpoint, 11), (be_paused, 3), (be_told_to_end, 1),
             (have_the_offsets_reset, 2), (have_the_store_locked, 2), (have_the_broker_killed, 0.6)]

    def check_prefix_fed(self):
        """While it is fed: the feeding waits, so that the recount stands still."""
        with self.standstill():
            self.check_prefix(*self.pair)

    @contextlib.contextmanager
    def standstill(self):
        self.stop_feeding()
        yield
        self.start_feeding()

    def play_epoch(self, steps):
        """Begin anew, so many steps, and the end: all is there."""
        self.begin()
        self.start_feeding()
        try:
            for _ in range(steps):
                self.run_daemon(consuming=self.dice.random() < 0.9)
                step, = self.dice.choices([s for s, _ in self.STEPS], [w for _, w in self.STEPS])
                self.history.append(step.__name__)
                step(self)
                self.kills += self.process.returncode == -signal.SIGKILL
                self.check_prefix_fed()
                if self.dice.random() < 0.1 and os.path.exists(self.path("tallyd.db")):
                    with self.standstill():
                        self.verify()
        finally:
            self.stop_feeding()
        if self.dice.random() < 0.5:
            for feed in self.pair:
                feed.again()
        self.run_daemon()
        self.check_all(*self.pair)
        self.check_rejects()

    def start_feeding(self):
        self.enough, self.trouble, self.seed_of_feeder = threading.Event(), None, self.dice.random()
        self.feeder = threading.Thread(target=self.feed_on)
        self.feeder.start()

    def stop_feeding(self):
        self.enough.set()
        self.feeder.join()
        if self.trouble:
            raise self.trouble

    def test_killed_at_random_moments(self):
        self.kills, self.history = 0, []
        begun = time.monotonic()
        try:
            while time.monotonic() < begun + MINUTES * 60 if MINUTES else self.kills < ROUNDS:
                self.play_epoch(STEPS_OF_EPOCH if MINUTES else min(STEPS_OF_EPOCH, ROUNDS - self.kills))
        finally:
            print(f"{len(self.history)} deaths, {self.kills} by SIGKILL, in {time.monotonic() - begun:.0f} s; the last: "
                  f"{' '.join(self.history[-5:])}")

    # ---- one thing at a time, for sure

    def test_broker_killed_and_restarted(self):
        self.begin()
        feed = self.pair[0]
        feed.send(5000, 600)
        feed.flush()
        self.run_daemon()
        self.wait_counted(feed)
        for _ in range(2 if ROUNDS > 8 else 1):
            self.broker.kill()
            feed.send(5000, 600)
            time.sleep(0.2)
            self.broker.start()
            feed.send(5000, 600)
            self.wait_counted(feed)
        self.check_all(*self.pair)

    def test_stopped_by_the_kernel_and_woken(self):
        self.begin()
        feed = self.pair[0]
        self.run_daemon()
        for _ in range(3):
            feed.send(3000, 600)
            self.process.send_signal(signal.SIGSTOP)
            feed.flush()
            time.sleep(0.5)
            self.process.send_signal(signal.SIGCONT)
        self.check_all(*self.pair)

    def test_offsets_of_the_group_mean_nothing(self):
        self.begin()
        feed = self.pair[0]
        feed.send(4000, 600)
        self.run_daemon()
        self.wait_counted(feed)
        self.wait_for(lambda: self.broker.committed(self.group, feed.topic, 4), lambda found: found == feed.lengths())
        self.kill()
        for offset in 0, 1_000_000:
            self.broker.commit(self.group, feed.topic, dict.fromkeys(range(4), offset))
            self.run_daemon()
            self.kill()
            self.check_prefix(feed)
        self.run_daemon()
        self.check_all(feed, self.pair[1])

    def test_the_same_lines_again_are_new_events(self):
        self.begin()
        feed = self.pair[0]
        feed.send(4000, 600)
        self.run_daemon()
        self.wait_counted(feed)
        once = self.total(span=SPAN)
        feed.again()
        self.check_all(feed, self.pair[1])
        self.assertEqual(2 * once, self.total(span=SPAN))

    def test_a_restart_after_a_kill_takes_no_second(self):
        self.begin()
        self.pair[0].send(20000, 600)
        self.pair[0].flush()
        seconds = []
        for _ in range(5):
            self.run_daemon()
            seconds.append(self.start_s)
            self.kill()
        self.assertLess(min(seconds), 1, seconds)  # of others the computer may have been busy; a session's timeout would hold up each
        self.run_daemon()
        self.check_all(*self.pair)

    def test_sigterm_stores_what_was_read(self):
        self.begin()
        self.configure(self.pair, "run: {stop_timeout: 30s}\n", flush="1h")
        self.run_daemon()
        self.pair[0].send(30000, 600)
        self.pair[0].flush()
        time.sleep(0.5)
        begun = time.monotonic()
        self.stop()
        self.assertLess(time.monotonic() - begun, 20)  # not at the end of stop_timeout
        self.assertGreater(self.book(self.pair[0].source, "consumed"), 0)
        self.check_prefix(*self.pair)
        self.run_daemon()
        self.pair[0].flush()
        time.sleep(0.5)
        self.process.send_signal(signal.SIGTERM)
        self.assertEqual(EX_OK, self.process.wait(TIMEOUT_S))
        self.check_prefix(*self.pair)


if __name__ == "__main__":
    main()
