"""How old is an event when it is stored: `tallyd run` on a pipe that is fed in time, watched from its database."""

import math
import os
import subprocess
import time

import measure

POLL_S, END_S = 0.1, 120
PATHS = 100_000  # of bench/site.h, drawn by Zipf's law with exponent 1
SAMPLES = 50_000


def pages_of(events):
    """How many pages so many events are of, on average."""
    weight = sum(1 / rank for rank in range(1, PATHS + 1))
    return sum(-math.expm1(-events / (weight * rank)) for rank in range(1, PATHS + 1))


def events_of(documents):
    """How many events it takes to touch so many documents of days and months; at most what touches nearly all."""
    low, high = 1.0, 1e8
    while high / low > 1.01:
        middle = math.sqrt(low * high)
        low, high = (middle, high) if 2 * pages_of(middle) < documents else (low, middle)
    return low


class Run:
    """One feed of `rate` events a second. It is given up as `late` when an event is not stored in `age_max_s`; None: never."""

    def __init__(self, rate, seconds, age_max_s=None):
        self.rate, self.seconds, self.age_max_s, self.late = rate, seconds, age_max_s, False
        self.seen = []  # (when, events stored)
        self.metrics = {}
        self.updates = None  # those of a run that is late are not known

    def is_late(self, stored):
        oldest_s = time.time() - self.start_ms / 1000 - stored / self.rate
        return self.age_max_s is not None and stored < self.rate * self.seconds and oldest_s > self.age_max_s

    def watch(self, base, daemon):
        """Until all is stored, or it is late. The books of a batch are the last of its updates to be sent."""
        before = consumed(base)
        feed = subprocess.Popen([os.path.join(os.path.dirname(daemon.program), "mongo_feed"), str(self.rate),
                                 str(self.seconds)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        try:
            daemon.start(feed.stdout)
            feed.stdout.close()  # it is the daemon's
            self.start_ms = int(feed.stderr.readline())
            until = time.time() + self.seconds + END_S
            while not self.seen or self.seen[-1][1] < self.rate * self.seconds:
                daemon.check()
                if time.time() > until:
                    raise measure.Failed(f"{self.seen[-1][1]:,} of {self.rate * self.seconds:,} events were stored within "
                                         f"{self.seconds + END_S} s")
                stored = consumed(base) - before
                self.late = self.is_late(stored)
                if self.late:
                    return
                if not self.seen or stored > self.seen[-1][1]:
                    self.seen.append((1000 * time.time(), stored))
                    self.metrics = daemon.metrics()
                time.sleep(POLL_S)
            self.behind_ms = int(feed.stderr.readline())
            self.updates = self.wait_for_roll_ups(daemon, time.time() + END_S)
        finally:
            feed.kill()
            feed.wait()
            daemon.end()

    @staticmethod
    def wait_for_roll_ups(daemon, until):
        """How many documents of days were updated, and how many of months, when these have all that was counted."""
        metrics = daemon.metrics()
        while metrics["tallyd_rollup_batches_waiting"] > 0 and time.time() < until:
            daemon.check()
            time.sleep(POLL_S)
            metrics = daemon.metrics()
        return metrics["tallyd_document_updates_total"], metrics["tallyd_rollup_updates_total"]

    def ages_s(self, skip_s):
        """Sorted, of events evenly drawn, but for those of the first seconds. Not of a run that is late."""
        ages, at, total = [], 0, self.rate * self.seconds
        for number in range(int(self.rate * skip_s), total, max(1, total // SAMPLES)):
            while self.seen[at][1] <= number:
                at += 1
            ages.append((self.seen[at][0] - self.start_ms) / 1000 - number / self.rate)
        return sorted(ages)


def consumed(base):
    """The sum over all standard inputs: each run has one of its own."""
    books = base.books.find({}, {"source": 1, "entries.consumed": 1})
    return sum(book.get("entries", {}).get("consumed", 0) for book in books if book.get("source", "").startswith("stdin:"))
